"""Test the test message of `lookout doctor`: every channel is tried, each result has advice, nothing is stored."""

from __future__ import annotations

import pytest

from deployments.cli.doctor.checks import check_alert_delivery
from deployments.cli.doctor.services import DoctorContext, Health
from flows.clock import utc_now
from flows.maintenance.self_test import send_test_alerts_and_ping
from monitors.config.file import Config, TargetConfig
from tests.flows.messages import format_messages
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.watchdog import Watchdog


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def config(tmp_path, slack: SlackServer, **settings: object) -> Config:
    alerts_table = {"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url, "send_retries": 0} | settings
    target = TargetConfig(url="http://127.0.0.1:9", suite=tmp_path / "suite.jsonl")
    return Config.model_validate(
        {"data_folder": tmp_path / "data", "targets": {"demo": target}, "alerts": alerts_table}
    )


async def test_every_way_is_tried_and_nothing_is_stored(tmp_path, slack, snapshot):
    ways = config(tmp_path, slack, slack_monitor_channel="C0MONITOR", slack_fallback_channel="C0SECOND")
    with Watchdog() as dog:
        environment = {
            "SLACK_BOT_TOKEN": TOKEN,
            "SLACK_FALLBACK_WEBHOOK_URL": slack.webhook_url,
            "LOOKOUT_HEARTBEAT_URL": dog.check,
        }
        outcomes = await send_test_alerts_and_ping(ways, environment, target="demo", now=lambda: NIGHT)
        assert dog.kinds == ["/start"]
    assert [(one.path, one.arrived) for one in outcomes] == [
        ("bot, C0ALERTS", True),
        ("bot", True),
        ("bot, fallback channel", True),
        ("fallback webhook", True),
        ("heartbeat", True),
    ]
    assert sorted(m.channel for m in slack.messages) == ["C0ALERTS", "C0ALERTS", "C0MONITOR", "C0SECOND"]
    assert format_messages(sorted(slack.messages, key=lambda message: message.channel)) == snapshot
    assert not (tmp_path / "data").exists()


async def test_an_undelivered_message_says_what_to_do_and_stops_nothing(tmp_path, slack, snapshot):
    slack.misbehave("token_revoked")
    environment = {
        "SLACK_BOT_TOKEN": TOKEN,
        "SLACK_FALLBACK_WEBHOOK_URL": slack.webhook_url,
        "LOOKOUT_HEARTBEAT_URL": "http://127.0.0.1:9/a-secret-check",
    }
    outcomes = await send_test_alerts_and_ping(config(tmp_path, slack), environment, target="demo", now=utc_now)
    assert [one.arrived for one in outcomes] == [False, True, False]
    assert outcomes[0].detail == snapshot
    shown = "".join(one.model_dump_json() for one in outcomes)
    for secret in (TOKEN, "a-secret", "127.0.0.1"):
        assert secret not in shown


def test_doctor_tells_of_each_way(tmp_path, slack):
    environment = {"SLACK_BOT_TOKEN": TOKEN}
    found = check_alert_delivery(
        DoctorContext(tmp_path / "lookout.toml", config(tmp_path, slack), environment, NIGHT)
    )
    assert [(one.name, one.health) for one in found] == [
        ("alerts, bot", Health.GOOD),
        ("alerts, heartbeat", Health.DOUBTFUL),
    ]
    slack.always = "channel_not_found"
    look_again = DoctorContext(
        tmp_path / "lookout.toml", config(tmp_path, slack), environment, NIGHT, alert_now=True
    )
    found = check_alert_delivery(look_again)
    assert found[0].health is Health.BROKEN
    assert "slack_channel" in found[0].to_do


def test_doctor_sends_no_second_test_within_a_day_unless_asked_or_the_way_is_another(tmp_path, slack):
    """`lookout doctor` sends no second test message within a day, except with `--alert` or for another channel.

    Instead, it refers to the earlier test message.
    """
    environment = {"SLACK_BOT_TOKEN": TOKEN}

    def look(alert_now: bool = False, **settings: object) -> str:
        around = DoctorContext(
            tmp_path / "lookout.toml", config(tmp_path, slack, **settings), environment, NIGHT, alert_now=alert_now
        )
        return check_alert_delivery(around)[0].found

    first = look()
    (message,) = slack.messages
    proof = message.text.rpartition(" · ")[2]
    assert proof in first
    again = look()
    assert len(slack.messages) == 1
    assert proof in again
    assert "lookout doctor --alert" in again
    assert "test sent" in look(alert_now=True)
    assert "test sent" in look(slack_channel="C0SECOND")
    assert [one.channel for one in slack.messages] == ["C0ALERTS", "C0ALERTS", "C0SECOND"]


def test_doctor_sends_nothing_when_asked_not_to_or_without_credentials(tmp_path, slack):
    quiet = DoctorContext(
        tmp_path / "lookout.toml", config(tmp_path, slack), {"SLACK_BOT_TOKEN": TOKEN}, NIGHT, False
    )
    assert [one.health for one in check_alert_delivery(quiet)] == [Health.GOOD]
    bare = DoctorContext(tmp_path / "lookout.toml", config(tmp_path, slack), {}, NIGHT)
    assert [one.health for one in check_alert_delivery(bare)] == [Health.GOOD]
    assert slack.requests == []
