"""Test the rates of a night with unavailable, unreliable and void judges, and with questions of the gold set."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import pytest

from monitors.alerts.redact import redact
from monitors.records.estimates import RateEstimate, RateUnknown
from monitors.records.incidents import Alert, IncidentKind, NotifyReason
from monitors.records.nightly import NightlyReport
from monitors.records.operator_actions import HumanLabel
from monitors.records.reviews import AnswerVerdict, LabelSource
from monitors.records.runs import JudgeState
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.judged_run import HOME_RIGHT, home, judge_at, with_key
from tests.flows.messages import format_messages
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY, Nights, stable_report, talk
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge
from tests.servers.slack import Posted, SlackServer
from warehouse.journal.rows import LabelRow

PASSAGE = "The grace period: a customer has thirty days to renew the policy."
GRACE = home("grace", turns=("How many days do I have to renew?",), gold="30 days")
WRONG = "A free bicycle arrives tomorrow, along with a holiday villa near Goa beaches."


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def provider():
    with AnthropicServer() as server:
        yield server


@pytest.fixture
def nights(tmp_path, slack, monkeypatch):
    (tmp_path / "data").mkdir()
    with_key(monkeypatch)
    return Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


def with_judge(nights: Nights, provider: AnthropicServer, **changes: object) -> None:
    fast = {"deadline_s": 60, "try_s": 30, "tries": 1, "most_pause_s": 0.1, "batch_poll_s": 0.05}
    nights.judge = fast | judge_at(provider, **({"nightly_batches": False} | changes))


def asked(night: int, number: int, reply: str = PLAIN_REPLY, question: str = "How long do I have?") -> str:
    turn = {"question": question, "answer": reply, "context": [PASSAGE]}
    ended = NIGHT + timedelta(days=night, seconds=number) - timedelta(hours=10)
    return talk(number, turns=[turn], id=f"talk-{night}-{number}", completed_at=ended.isoformat())


def a_night(nights: Nights, night: int, *, wrong: int, of: int = 60) -> None:
    nights.append(*(asked(night, number, WRONG if number < wrong else PLAIN_REPLY) for number in range(of)))


async def test_without_a_judge_nobody_says_how_many_answers_are_wrong(nights, snapshot):
    """Without a judge, the rate of wrong answers is unknown, because most conversations have no fact check.

    The rate of severe failures, which rules find, is known.
    """
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 300})}
    )
    nights.append(*(asked(0, number, LEAK if number < 14 else PLAIN_REPLY) for number in range(300)))
    report = await nights.grade()
    assert isinstance(report.failed, RateUnknown)
    assert (report.failed.conversations, report.facts.total, report.judging.state) == (300, 0, JudgeState.OFF)
    assert report.severe.rate == pytest.approx(14 / 300)
    assert stable_report(report) == snapshot
    assert report.shortfalls == ()


async def test_a_question_of_the_gold_set_is_graded_against_it_without_any_judge(nights, snapshot):
    """A question of the gold set is graded against its gold without a judge.

    The user's question may differ in letter case, spaces and final punctuation.
    """
    (nights.folder / "suite.jsonl").write_text(GRACE.model_dump_json() + "\n", encoding="utf-8")
    question = "how many days do I have  to renew"
    nights.append(
        *(
            asked(0, number, f"You have {15 if number < 3 else 30} days. [Source: Plan, 1]", question)
            for number in range(8)
        ),
        asked(0, 9, PLAIN_REPLY),
    )
    report = await nights.grade()
    assert report.known_questions is not None
    assert (report.known_questions.conversations, report.known_questions.failed) == (8, 3)
    assert [(one.kind.value, one.failures) for one in report.kinds] == [("wrong_fact", 3)]
    assert (report.facts.by_judge, report.facts.by_gold) == (0, 8)
    assert stable_report(report) == snapshot
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.graded, report.failed.sampled) == (8, 9)
    assert report.failed.low < 3 / 8 < report.failed.high, "rules can err: it is no point though all was graded"


async def test_a_gold_question_that_rules_leave_open_is_judged_against_its_gold(nights, provider):
    with_judge(nights, provider)
    nights.append(asked(0, 1, HOME_RIGHT, "What about treatment at home?"))
    report = await nights.grade()
    assert report.facts.by_judge == 1
    assert any("EXPECTED ANSWER" in one.body.decode().upper() for one in provider.messages)


async def test_a_few_gold_questions_do_not_speak_for_all_traffic(nights, snapshot):
    (nights.folder / "suite.jsonl").write_text(GRACE.model_dump_json() + "\n", encoding="utf-8")
    nights.append(
        *(asked(0, number) for number in range(20)), asked(0, 30, "30 days. [Source: Plan, 1]", GRACE.question)
    )
    report = await nights.grade()
    assert isinstance(report.failed, RateUnknown)
    assert (report.facts.total, report.failed.sampled) == (1, 21)
    assert stable_report(report) == snapshot


class CourseNight(NamedTuple):
    """One night of `COURSE`: how many of 60 replies are wrong, the provider's fault, and the judge's leniency."""

    wrong: int
    fault: str | None = None
    passes_all: bool = False


COURSE = (
    *[CourseNight(wrong=1)] * 4,
    *[CourseNight(wrong=27)] * 2,
    CourseNight(wrong=27, fault="500"),
    CourseNight(wrong=27, fault="reset"),
    CourseNight(wrong=18, passes_all=True),
    CourseNight(wrong=27),
    *[CourseNight(wrong=1)] * 3,
)
"""Consecutive nights: quality drops, then the judge's provider fails, then the judge passes everything.

