"""Test a gate that stays failed: new wrong answers and recoveries send a message, known wrong answers do not."""

from __future__ import annotations

import json
import re
import socket

import pytest

from flows.alerting.pipeline import notify
from flows.verify.alerts import describe_notifications
from monitors.alerts.redact import redact
from monitors.alerts.resolve import ANOTHER_GOLD
from monitors.alerts.wording import KIND_WORDS
from monitors.records.base import Severity
from monitors.records.incidents import FailedCase, IncidentKind, Link, NotifyReason, RunSummary
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.chat import Chat, watched
from tests.flows.messages import format_message, format_messages, format_stable_messages, load_alerts_in
from tests.monitors.alerts.sample_observations import observation, outage, scope

SOURCE = "[Source: Gold, clause 4.2]"
RIGHT = f"The premium is ₹8,400 a year. {SOURCE}"
WRONG = f"Dear Ms Calderwood-Finch,\nThe premium is ₹4,800 a year. {SOURCE}"
CLEARED = {"cleared": frozenset({IncidentKind.GATE_FAIL})}


def gate(run_id: str, *cases: str, **changes):
    """Build the observation of a gate that fails because of ``cases``. None of these cases has its own alert."""
    examples = tuple(
        FailedCase(
            case_id=case,
            severity=Severity.MAJOR,
            title=redact("Wrong fact stated"),
            expected=redact("18 euros"),
            answered=redact("28 euros"),
        )
        for case in cases
    )
    values = {
        "run_id": run_id,
        "severity": Severity.MAJOR,
        "reason": redact("weighted score 0.826 is below 0.98"),
        "examples": examples,
        "failed_cases": cases,
        "verdict_reasons": ("weighted_score",),
    }
    return outage(IncidentKind.GATE_FAIL, **(values | changes))


async def tell(testbed: AlertingTestbed, run_id: str, *seen, paths=None, ended=None, **context):
    """Send the notifications of the run ``run_id``, an hour after the previous run."""
    testbed.skip(hours=1)
    return await notify(testbed.notifier(run_id, paths), seen, summary=RunSummary(**context), scope=ended)


def after(testbed: AlertingTestbed, run_id: str, *right: str, **changes):
    """Build the scope of a run that ends now and answers the cases ``right`` correctly."""
    return scope(run_id, *right, began_at=testbed.now, ended_at=testbed.now, **changes)


