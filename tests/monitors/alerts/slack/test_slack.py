"""Tests of delivery to a Slack server on loopback. The server fails on demand."""

from __future__ import annotations

import socket
import traceback
from datetime import datetime

import pytest

from monitors.alerts.digest import format_digest_headline
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.alerts.wording import FAILURE_TITLES
from monitors.errors import ConfigError, NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.records.grades import FailureKind
from monitors.records.incidents import DeliveryStatus, NotifyReason
from tests.monitors.alerts.sample_observations import (
    HOUR,
    NIGHT,
    AlertDecider,
    alert,
    alert_with_items,
    observation,
    scope,
)
from tests.servers.slack import TOKEN, SlackServer
from tests.tools.alert_examples import digest_example


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def settings(slack: SlackServer, **changes: object) -> AlertSettings:
    values = {"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url, "send_timeout_s": 10.0}
    return AlertSettings(**(values | changes))


def clock() -> datetime:
    return NIGHT


def bot(slack: SlackServer, token: str = TOKEN, **changes: object) -> SlackBot:
    return SlackBot(settings(slack, **changes), token=token, now=clock)


def webhook(slack: SlackServer, **changes: object) -> SlackWebhook:
    return SlackWebhook(settings(slack, **changes), url=slack.webhook_url, now=clock)


async def test_a_bot_posts_and_the_receipt_says_where(slack):
    receipt = await bot(slack).send(alert())
    (message,) = slack.messages
    assert (receipt.status, receipt.channel, receipt.thread) == (DeliveryStatus.SENT, "C0ALERTS", message.ts)
    assert receipt.alert_id in message.text
    assert message.metadata["event_payload"] == {"id": receipt.alert_id}


async def test_a_webhook_posts_without_a_thread(slack):
    receipt = await webhook(slack).send(alert())
    (message,) = slack.messages
    assert (receipt.status, receipt.thread, message.by) == (DeliveryStatus.SENT, None, "webhook")
    assert receipt.alert_id in message.text


async def test_a_channel_may_be_named(slack):
    receipt = await bot(slack, slack_channel="#alerts").send(alert())
    assert receipt.channel == "C0ALERTS"


async def test_faults_of_the_monitor_go_to_its_own_channel(slack):
    fault = build_monitor_fault_observation(
        ObservationContext(target="demo", run_id="run-1", seen_at=NIGHT), fault_name="DiskFull", detail="disk full"
    )
    await bot(slack, slack_monitor_channel="C0MONITOR").send(alert(fault))
    assert [message.channel for message in slack.messages] == ["C0MONITOR"]


async def test_the_three_runs_of_a_fault_are_a_page_a_reply_and_a_page(slack):
    """A fault that appears, recovers and returns leads to a message, a reply and a new message.

    The reply reports the recovery, in the thread of the first message. The new message reports that the fault is
    back, and starts a new thread.
    """
    decider, sender = AlertDecider(), bot(slack)
    reasons = []
    for now, seen, ended in (
        (NIGHT, [observation()], None),
        (NIGHT + HOUR, [observation(run_id="run-1b")], None),
        (NIGHT + 2 * HOUR, [], scope("run-2", "leak-1")),
        (NIGHT + 5 * HOUR, [observation(run_id="run-3")], None),
    ):
        items = decider.decide_alerts(*seen, now=now, scope=ended).items
        if items:
            sent = alert_with_items(items, run_id=items[0].observation.run_id, now=now)
            receipt = await sender.send(sent)
            decider.record_thread(sent, receipt.thread or "", receipt.channel or "")
            reasons.append(sent.reason)
    assert reasons == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED, NotifyReason.REGRESSED]
    first, reply, again = slack.messages
    assert (first.thread_ts, reply.thread_ts, again.thread_ts) == (None, first.ts, None)
    assert not reply.broadcast


async def test_a_second_page_of_the_same_run_can_follow_the_first_one(slack):
    """A second alert of a run can be sent into the thread of the first alert.

    Alerts are sent while the run continues. Later failures of the run go into the thread, so that they do not
    notify the channel again.
    """
    first = await bot(slack).send(alert())
    await bot(slack).send(alert(observation("leak-2")), thread=first.thread, channel=first.channel)
    assert [message.thread_ts for message in slack.messages] == [None, first.thread]


