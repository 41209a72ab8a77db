"""Test that alerts and incidents are stored as flat records that other versions of Lookout can read.

An earlier version can read the data of this version, and this version can read the data of an earlier one.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from monitors.records.incidents import Alert, Incident
from tests.monitors.alerts.sample_observations import alert

INCIDENT = {
    "fingerprint", "kind", "target", "state", "severity", "title", "case_id", "failure_kind", "opened_at",
    "last_seen_at", "last_notified_at", "resolved_at", "occurrences", "first_commit", "last_run_id", "thread",
    "channel", "owner", "failed_cases", "notified_cases", "verdict_reasons", "right_answers",
}  # fmt: skip
"""The fields of an incident at commit 6804228.

Versions before that commit refuse an incident with additional fields.
"""
OBSERVATION = {
    "fingerprint", "kind", "target", "run_id", "seen_at", "severity", "blame", "failure_kind", "case_id", "policy_row",
    "commit", "title", "asked", "expected", "answered", "reason", "unconfirmed", "flaky", "origin", "multiplied",
    "examples", "others", "failed_cases", "cases_with_alerts", "verdict_reasons", "owner", "is_report",
    "right_answers", "address",
}  # fmt: skip
ALERT = {
    "id", "kind", "target", "run_id", "created_at", "severity", "reason", "items", "commit", "flat", "weighted",
    "dimensions", "in_common", "changed", "links", "under_way", "own_alerts", "production", "marks", "again",
}  # fmt: skip


def test_an_earlier_version_reads_what_this_one_stores():
    stored = alert().model_dump(mode="json")
    (item,) = stored["items"]
    assert (set(stored), set(item["incident"]), set(item["observation"])) == (ALERT, INCIDENT, OBSERVATION)


def test_data_of_an_earlier_version_is_read():
    sent = alert()
    assert Alert.model_validate_json(sent.model_dump_json()) == sent
    assert Alert.model_validate_json(sent.model_dump_json(exclude_defaults=True)) == sent


def test_a_field_that_is_not_known_is_refused():
    (item,) = alert().items
    with pytest.raises(ValidationError):
        Incident.model_validate(item.incident.model_dump() | {"resolved_by": "asha"})