def blocks(message) -> str:
    return json.dumps(message.blocks, ensure_ascii=False)


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_new_wrong_price_reaches_slack_while_the_gate_fails_already(tmp_path, lookout, slack, snapshot):
    """If a second case becomes wrong while the gate is already failed, a message reports the new case.

    In later runs with the same two wrong cases, no message is sent. When all cases are right, the recovery is sent.
    """
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
        codes = []
        for wrong in ((0,), (0, 1), (0, 1), ()):
            chat.by_question = {f"What is the premium of plan {number}?": WRONG for number in wrong}
            done = lookout("verify", "demo", "--fresh", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
            codes.append(done.returncode)
            if wrong == (0, 1):
                listed = lookout("alerts", "list", cwd=tmp_path).stdout
                assert "failing: waiting-0, waiting-1" in listed
    assert codes == [1, 1, 1, 0]
    alerts = load_alerts_in(tmp_path)
    assert [(alert.kind, alert.severity, alert.reason, alert.items[0].new_cases) for alert in alerts] == [
        (IncidentKind.GATE_FAIL, Severity.MAJOR, NotifyReason.FIRST_SEEN, ()),
        (IncidentKind.GATE_FAIL, Severity.MAJOR, NotifyReason.WORSE, ("waiting-1",)),
        (IncidentKind.GATE_FAIL, Severity.MAJOR, NotifyReason.RECOVERED, ()),
    ]
    first, more, over = slack.messages
    assert "Dear Ms [name]" in blocks(first)
    assert "Calderwood" not in "".join(map(blocks, slack.messages))
    assert [one in first.text for one in ("waiting-0", "waiting-1")] == [True, False]
    assert blocks(more).index("`waiting-1`") < blocks(more).index("`waiting-0`")
    assert all(one in blocks(over) for one in ("waiting-0", "waiting-1"))
    runs = dict(zip(("first_run", "second_run", "third_run"), (one.run_id for one in alerts), strict=True))
    assert format_stable_messages(slack.messages, tmp_path, **runs) == snapshot


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_recovery_by_an_edited_gold_says_so(tmp_path, lookout, slack):
    """If a case becomes right because its gold was changed to the bot's answer, the recovery message says so."""
    with Chat(WRONG) as chat:
        gold = "The premium is ₹8,400 a year."
        watched(tmp_path, chat, cases=2, gold=gold, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
        suite = tmp_path / "suite.jsonl"
        priced = suite.read_text(encoding="utf-8").replace("waiting period", "premium")
        mild = priced.replace('"severity": 3', '"severity": 2', 1)
        for golds in (mild, mild.replace("8,400", "4,800")):
            suite.write_text(golds, encoding="utf-8")
            lookout("verify", "demo", "--fresh", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
    over = [blocks(message) for message in slack.messages if "Recovered" in message.text]
    assert any(ANOTHER_GOLD in text and "waiting-0" in text for text in over)


async def test_a_case_is_news_once_until_the_gate_has_passed(testbed, slack):
    """While the gate stays failed, each case is reported as new once, even if the case fails only in some runs."""
    reasons = []
    for number, cases in enumerate((("tone",), ("tone", "price"), ("tone",), ("price",), ("tone", "price", "tax"))):
        sent = await tell(testbed, f"run-{number}", gate(f"run-{number}", *cases))
        reasons.append([(one.reason, one.items[0].new_cases) for one in sent])
    assert reasons == [
        [(NotifyReason.FIRST_SEEN, ())],
        [(NotifyReason.WORSE, ("price",))],
        [],
        [],
        [(NotifyReason.WORSE, ("tax",))],
    ]
    assert len(slack.messages) == 3


async def test_a_case_with_an_alert_of_its_own_is_not_news_of_the_gate_too(testbed, slack):
    await tell(testbed, "run-0", gate("run-0", "tone", severity=Severity.CRITICAL))
    sent = await tell(
        testbed,
        "run-1",
        observation(run_id="run-1"),
        gate("run-1", "tone", "leak-1", severity=Severity.CRITICAL, cases_with_alerts=("leak-1",)),
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
async def test_back_again_is_said_of_the_same_cases_only(testbed, slack, then, reason):
    await tell(testbed, "run-0", gate("run-0", "tone"))
    await tell(testbed, "run-1", ended=after(testbed, "run-1", "tone", **CLEARED))
    (alert,) = await tell(testbed, "run-2", then)
    assert alert.reason is reason
    assert ("Back again" in slack.messages[-1].text) is (reason is NotifyReason.REGRESSED)


async def test_the_same_floor_without_cases_is_back_again(testbed, slack):
    coverage = {"verdict_reasons": ("coverage",)}
    await tell(testbed, "run-0", gate("run-0", **coverage))
    await tell(testbed, "run-1", ended=after(testbed, "run-1", **CLEARED))
    (alert,) = await tell(testbed, "run-2", gate("run-2", **coverage))
    assert alert.reason is NotifyReason.REGRESSED


async def test_a_printed_gate_is_sent_with_its_own_run_without_fixed_cases(testbed, slack, snapshot):
    """If a failed gate was only printed, the first run with Slack sends it, without cases that are right now.

    The message has the scores and the report of the run that was printed.
    """
    report = (Link(label="report", href="https://lookout.example/by-hand.html"),)
    await tell(
        testbed, "by-hand", gate("by-hand", "freeze", "kids"), paths=[testbed.terminal],
        flat="0.800", weighted="0.826", links=report,
    )  # fmt: skip
    now = {
        "flat": "1.000",
        "weighted": "1.000",
        "links": (Link(label="report", href="https://lookout.example/now.html"),),
    }
    await tell(testbed, "nightly", ended=after(testbed, "nightly", "freeze"), **now)
    (message,) = slack.messages
    shown = blocks(message) + message.text
    assert all(text in shown for text in ("run by-hand", "0.826", "by-hand.html", "kids"))
    assert not any(text in shown for text in ("freeze", "1.000", "now.html"))
    assert format_message(message) == snapshot


async def test_nothing_is_sent_of_a_printed_gate_whose_cases_are_all_right_now(testbed, slack):
    await tell(testbed, "by-hand", gate("by-hand", "freeze", "kids"), paths=[testbed.terminal])
    await tell(testbed, "nightly", ended=after(testbed, "nightly", "freeze", "kids"))
    assert slack.messages == []
    await tell(testbed, "next", ended=after(testbed, "next", "freeze", "kids", **CLEARED))
    assert slack.messages == [], "nobody had heard of it, so nobody hears of its end"


async def test_one_fix_is_one_message_of_a_webhook_and_names_what_recovered(testbed, slack, snapshot):
    way = [testbed.webhook()]
    own = gate("run-0", "price", "leak-1", cases_with_alerts=("leak-1",))
    await tell(testbed, "run-0", observation(run_id="run-0"), own, paths=way)
    await tell(testbed, "run-1", ended=after(testbed, "run-1", "price", "leak-1", **CLEARED), paths=way)
    over = slack.messages[-1]
    assert len(slack.messages) == 3
    recovered = [alert for alert in testbed.alerts() if alert.reason is NotifyReason.RECOVERED]
    kinds = [item.incident.kind for alert in recovered for item in alert.items]
    assert sorted(kinds) == [IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL]
    assert ".," not in over.text
    assert format_message(over) == snapshot


async def test_an_early_alert_says_where_the_evidence_is_and_the_gate_refers_to_it(testbed, slack, snapshot):
    """An early alert says where its evidence is, and the later message about the gate refers to the early alert."""
    way = [testbed.webhook()]
    (early,) = await tell(testbed, "run-0", observation(run_id="run-0"), paths=way, under_way=True)
    other = observation("lottery", run_id="run-0")
    both = gate("run-0", "leak-1", "lottery", cases_with_alerts=("leak-1", "lottery"), examples=())
    await tell(
        testbed, "run-0", observation(run_id="run-0"), other, both, paths=way, flat="0.900", weighted="0.800"
    )
    first, *later = slack.messages
    assert f"`lookout alerts show {early.id}`" in blocks(first)
    assert str(testbed.store.database.file.parent) in blocks(first)
    second = next(one for one in later if "lottery" in one.blocks[0]["text"]["text"])
    assert first.blocks[0]["text"]["text"].endswith(" · demo · leak-1")
    assert second.blocks[0]["text"]["text"].endswith(" · demo · lottery")
    verdict = next(one for one in later if KIND_WORDS[IncidentKind.GATE_FAIL] in one.text)
    gate_alert = next(alert for alert in testbed.alerts() if alert.kind is IncidentKind.GATE_FAIL)
    assert {one.case_id: one.alert_id == early.id for one in gate_alert.own_alerts} == {
        "leak-1": True,
        "lottery": False,
    }
    assert [alert.under_way for alert in testbed.alerts()] == [True, False, False]
    assert early.id in blocks(verdict)
    messages = format_messages(slack.messages).replace(str(testbed.store.database.file.parent), "FOLDER")
    assert messages.replace(socket.gethostname(), "HOST") == snapshot


@pytest.mark.whole_only
async def test_the_last_line_of_a_run_counts_what_was_sent_and_what_was_known(testbed, snapshot):
    """The last line of a run counts the alerts that it sent or printed and the incidents that were already known.

    The runs have new, known, worse and recovered incidents.
    """
    lines = []

    async def run(run_id: str, *seen, paths=None, ended=None) -> None:
        began_at = testbed()
        await tell(testbed, run_id, *seen, paths=paths, ended=ended)
        lines.append(describe_notifications(testbed.notifier(run_id, paths), seen, began_at))

    for number in range(2):
        await run(f"by-hand-{number}", observation(run_id=f"by-hand-{number}"), paths=[testbed.terminal])
    for number, cases in enumerate((("tone",), ("tone", "price"), ("tone", "price"))):
        await run(f"run-{number}", observation(run_id=f"run-{number}"), gate(f"run-{number}", *cases))
    await run("run-3", ended=after(testbed, "run-3", "leak-1", "tone", "price", **CLEARED))
    assert lines == snapshot


async def test_f02_the_last_line_of_a_run_counts_what_waits_and_what_was_sent_late(testbed, slack, snapshot):
    """The last line of a run counts alerts that wait during a Slack outage, and alerts that were sent after it."""
    lines = []
    for number, answer in enumerate(("500", "500", None, None)):
        slack.always = answer
        testbed.skip(minutes=3)
        began_at, run_id = testbed(), f"run-{number}"
        await tell(testbed, run_id, observation(run_id=run_id))
        lines.append(describe_notifications(testbed.notifier(run_id), [observation(run_id=run_id)], began_at))
    assert len(slack.messages) == 1
    assert lines == snapshot


@pytest.mark.prefect
@pytest.mark.whole_only
def test_an_outage_counts_what_was_asked_and_names_the_configured_address(tmp_path, lookout, slack):
    """If the application is down, the message counts the questions without an answer and the skipped ones.

    It shows the address of the application as configured.
    """
    with Chat(RIGHT) as chat:
        watched(tmp_path, chat, cases=8, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
    gone = chat.url
    done = lookout("verify", "demo", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
    assert done.returncode not in {0, 1}, done.stdout + done.stderr
    (message,) = slack.messages
    found = re.search(r"(\d+) questions? had no answer.*?, and (\d+) (?:was|were) not asked: ", blocks(message))
    assert found is not None, blocks(message)
    refused, spared = map(int, found.groups())
    assert (refused + spared, spared > 0) == (8, True)
    assert f"`{gone}`" in blocks(message)
    assert "IP address" not in blocks(message) + message.text
