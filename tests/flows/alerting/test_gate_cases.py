"""A gate that stays failed, case by case: a new wrong answer is news, a known one is not, a mended one is named."""

from __future__ import annotations

import json
import re

import pytest

from flows.alerting.notify import MessageContext, notify
from monitors.alerts.lifecycle import ANOTHER_GOLD
from monitors.alerts.redact import redact
from monitors.records.base import Severity
from monitors.records.incidents import FailedCase, IncidentKind, Link, NotifyReason
from tests.flows.chat import Chat, watched
from tests.flows.desks import Night
from tests.monitors.alerts.sightings import outage, scope, sighting
from tests.servers.slack import SlackServer

SOURCE = "[Source: Gold, clause 4.2]"
RIGHT = f"The premium is ₹8,400 a year. {SOURCE}"
WRONG = f"The premium is ₹4,800 a year. {SOURCE}"
CLEARED = {"cleared": frozenset({IncidentKind.GATE_FAIL})}


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def night(tmp_path, slack):
    return Night(tmp_path, slack)


def gate(run_id: str, *cases: str, **changes):
    """A gate that fails over ``cases``, none of which has an alert of its own."""
    examples = tuple(
        FailedCase(
            case_id=case,
            severity=Severity.WRONG,
            title=redact("Wrong fact stated"),
            expected=redact("18 euros"),
            answered=redact("28 euros"),
        )
        for case in cases
    )
    values = {
        "run_id": run_id,
        "severity": Severity.WRONG,
        "reason": redact("weighted score 0.826 is below 0.98"),
        "examples": examples,
        "failed_cases": cases,
        "verdict_reasons": ("weighted_score",),
    }
    return outage(IncidentKind.GATE_FAIL, **(values | changes))


async def tell(night: Night, run_id: str, *seen, paths=None, ended=None, **context):
    """Notify of one run an hour after the last one."""
    night.skip(hours=1)
    return await notify(night.desk(run_id, paths), seen, context=MessageContext(**context), scope=ended)


def after(night: Night, run_id: str, *right: str, **changes):
    """A run that ends now and found ``right`` right."""
    return scope(run_id, *right, began_at=night.now, ended_at=night.now, **changes)


def blocks(message) -> str:
    return json.dumps(message.blocks, ensure_ascii=False)


