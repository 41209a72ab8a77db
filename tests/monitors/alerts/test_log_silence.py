"""Tests of when a log without new entries causes an alert.

Only the decision is tested here, not reading the log.
"""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.liveness import LogSilence, find_log_silence, name_and_describe_log_silence
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation
from monitors.alerts.settings import WatchdogSettings
from monitors.records.base import Blame
from monitors.records.incidents import IncidentKind, Observation
from tests.monitors.alerts.sample_observations import HOUR, NIGHT, AlertDecider, alert

SETTINGS = WatchdogSettings()
HOURLY = [NIGHT - number * HOUR for number in range(30)]
AT = ObservationContext(target="demo", run_id="follow-1", seen_at=NIGHT)


def observe_silence(silence: LogSilence) -> Observation:
    what, detail = name_and_describe_log_silence(silence)
    return build_monitor_fault_observation(AT, fault_name=what, detail=detail)


def test_f23_a_log_silent_far_beyond_its_norm_is_one_alert_about_the_monitor(snapshot):
    silence = find_log_silence(HOURLY, NIGHT + 7 * HOUR, SETTINGS)
    assert silence is not None
    seen = observe_silence(silence)
    assert (seen.kind, seen.blame) == (IncidentKind.MONITOR_FAULT, Blame.MONITOR)
    assert all(part in seen.reason for part in ("7 hours", "2026-03-01 02:00 UTC", "30 entries", "1 hour"))
    assert seen.reason == snapshot
    assert alert(seen).kind is IncidentKind.MONITOR_FAULT


def test_f23_it_alerts_once_and_reminds_at_the_interval():
    decider = AlertDecider()
    reasons = []
    for hours in range(7, 7 + 48):
        silence = find_log_silence(HOURLY, NIGHT + hours * HOUR, SETTINGS)
        assert silence is not None
        reasons += decider.decide_reasons(observe_silence(silence), now=NIGHT + hours * HOUR)
    assert [reason.value for reason in reasons] == ["first_seen", "reminder", "reminder"]


def test_a_silence_within_the_norm_or_the_floor_is_nothing():
    assert find_log_silence(HOURLY, NIGHT + 6 * HOUR, SETTINGS) is None
    quiet_weekends = [*HOURLY, NIGHT - timedelta(days=3)]
    assert find_log_silence(quiet_weekends, NIGHT + 48 * HOUR, SETTINGS) is None


def test_a_log_that_is_hardly_known_has_no_norm():
    assert find_log_silence(HOURLY[:19], NIGHT + 1000 * HOUR, SETTINGS) is None
    assert find_log_silence([], NIGHT, SETTINGS) is None


@given(
    st.lists(st.integers(0, 10**6), min_size=0, max_size=60),
    st.integers(0, 10**7),
    st.integers(0, 10**6),
    st.randoms(use_true_random=False),
)
def test_a_log_silence_never_ends_by_waiting_and_order_does_not_matter(seconds, later, more, chance):
    times = [NIGHT - timedelta(seconds=one) for one in seconds]
    now = NIGHT + timedelta(seconds=later)
    first = find_log_silence(times, now, SETTINGS)
    mixed = list(times)
    chance.shuffle(mixed)
    assert find_log_silence(mixed, now, SETTINGS) == first
    if first is not None:
        assert find_log_silence(times, now + timedelta(seconds=more), SETTINGS) is not None
        assert first.silent_for > first.longest_pause
