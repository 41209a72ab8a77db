"""Test a recurring silence end to end: the setting, a verification, and the message after the silence."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine

from flows.alerting.pipeline import send_waiting_alerts
from flows.runtime.slack import build_notifier_without_run
from monitors.config.file import load_config
from monitors.records.incidents import Capability, NotifyReason
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.messages import load_alerts_in
from tests.servers.slack import TOKEN, SlackServer

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
ZONE = "Asia/Kolkata"


@pytest.mark.prefect
def test_a_verification_within_a_configured_period_is_summed_up_after_it(tmp_path, lookout, monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    begins, ends = (datetime.now(UTC) + timedelta(minutes=more) for more in (-60, 60))
    first, last = (f"{time.astimezone(ZoneInfo(ZONE)):%H:%M}" for time in (begins, ends))
    with Chat(RIGHT) as chat, SlackServer() as slack:
        chat.by_question["What is the waiting period of plan 2?"] = WRONG
        more = (
            f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
            f'[[silences]]\nevery = "day {first}-{last}"\nzone = "{ZONE}"\ntarget = "demo"\nreason = "batch"\n'
        )
        config = watched(tmp_path, chat, more=more)
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        assert done.returncode == 1
        assert slack.messages == []

        with time_machine.travel(ends + timedelta(minutes=2)):
            for _ in range(2):
                notifier = build_notifier_without_run(load_config(config), "deploys", Capability.DEPLOYS)
                asyncio.run(send_waiting_alerts(notifier))
        (summary,) = load_alerts_in(tmp_path)
        assert summary.reason is NotifyReason.SILENCED
        assert "waiting-2" in [shown.incident.case_id for shown in summary.items]
        assert len(slack.messages) == 1

        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        assert len(slack.messages) == 1, "the period is not over yet for the command"
