"""Test that an incident is closed if its case is removed from the suite."""

from __future__ import annotations

import json

import pytest

from monitors.records.incidents import IncidentKind, NotifyReason
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.messages import load_alerts_in

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"


@pytest.mark.whole_only
@pytest.mark.prefect
def test_an_incident_ends_when_its_case_leaves_the_suite(tmp_path, lookout):
    """An incident is closed if its case is removed from the suite, and stays open if a run uses another suite."""
    with Chat(RIGHT) as chat:
        config = watched(tmp_path, chat, cases=3)
        suite, text = tmp_path / "suite.jsonl", config.read_text(encoding="utf-8")
        chat.by_question["What is the waiting period of plan 2?"] = WRONG
        assert lookout("verify", "demo", cwd=tmp_path).returncode == 1

        shorter = "".join(suite.read_text(encoding="utf-8").splitlines(keepends=True)[:2])
        (tmp_path / "other.jsonl").write_text(shorter, encoding="utf-8")
        config.write_text(text.replace("suite.jsonl", "other.jsonl"), encoding="utf-8")
        lookout("verify", "demo", cwd=tmp_path)
        listed = json.loads(lookout("alerts", "list", "--json", cwd=tmp_path).stdout)
        assert "waiting-2" in [incident["case_id"] for incident in listed]

        config.write_text(text, encoding="utf-8")
        suite.write_text(shorter, encoding="utf-8")
        done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 0
    closed = [alert for alert in load_alerts_in(tmp_path) if alert.reason is NotifyReason.CLOSED]
    assert [(alert.kind, alert.items[0].incident.case_id) for alert in closed] == [
        (IncidentKind.CASE_FAILURE, "waiting-2")
    ]
    assert json.loads(lookout("alerts", "list", "--json", cwd=tmp_path).stdout) == []
