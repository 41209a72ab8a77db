from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.digest import Digest, DigestFigure, format_digest_headline, format_worst_open_incidents
from monitors.alerts.slack.render import format_digest_as_plain_text, render_digest
from monitors.records.base import Severity
from monitors.records.incidents import IncidentState
from tests.monitors.alerts.hostile import hostile_text
from tests.monitors.alerts.sample_observations import DAY, NIGHT, items, observation
from tests.servers.slack_rules import mentions, wrong_with


def opened(count: int, **changes: object):
    seen = [observation(f"case-{number}", **changes) for number in range(count)]
    return tuple(item.incident for item in items(*seen))


def digest(**changes: object) -> Digest:
    values = {
        "id": "LK-NIGHT001",
        "target": "demo",
        "run_id": "night-1",
        "made_at": NIGHT + 3 * DAY,
        "due_at": NIGHT + 3 * DAY,
    }
    return Digest(**(values | changes))


def test_a_quiet_night_says_so(snapshot):
    assert all(part in format_digest_headline(digest()) for part in ("✅", "demo", "2026-03-04"))
    assert format_digest_headline(digest()) == snapshot
    assert format_worst_open_incidents(digest()) == ()


def test_the_worst_is_named_first_and_the_rest_is_counted(snapshot):
    known = (*opened(12, severity=Severity.MAJOR), *opened(1))
    shown = format_worst_open_incidents(digest(incidents=known))
    assert shown[0] == snapshot
    assert all("🔴" in line for line in shown[:1])
    assert (len(shown), shown[-1]) == (11, "… and 3 more")


def test_resolved_incidents_are_not_open_and_acknowledged_ones_say_so():
    one, two = opened(2)
    known = (
        one.model_copy(update={"state": IncidentState.RESOLVED}),
        two.model_copy(update={"state": IncidentState.ACKNOWLEDGED}),
    )
    (line,) = format_worst_open_incidents(digest(incidents=known))
    assert line.endswith("acknowledged")


@given(st.lists(st.tuples(hostile_text, hostile_text), max_size=20), st.integers(0, 40))
@pytest.mark.whole_only
def test_any_digest_is_inert_and_within_slacks_limits(figures, count):
    sent = digest(
        figures=tuple(DigestFigure(label=label, value=value) for label, value in figures), incidents=opened(count)
    )
    said = render_digest(sent)
    payload = {"text": said.text, "blocks": json.loads(json.dumps(said.blocks))}
    assert wrong_with(payload) is None
    assert mentions(payload) == []
    assert sent.id in format_digest_as_plain_text(sent)
