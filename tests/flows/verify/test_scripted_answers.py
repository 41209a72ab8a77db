"""Test that a question by an agent gets a scripted answer of the case that the agent is working on."""

from __future__ import annotations

from flows.runtime.probe import build_scripted_reply_finder
from monitors.records.cases import ScriptedAnswer
from tests.builders import gold_case

VERSION = ScriptedAnswer(asks="Version", answer="2.4")
ANYTHING = ScriptedAnswer(answer="Ask the office.")


def test_the_first_entry_that_fits_answers_in_any_letter_case():
    script = build_scripted_reply_finder([gold_case("a", turns=("one",), when_asked=(VERSION, ANYTHING))])
    assert script(("one",), "Which VERSION is it?") == "2.4"
    assert script(("one",), "Who wrote it?") == "Ask the office."


def test_a_case_answers_for_itself_alone():
    script = build_scripted_reply_finder(
        [gold_case("a", turns=("one",), when_asked=(VERSION,)), gold_case("b", turns=("two",))]
    )
    assert script(("one",), "Who wrote it?") is None
    assert script(("two",), "Which version is it?") is None
    assert script(("one", "two"), "Which version is it?") is None
