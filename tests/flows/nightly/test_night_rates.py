"""A rate covers what was graded for it, and says so: judges that do not speak, judges that err, the gold set."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest

from flows.nightly.format import format_nightly
from monitors.alerts.redact import redact
from monitors.records.estimates import RateEstimate, RateUnknown
from monitors.records.operator_actions import HumanLabel
from monitors.records.reviews import AnswerVerdict, LabelSource
from tests.flows.desks import Night
from tests.flows.judged_run import HOME_RIGHT, home, judge_at, with_key
from tests.flows.nights_graded import LEAK, TOLD, Nights, talk
from tests.monitors.alerts.sightings import NIGHT
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge
from tests.servers.slack import SlackServer
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
    return Nights(tmp_path, Night(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


def with_judge(nights: Nights, provider: AnthropicServer, **changes: object) -> None:
    fast = {"deadline_s": 60, "try_s": 30, "tries": 1, "most_pause_s": 0.1, "batch_poll_s": 0.05}
    nights.judge = fast | judge_at(provider, **({"nightly_batches": False} | changes))


def asked(night: int, number: int, reply: str = TOLD, question: str = "How long do I have?") -> str:
    turn = {"question": question, "answer": reply, "context": [PASSAGE]}
    ended = NIGHT + timedelta(days=night, seconds=number) - timedelta(hours=10)
    return talk(number, turns=[turn], id=f"talk-{night}-{number}", completed_at=ended.isoformat())


def a_night(nights: Nights, night: int, *, wrong: int, of: int = 60) -> None:
    nights.append(*(asked(night, number, WRONG if number < wrong else TOLD) for number in range(of)))


def said(report) -> str:
    return "\n".join(format_nightly(report))


def about(slack: SlackServer, channel: str) -> list[str]:
    return [json.dumps(one.blocks, ensure_ascii=False) for one in slack.messages if one.channel == channel]


async def test_without_a_judge_nobody_says_how_many_answers_are_wrong(nights):
    """286 of 300 conversations had no fact checked: 14 were failed by rule."""
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 300})}
    )
    nights.append(*(asked(0, number, LEAK if number < 14 else TOLD) for number in range(300)))
    report = await nights.grade()
    assert isinstance(report.failed, RateUnknown)
    assert "any failure      unknown, no fact was checked in the 286 of 300 that rules passed (no [judge]" in said(
        report
    )
    assert "severity-3 rate  4.7 %, counted in all 300" in said(report)
    assert "facts checked in 0 of 300 sampled replies" in said(report)
    assert report.shortfalls == ()


async def test_a_question_of_the_gold_set_is_graded_against_it_without_any_judge(nights):
    """Equal but for case, spaces and the mark at the end; what was said before makes another question."""
    (nights.folder / "suite.jsonl").write_text(GRACE.model_dump_json() + "\n", encoding="utf-8")
    question = "how many days do I have  to renew"
    nights.append(
        *(
            asked(0, number, f"You have {15 if number < 3 else 30} days. [Source: Plan, 1]", question)
            for number in range(8)
        ),
        asked(0, 9, TOLD),
    )
    report = await nights.grade()
    assert report.known_questions is not None
    assert (report.known_questions.conversations, report.known_questions.failed) == (8, 3)
    assert [(one.kind.value, one.failures) for one in report.kinds] == [("wrong_fact", 3)]
    assert "facts checked in 8 of 9 sampled replies: 0 by the judge, 8 by rule against the gold set" in said(report)
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.graded, report.failed.sampled) == (8, 9)
    assert report.failed.low < 3 / 8 < report.failed.high, "rules can err: it is no point though all was graded"


async def test_a_gold_question_that_rules_leave_open_is_judged_against_its_gold(nights, provider):
    with_judge(nights, provider)
    nights.append(asked(0, 1, HOME_RIGHT, "What about treatment at home?"))
    report = await nights.grade()
    assert report.facts.by_judge == 1
    assert any("EXPECTED ANSWER" in one.body.decode().upper() for one in provider.messages)


async def test_a_few_gold_questions_do_not_speak_for_all_traffic(nights):
    (nights.folder / "suite.jsonl").write_text(GRACE.model_dump_json() + "\n", encoding="utf-8")
    nights.append(
        *(asked(0, number) for number in range(20)), asked(0, 30, "30 days. [Source: Plan, 1]", GRACE.question)
    )
    report = await nights.grade()
    assert isinstance(report.failed, RateUnknown)
    assert "any failure      unknown, a fact was checked in only 1 of 21 sampled" in said(report)


@pytest.mark.parametrize("trouble", ["500", "reset"])
async def test_a_judge_that_does_not_answer_makes_rates_unknown_and_recovers_nothing(
    nights, slack, provider, trouble
):
    """Quality drifts; then the judge's API fails while 45 % is wrong: nothing is better, and its owners hear of it."""
    with_judge(nights, provider)
    for number in range(6):
        a_night(nights, number, wrong=1 if number < 4 else 27)
        before = await nights.grade(number)
    assert before.drift_reading is not None
    assert before.drift_reading.drifted
    (opened,) = [one for one in slack.messages if one.channel == "C0ALERTS" and one.thread_ts is None]
    assert "Quality drifts" in str(opened.blocks)
    provider.always = trouble
    a_night(nights, 6, wrong=27)
    report = await nights.grade(6)
    assert isinstance(report.failed, RateUnknown)
    assert "no fact was checked (the judge gave no verdict" in said(report)
    assert (report.drift, report.drift_reading) == (before.drift, None)
    assert report.shortfalls == ("the judge graded 0 of 60 answers",)
    assert not any("ecovered" in one for one in about(slack, "C0ALERTS"))
    (fault,) = about(slack, "C0MONITOR")
    assert "The judge graded 0 of 60 replies" in fault
    provider.behave()
    a_night(nights, 7, wrong=27)
    back = await nights.grade(7)
    assert back.drift_reading is not None
    assert back.drift_reading.drifted
    assert "The judge answers again." in about(slack, "C0MONITOR")[-1]
    assert [one.ts for one in slack.messages if one.channel == "C0ALERTS" and one.thread_ts is None] == [opened.ts]


