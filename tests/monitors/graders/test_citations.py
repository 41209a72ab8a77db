"""Test that the citation grader recognises named sources, and that it passes an answer that needs no citation."""

from __future__ import annotations

import pytest

from monitors.graders.conduct import CitationGrader
from monitors.records.exchanges import Channel, WirePayload
from monitors.records.grades import Abstained, FailureKind, Judged
from tests.builders import exchange, gold_case


def _kind(text: str, *, grader: CitationGrader | None = None, **case: object) -> FailureKind | None:
    asked = gold_case(**case)
    grade = (grader or CitationGrader()).grade(asked, exchange(asked, text))
    assert isinstance(grade, Judged)
    assert grade.passed is (grade.failure_kind is None)
    return grade.failure_kind


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("24 months [Source: Gold, clause 4]", None, None),
        ("24 months", None, FailureKind.MISSING_CITATION),
        ("24 months [Source: gold, Clause 4]", "Gold, clause 4", None),
        ("24 months [Source: Silver] [Source: Gold, clause 4]", "Gold", None),
        ("24 months [Source: Silver]", "Gold", FailureKind.WRONG_CITATION),
        ("24 months. Sources: Gold", "Gold", None),
        ("Gold, section 4: 24 months", "Gold, clause 4", None),
        ("Gold: 24 months", "Gold, clause 4", FailureKind.MISSING_CITATION),
        ("Gold, section 5: 24 months [Source: Gold]", "Gold, clause 4", FailureKind.WRONG_CITATION),
    ],
)
def test_a_source_and_the_right_one(text: str, expected: str | None, kind: FailureKind | None) -> None:
    assert _kind(text, expected_citation=expected) is kind


def test_a_citation_that_the_page_hides_counts() -> None:
    case = gold_case()
    wire = WirePayload(url="http://127.0.0.1/answer", text="24 months [Source: Gold]")
    grade = CitationGrader().grade(case, exchange(case, "24 months", wire=wire))
    assert isinstance(grade, Judged)
    assert grade.passed
    assert [span.where for span in grade.evidence] == [Channel.WIRE]


def test_a_citation_that_the_payload_lists_counts() -> None:
    case = gold_case(expected_citation="Gold")
    wire = WirePayload(url="http://127.0.0.1/answer", text="24 months", citations=("Gold, clause 4",))
    grade = CitationGrader().grade(case, exchange(case, "24 months", wire=wire))
    assert isinstance(grade, Judged)
    assert grade.passed


def test_a_refusal_has_nothing_to_cite() -> None:
    for case in (gold_case(expected_refusal=True), gold_case()):
        grade = CitationGrader().grade(case, exchange(case, "I cannot help with that."))
        assert isinstance(grade, Abstained)


def test_a_target_of_its_own_ways() -> None:
    own = CitationGrader((r"\(see ([^)]+)\)",))
    assert _kind("24 months (see Gold)", grader=own) is None
    assert _kind("24 months [Source: Gold]", grader=own) is FailureKind.MISSING_CITATION
