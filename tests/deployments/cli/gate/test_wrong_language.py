"""``lookout gate`` on a bot that answers in a language other than the question's."""

from __future__ import annotations

import pytest

from monitors.records.runs import ReasonKind, RunReport, Verdict
from tests.flows.chat import Chat, watched

pytestmark = pytest.mark.prefect

GERMAN = "Das hängt von Ihrem Vertrag ab, den wir gerne für Sie prüfen. [Source: Gold, clause 4.2]"
RIGHT_IN_GERMAN = "Die Wartezeit beträgt 24 Monate, und danach ist alles versichert. [Source: Gold, clause 4.2]"


def languages(run: RunReport):
    return [reason for reason in run.reasons if reason.kind is ReasonKind.LANGUAGE]


def test_english_questions_answered_in_german_fail_whether_or_not_the_facts_can_be_read(
    tmp_path, lookout, snapshot
):
    with Chat(GERMAN, RIGHT_IN_GERMAN) as chat:
        watched(tmp_path, chat, cases=6)
        done = lookout("gate", "--target", "demo", "--json", cwd=tmp_path)
        assert done.stdout, done.stderr
    run = RunReport.model_validate_json(done.stdout)
    (reason,) = languages(run)
    assert (done.returncode, run.verdict, reason.decisive) == (1, Verdict.FAIL, True)
    assert reason.case_ids == tuple(f"waiting-{number}" for number in range(6))
    assert reason.text == snapshot
    assert "the reply is in German, but English is expected" in done.stderr, (
        "the alert, which is printed without Slack"
    )
