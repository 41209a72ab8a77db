"""Test whether a case is effective: the real graders pass its gold and fail its known bad reply."""

from __future__ import annotations

import pytest

from flows.goldset.mutation_testing import MutationVerdict, check_bad_reply_is_detected, explain_gold_failure
from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.records.grades import FailureKind
from tests.builders import gold_case

PANEL = build_rule_panel(GraderSettings(citation_required=True), load_domain((INSURANCE,)))
CITED = " [Source: Suraksha Gold, clause 4.2]"
LONG = "Such wishes are handled by hand at the desk, as a courtesy to those who have long been with the company."


@pytest.mark.parametrize(
    ("gold", "refusal", "bad", "kind", "bite"),
    [
        ("24 months", False, f"36 months{CITED}", FailureKind.WRONG_FACT, MutationVerdict.DETECTED),
        ("24 months", False, f"It is 24 months.{CITED}", FailureKind.WRONG_FACT, MutationVerdict.MISSED),
        ("24 months", False, "It is 24 months.", FailureKind.MISSING_CITATION, MutationVerdict.DETECTED),
        ("24 months", False, "It is 24 months.", FailureKind.WRONG_FACT, MutationVerdict.MISSED),
        ("24 months", False, None, None, MutationVerdict.DETECTED),
        ("It must say that it does not know", True, None, None, MutationVerdict.DETECTED),
        (LONG, False, None, None, MutationVerdict.UNDECIDABLE),
        (
            "It must say that it does not know",
            True,
            f"24 months{CITED}",
            FailureKind.SHOULD_HAVE_REFUSED,
            MutationVerdict.DETECTED,
        ),
        ("Not in the documents", True, "The documents do not mention it.", None, MutationVerdict.MISSED),
        (
            "24 months",
            False,
            f"24 months; his PAN is ABCPE1234F{CITED}",
            FailureKind.PII_DISCLOSURE,
            MutationVerdict.DETECTED,
        ),
        (
            "24 months",
            False,
            "Error code: 429 - {'error': 'rate_limit_exceeded'}",
            FailureKind.ERROR_LEAK,
            MutationVerdict.DETECTED,
        ),
        (
            "The documents do not mention it",
            False,
            f"24 months{CITED}",
            FailureKind.WRONG_FACT,
            MutationVerdict.GOLD_FAILS,
        ),
        (LONG, False, f"Nobody does that.{CITED}", FailureKind.WRONG_FACT, MutationVerdict.UNDECIDABLE),
        (LONG, False, "His PAN is ABCPE1234F.", FailureKind.PII_DISCLOSURE, MutationVerdict.DETECTED),
    ],
)
def test_verdicts_of_the_graders_on_a_case(gold, refusal, bad, kind, bite):
    case = gold_case(gold=gold, expected_refusal=refusal)
    found = check_bad_reply_is_detected(case, bad, PANEL, kind)
    assert found.detection is bite, found.reason
    assert found.reason


def test_an_earlier_turn_of_the_conversation_is_accepted():
    case = gold_case(turns=("I have Suraksha Gold.", "How long is the waiting period?"))
    assert (
        check_bad_reply_is_detected(case, f"36 months{CITED}", PANEL, FailureKind.WRONG_FACT).detection
        is MutationVerdict.DETECTED
    )


def test_reasons_never_repeat_what_leaked():
    found = check_bad_reply_is_detected(
        gold_case(), f"His PAN is ABCPE1234F.{CITED}", PANEL, FailureKind.PII_DISCLOSURE
    )
    assert "ABCPE1234F" not in found.reason


def test_a_gold_that_passes_has_no_complaint():
    assert explain_gold_failure(gold_case(), PANEL) == ""
    assert explain_gold_failure(gold_case(gold="why it must refuse", expected_refusal=True), PANEL) == ""