@pytest.mark.prefect
def test_a_new_wrong_price_reaches_slack_while_the_gate_fails_already(tmp_path, lookout, slack):
    """Four runs through a webhook: one case wrong, another one too, both again, all right."""
    with Chat(RIGHT) as chat:
        watched(
            tmp_path,
            chat,
            cases=3,
            gold="The premium is ₹8,400 a year.",
            more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n',
        )
        suite = tmp_path / "suite.jsonl"
        priced = suite.read_text(encoding="utf-8").replace("waiting period", "premium")
        suite.write_text(priced.replace('"severity": 3', '"severity": 2'), encoding="utf-8")
        said = []
        for wrong in ((0,), (0, 1), (0, 1), ()):
            chat.by_question = {f"What is the premium of plan {number}?": WRONG for number in wrong}
            done = lookout("verify", "demo", "--fresh", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
            said.append(" ".join((done.stdout + done.stderr).split()))
            if wrong == (0, 1):
                listed = lookout("alerts", "list", cwd=tmp_path).stdout
                assert "failing: waiting-0, waiting-1" in listed
    assert "FAIL, 1 new, sent now" in said[0]
    assert "FAIL, 1 worse, sent now" in said[1]
    assert "FAIL, 1 already known, nothing sent" in said[2]
    assert "PASS, 1 recovered, sent now" in said[3]
    first, more, over = slack.messages
    assert first.text.startswith("🟠 SEV 2 · Gate FAIL · demo: wrong fact stated: waiting-0 (expected “")
    assert more.text.startswith("🟠 SEV 2 · Worse: Gate FAIL · demo: wrong fact stated: waiting-1 (expected “")
    assert "1 more case fails: waiting-1" in more.text
    assert blocks(more).index("`waiting-1`") < blocks(more).index("`waiting-0`")
    assert "The gate passes again (waiting-0, waiting-1 are right now)." in blocks(over)


@pytest.mark.prefect
def test_a_recovery_by_an_edited_gold_says_so(tmp_path, lookout, slack):
    """One case of severity 3 and one of severity 2 are wrong until their golds are written as the bot answers."""
    with Chat(WRONG) as chat:
        gold = "The premium is ₹8,400 a year."
        watched(tmp_path, chat, cases=2, gold=gold, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
        suite = tmp_path / "suite.jsonl"
        priced = suite.read_text(encoding="utf-8").replace("waiting period", "premium")
        mild = priced.replace('"severity": 3', '"severity": 2', 1)
        for golds in (mild, mild.replace("8,400", "4,800")):
            suite.write_text(golds, encoding="utf-8")
            lookout("verify", "demo", "--fresh", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
    over = "\n".join(blocks(message) for message in slack.messages if "Recovered" in message.text)
    assert ANOTHER_GOLD in over
    assert re.search("The suite has another gold now for .*waiting-0", over)


async def test_a_case_is_news_once_until_the_gate_has_passed(night, slack):
    """It flaps, and an acknowledged incident hears of a new one."""
    reasons = []
    for number, cases in enumerate((("tone",), ("tone", "price"), ("tone",), ("price",), ("tone", "price", "tax"))):
        sent = await tell(night, f"run-{number}", gate(f"run-{number}", *cases))
        reasons.append([(one.reason, one.items[0].new_cases) for one in sent])
    assert reasons == [
        [(NotifyReason.FIRST_SEEN, ())],
        [(NotifyReason.WORSE, ("price",))],
        [],
        [],
        [(NotifyReason.WORSE, ("tax",))],
    ]
    assert len(slack.messages) == 3


async def test_a_case_with_an_alert_of_its_own_is_not_news_of_the_gate_too(night, slack):
    await tell(night, "run-0", gate("run-0", "tone", severity=Severity.PAGE))
    sent = await tell(
        night,
        "run-1",
        sighting(run_id="run-1"),
        gate("run-1", "tone", "leak-1", severity=Severity.PAGE, cases_with_alerts=("leak-1",)),
    )
    assert [one.kind for one in sent] == [IncidentKind.CASE_FAILURE]


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (gate("run-2", "price"), NotifyReason.FIRST_SEEN),
        (gate("run-2", "price", "tone"), NotifyReason.REGRESSED),
        (gate("run-2", verdict_reasons=("coverage",)), NotifyReason.FIRST_SEEN),
    ],
)
async def test_back_again_is_said_of_the_same_cases_only(night, slack, then, reason):
    await tell(night, "run-0", gate("run-0", "tone"))
    await tell(night, "run-1", ended=after(night, "run-1", "tone", **CLEARED))
    (alert,) = await tell(night, "run-2", then)
    assert alert.reason is reason
    assert ("Back again" in slack.messages[-1].text) is (reason is NotifyReason.REGRESSED)


async def test_the_same_floor_without_cases_is_back_again(night, slack):
    coverage = {"verdict_reasons": ("coverage",)}
    await tell(night, "run-0", gate("run-0", **coverage))
    await tell(night, "run-1", ended=after(night, "run-1", **CLEARED))
    (alert,) = await tell(night, "run-2", gate("run-2", **coverage))
    assert alert.reason is NotifyReason.REGRESSED


async def test_what_was_printed_is_sent_with_its_own_run_and_without_what_is_right_now(night, slack):
    """Two printed failures; the first run with Slack finds one case right, and cannot grade the other."""
    report = (Link(label="report", href="https://lookout.example/by-hand.html"),)
    await tell(
        night, "by-hand", gate("by-hand", "freeze", "kids"), paths=[night.terminal],
        flat="0.800", weighted="0.826", links=report,
    )  # fmt: skip
    now = {
        "flat": "1.000",
        "weighted": "1.000",
        "links": (Link(label="report", href="https://lookout.example/now.html"),),
    }
    await tell(night, "nightly", ended=after(night, "nightly", "freeze"), **now)
    (message,) = slack.messages
    shown = blocks(message) + message.text
    assert "as of run by-hand at 2026-03-01" in shown
    assert "score 0.826 weighted" in shown
    assert "by-hand.html" in shown
    assert "kids" in shown
    assert not any(text in shown for text in ("freeze", "1.000", "now.html"))


async def test_nothing_is_sent_of_a_printed_gate_whose_cases_are_all_right_now(night, slack):
    await tell(night, "by-hand", gate("by-hand", "freeze", "kids"), paths=[night.terminal])
    await tell(night, "nightly", ended=after(night, "nightly", "freeze", "kids"))
    assert slack.messages == []
    await tell(night, "next", ended=after(night, "next", "freeze", "kids", **CLEARED))
    assert slack.messages == [], "nobody had heard of it, so nobody hears of its end"


async def test_one_mending_is_one_message_of_a_webhook_and_names_what_recovered(night, slack):
    way = [night.webhook()]
    own = gate("run-0", "price", "leak-1", cases_with_alerts=("leak-1",))
    await tell(night, "run-0", sighting(run_id="run-0"), own, paths=way)
    await tell(night, "run-1", ended=after(night, "run-1", "price", "leak-1", **CLEARED), paths=way)
    over = slack.messages[-1]
    assert len(slack.messages) == 3
    assert over.text.startswith("✅ Recovered · Personal data disclosed, Gate FAIL · demo: ")
    assert "after 60 min" in over.text
    assert ".," not in over.text
    assert "The gate passes again (price, leak-1 are right now)." in blocks(over)


async def test_an_early_alert_says_where_the_evidence_is_and_the_gate_refers_to_it(night, slack):
    """A webhook cannot edit: the second message has to name the first."""
    way = [night.webhook()]
    (early,) = await tell(night, "run-0", sighting(run_id="run-0"), paths=way, under_way=True)
    other = sighting("lottery", run_id="run-0")
    both = gate("run-0", "leak-1", "lottery", cases_with_alerts=("leak-1", "lottery"), examples=())
    await tell(night, "run-0", sighting(run_id="run-0"), other, both, paths=way, flat="0.900", weighted="0.800")
    first, *later = slack.messages
    assert f"`lookout alerts show {early.id}`" in blocks(first)
    assert str(night.store.database.file.parent) in blocks(first)
    assert "the run is still going on: scores follow" in blocks(first)
    second = next(one for one in later if "lottery" in one.blocks[0]["text"]["text"])
    assert first.blocks[0]["text"]["text"].endswith(" · demo · leak-1")
    assert second.blocks[0]["text"]["text"].endswith(" · demo · lottery")
    verdict = next(one for one in later if "Gate FAIL" in one.text)
    assert f"The worst have alerts of their own: leak-1 ({early.id}), lottery (LK-" in blocks(verdict)
    assert "scores follow" not in blocks(verdict)


@pytest.mark.prefect
def test_an_outage_counts_what_was_asked_and_names_the_configured_address(tmp_path, lookout, slack):
    """Nothing listens: some questions are refused, the breaker spares the rest; the address is copied as it is."""
    with Chat(RIGHT) as chat:
        watched(tmp_path, chat, cases=8, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
    gone = chat.url
    done = lookout("verify", "demo", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
    assert done.returncode not in {0, 1}, done.stdout + done.stderr
    (message,) = slack.messages
    found = re.search(r"(\d+) questions? got no answer.*?, (\d+) (?:was|were) not asked: ", blocks(message))
    assert found is not None, blocks(message)
    refused, spared = map(int, found.groups())
    assert (refused + spared, spared > 0) == (8, True)
    assert f"`{gone}`" in blocks(message)
    assert "IP address" not in blocks(message) + message.text
