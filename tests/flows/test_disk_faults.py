"""Test that the file system of the data folder can become full or read-only during a run without loss of data.

The error names the folder, and the run can be resumed. Each test mounts its own file system, which needs root.
Prefect's server stores its data on another file system.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from tests import fork_server
from tests.deployments.cli.test_nightly import UNTIL, question
from tests.flows.chat import Chat, watched
from tests.flows.demo_nightly_runs import SUITE
from tests.flows.nightly.test_night_kills import PASSAGE
from tests.flows.nightly_runs import PLAIN_REPLY
from tests.polling import wait_until
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer

pytestmark = pytest.mark.prefect

SLACK = '[alerts]\nslack_channel = "C0ALERTS"\nslack_monitor_channel = "C0MONITOR"\nslack_api_url = "{slack}"\n'
CASES = 8
SIZE = 64_000_000
"""The size of the file system in bytes."""
ANSWERS_AFTER_S = 0.5
LOOKS = 60
"""How often a batch of the judge is polled until it is ready, so that the judge takes a few seconds."""


class Disk:
    """A small file system, mounted at ``place``, that a test can make full or read-only, and writable again."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._image, self._filler = place.with_name("image"), place / "filler"
        with self._image.open("wb") as image:
            image.truncate(SIZE)
        place.mkdir()
        made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(self._image)], capture_output=True, check=False)
        if made.returncode != 0 or not self._mounted():
            pytest.skip(
                "file systems cannot be made and mounted here: that needs root, mkfs.ext4 and a loop device"
            )

    def spoil(self, how: str) -> None:
        """Make the disk ``full``, or ``read-only`` as the kernel does after an error, even if files are open."""
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,abort", str(self.place)], check=True)
            return
        with suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

    def repair(self, how: str) -> None:
        """Make the disk writable again."""
        if how == "full":
            self._filler.unlink()
            return
        self.end()
        # While the loop device still exists, a new mount would get the former, read-only file system again.
        wait_until(lambda: not self._loop_devices(), what="the loop device of the image is gone")
        assert self._mounted()

    def end(self) -> None:
        """Unmount the file system."""
        subprocess.run(["umount", str(self.place)], check=True)

    def _loop_devices(self) -> str:
        command = ["losetup", "--noheadings", "--associated", str(self._image)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _mounted(self) -> bool:
        command = ["mount", "-o", "loop", str(self._image), str(self.place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    made = Disk(tmp_path / "data")
    yield made
    made.end()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def begin(tmp_path, prefect_environment) -> Callable[..., fork_server.Process]:
    """Return a function that starts a `lookout` command in the folder of the configuration."""
    keys = fork_server.WARM | {"SLACK_BOT_TOKEN": TOKEN, "ANTHROPIC_API_KEY": KEY}

    def start(*arguments: str) -> fork_server.Process:
        return fork_server.start(
            *arguments,
            cwd=tmp_path,
            env=prefect_environment | keys,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


class SlowChat(Chat):
    """A chat that answers slowly, so that a test has time to cause a fault during the run."""

    async def _chat(self, request: web.Request) -> web.Response:
        await asyncio.sleep(ANSWERS_AFTER_S)
        return await super()._chat(request)


REASONS = {
    "full": "the disk is full: free some space",
    "read-only": "the file system is read-only: choose another data folder",
}


def answered(data: Path) -> set[str]:
    """Return the ids of the cases whose answers are in the journal, read directly from its segment files."""
    lines = [line for file in data.glob("journal/*/*.jsonl") for line in file.read_text().splitlines()[1:]]
    rows = [json.loads(line) for line in lines]
    return {row["row"]["case_id"] for row in rows if row["table"] == "results"}


def monitor_faults(slack: SlackServer) -> list[str]:
    return [str(message.blocks) for message in slack.messages if message.channel == "C0MONITOR"]


@pytest.mark.parametrize("how", REASONS)
@pytest.mark.whole_only
def test_f22_a_verification_stops_with_the_folder_named_and_is_gone_on_with(tmp_path, disk, slack, begin, how):
    with SlowChat() as chat:
        watched(tmp_path, chat, cases=CASES, more=SLACK.format(slack=slack.api_url))
        with begin("verify", "demo", "--json") as run:
            wait_until(lambda: len(answered(disk.place)) >= 3, what="three answers are stored")
            disk.spoil(how)
            _, said = run.communicate()
        assert run.returncode == 4, said
        assert f"cannot write {disk.place}" in said
        assert REASONS[how] in said
        assert len(monitor_faults(slack)) == 1
        stored = answered(disk.place)
        assert 3 <= len(stored) < CASES
        disk.repair(how)
        with begin("verify", "demo", "--json") as run:
            printed, said = run.communicate()
    assert run.returncode == 0, said
    report = json.loads(printed)
    assert (report["resumed_cases"], report["coverage"]["graded"]) == (len(stored), CASES)
    assert sorted(row["n"] for row in counted(begin, "results")) == [1] * CASES


def counted(begin: Callable[..., fork_server.Process], table: str) -> list[dict[str, int]]:
    """Return the number of rows of each case in the warehouse table ``table``."""
    with begin("sql", f"select case_id, count(*) n from {table} group by 1", "--json") as asked:
        return [json.loads(line) for line in asked.communicate()[0].splitlines()]


@pytest.mark.whole_only
@pytest.mark.parametrize("how", REASONS)
def test_f22_a_nightly_run_stops_with_the_folder_named_and_is_gone_on_with(tmp_path, disk, slack, begin, how):
    """If the disk becomes unwritable while the judge is asked, a nightly run stops, and the error names the folder.

    When the disk is writable again, the next run continues with the same sample.
    """
    (tmp_path / "suite.jsonl").write_bytes(SUITE.read_bytes())
    rows = [question(number, answer=PLAIN_REPLY, context=[PASSAGE]) for number in range(20)]
    (tmp_path / "turns.jsonl").write_text("".join(rows), encoding="utf-8")
    with AnthropicServer() as provider:
        provider.batch_looks = LOOKS
        (tmp_path / "lookout.toml").write_text(
            'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
            'model_family = "gpt"\n[targets.demo.traffic.sources.turns]\nkind = "file"\nat = "turns.jsonl"\n'
            '[judge]\nbudget_usd = 2\nbatch_poll_s = 0.05\n[[judge.models]]\nmodel = "claude-sonnet-5-5"\n'
            f'base_url = "{provider.url}"\n' + SLACK.format(slack=slack.api_url),
            encoding="utf-8",
        )
        with begin("nightly", "--json", *UNTIL) as run:
            wait_until(lambda: bool(provider.batches), what="the judge has a batch")
            disk.spoil(how)
            _, said = run.communicate()
        assert run.returncode == 4, said
        assert f"cannot write {disk.place}" in said
        assert REASONS[how] in said
        assert len(monitor_faults(slack)) == 1
        sampled = answered(disk.place)
        assert len(sampled) == 10
        disk.repair(how)
        with begin("nightly", "--json", *UNTIL) as run:
            printed, said = run.communicate()
    assert run.returncode == 0, said
    report = json.loads(printed)
    assert (report["read"], report["sampled"], report["known"]) == (20, 10, 0)
    assert sorted(row["n"] for row in counted(begin, "results")) == [1] * 10