In the last nights, everything is normal.
"""
LAST_BEFORE_FAULTS, HTTP_500, RESET, VOID, JUDGED_AGAIN = range(5, 10)


class GradedNight(NamedTuple):
    """The result of one night of `COURSE`: its report, the sent messages and the stored alerts."""

    report: NightlyReport
    messages: list[Posted]
    alerts: list[Alert]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Grade the nights of `COURSE` in one warehouse, once for all tests that read them."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "data").mkdir()
    with SlackServer() as slack, AnthropicServer() as provider, pytest.MonkeyPatch.context() as patch:
        with_key(patch)
        nights = Nights(folder, AlertingTestbed(folder / "data", slack, slack_monitor_channel="C0MONITOR"))
        with_judge(nights, provider)

        async def grade_all() -> list[GradedNight]:
            graded = []
            for number, night in enumerate(COURSE):
                provider.always, provider.judge.passes_all = night.fault, night.passes_all
                messages, alerts = len(slack.messages), len(nights.testbed.alerts())
                a_night(nights, number, wrong=night.wrong)
                report = await nights.grade(number)
                graded.append(GradedNight(report, slack.messages[messages:], nights.testbed.alerts()[alerts:]))
            return graded

        yield asyncio.run(grade_all())


def reasons(nights: Sequence[GradedNight], kind: IncidentKind) -> list[NotifyReason]:
    """Return the reason of each alert about incidents of ``kind`` in these nights."""
    return [alert.reason for night in nights for alert in night.alerts if alert.kind is kind]


@pytest.mark.whole_only
def test_quality_that_drifts_is_one_alert(course):
    """If the rate of wrong replies increases from 1.7 % to 45 %, a drift alert is sent."""
    drifted = [night.report.drift_reading.drifted for night in course[: LAST_BEFORE_FAULTS + 1]]
    assert drifted[:4] == [False] * 4
    assert drifted[-1]
    assert reasons(course[: LAST_BEFORE_FAULTS + 1], IncidentKind.DRIFT)[0] is NotifyReason.FIRST_SEEN


@pytest.mark.whole_only
@pytest.mark.parametrize("fault", [HTTP_500, RESET], ids=["500", "reset"])
def test_a_judge_that_does_not_answer_makes_rates_unknown_and_recovers_nothing(course, fault):
    """While the judge does not answer, rates are unknown, and no incident recovers."""
    report = course[fault].report
    assert isinstance(report.failed, RateUnknown)
    assert (report.facts.total, report.judging.judged, report.judging.needed_judge_count) == (0, 0, 60)
    assert (report.drift, report.drift_reading) == (course[LAST_BEFORE_FAULTS].report.drift, None)
    assert len(report.shortfalls) == 1
    assert NotifyReason.RECOVERED not in {alert.reason for alert in course[fault].alerts}


@pytest.mark.whole_only
def test_a_judge_that_answers_again_ends_its_fault_and_the_drift_goes_on(course, snapshot):
    """When the judge answers again, the fault of the judge ends, and the drift continues.

    Both nights without the judge belong to one fault.
    """
    back = course[JUDGED_AGAIN].report
    assert back.drift_reading is not None
    assert back.drift_reading.drifted
    faults = reasons(course, IncidentKind.MONITOR_FAULT)
    assert (faults[0], faults[-1]) == (NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED)
    assert NotifyReason.FIRST_SEEN not in faults[1:]
    ended = next(night for night in course[RESET:] if reasons([night], IncidentKind.MONITOR_FAULT) == faults[-1:])
    about_monitor = [
        one for night in (course[HTTP_500], ended) for one in night.messages if one.channel == "C0MONITOR"
    ]
    assert format_messages(about_monitor) == snapshot


@pytest.mark.whole_only
def test_a_void_judge_makes_rates_unknown_and_leaves_the_drift_as_it_was(course, snapshot):
    report = course[VOID].report
    assert isinstance(report.failed, RateUnknown)
    assert (report.facts.total, report.judging.void_grades) == (0, 60)
    assert report.drift == course[LAST_BEFORE_FAULTS].report.drift
    assert any("discarded" in one for one in report.shortfalls)
    assert reasons([course[VOID]], IncidentKind.JUDGE_VOID) == [NotifyReason.FIRST_SEEN]
    assert NotifyReason.RECOVERED not in reasons([course[VOID]], IncidentKind.DRIFT)
    assert stable_report(report) == snapshot


@pytest.mark.whole_only
def test_a_rate_that_is_back_ends_the_drift_with_the_rates_in_words(course, snapshot):
    """When the rate is normal again, the drift incident is resolved, and the message states the rate.

    There is only one drift incident, although the judge failed in between.
    """
    report = course[-1].report
    assert report.drift_reading is not None
    assert not report.drift_reading.drifted
    drift = reasons(course, IncidentKind.DRIFT)
    assert (drift[0], drift.count(NotifyReason.FIRST_SEEN), drift.count(NotifyReason.RECOVERED)) == (
        NotifyReason.FIRST_SEEN,
        1,
        1,
    )
    messages = [one for night in course for one in night.messages if one.channel == "C0ALERTS"]
    (opened,) = [one for one in messages if one.thread_ts is None]
    (over,) = [one for one in messages if "ecovered" in one.text]
    assert over.thread_ts == opened.ts
    assert "1.7 %" in str(over.blocks)
    assert format_messages([opened, over]) == snapshot


async def test_a_judge_that_answers_some_alerts_and_its_rate_says_how_many(nights, slack, provider, snapshot):
    with_judge(nights, provider)
    provider.when = {WRONG: "500"}
    a_night(nights, 0, wrong=20)
    report = await nights.grade()
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.graded, report.failed.sampled) == (40, 60)
    assert (report.failed.judged, report.failed.corrected) == (True, False)
    assert stable_report(report) == snapshot(name="report")
    assert report.drift_reading is None
    assert (report.judging.judged, report.judging.needed_judge_count, len(report.shortfalls)) == (40, 60, 1)
    assert format_messages(one for one in slack.messages if one.channel == "C0MONITOR") == snapshot(name="messages")


class Erring(RuleJudge):
    """A judge that passes 30 % of wrong answers and fails 20 % of right ones, but grades canaries correctly."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = random.Random(5)

    def verdict(self, prompt, wanted):
        wrong, right = WRONG in prompt, PLAIN_REPLY in prompt
        if wrong and self._chance.random() < 0.3:
            self.passes_all = True
        if right and self._chance.random() < 0.2:
            self.fails_all = True
        found = super().verdict(prompt, wanted)
        self.passes_all = self.fails_all = False
        return found


