"""Every grader of the panel gives a grade. If a grader raises an error, only its own grade is missing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from monitors.domains.pack import INSURANCE, load_domain
from monitors.errors import JudgeUnavailable
from monitors.gate.assess import assess_case
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.graders.sayings import SayingsGrader
from monitors.graders.triage import TriageGrader
from monitors.records.base import Blame, Finding
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, CaseOutcome, Judged
from monitors.records.runs import CaseResult
from tests.builders import exchange, gold_case
from tests.monitors.gate.runs import report
from tests.tiers import scale_examples

PANEL = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))


class Breaking:
    """A grader that raises a given error, like a grader with a bug or with an unavailable provider."""

    name = "breaking"
    version = "1"
    aspect = Aspect.USEFULNESS

    def __init__(self, error: Exception) -> None:
        self._error = error

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        del case, exchange
        raise self._error


def test_a_right_answer_passes_every_grader_that_judges() -> None:
    case = gold_case()
    text = "The waiting period is 24 months from the start. [Source: Gold, clause 1]"
    grades = grade_exchange(PANEL, case, exchange(case, text))
    assert {grade.aspect for grade in grades if isinstance(grade, Judged) and grade.passed} == {
        Aspect.DISCLOSURE, Aspect.ERROR_LEAK, Aspect.REFUSAL, Aspect.FACTUAL_MATCH, Aspect.LANGUAGE,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("required", "text", "passed", "total", "met"),
    [
        (False, "24 months", 0, 0, Finding.NOT_NEEDED),
        (True, "24 months", 0, 1, Finding.NO),
        (False, "24 months [Source: Gold]", 0, 0, Finding.NOT_NEEDED),
    ],
)
def test_answers_without_a_citation_duty_are_not_checked(required, text, passed, total, met) -> None:
    """If no citation is required, an answer without a source passes, and no metric counts it as checked."""
    case = gold_case()
    came = exchange(case, f"The waiting period is {text} from the start.")
    panel = build_rule_panel(GraderSettings(citation_required=required), load_domain((INSURANCE,)))
    found = assess_case(case, came, grade_exchange(panel, case, came))
    assert (found.outcome is CaseOutcome.CORRECT) is (not required)
    run_report = report([CaseResult(case=case, result=came, assessment=found)])
    (metric,) = (one for one in run_report.metrics if one.name == "citation_accuracy")
    assert (metric.passed, metric.total, metric.met) == (passed, total, met)


def test_names_and_versions_are_said() -> None:
    assert len({grader.name for grader in PANEL}) == len(PANEL)
    assert all(grader.version for grader in PANEL)


def test_a_broken_grader_has_abstained_and_the_others_speak() -> None:
    case = gold_case()
    panel = (Breaking(KeyError("Tara Devi 98237 40418")), *PANEL)
    grades = grade_exchange(panel, case, exchange(case))
    of_answers = [one for one in panel if not isinstance(one, TriageGrader | SayingsGrader)]
    assert [grade.grader for grade in grades] == [grader.name for grader in of_answers]
    assert isinstance(grades[0], Abstained)
    assert grades[0].blame is Blame.MONITOR
    assert grades[0].reason == "the grader failed with an internal error: KeyError"


def test_a_providers_failure_is_the_providers() -> None:
    case = gold_case()
    (grade,) = grade_exchange([Breaking(JudgeUnavailable("no answer within 60 s"))], case, exchange(case))
    assert isinstance(grade, Abstained)
    assert grade.blame is Blame.PROVIDER
    assert grade.reason == "no answer within 60 s"


@settings(max_examples=scale_examples(60))
@given(st.text(max_size=300), st.text(min_size=1, max_size=60), st.booleans())
def test_no_text_breaks_a_grader(answer: str, gold: str, refusal: bool) -> None:
    case = gold_case(gold=gold, expected_refusal=refusal)
    for grade in grade_exchange(PANEL, case, exchange(case, answer)):
        assert "failed with an error" not in grade.reason


@pytest.mark.parametrize("pattern", ["(", "a*", "[z-a]"])
def test_a_pattern_that_cannot_work_is_refused_with_its_text(pattern: str) -> None:
    with pytest.raises(ValidationError, match="account_patterns"):
        GraderSettings(account_patterns=(pattern,))


def test_settings_reach_their_graders() -> None:
    panel = build_rule_panel(
        GraderSettings(account_patterns=(r"ZQ-\d+",), citation_required=False), load_domain((INSURANCE,))
    )
    case = gold_case()
    failed = [
        grade.aspect
        for grade in grade_exchange(panel, case, exchange(case, "24 months for ZQ-7719"))
        if isinstance(grade, Judged) and not grade.passed
    ]
    assert failed == [Aspect.DISCLOSURE]
