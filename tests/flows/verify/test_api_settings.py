"""Test a target whose API works but is configured wrong: the message names the setting and reports no outage."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from monitors.records.base import Severity
from monitors.records.incidents import Alert, IncidentKind, NotifyReason
from tests.flows.chat import ASKED_ONCE, RIGHT, Chat, watched
from tests.flows.messages import format_messages, format_stable_messages, load_alerts_in
from tests.servers.event_chat import PATH, EventChat
from tests.servers.slack import TOKEN, Posted, SlackServer

pytestmark = pytest.mark.prefect

RIGHT_PROBE = 'api.text = "part.text"\napi.done = "closed"\n'
DOCTOR = "`lookout doctor demo`"


class RunOutput(NamedTuple):
    """The results of a run: its exit code, the messages in Slack, and the terminal output in one line."""

    code: int
    messages: list[Posted]
    terminal: str

    @property
    def text(self) -> str:
        """Return the messages as a user sees them."""
        return format_messages(self.messages)


class Installation:
    """A folder with a ``lookout.toml`` for one API, and a Slack server."""

    def __init__(self, folder: Path, slack: SlackServer, lookout: Callable[..., CompletedProcess[str]]) -> None:
        self._folder, self._slack, self._lookout = folder, slack, lookout

    def verify(self, url: str, probe: str = RIGHT_PROBE, target: str = "") -> RunOutput:
        """Run `lookout verify` with these settings. ``target`` contains further lines of the target's table."""
        with Chat(RIGHT) as unused:
            path = watched(self._folder, unused, cases=2)
        path.write_text(
            f'data_folder = "data"\n[targets.demo]\nurl = "{url}"\nsuite = "suite.jsonl"\n{target}[targets.demo.probe]\n'
            f'driver = "sse"\nconcurrency = 1\nattempts = 1\nanswer_deadline_s = 20\noutage_patience_s = 0\n{probe}'
            f'{ASKED_ONCE}[gate]\nmin_severity_3_cases = 0\n[alerts]\nslack_api_url = "{self._slack.api_url}"\n'
            'slack_channel = "C0ALERTS"\nslack_monitor_channel = "C0MONITOR"\n',
            encoding="utf-8",
        )
        before = len(self._slack.messages)
        done = self._lookout("verify", "demo", cwd=self._folder, SLACK_BOT_TOKEN=TOKEN)
        terminal = re.sub(r"\s+", " ", f"{done.stdout} {done.stderr}")
        return RunOutput(done.returncode, self._slack.messages[before:], terminal)

    def alerts(self) -> list[Alert]:
        """Return the stored alerts, oldest first."""
        return load_alerts_in(self._folder)

    def format(self, run: RunOutput) -> str:
        """Format the messages of a run without parts that differ from run to run."""
        runs = {f"run_{number}": alert.run_id for number, alert in enumerate(self.alerts(), start=1)}
        return format_stable_messages(run.messages, self._folder, **runs)


@pytest.fixture
def installation(tmp_path, lookout):
    with SlackServer() as slack:
        yield Installation(tmp_path, slack, lookout)


@pytest.mark.whole_only
def test_settings_that_changed_are_named_first_and_an_app_that_runs_is_not_down(installation, snapshot):
    """If a run fails after a change of lookout.toml, the message names the change.

    A running application with a wrong path is not reported as down.
    """
    with EventChat(RIGHT) as app:
        assert installation.verify(f"{app.url}{PATH}").code == 0
        wrong = installation.verify(f"{app.url}/v2/dialog/tern")
        assert wrong.code == 3
        for text in (wrong.text, wrong.terminal):
            assert "HTTP 404 at /v2/dialog/tern" in text
            assert "is down" not in text
        assert DOCTOR in wrong.terminal
        assert "picture" not in wrong.terminal

        fixed = installation.verify(f"{app.url}{PATH}")
        assert fixed.code == 0
        assert "answers again" not in fixed.text

        app.gone = True
        gone = installation.verify(f"{app.url}{PATH}")
        assert "change of lookout.toml" not in gone.text
        app.gone = False
        assert installation.verify(f"{app.url}{PATH}").code == 0

        away = installation.verify(f"http://127.0.0.1:9{PATH}")
        assert "change of lookout.toml" in away.text
        assert f"`http://127.0.0.1:9`{PATH}" in away.text
    assert [(one.kind, one.severity, one.reason) for one in installation.alerts()] == [
        (IncidentKind.MONITOR_FAULT, Severity.MAJOR, NotifyReason.FIRST_SEEN),
        (IncidentKind.MONITOR_FAULT, Severity.MAJOR, NotifyReason.RECOVERED),
        (IncidentKind.APP_DOWN, Severity.CRITICAL, NotifyReason.FIRST_SEEN),
        (IncidentKind.APP_DOWN, Severity.CRITICAL, NotifyReason.RECOVERED),
        (IncidentKind.APP_DOWN, Severity.CRITICAL, NotifyReason.REGRESSED),
    ]
    for name, run in {"wrong path": wrong, "fixed": fixed, "gone": gone, "away": away}.items():
        assert installation.format(run) == snapshot(name=name)


@pytest.mark.whole_only
def test_unrelated_requests_are_not_blamed(installation):
    """A changed setting that does not affect questions, such as ``environment``, is not named as the cause."""
    with EventChat(RIGHT) as app:
        assert installation.verify(f"{app.url}{PATH}").code == 0
        app.gone = True
        gone = installation.verify(f"{app.url}{PATH}", target='environment = "production"\n')
    (message,) = gone.messages
    assert "HTTP 404" in message.text
    assert " · demo (production): " in message.text
    assert "change of lookout.toml" not in gone.text


WRONG_PROBES = {
    "the name of the last event": (
        'api.text = "part.text"\napi.done = "finished"\n',
        ("'finished'", "probe.api.done"),
    ),
    "the path of the text": ('api.text = "part.txt"\napi.done = "closed"\n', ("'part.txt'", "probe.api.text")),
}


@pytest.mark.whole_only
@pytest.mark.parametrize("what", WRONG_PROBES)
@pytest.mark.a_slice(1)
def test_answers_that_cannot_be_read_are_lookouts_and_the_setting_is_named(installation, what, snapshot):
    """If a wrong setting makes answers unreadable, the alert is about Lookout, and names the setting.

    The alert does not report the application as down, and gives no advice about deadlines or screenshots.
    """
    probe, named = WRONG_PROBES[what]
    with EventChat("waiting: 24 months") as app:
        wrong = installation.verify(f"{app.url}{PATH}", probe)
    (alert,) = installation.alerts()
    assert (alert.kind, alert.severity) == (IncidentKind.MONITOR_FAULT, Severity.MAJOR)
    for text in (wrong.text, wrong.terminal):
        assert named[0] in text
        assert not any(unhelpful in text for unhelpful in ("is down", "picture", "answer_deadline_s"))
    assert named[1] in wrong.terminal
    assert DOCTOR in wrong.terminal
    assert installation.format(wrong) == snapshot
