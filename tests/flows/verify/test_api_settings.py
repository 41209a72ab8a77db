"""An API that runs, and settings that do not fit it: the message says which, and never that the app is down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest

from tests.flows.chat import ASKED_ONCE, RIGHT, Chat, watched
from tests.servers.event_chat import PATH, EventChat
from tests.servers.slack import TOKEN, SlackServer

pytestmark = pytest.mark.prefect

RIGHT_PROBE = 'api.text = "part.text"\napi.done = "closed"\n'


class Said(NamedTuple):
    """What a run said: on the phone, in the channel's messages, and on the terminal."""

    code: int
    phone: list[str]
    text: str
    terminal: str


def _texts(part: Any) -> Iterator[str]:
    """Every text in the blocks of a message."""
    match part:
        case str():
            yield part
        case list():
            for inner in part:
                yield from _texts(inner)
        case dict():
            yield from _texts(list(part.values()))
        case _:
            return


class Desk:
    """A folder with a ``lookout.toml`` for one API, and Slack."""

    def __init__(self, folder: Path, slack: SlackServer, lookout: Callable[..., CompletedProcess[str]]) -> None:
        self._folder, self._slack, self._lookout = folder, slack, lookout

    def verify(self, url: str, probe: str = RIGHT_PROBE, target: str = "") -> Said:
        """One run with these settings; ``target`` are further lines of its table."""
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
        sent = self._slack.messages[before:]
        terminal = re.sub(r"\s+", " ", f"{done.stdout} {done.stderr}")
        text = " ".join(_texts([message.blocks for message in sent]))
        return Said(done.returncode, [message.text for message in sent], text, terminal)


@pytest.fixture
def desk(tmp_path, lookout):
    with SlackServer() as slack:
        yield Desk(tmp_path, slack, lookout)


def test_settings_that_changed_are_named_first_and_an_app_that_runs_is_not_down(desk):
    """The application answered throughout, so no incident says that it is down."""
    with EventChat(RIGHT) as app:
        assert desk.verify(f"{app.url}{PATH}").code == 0
        wrong = desk.verify(f"{app.url}/v2/dialog/tern")
        assert wrong.code == 3
        (phone,) = wrong.phone
        assert phone.startswith(
            "🛠️ SEV 2 · Lookout cannot ask · demo: lookout.toml changed, which is the likely cause: [targets.demo] is not"
        )
        assert "2 questions could not be asked: HTTP 404 at /v2/dialog/tern: no such path there" in wrong.text
        assert "Next: ˋlookout doctor demoˋ" in wrong.text
        for said in (phone, wrong.text, wrong.terminal):
            assert "is down" not in said
        assert "no question could be asked: HTTP 404 at /v2/dialog/tern: no such path there" in wrong.terminal
        assert "`lookout doctor demo` asks the API one question" in wrong.terminal
        assert "picture" not in wrong.terminal

        mended = desk.verify(f"{app.url}{PATH}")
        assert mended.code == 0
        assert "answers again" not in mended.text
        assert "The questions of this run got answers." in mended.text

        app.gone = True
        gone = desk.verify(f"{app.url}{PATH}")
        (phone,) = gone.phone
        assert phone.startswith(
            "🔴 SEV 3 · No answers, though lookout.toml is unchanged · demo: With the same settings"
        )
        assert "got answers, so the application may have changed" in gone.text
        assert "lookout.toml changed" not in gone.text
        app.gone = False
        assert desk.verify(f"{app.url}{PATH}").code == 0

        away = desk.verify(f"http://127.0.0.1:9{PATH}")
        (phone,) = away.phone
        assert "No answers since lookout.toml changed · demo: lookout.toml changed, which" in phone
        assert f"got no answer from `http://127.0.0.1:9`{PATH}" in away.text
        assert "Next: ˋlookout doctor demoˋ" in away.text


def test_what_has_nothing_to_do_with_asking_is_not_blamed(desk):
    """A changed `environment` is no cause of missing answers."""
    with EventChat(RIGHT) as app:
        assert desk.verify(f"{app.url}{PATH}").code == 0
        app.gone = True
        gone = desk.verify(f"{app.url}{PATH}", target='environment = "production"\n')
    (phone,) = gone.phone
    assert "HTTP 404" in phone
    assert " · demo (production): " in phone
    assert "lookout.toml changed" not in gone.text + phone


WRONG_PROBES = {
    "the name of the last event": (
        'api.text = "part.text"\napi.done = "finished"\n',
        "the stream ended without 'finished'; its last event was 'closed', ",
        "set probe.api.done to the name",
    ),
    "the path of the text": (
        'api.text = "part.txt"\napi.done = "closed"\n',
        "probe.api.text = 'part.txt' leads nowhere in any event; the one with the longest text is",
        "set probe.api.text to the path that leads to the answer",
    ),
}


@pytest.mark.parametrize("what", WRONG_PROBES)
def test_answers_that_cannot_be_read_are_lookouts_and_the_setting_is_named(desk, what):
    """The fault is the monitor's: no incident of the application, no advice about its page."""
    probe, said, advice = WRONG_PROBES[what]
    with EventChat("waiting: 24 months") as app:
        wrong = desk.verify(f"{app.url}{PATH}", probe)
    (phone,) = wrong.phone
    assert phone.startswith(
        "🛠️ SEV 2 · Lookout cannot read the answers · demo: 2 questions got an answer that cannot"
    )
    for text in (wrong.text, wrong.terminal):
        assert said in text
    assert advice in wrong.terminal
    assert "`lookout doctor demo` asks the API one question" in wrong.terminal
    for text in (*wrong.phone, wrong.text, wrong.terminal):
        assert "is down" not in text
        assert "picture" not in text
        assert "answer_deadline_s" not in text
