"""Test that a nightly run that is repeatedly killed, at any point, finally has one complete result."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pkgutil import resolve_name

import pytest

from flows.nightly.run import NightlyRun
from monitors.records.estimates import RateEstimate
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.judged_run import judge_at, with_key
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY, Nights, talk
from tests.servers.anthropic import AnthropicServer
from tests.servers.slack import SlackServer
from tests.soak.forked_process import forked
from tests.warehouse.temporary_stores import store_in

KILLS = 5
"""The minimum number of kills in each test."""
PASSAGE = "The grace period: a customer has thirty days to renew the policy."
STEPS = (
    "flows.nightly.checkpoint.write_atomically",
    "warehouse.journal.journal.Journal.append",
    "warehouse.journal.journal.Journal.append_outbox",
    "warehouse.database.store.Store.load_pending",
)
"""The process can be killed before and after each call of these functions."""


@pytest.fixture
def nights(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    with_key(monkeypatch)
    with SlackServer() as slack, AnthropicServer() as provider:
        nights = Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))
        settings = {"deadline_s": 60, "try_s": 30, "tries": 2, "most_pause_s": 1, "batch_poll_s": 0.05}
        nights.judge = settings | judge_at(provider)
        yield nights


def conversation(number: int) -> str:
    reply = LEAK if number % 10 == 0 else PLAIN_REPLY
    return talk(number, turns=[{"question": "How long do I have?", "answer": reply, "context": [PASSAGE]}])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
def test_killed_at_random_points_it_comes_to_one_report_and_each_message_once(nights, seed):
    """A nightly run that is killed at random points finally produces one report, and sends each message once.

    The sample stays the same, although new conversations arrive between the attempts.
    """
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 15})}
    )
    nights.append(*(conversation(number) for number in range(40)))
    chance, killed, samples = random.Random(seed), 0, set[tuple[str, ...]]()
    for attempt in range(4 * KILLS):
        last = killed >= KILLS
        if samples:
            nights.append(conversation(100 + attempt))
        _as_another_process(nights, attempt)
        status = os.waitpid(_worker(nights, None if last else chance.randrange(1, 9)).process, 0)[1]
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if nights_rows(nights):
            samples.add(nights_rows(nights))
        if last:
            assert status == 0
            break
    assert killed >= KILLS
    assert len(samples) == 1, "the sample stays the same"
    report = asyncio.run(nights.grade())
    assert (report.read, report.known, report.sampled) == (40, 0, 15)
    assert report.graded_by.startswith("rules+"), "that the judge spoke is not forgotten"
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.graded, report.judging.judged + _leaks(samples)) == (15, 15)
    assert nights.loaded("select count(*) from nightly_runs") == [(1,)]
    graded = nights.loaded("select case_id, count(*) from assessments group by 1")
    assert {str(case).partition(":")[0] for case, _ in graded} == set(next(iter(samples)))
    message_counts = Counter(message.text for message in nights.testbed.slack.messages)
    assert set(message_counts.values()) <= {1}


def _as_another_process(nights: Nights, attempt: int) -> None:
    """Prepare the next attempt, which is a new process: later, and with a new store."""
    nights.testbed.skip(seconds=30)
    nights.testbed.store = store_in(nights.folder / "data", seed=100 + attempt, clock=nights.testbed)


def _leaks(samples: set[tuple[str, ...]]) -> int:
    return sum(int(one.removeprefix("talk-")) % 10 == 0 for one in next(iter(samples)))


def nights_rows(nights: Nights) -> tuple[str, ...]:
    """Return the ids of the sampled conversations, as the run would load them."""
    checkpoint = NightlyRun(nights.wired())._checkpoint
    return tuple(sorted(row.id for row in checkpoint.load_sample()))


def _worker(nights: Nights, dies_at: int | None):
    """Start a process that grades the night, and kills itself at step ``dies_at`` if this is not ``None``."""

    def job(_say: object) -> None:
        steps = iter(range(1, 10_000))

        def step() -> None:
            if next(steps) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        with pytest.MonkeyPatch.context() as patch:
            for name in STEPS:
                _around(patch, name, step)
            asyncio.run(nights.grade())

    return forked(job)


def _around(patch: pytest.MonkeyPatch, name: str, step) -> None:
    owner, _, attribute = name.rpartition(".")
    place = resolve_name(owner)
    done = getattr(place, attribute)

    def stepping(*given, **named):
        step()
        result = done(*given, **named)
        step()
        return result

    patch.setattr(place, attribute, stepping)