async def test_a_reminder_is_said_in_the_thread_and_shown_in_the_channel(slack):
    decider, sender = AlertDecider(), bot(slack)
    first = alert_with_items(decider.decide_alerts(observation()).items)
    receipt = await sender.send(first)
    decider.record_thread(first, receipt.thread or "", receipt.channel or "")
    later = NIGHT + 24 * HOUR
    reminder = alert_with_items(
        decider.decide_alerts(observation(run_id="run-2", seen_at=later), now=later).items, now=later
    )
    await sender.send(reminder)
    assert (slack.messages[1].thread_ts, slack.messages[1].broadcast) == (slack.messages[0].ts, True)


async def test_a_message_can_be_replaced(slack):
    sent = alert(flat=None, weighted=None)
    receipt = await bot(slack).send(sent)
    await bot(slack).update(alert(), channel=receipt.channel or "", ts=receipt.thread or "")
    (message,) = slack.messages
    assert message.edits == 1
    assert "weighted score 0.871" in str(message.blocks)


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
async def test_f01_a_rate_limit_is_waited_for(slack, make):
    slack.misbehave("429:0", "429:0")
    assert (await make(slack).send(alert())).status is DeliveryStatus.SENT
    assert len(slack.messages) == 1
    assert len(slack.requests) == 3


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
async def test_f01_a_rate_limit_longer_than_the_deadline_is_left_to_the_next_delivery(slack, make):
    slack.misbehave("429:3600")
    with pytest.raises(NotifyTransient, match="rate-limited the request"):
        await make(slack).send(alert())
    await make(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
async def test_f02_a_slack_that_answers_500_takes_the_message_afterwards(slack, make):
    slack.always = "500"
    for _ in range(3):
        with pytest.raises(NotifyTransient, match="500"):
            await make(slack, send_retries=0).send(alert(), again=True)
    slack.always = None
    await make(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        ("token_revoked", "SLACK_BOT_TOKEN"),
        ("channel_not_found", "slack_channel"),
        ("not_in_channel", "invite the bot"),
        ("missing_scope", "chat:write"),
        ("is_archived", "unarchive"),
        ("403", "HTTP 403"),
        ("something_slack_makes_up_next_year", "documentation"),
    ],
)
async def test_f03_a_refusal_of_slack_says_what_to_do(slack, fault, advice):
    slack.misbehave(fault)
    with pytest.raises(NotifyRejected, match=advice):
        await bot(slack).send(alert())
    assert slack.messages == []


@pytest.mark.parametrize(("fault", "advice"), [("no_service", "incoming webhook"), ("action_prohibited", "owner")])
async def test_f03_a_refused_webhook_says_what_to_do(slack, fault, advice):
    slack.misbehave(fault)
    with pytest.raises(NotifyRejected, match=advice):
        await webhook(slack).send(alert())


async def test_f03_a_bot_without_a_channel_does_not_start(slack):
    with pytest.raises(ConfigError, match=r"alerts\.slack_channel"):
        bot(slack, slack_channel=None)


