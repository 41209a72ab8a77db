from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from monitors.records.base import Severity
from monitors.records.incidents import NotifyReason
from monitors.records.operator_actions import Silence
from tests.monitors.alerts.sample_observations import DAY, HOUR, NIGHT, AlertDecider, observation, scope


def silence(**changes: object) -> Silence:
    values = {
        "id": "s1",
        "author": "asha",
        "comment": "known, fix is under way",
        "starts_at": NIGHT - HOUR,
        "ends_at": NIGHT + DAY,
        "case_id": "leak-1",
    }
    return Silence(**(values | changes))


def later(days: float, **changes: object):
    return observation(run_id=f"run-{days}", seen_at=NIGHT + days * DAY, **changes)


def test_f18_a_silence_that_ends_while_it_still_fails_lets_one_alert_out():
    decider = AlertDecider()
    decider.silences = [silence()]
    assert decider.decide_reasons(observation()) == ()
    assert decider.decide_reasons(later(1), now=NIGHT + DAY) == (NotifyReason.FIRST_SEEN,)
    assert decider.decide_reasons(later(1.1), now=NIGHT + 1.1 * DAY) == ()


def test_f18_an_alert_from_before_the_silence_is_only_reminded_after_it():
    decider = AlertDecider()
    decider.decide_reasons(observation())
    decider.silences = [silence(ends_at=NIGHT + 3 * DAY)]
    assert [decider.decide_reasons(later(day), now=NIGHT + day * DAY) for day in (1, 2)] == [(), ()]
    assert decider.decide_reasons(later(3), now=NIGHT + 3 * DAY) == (NotifyReason.REMINDER,)


def test_a_regression_during_a_silence_is_alerted_afterwards():
    decider = AlertDecider()
    decider.decide_reasons(observation())
    decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1"))
    decider.silences = [silence(ends_at=NIGHT + 2 * DAY)]
    assert decider.decide_reasons(later(1), now=NIGHT + DAY) == ()
    assert decider.decide_reasons(later(2), now=NIGHT + 2 * DAY) == (NotifyReason.REGRESSED,)


def test_a_higher_severity_during_a_silence_is_alerted_afterwards():
    decider = AlertDecider()
    made = decider.decide_alerts(observation(severity=Severity.MAJOR))
    decider.incidents = {i.fingerprint: i.model_copy(update={"thread": "1.0"}) for i in made.changed}
    decider.silences = [silence()]
    assert decider.decide_reasons(later(0.5), now=NIGHT + 0.5 * DAY) == ()
    assert decider.decide_reasons(later(1), now=NIGHT + DAY) == (NotifyReason.WORSE,)


@pytest.mark.parametrize(
    "other", [{"case_id": "leak-2"}, {"target": "another"}, {"ends_at": NIGHT}], ids=["case", "target", "over"]
)
def test_a_silence_covers_what_it_names_while_it_lasts(other):
    decider = AlertDecider()
    decider.silences = [silence(**other)]
    assert decider.decide_reasons(observation()) == (NotifyReason.FIRST_SEEN,)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"case_id": None}, "cannot silence everything"),
        ({"ends_at": NIGHT - 2 * timedelta(hours=1)}, "must end after"),
        ({"author": ""}, "at least 1 character"),
    ],
    ids=["everything", "backwards", "nobody"],
)
def test_a_silence_has_an_author_an_end_and_a_matcher(wrong, why):
    with pytest.raises(ValidationError, match=why):
        silence(**wrong)
