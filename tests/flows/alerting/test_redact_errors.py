from __future__ import annotations

import traceback

import pytest

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault
from flows.alerting.watchdog import RedactedError, redact_errors
from monitors.config.file import parse_config
from monitors.errors import ConfigError, WarehouseBusy
from tests.flows.alerting_testbed import AlertingTestbed
from tests.servers.slack import SlackServer

KEY = "sk-ant-api03-" + "Zq3" * 12
TOKEN = "xoxb-" + "2817364509-9182736450-" + "aBcDeFgHiJkL"


async def failing(error: Exception, cause: Exception | None = None) -> None:
    if cause is None:
        raise error
    raise error from cause


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError(f"401 for key {KEY}"), None),
        (RuntimeError("could not ask"), ValueError(f"header Authorization: Bearer {KEY}")),
        (ExceptionGroup("two tasks", [ValueError("harmless"), ValueError(f"token {TOKEN}")]), None),
        (OSError(2, "no such file", f"/tmp/{KEY}"), None),
    ],
)
async def test_f89_a_secret_in_an_exception_or_its_cause_is_in_no_traceback(error, cause):
    """A secret in an exception or in its cause is removed from the traceback, which Prefect logs and displays."""
    with pytest.raises(RedactedError) as caught:
        await redact_errors(failing)(error, cause)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert type(error).__name__ in shown
    assert KEY not in shown
    assert TOKEN not in shown


async def test_f89_an_error_of_ours_stays_of_its_kind():
    with pytest.raises(ConfigError) as caught:
        await redact_errors(failing)(ConfigError(f"lookout.toml, gate: {KEY!r} is not accepted"))
    assert KEY not in str(caught.value)


async def test_a_harmless_error_passes_as_it_is():
    error = WarehouseBusy("the file is held by another process")
    with pytest.raises(WarehouseBusy) as caught:
        await redact_errors(failing)(error, ValueError("locked"))
    assert caught.value is error


async def test_f89_a_secret_in_a_fault_of_the_monitor_is_masked_in_slack(tmp_path):
    with SlackServer() as slack:
        await notify_fault(
            AlertingTestbed(tmp_path, slack).notifier(),
            build_fault_from_error(ValueError(f"the provider said: bad key {KEY}")),
        )
        (message,) = slack.messages
    assert KEY not in f"{message.text}{message.blocks}"
    assert "[secret]" in f"{message.blocks}"
    assert build_fault_from_error(ConfigError("no such file")) == Fault("ConfigError", "no such file")


def test_f89_a_password_in_a_targets_address_is_refused_and_not_repeated():
    """A target URL with a password is rejected, because Prefect would display it. The error omits the password."""
    values = {"targets": {"demo": {"url": "https://anna:hunter2-secret@bot.example/chat", "suite": "s.jsonl"}}}
    with pytest.raises(ConfigError, match=r"targets\.demo\.url.*without user name and password") as caught:
        parse_config(values, "lookout.toml")
    assert "hunter2" not in str(caught.value)
    parse_config({"targets": {"demo": {"url": "https://bot.example/@team?to=a@b", "suite": "s.jsonl"}}}, "ok")
