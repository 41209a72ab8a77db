"""Is it still so? A run's failed cases asked again, as a user sees it: the command, real pages, a real Slack API."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.conftest import ROOT
from tests.flows.explain.two_builds import BEFORE, NOW
from tests.servers.slack import TOKEN, SlackServer

pytestmark = [pytest.mark.browser, pytest.mark.prefect]

RIGHT, WRONG = (f"The waiting period is {months} months. [Source: Gold, clause 4.2]" for months in (24, 36))
WAYS = {"always": [WRONG], "sometimes": [WRONG, WRONG, RIGHT, WRONG, RIGHT, RIGHT], "gone": [WRONG, RIGHT]}


def question(way):
    return f"What is the waiting period of the plan {way}?"


def suite(folder, ways, *, severity=3):
    """One case for each way."""
    lines = [
        {
            "id": way,
            "question": question(way),
            "gold": "24 months",
            "expected_refusal": False,
            "severity": severity,
            "language": "en",
            "type": "waiting_period",
            "provenance": {"pipeline": "template"},
        }
        for way in ways
    ]
    (folder / "suite.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def configuration(folder, page, slack, *, previous="", more=""):
    """A lookout.toml as an owner writes it."""
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{page}/now"\nsuite = "suite.jsonl"\n{previous}'
        f'[targets.demo.probe.readiness]\nversion_url = "{page}/now/version"\n'
        f'[gate]\nmin_severity_3_cases = 0\n[alerts]\nslack_channel = "#alerts"\n'
        f'slack_api_url = "{slack.api_url}"\n{more}',
        encoding="utf-8",
    )


@contextmanager
def two_builds(folder, answers, **versions):
    """The address of the page in two builds."""
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": answers, "versions": versions}), encoding="utf-8")
    command = [sys.executable, "-m", "tests.flows.explain.two_builds", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def shown(slack):
    """All that Slack shows, in one text."""
    return json.dumps([message.blocks for message in slack.messages], ensure_ascii=False)


def test_what_fails_always_sometimes_and_no_more_is_told_apart_here_and_on_the_build_before(tmp_path, lookout, slack):
    """Of a real page: 5 of 5, 2 of 5 and right 5 of 5, and what the previous build says, wherever people look."""
    right = {question(way): [RIGHT] for way in WAYS}
    answers = {NOW: {question(way): turns for way, turns in WAYS.items()}, BEFORE: {**right, question("gone"): [WRONG]}}
    suite(tmp_path, WAYS)
    with two_builds(tmp_path, answers) as page:
        previous = f'previous_url = "{page}/builds/{{commit}}"\n'
        configuration(tmp_path, page, slack, previous=previous)
        done = lookout("verify", "demo", "--commit", NOW, cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1, done.stderr
    print(done.stdout, done.stderr, shown(slack))
    raise AssertionError