async def test_a_void_judge_makes_rates_unknown_and_keeps_the_drift(nights, slack):
    with AnthropicServer() as provider:
        with_judge(nights, provider)
        for number in range(6):
            a_night(nights, number, wrong=1 if number < 4 else 27)
            before = await nights.grade(number)
        provider.judge.passes_all = True
        a_night(nights, 6, wrong=18)
        report = await nights.grade(6)
    assert isinstance(report.failed, RateUnknown)
    assert "no fact was checked (the judge missed known answers: its grades are void)" in said(report)
    assert report.drift == before.drift
    assert any("void" in one for one in report.shortfalls)
    assert "cannot be believed" in about(slack, "C0MONITOR")[-1]
    assert not any("ecovered" in one for one in about(slack, "C0ALERTS"))


async def test_a_judge_that_answers_some_is_told_of_and_its_rate_says_how_many(nights, slack, provider):
    with_judge(nights, provider)
    provider.when = {WRONG: "500"}
    a_night(nights, 0, wrong=20)
    report = await nights.grade()
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.graded, report.failed.sampled) == (40, 60)
    assert "graded 40 of 60 sampled, uncorrected for the judge's errors" in said(report)
    assert report.drift_reading is None
    assert report.shortfalls == ("the judge graded 40 of 60 answers",)
    assert "The judge graded 40 of 60 replies" in about(slack, "C0MONITOR")[0]


async def test_a_rate_that_is_back_ends_the_drift_with_the_rates_in_words(nights, slack, provider):
    with_judge(nights, provider)
    for number in range(8):
        a_night(nights, number, wrong=27 if number in {4, 5} else 1)
        report = await nights.grade(number)
    assert report.drift_reading is not None
    assert not report.drift_reading.drifted
    assert "back at 1.7 % since 2026-03-07" in said(report)
    over = [one for one in about(slack, "C0ALERTS") if "ecovered" in one]
    assert len(over) == 1
    assert "back at" in over[0]
    assert "45.0 %" in over[0]


class Erring(RuleJudge):
    """Passes 30 of 100 wrong answers and fails 20 of 100 right ones; its canaries it knows."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = random.Random(5)

    def verdict(self, prompt, wanted):
        wrong, right = WRONG in prompt, TOLD in prompt
        if wrong and self._chance.random() < 0.3:
            self.passes_all = True
        if right and self._chance.random() < 0.2:
            self.fails_all = True
        found = super().verdict(prompt, wanted)
        self.passes_all = self.fails_all = False
        return found


async def test_reviews_correct_the_next_nights_rate_though_all_was_sampled(nights):
    """The truth is 17 %; the judge says about 28 %."""
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
        assert "uncorrected for the judge's errors" in said(first)
        assert first.failed.low > 0.17, "uncorrected, the truth is not in it"
        _review(nights, first)
        a_night(nights, 1, wrong=68, of=400)
        second = await nights.grade(1)
    assert isinstance(second.failed, RateEstimate)
    assert second.failed.corrected
    assert second.failed.low < 0.17 < second.failed.high
    assert abs(second.failed.rate - 0.17) < 0.05
    assert "corrected for the judge's errors by 400 reviews" in said(second)


def _review(nights: Nights, report) -> None:
    """A person looks at every answer, as `lookout review` keeps it."""
    nights.desk.store.load_pending(5)
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
    nights.desk.store.journal.append(labels, run_id=None)
