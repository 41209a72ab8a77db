"""A question that the issue already answers is recognised; other questions are not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitors.facts.issue_questions import QuestionWorth, rate_question, rate_questions
from monitors.records.exchanges import AgentQuestion
from monitors.records.triage import Issue

EXAMPLES = json.loads(Path(__file__).with_name("issue_questions.json").read_text(encoding="utf-8"))
"""Issues with questions that the issue already answers, and with questions that it does not answer.

The rules were tuned on the group ``tuned``, and not on the group ``unseen``.
"""
FOUND = {"tuned": 51, "unseen": 18}
"""For each group, the minimum number of unnecessary questions that the rules must recognise.

The rules may rate the other questions as unsure.
"""


def readings(group: str, kind: str) -> Iterator[tuple[str, QuestionWorth]]:
    for row in EXAMPLES[group]:
        for question in row[kind]:
            found = rate_question(question, row["issue"], project=row.get("project", ""))
            yield question, found.worth


@pytest.mark.parametrize("group", EXAMPLES)
def test_no_question_is_called_useful_that_the_issue_answers(group):
    worth = Counter(worth for _, worth in readings(group, "needless"))
    assert worth[QuestionWorth.USEFUL] == 0
    assert worth[QuestionWorth.NEEDLESS] >= FOUND[group]


@pytest.mark.parametrize("group", EXAMPLES)
def test_no_question_is_reproached_that_the_issue_does_not_answer(group):
    assert [question for question, worth in readings(group, "useful") if worth is QuestionWorth.NEEDLESS] == []


ISSUE = "Totals are wrong\n\nWe run the nightly import on port 8443 with two workers."


@pytest.mark.parametrize(
    ("scripted", "worth"),
    [
        ("It listens on port 8443.", QuestionWorth.UNSURE),
        ("port 8443", QuestionWorth.NEEDLESS),
        ("Two workers, nightly.", QuestionWorth.NEEDLESS),
        ("Amsterdam", QuestionWorth.USEFUL),
        ("nightly", QuestionWorth.UNSURE),
        ("Yes, it is.", QuestionWorth.UNSURE),
    ],
)
def test_the_suites_own_answer_says_whether_the_issue_had_it(scripted, worth):
    assert rate_question("Where does it run, and how?", ISSUE, scripted=scripted).worth is worth


def test_an_answer_that_nobody_scripted_says_nothing():
    issue = Issue(
        title="Totals are wrong", body="It says: I don't know.", url="https://example.com/acme/sums/issues/4"
    )
    asked = [
        AgentQuestion(question="Who wrote the import?", answer="I don't know."),
        AgentQuestion(question="", answer="I don't know."),
    ]
    assert [reading.worth for _, reading in rate_questions(issue, asked)] == [QuestionWorth.UNSURE] * 2


def test_the_version_of_the_project_is_known_by_its_address():
    issue = Issue(
        title="Totals are wrong",
        body="On sums 2.4.1 with Python 3.12.",
        url="https://example.com/acme/sums/issues/4",
    )
    (found,) = rate_questions(issue, [AgentQuestion(question="Which version do you use?", answer="-")])
    assert found[1].quote == "On sums 2.4.1 with Python 3.12."
    assert rate_question("Which version do you use?", issue.title_and_body).worth is QuestionWorth.UNSURE