async def test_f04_when_nothing_was_sent_the_next_delivery_posts_once(slack):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/api/"
        with pytest.raises(NotifyTransient, match="cannot connect") as caught:
            await bot(slack, slack_api_url=nobody, send_retries=0).send(alert())
    assert not isinstance(caught.value, NotifyUnsure)
    await bot(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


@pytest.mark.parametrize("fault", ["lost", "slow"])
async def test_f05_a_lost_reply_is_found_again_by_the_bot(slack, fault, snapshot):
    slack.misbehave(fault)
    with pytest.raises(NotifyUnsure, match="may have arrived"):
        await bot(slack, send_timeout_s=0.5).send(alert())
    receipt = await bot(slack).send(alert(), again=True)
    (message,) = slack.messages
    assert receipt.thread == message.ts
    assert receipt.detail == snapshot


async def test_f05_a_lost_reply_in_a_thread_is_found_again(slack):
    decider = AlertDecider()
    first = alert_with_items(decider.decide_alerts(observation()).items)
    receipt = await bot(slack).send(first)
    decider.record_thread(first, receipt.thread or "", receipt.channel or "")
    over = alert_with_items(
        decider.decide_alerts(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1")).items, run_id="run-2"
    )
    slack.misbehave("lost")
    with pytest.raises(NotifyUnsure):
        await bot(slack).send(over)
    await bot(slack).send(over, again=True)
    assert len(slack.thread(receipt.thread or "")) == 1


@pytest.mark.parametrize("fault", ["500", "429:3600", "internal_error"])
async def test_f05_a_failed_lookup_does_not_post_again(slack, fault):
    slack.misbehave("lost", fault)
    for again in (False, True):
        with pytest.raises(NotifyTransient):
            await bot(slack, send_retries=0).send(alert(), again=again)
    await bot(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
async def test_f05_an_unfindable_message_is_duplicated_with_the_same_id(slack, make):
    """A sender that cannot check whether Slack has its message sends the message again with the same id.

    Such a sender is a webhook, or a bot without permission to read.
    """
    slack.misbehave("lost", "missing_scope") if make is bot else slack.misbehave("lost")
    with pytest.raises(NotifyUnsure):
        await make(slack).send(alert())
    await make(slack).send(alert(), again=True)
    shown = [message.text for message in slack.messages]
    assert len(shown) == 2
    assert all(alert().id in text for text in shown)


async def test_f06_a_name_that_does_not_resolve_is_left_to_the_next_delivery(slack):
    with pytest.raises(NotifyTransient, match="cannot connect"):
        await bot(slack, slack_api_url="http://slack.invalid/api/", send_retries=0).send(alert())
    await bot(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


async def test_f08_a_sender_killed_before_it_noted_the_receipt_does_not_post_again(slack):
    await bot(slack).send(alert())
    await bot(slack).send(alert(), again=True)
    assert len(slack.messages) == 1


async def test_f08_a_message_that_waited_is_looked_for_unasked(slack):
    """Before the bot sends a message that waited for a long time, it looks for this message in Slack.

    A worker that was killed may already have sent the message, and the next worker cannot know this.
    """
    await bot(slack).send(alert())
    late = SlackBot(settings(slack), token=TOKEN, now=lambda: NIGHT + HOUR)
    await late.send(alert())
    assert len(slack.messages) == 1


async def test_a_reply_to_a_deleted_thread_goes_to_the_channel(slack):
    receipt = await bot(slack).send(alert(observation("leak-2")), thread="1.0001", channel="C0ALERTS")
    (message,) = slack.messages
    assert (receipt.status, message.thread_ts) == (DeliveryStatus.SENT, None)


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
async def test_the_digest_is_a_message_of_its_own(slack, make):
    receipt = await make(slack).send_digest(digest_example())
    (message,) = slack.messages
    assert receipt.alert_id == digest_example().id
    assert message.text.startswith(format_digest_headline(digest_example()))


async def test_a_layout_that_slack_refuses_goes_as_text(slack):
    slack.misbehave("invalid_blocks", "ok")
    await bot(slack).send(alert())
    (message,) = slack.messages
    assert message.blocks == []
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in message.text


EVERY_FAULT = (
    "429:3600", "500", "503", "502", "504", "400", "403", "404", "418", "lost", "slow", "hang", "reset", "html",
    "token_revoked", "invalid_auth", "channel_not_found", "no_service", "internal_error", "ratelimited", "<http://x>",
)  # fmt: skip


@pytest.mark.parametrize("make", [bot, webhook], ids=["bot", "webhook"])
@pytest.mark.parametrize("fault", EVERY_FAULT)
async def test_no_failure_shows_a_token_or_an_address(slack, make, fault, caplog):
    """For every sender and every fault, the error, its traceback and the log contain no secret."""
    caplog.set_level("DEBUG")
    slack.always = fault
    with pytest.raises(NotifyError) as caught:
        await make(slack, send_retries=0, send_timeout_s=0.5).send(alert())
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    shown += "".join(record.getMessage() for record in caplog.records if record.name != "asyncio")
    for secret in (TOKEN, slack.webhook_url, slack.url, "127.0.0.1", "a-secret-for-tests"):
        assert secret not in shown


def test_a_sender_does_not_show_its_secret(slack):
    shown = repr(bot(slack)) + str(bot(slack)) + repr(webhook(slack))
    assert TOKEN not in shown
    assert "a-secret" not in shown
