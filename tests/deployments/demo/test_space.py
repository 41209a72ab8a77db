"""The demo Space as a process.

It prints its address, streams answers, writes its logs, and explains a failed start.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from syrupy.assertion import SnapshotAssertion

from tests.stable_text import replace_volatile

MODULE = [sys.executable, "-m", "deployments.demo.space"]
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Running:
    """A running Space, and the path of its log."""

    url: str
    logs: Path
    first_line: str


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    logs = tmp_path_factory.mktemp("space") / "logs"
    command = [
        *MODULE,
        "--port",
        "0",
        "--faults",
        "--delay-s",
        "0.05",
        "--commit",
        "abc123",
        "--log-folder",
        str(logs),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
            yield Running(address, logs, line)
        finally:
            process.terminate()


def ask(space: Running, question: str) -> list[str]:
    """Ask a question, and return every state of the growing answer from Gradio's event stream."""
    with httpx.Client(base_url=space.url, timeout=30) as client:
        event = (
            client.post("/gradio_api/call/chat", json={"data": [question]}).raise_for_status().json()["event_id"]
        )
        stream = client.get(f"/gradio_api/call/chat/{event}").raise_for_status().text
    assert "event: complete" in stream
    return [json.loads(line.removeprefix("data: "))[0] for line in stream.splitlines() if line.startswith("data: ")]


def test_its_first_line_says_where_it_serves_and_that_it_has_faults(space: Running, snapshot: SnapshotAssertion):
    assert replace_volatile(space.first_line) == snapshot


@pytest.mark.whole_only
def test_the_space_streams_an_answer_and_logs_it(space: Running, snapshot: SnapshotAssertion):
    states = ask(space, "What is the grace period of Suraksha Gold?")
    assert len(states) > 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(states))
    assert states[-1] == snapshot
    turns = [json.loads(line) for line in (space.logs / "turns.jsonl").read_text(encoding="utf-8").splitlines()]
    (turn,) = [turn for turn in turns if turn["user_text"] == "What is the grace period of Suraksha Gold?"]
    assert turn["reply_text"] == states[-1]
    assert turn["latency_ms"] >= 50


def test_its_own_check_logs_a_blocked_reply(space: Running):
    states = ask(space, "My agent says Suraksha Silver pays ₹3,00,000 for hair regrowth therapy, right?")
    assert "3,00,000" not in states[-1]
    (line,) = (space.logs / "hallucinations.jsonl").read_text(encoding="utf-8").splitlines()
    assert "300000" in json.loads(line)["reasons"][0]


@pytest.mark.whole_only
def test_the_space_names_its_commit_and_start_time(space: Running):
    version = httpx.get(f"{space.url}/version").json()
    assert set(version) == {"sha", "started_at"}
    assert version["sha"] == "abc123"
    assert version["started_at"].endswith("Z")


@pytest.mark.whole_only
def test_its_page_names_no_other_host(space: Running):
    """The Space's page loads nothing from another host: scripts, styles and images come from the Space itself.

    The page may name an image for link previews on another host, because it does not load this image.
    """
    page = httpx.get(space.url).text
    loaded = [part for part in page.split("<") if part.startswith(("script", "link", "img"))]
    assert loaded
    assert not [part for part in loaded if 'src="http' in part or 'href="http' in part]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MODULE, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_taken_port_is_named_with_what_to_do(snapshot: SnapshotAssertion):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        ended = run("--port", str(port))
    assert ended.returncode == 2
    assert replace_volatile(ended.stderr, taken=str(port)) == snapshot
    assert ended.stdout == ""


def test_a_port_that_cannot_be_is_refused(snapshot: SnapshotAssertion):
    ended = run("--port", "70000")
    assert ended.returncode == 2
    assert ended.stderr == snapshot


def test_a_log_folder_that_cannot_be_written_is_named(tmp_path: Path, snapshot: SnapshotAssertion):
    taken = tmp_path / "logs"
    taken.write_text("a file")
    ended = run("--port", "0", "--log-folder", str(taken))
    assert ended.returncode == 2
    assert replace_volatile(ended.stderr, tmp_path) == snapshot
