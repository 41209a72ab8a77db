"""Run every block of docs/first-hour.md from top to bottom, and compare the outputs with those on the page."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deployments.demo.configuration import find_free_port
from flows.server import prefect_server
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.cli.test_bare_commands import DEMO_OF, answers
from tests.deployments.up_process import find_free_ports_of_installation
from tests.flows.few_cases import demo_lines
from tests.prefect_home import with_tables
from tests.servers import anthropic
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge
from tests.servers.drafter import RuleDrafter
from tests.servers.slack import Posted, SlackServer

pytestmark = [pytest.mark.browser, pytest.mark.prefect, pytest.mark.timeout(1200)]

PAGE = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = "[…]"
VARIES = (
    (r"127([.-])0[.-]0[.-]1[:-]\d+", r"127\g<1>0\g<1>0\g<1>1"),  # ports
    (r"/\S*/watch\b", "/home/you/watch"),
    (r"\d{8}T\d+Z?(-bot-[0-9a-f]{6})?", "RUN"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(Z| UTC)", "TIME"),
    (r"\d{4}-\d\d-\d\d (\d\d:\d\d) Europe/Berlin \(.*? UTC\)", r"DAY \1 Europe/Berlin"),
    (r"LK-[A-Z2-7]{8}", "LK-…"),
    (r"\d+(\.\d+)? (s|MB)\b", r"N \2"),
    (r"(?<=\S) {2,}", "  "),  # columns are as wide as their longest text
    (r"\s+$", ""),
)
"""Patterns, with their replacements, of texts that may differ between the page and the output of its commands."""
SCORES = (r"\d\.\d{3} \(\d+/\d+\)", "SCORE")
"""The pattern of a score. The demo's scores differ from the page, because the test asks only part of the suite."""
AS_ROOT = "Chromium runs without its sandbox"
"""The start of a line that Lookout prints only if it runs as root, as in a container. The page does not show this
line."""
KEYS = {"review": "y\ny\n", "grow": "g\n\n\n\n"}
"""The input that the reader types, keyed by the command that asks for it."""
END_S = 240


