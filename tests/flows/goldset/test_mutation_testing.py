"""Test that the real graders grade mutants (known wrong replies), and that the caught mutants are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.goldset.mutation_testing import (
    count_caught_mutants,
    grade_gold_as_reply,
    grade_mutants,
    pair_cases_of_same_field,
)
from monitors.domains.pack import INSURANCE, load_domain
from monitors.goldset.build.build import build_cases, load_templates
from monitors.goldset.build.sheets import load_fact_schema, read_fact_sheets
from monitors.goldset.load import load_suite
from monitors.graders.base import SAYS_MORE, STATEMENT, UNCLEAR, GraderSettings
from monitors.graders.disclosure import DisclosureGrader
from monitors.graders.panel import build_rule_panel
from monitors.mutations.mutants import MutationOperator
from monitors.records.base import Language, Severity
from tests.monitors.goldset.gold_cases import case_of

PANEL = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))
PACK = "health_insurance"
DEMO = load_suite(Path(__file__).parents[3] / "deployments" / "demo" / "suraksha.jsonl").cases
REAL = Path(__file__).parents[4] / "shared" / "data" / "seed_app" / "policy_facts.jsonl"


def test_a_right_gold_is_right_and_a_broken_one_is_named():
    """A correct gold passes as an answer to its own question. A gold that contradicts itself is reported.

    An answer that repeats such a gold would fail or stay ungraded.
    """
    assert grade_gold_as_reply(case_of(), PANEL).wrong == ""
    denies_itself = case_of(gold="It is not 24 months, it is 36 months")
    assert "denies" in grade_gold_as_reply(denies_itself, PANEL).wrong
    contradicts_itself = case_of(question="Is it covered?", gold="Yes. It is not covered.")
    assert grade_gold_as_reply(contradicts_itself, PANEL).open


@pytest.mark.parametrize(
    ("question", "gold", "reason"),
    [
        ("How long is the wait?", "24 months", ""),
        ("How long is the wait?", "24 months, counted from the first policy without any break", SAYS_MORE),
        ("When can I call?", "Mon-Fri 8:30-18:00", ""),
        ("When can I call?", "around the clock", ""),
        ("Is it covered?", "Yes, it is covered until week 28", ""),
        ("Is the bread vegan?", "Yes, it is vegan", ""),
        ("Does the baker add milk?", "Yes, he adds milk", UNCLEAR),
        ("Can I renew a book online?", "Yes, online", ""),
        ("Who settles claims?", "Lotus Clinic", ""),
        ("How does it end?", "The contract is ended by either side", STATEMENT),
    ],
)
def test_a_gold_that_passes_only_verbatim_is_reported(question: str, gold: str, reason: str):
    """If the graders pass only the exact words of a gold, and not a shorter correct reply, the gold is reported."""
    graded = grade_gold_as_reply(case_of(question=question, gold=gold), PANEL)
    assert (graded.wrong, graded.open, graded.open_otherwise) == ("", "", reason)


def test_only_a_failing_grade_is_a_catch():
    """A mutant is caught only if a grade fails.

    A mutant that no grader can judge counts neither as caught nor as passed.
    """
    graded = list(grade_mutants([case_of()], [DisclosureGrader()]))
    caught = {one.operator for one in graded if one.caught_by}
    assert caught == {MutationOperator.PERSONAL_DATA}
    assert not any(one.passed for one in graded)


def test_a_grader_that_fails_the_right_reply_too_catches_nothing():
    """A grader that fails the correct reply catches no mutant.

    Here the language grader fails every reply, because a Hindi case has an English gold.
    """
    case = case_of(language="hi", gold="The waiting period for it is two years", question="प्रतीक्षा अवधि कितनी है?")
    assert not any("language" in one.caught_by for one in grade_mutants([case], PANEL))


def test_a_mutant_has_the_severity_of_its_failure():
    """A mutant with personal data always has severity 3.

    A mutant with a wrong number has the severity of its case.
    """
    graded = {one.operator: one.severity for one in grade_mutants([case_of(severity=1)], PANEL)}
    assert graded[MutationOperator.PERSONAL_DATA] is Severity.CRITICAL
    assert graded[MutationOperator.NUMBER_CHANGED] is Severity.MINOR


def test_a_sibling_asks_the_same_of_another_policy():
    """The sibling of a case is a case about another policy with a different gold."""
    one, two, three = (
        case_of(id=name, cluster=name, gold=gold)
        for name, gold in (("a", "24 months"), ("b", "24 months"), ("c", "36"))
    )
    assert {name: other.id for name, other in pair_cases_of_same_field([one, two, three]).items()} == {
        "a": "c",
        "b": "c",
        "c": "a",
    }


def test_counts_add_up():
    """The counts for all operators add up to the number of mutants, and so do the counts for all severities."""
    graded = list(grade_mutants(DEMO[:40], PANEL))
    counts = count_caught_mutants(graded)
    for parts in (counts.by_operator, counts.by_severity):
        assert sum(one.mutants for one in parts) == counts.whole.mutants == len(graded)
    assert counts.whole.caught + counts.whole.passed + counts.whole.left == counts.whole.mutants
    assert counts.severe.low <= counts.severe.rate <= counts.severe.high


@pytest.mark.whole_only
def test_the_demo_suite_bites():
    """In the demo's suite, no gold fails, and without a judge at least 97 % of the severe mutants are caught."""
    assert not [case.id for case in DEMO if grade_gold_as_reply(case, PANEL).wrong]
    mutants = list(grade_mutants(DEMO, PANEL))
    counts = count_caught_mutants(mutants)
    assert counts.severe_without_personal_data.rate >= 0.97
    assert counts.severe_without_personal_data.passed == 0
    assert counts.misplaced is not None
    assert counts.misplaced.passed <= 0.02 * counts.misplaced.mutants


@pytest.mark.skipif(not REAL.exists(), reason="the facts of a real bot are not on this machine")
@pytest.mark.parametrize("language", [Language.ENGLISH, Language.HINDI, Language.HINGLISH])
@pytest.mark.whole_only
def test_95_of_100_severe_mutants_of_real_facts_are_caught(language):
    """At least 95 % of the severe mutants from thirty real policies are caught, and none passes.

    Mutants that add personal data do not count, because they are easy to catch.
    """
    schema = load_fact_schema(PACK)
    sheets = read_fact_sheets(REAL, schema)[:30]
    cases = build_cases(sheets, schema, load_templates(schema, PACK), [language]).cases
    severe = [case for case in cases if case.severity is Severity.CRITICAL]
    assert not [case.id for case in severe if grade_gold_as_reply(case, PANEL).wrong]
    counts = count_caught_mutants(list(grade_mutants(severe, PANEL)))
    assert counts.severe.mutants > 200
    assert counts.severe_without_personal_data.rate >= 0.95
    assert counts.severe_without_personal_data.passed == 0