@pytest.mark.whole_only
async def test_reviews_correct_the_next_nights_rate_though_all_was_sampled(nights):
    """In the next night, reviews by users correct the rate that an unreliable judge reports.

    The true rate is 17 %. Without reviews, the whole interval of the reported rate is above 17 %.
    """
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"rate": 1.0, "number": None})}
    )
    with AnthropicServer(judge=Erring()) as provider:
        with_judge(nights, provider)
        a_night(nights, 0, wrong=68, of=400)
        first = await nights.grade()
        assert isinstance(first.failed, RateEstimate)
        assert (first.failed.judged, first.failed.corrected) == (True, False)
        assert first.failed.low < first.failed.rate < first.failed.high
        assert first.failed.low > 0.17, "uncorrected, the truth is not in it"
        _review(nights, first)
        a_night(nights, 1, wrong=68, of=400)
        second = await nights.grade(1)
    assert isinstance(second.failed, RateEstimate)
    assert second.failed.corrected
    assert second.failed.low < 0.17 < second.failed.high
    assert abs(second.failed.rate - 0.17) < 0.05
    assert second.reviews == 400


def _review(nights: Nights, report) -> None:
    """Store a correct review of every answer, in the form in which `lookout review` stores it."""
    nights.testbed.store.load_pending(5)
    rows = nights.loaded(f"select case_id from assessments where run_id = '{report.run_id}'")
    labels = [
        LabelRow(
            row=HumanLabel(
                id=f"review-{number}",
                at=NIGHT + timedelta(hours=9),
                by="asha",
                target="demo",
                run_id=report.run_id,
                case_id=str(case_id),
                reason=redact("looked at"),
                source=LabelSource.REVIEW,
                answer=AnswerVerdict.WRONG
                if int(str(case_id).split("-")[2].split(":")[0]) < 68
                else AnswerVerdict.RIGHT,
                inclusion_probability=1.0,
            )
        )
        for number, (case_id,) in enumerate(rows)
    ]
    nights.testbed.store.journal.append(labels, run_id=None)
