"""Tests of the questions that agents ask in a run: their number, and the share of useful ones with its interval."""

from __future__ import annotations

import pytest

from monitors.gate.evaluate import count_agent_questions
from monitors.goldset.lines import parse_case_object
from monitors.records.cases import GoldCase
from monitors.records.exchanges import AgentQuestion, Evidence
from monitors.records.runs import CaseResult, QuestionCounts
from monitors.reports.format import format_agent_questions
from tests.builders import assessment, exchange, gold_case

NEEDLESS, USEFUL, UNKNOWN = "Which operating system is it?", "Which database is it?", "Who uses it?"


def asked(*questions: str, number: int = 1) -> CaseResult:
    """Return the result of an issue that mentions Debian. The agent asked ``questions`` about the issue."""
    case = parse_case_object(
        {
            "issue_url": f"https://github.com/acme/jobs/issues/{number}",
            "issue_title": "Export hangs",
            "issue_body": "It runs on Debian.",
            "severity": 1,
            "reference": {"relevant_files": ["a.py"]},
        }
    )
    assert isinstance(case, GoldCase)
    evidence = Evidence(questions=tuple(AgentQuestion(question=one, answer="-") for one in questions))
    return CaseResult(case=case, result=exchange(case, evidence=evidence), assessment=assessment(case))


def test_useful_and_needless_questions_are_counted_over_all_issues_with_wilsons_interval(snapshot):
    results = [asked(USEFUL, USEFUL), asked(number=2), asked(USEFUL, NEEDLESS, UNKNOWN, number=3)]
    counts = count_agent_questions(results)
    assert counts is not None
    assert (counts.asked, counts.useful, counts.needless) == (5, 3, 1)
    assert counts.share == 0.75
    assert (counts.low, counts.high) == (pytest.approx(0.3006, abs=1e-4), pytest.approx(0.9544, abs=1e-4))
    assert format_agent_questions(counts) == snapshot


def test_without_data_on_a_question_there_is_no_rate(snapshot):
    counts = count_agent_questions([asked(UNKNOWN)])
    assert counts == QuestionCounts(asked=1, useful=0, needless=0)
    assert counts.share is None
    assert format_agent_questions(counts) == snapshot


def test_a_run_without_questions_says_nothing_of_them():
    chat = gold_case()
    assert (
        count_agent_questions([asked(), CaseResult(case=chat, result=exchange(chat), assessment=assessment(chat))])
        is None
    )