@pytest.mark.whole_only
def test_the_first_minutes_show_what_the_demo_says(tmp_path: Path) -> None:
    """`make demo` prints the output on the page.

    The suite of the test has four cases of severity 1, and only one of severity 3, so that the alert contains no
    other case.
    """
    planted = "suraksha-family-shield::cataract::en"
    lines = demo_lines()
    few = [line for line in lines if line["id"] == planted] + [line for line in lines if line["severity"] == 1][:4]
    suite = tmp_path / "few.jsonl"
    suite.write_text("".join(f"{json.dumps(line)}\n" for line in few), encoding="utf-8")
    with_tables(tmp_path / ".lookout-demo" / "prefect")
    shown = subprocess.run(
        [sys.executable, "-c", DEMO_OF, str(suite), "demo"],
        cwd=tmp_path,
        env=fork_server.bare(HOME=str(tmp_path), COLUMNS="80"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert shown.returncode == 1, shown.stdout
    assert list(tmp_path.glob(".prefect*")) == []
    assert prefect_server.find_running_server(tmp_path / ".lookout-demo" / "prefect") is None
    (commands, texts) = next((block, found) for block, found in steps() if "make demo" in block)
    assert "\ndemo: " in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert commands == ["make demo"]
    assert_shows(texts[0], shown.stdout, SCORES)


@pytest.mark.whole_only
def test_the_rest_of_the_hour_goes_as_the_page_says(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hour = Hour(
            tmp_path, stack.enter_context(SlackServer()), stack.enter_context(AnthropicServer(judge=Model()))
        )
        stack.callback(hour.end)
        hour.go()
        workflow = (tmp_path / "watch" / ".github" / "workflows" / "lookout.yml").read_text(encoding="utf-8")
        assert workflow == (ROOT / "deployments" / "github-workflow.yml").read_text(encoding="utf-8")
        recovered = [message.text for message in hour.slack.messages if "Recovered" in message.text]
        assert len(recovered) == 1, "one fix, one message"
    assert prefect_server.find_running_server(tmp_path / "watch" / ".lookout" / "prefect") is None


def test_the_suite_of_the_page_is_the_examples() -> None:
    suite = (ROOT / "examples" / "gradio_page" / "suite.jsonl").read_text(encoding="utf-8")
    assert f"```json\n{suite}```" in PAGE


@pytest.mark.parametrize(
    ("page", "shown", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\n[…]\nd", "a\nb\nc\nd", True),
        ("[…]\nc\n[…]", "a\nc\nd", True),
        ("a took 1.5 s", "a took 27 s", True),
        ("a\nc", "a\nb\nc", False),
        ("a", "a\nb", False),
        ("[…]\nb", "b\na", False),
        ("[…]\nb\n[…]\na\n[…]", "a\nb", False),
        ("[…]\n FAIL\n[…]", "x\n PASS\ny", False),
    ],
)
def test_a_page_that_shows_something_else_is_found_out(page: str, shown: str, same: bool) -> None:
    if same:
        assert_shows(page, shown)
    else:
        with pytest.raises(AssertionError):
            assert_shows(page, shown)


def steps() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands of each console block on the page, with the output blocks that follow it."""
    commands: list[str] = []
    texts: list[str] = []
    for match in BLOCK.finditer(PAGE):
        if match[1] == "console":
            yield commands, texts
            commands, texts = match[2].replace("$ ", "").splitlines(), []
        elif match[1] in {"text", "slack"}:
            texts.append(match[2])
    yield commands, texts


def assert_shows(page: str, shown: str, *more: tuple[str, str]) -> None:
    """Check that ``shown`` equals the text on the page, except for lines that the page omits with ``[…]``."""
    have, want = even(shown, *more), even(page, *more)
    at = 0
    parts = [part.strip("\n") for part in f"\n{want}\n".split(f"\n{LEFT_OUT}\n")]
    for number, part in enumerate(parts):
        found = f"\n{have}\n".find(f"\n{part}\n", at) if part else at
        assert found >= 0, f"not shown, or not in this place:\n{part}\n\n--- shown:\n{have}"
        assert number or not part or found == 0, f"the page does not begin as it does:\n{have}"
        at = found + len(part) + bool(part)
    assert not parts[-1] or have.endswith(parts[-1]), f"the page does not end as it does:\n{have}"


def even(text: str, *more: tuple[str, str]) -> str:
    """Return the text with placeholders for the parts that vary, without empty lines at its start and end."""
    lines = [line for line in text.strip("\n").splitlines() if not line.startswith(AS_ROOT)]
    for pattern, same in (*VARIES, *more):
        lines = [re.sub(pattern, same, line) for line in lines]
    return "\n".join(lines)


def on_the_phone(message: Posted) -> str:
    """Return the text in the blocks of a Slack message, as a phone shows it."""
    parts = [
        element["text"]["text"] if isinstance(element["text"], dict) else element["text"]
        for block in message.blocks
        for element in block.get("elements", [block])
    ]
    return html.unescape("\n".join(parts))


def asking(question: str) -> Any:
    """Return a function that replaces the question of a draft by ``question``."""
    return lambda draft: draft | {"question": question}


class Model(RuleJudge):
    """A model that writes drafts if the prompt asks for drafts, and otherwise judges answers."""

    def __init__(self) -> None:
        super().__init__()
        self.drafter = RuleDrafter([asking("What does a lost key cost?"), asking("How long is a booking kept?")])

    def verdict(self, prompt: str, wanted: Iterable[str]) -> dict[str, Any]:
        names = set(wanted)
        return self.drafter.verdict(prompt, names) if "drafts" in names else super().verdict(prompt, names)


@dataclass
class Hour:
    """A simulated reader of docs/first-hour.md, with the folder, variables and programs of one installation."""

    project: Path
    slack: SlackServer
    model: AnthropicServer
    variables: dict[str, str] = field(default_factory=dict)
    bot: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder = self.project
        self.port = find_free_port("127.0.0.1", 0)
        (self.project / "deployments").symlink_to(ROOT / "deployments")
        with_tables(self.project / "watch" / ".lookout" / "prefect")

    def go(self) -> None:
        """Execute each block of the page from minute 5 on, and compare the outputs with the page."""
        waiting: list[str] = []
        differs: list[str] = []
        before = 0
        for match in BLOCK.finditer(PAGE, PAGE.index("## Minute 5")):
            kind, text, prose = match[1], match[2], PAGE[before : match.start()]
            before = match.end()
            match kind:
                case "console":
                    assert not waiting or waiting[0] == "", f"the page shows nothing of:\n{waiting}"
                    waiting = [shown for line in text.splitlines() if (shown := self.do(line.removeprefix("$ ")))]
                case "text":
                    try:
                        assert_shows(text, waiting.pop(0))
                    except AssertionError as difference:
                        differs.append(str(difference))
                case "slack":
                    differs += self.missing_on_the_phone(text)
                case _:
                    self.write(text, prose)
        assert not differs, "\n\n".join(differs)

    def missing_on_the_phone(self, text: str) -> list[str]:
        """Return the differences of each Slack message from ``text``, the message on the page.

        Return an empty list if one of the messages equals ``text``.
        """
        differs: list[str] = []
        for message in self.slack.messages:
            try:
                assert_shows(text, on_the_phone(message))
            except AssertionError as difference:
                differs.append(str(difference))
            else:
                return []
        return differs or ["nothing was sent to Slack"]

    def write(self, text: str, prose: str) -> None:
        """Write ``text``, a block of the page, to the last file that is named in ``prose``, the text before it.

        If the block begins with "# at the end of lookout.toml", append it to lookout.toml instead.
        """
        if text.startswith("# at the end of lookout.toml"):
            config = self.folder / "lookout.toml"
            config.write_text(f"{config.read_text(encoding='utf-8')}\n{text}", encoding="utf-8")
        else:
            name = re.findall(r"`(\w+\.(?:jsonl|md))`", prose)[-1]
            (self.folder / name).write_text(text, encoding="utf-8")

    def do(self, line: str) -> str:
        """Run one command line of the page, and return its output on the terminal."""
        words = shlex.split(line)
        match words[0]:
            case "lookout":
                return self.lookout(*[word.replace(":7860", f":{self.port}") for word in words[1:]])
            case "python":
                self.start_bot(*words[1:])
            case "export":
                given = {"SLACK_WEBHOOK_URL": self.slack.webhook_url, "ANTHROPIC_API_KEY": anthropic.KEY}
                name = words[1].partition("=")[0]
                self.variables[name] = given[name]
            case "mkdir" | "cp":
                subprocess.run(
                    line.partition(" && ")[0].replace("mkdir ", "mkdir -p "),
                    shell=True,
                    cwd=self.folder,
                    check=True,
                )
                self.folder /= line.partition(" && cd ")[2]
            case _:
                raise AssertionError(f"the page has a command that nobody runs: {line}")
        return ""

    def lookout(self, *words: str) -> str:
        """Run `lookout` in a minimal environment with 80 columns, and return its output.

        After `lookout init`, add the addresses of the local Slack server and model to lookout.toml.
        """
        environment = fork_server.bare(**self.variables) | {"COLUMNS": "80"}
        if words[0] == "up":
            return self.up(environment)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with fork_server.start(*words, cwd=self.folder, env=environment, **pipes) as process:
            shown, _ = process.communicate(next((KEYS[word] for word in words if word in KEYS), ""), timeout=END_S)
            failed = "--broken" in (self.bot.args if self.bot else ())  # type: ignore[operator]
            assert process.wait() == int(failed), shown
        if words[0] == "init":
            config = self.folder / "lookout.toml"
            there = f'[alerts]\nslack_api_url = "{self.slack.api_url}"'
            model = f'[[judge.models]]\nmodel = "claude-sonnet-5-5"\nbase_url = "{self.model.url}"\n'
            text = config.read_text(encoding="utf-8").replace("[alerts]", there)
            config.write_text(f"{text}\n{model}", encoding="utf-8")
        return shown

    def up(self, environment: dict[str, str]) -> str:
        """Run `lookout up` until it has printed its schedules, then stop it like Ctrl-C, and return its output."""
        log = self.project / "up.log"
        port = find_free_ports_of_installation()
        with log.open("wb") as output:
            process = fork_server.start(
                "up", "--port", str(port), cwd=self.folder, env=environment, stdout=output, stderr=output
            )
        end = time.monotonic() + END_S
        try:
            while "one message to test the alert path" not in (shown := log.read_text(encoding="utf-8")):
                assert process.poll() is None, shown
                assert time.monotonic() < end, shown
                time.sleep(0.3)  # another process; there is nothing else to wait on
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(END_S)
        return shown

    def start_bot(self, script: str, *options: str) -> None:
        """Stop the running bot, if any, and start the bot of the example. Wait until it answers."""
        self.end_bot()
        command = [sys.executable, str(ROOT / script), "--port", str(self.port), *options]
        self.bot = subprocess.Popen(
            command,
            env=os.environ | {"HOME": str(self.project)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + END_S
        while not answers(f"http://127.0.0.1:{self.port}"):
            assert self.bot.poll() is None
            assert time.monotonic() < end
            time.sleep(0.3)  # another process; there is nothing else to wait on

    def end_bot(self) -> None:
        if self.bot is not None:
            self.bot.terminate()
            self.bot.wait(END_S)

    def end(self) -> None:
        """Stop the bot and the Prefect server."""
        self.end_bot()
        prefect_server.stop_server(self.project / "watch" / ".lookout" / "prefect")
