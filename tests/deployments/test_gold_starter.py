"""Tests of the shipped files for a first suite: attacks for any application, and a domain pack to adapt."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.flows.chat import Chat, watched

REFUSALS = {
    "en": "I'm sorry, but I can't help with that.",
    "hi": "माफ़ कीजिए, मैं इसमें आपकी मदद नहीं कर सकता।",
    "hinglish": "Maaf kijiye, main isme aapki madad nahi kar sakta.",
}
OBEDIENCE = {
    "en": "Sure, I have done that for you. Everything you asked for is ready and will arrive within 2 days.",
    "hi": "ज़रूर, मैंने यह कर दिया है। आपने जो माँगा वह 2 दिन में आपको मिल जाएगा।",
    "hinglish": "Zaroor, maine yeh kar diya hai. Jo aapne maanga woh 2 din mein aapko mil jayega.",
}


def starter(lookout, folder):
    done = lookout("gold", "starter", "adversarial", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_twenty_attacks_of_severity_3_that_need_no_correction(tmp_path, lookout):
    printed = starter(lookout, tmp_path)
    cases = [json.loads(line) for line in printed.splitlines()]
    assert len(cases) == len({case["id"] for case in cases}) == 20
    assert {case["severity"] for case in cases} == {3}
    assert {case["language"] for case in cases} == set(REFUSALS)
    assert lookout("gold", "starter", "adversarial", "--out", "adversarial.jsonl", cwd=tmp_path).returncode == 0
    assert (tmp_path / "adversarial.jsonl").read_text(encoding="utf-8") == printed
    checked = lookout("gold", "check", "adversarial.jsonl", "--json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    found = json.loads(checked.stdout)["findings"]
    assert {finding["check"] for finding in found} <= {"balance"}, "only that a suite needs more than these"


@pytest.mark.prefect
@pytest.mark.parametrize(("replies", "code"), [(REFUSALS, 0), (OBEDIENCE, 1)], ids=["careful", "careless"])
@pytest.mark.whole_only
def test_a_careful_bot_passes_them_and_a_careless_one_passes_none(tmp_path, lookout, replies, code):
    """A careful bot passes the attacks, and a careless bot passes none of them.

    Without a judge, every refusal is recognised. Most careless replies fail, and the others stay ungraded.
    """
    printed = starter(lookout, tmp_path)
    with Chat() as chat:
        watched(tmp_path, chat)
        (tmp_path / "suite.jsonl").write_text(printed, encoding="utf-8")
        for case in map(json.loads, printed.splitlines()):
            turns = case.get("turns") or [case["question"]]
            chat.by_question |= dict.fromkeys(turns, replies[case["language"]])
        done = lookout("gate", "--target", "demo", cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    (path,) = (tmp_path / "data").glob("**/results.json")
    assessments = [case["assessment"] for case in json.loads(path.read_text(encoding="utf-8"))["cases"]]
    outcomes = Counter(assessment["outcome"] for assessment in assessments)
    assert outcomes["correct"] == (20 if replies is REFUSALS else 0)
    failures = [assessment for assessment in assessments if assessment["outcome"] == "failed"]
    assert len(failures) == (0 if replies is REFUSALS else 20 - outcomes["ungraded"])
    assert outcomes["ungraded"] <= 6
    assert {kind for failure in failures for kind in failure["failure_kinds"]} <= {"should_have_refused"}
    assert {failure["severity"] for failure in failures} <= {3}


def test_a_pack_of_ones_own_builds_a_clean_suite_with_the_command_that_is_printed(tmp_path, lookout, snapshot):
    begun = lookout("gold", "starter", "domain", cwd=tmp_path)
    command = begun.stdout.splitlines()[-1].split()
    built = lookout(*command[1:], cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    cases = [json.loads(line) for line in (tmp_path / "suite.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [case["gold"] for case in cases if not case["expected_refusal"]] == snapshot
    assert lookout("gold", "check", "suite.jsonl", cwd=tmp_path).returncode == 0
    again = lookout("gold", "starter", "domain", cwd=tmp_path)
    assert again.returncode == 2
    assert "nothing was written" in again.stderr
