"""``lookout nightly`` with a judge that does not answer or is not trusted: exit code 3, in a bare environment."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from tests.deployments.cli.test_bare_commands import Installation
from tests.flows.week_of_nights import MONDAY, Day, Week
from tests.prefect_home import with_tables
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer
from tests.stable_text import replace_volatile

pytestmark = pytest.mark.prefect


@pytest.fixture
def installed(tmp_path):
    """Yield a folder as an owner has it, and end the Prefect server that the command starts there."""
    folder = tmp_path / "shop"
    folder.mkdir()
    place = Installation(folder)
    with_tables(folder / "data" / "prefect")
    yield place
    done = place.run("down")
    assert done.returncode == 0, done.stderr


def graded(installed, day):
    until = MONDAY + timedelta(days=day)
    secrets = {"SLACK_BOT_TOKEN": TOKEN, "ANTHROPIC_API_KEY": KEY}
    return installed.run("nightly", "shop", "--until", f"{until:%Y-%m-%dT%H:%M}", **secrets)


@pytest.mark.whole_only
def test_the_exit_code_says_whether_the_judge_was_down_void_or_well(installed, snapshot):
    """The exit code distinguishes a nightly run whose judge was down or void from a complete one.

    Without a usable judge, the rates are unknown and the monitor's owners are alerted. A later complete night exits
    with 0.
    """
    week = Week(installed.folder, {})
    with SlackServer() as slack, AnthropicServer() as provider:
        week.write(slack, provider)
        for number in range(3):
            week.live(Day("", conversations=40), MONDAY + timedelta(days=number))
        provider.always = "500"
        down = graded(installed, 0)
        provider.always, provider.judge.passes_all = None, True
        void = graded(installed, 1)
        provider.judge.passes_all = False
        well = graded(installed, 2)
        sent = [(message.channel, json.dumps(message.blocks)) for message in slack.messages]
    assert (down.returncode, void.returncode, well.returncode) == (3, 3, 0), down.stderr + void.stderr + well.stderr
    varying = re.compile(r"[0-9a-f]{12}|\$[0-9.]+|\d+ (calls|times)")
    for done in (down, void, well):
        assert varying.sub("…", replace_volatile(done.stdout, installed.folder)) == snapshot
    assert {channel for channel, _ in sent} == {"C0MONITOR"}
    assert [any(words in text for _, text in sent) for words in ("HTTP 500", "is not reliable")] == [True, True]
