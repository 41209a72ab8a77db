"""Open many unfinished connections to each server of Lookout: other requests are answered, and memory stays small.

    python -m tests.soak.soak_doors --minutes 5 --seed 1 [--door site]

Each server is a separate process that may open at most 1,024 files. A round opens hundreds of connections of one
kind: they send nothing, begin a head, begin a body, announce a large body, send byte by byte, or send unsigned
bodies of half a megabyte. During the round and after it, another client must get an answer within five seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx

from deployments.demo.configuration import find_free_port
from tests.conftest import ROOT
from tests.deployments.triggers.senders import GITHUB_SECRET
from tests.polling import wait_until
from tests.process_tree import all_processes
from tests.servers.slack import TOKEN
from tests.servers.slack_interaction import SIGNING_SECRET

FILES = 1_024
CROWD = 1_100
ANSWER_S = 5.0
HELD_S = 8.0
"""How many seconds the connections are held. This is longer than the deadline for a request body."""
MAX_GROWTH_MB = 150.0
MAX_LOG_BYTES = 1_000_000


class Door(NamedTuple):
    """A server of Lookout under test.

    ``words`` contains its command, split into words. ``form`` is the path to which forms or deliveries are sent,
    and ``page`` is the path that other clients request.
    """

    words: Sequence[str]
    form: str
    page: str


DOORS = {
    "site": Door(("site",), "/login", "/healthz"),
    "receiver of deploys": Door(("receive", "--only"), "/deploys/github", "/healthz"),
    "receiver of actions": Door(("slack-actions",), "/slack/actions", "/health"),
}

CROWDS: dict[str, Callable[[str], bytes]] = {
    "silent": lambda _: b"",
    "half a head": lambda form: f"POST {form} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-".encode(),
    "one byte of a body": lambda form: (
        f"POST {form} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\na".encode()
    ),
    "one byte in a chunk": lambda form: (
        f"POST {form} HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n".encode()
    ),
    "a large body": lambda form: (
        f"POST {form} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 520000\r\n\r\n".encode() + b"a" * 519_000
    ),
}


@contextmanager
def open_door(name: str, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """Start the server ``name`` in its own process. Yield its address, its process and its log."""
    (folder / "lookout.toml").write_text(
        'data_folder = "data"\n[alerts]\nslack_channel = "C0ALERTS"\nslack_buttons = true\n'
        '[targets.demo]\nurl = "http://127.0.0.1:9/"\nsuite = "suite.jsonl"\n'
        '[[deploys.triggers]]\nprovider = "github"\nrepository = "acme/bot"\ntarget = "demo"\n',
        encoding="utf-8",
    )
    (folder / "suite.jsonl").write_text(
        '{"id":"a","question":"Why?","gold":"So.","severity":3}\n', encoding="utf-8"
    )
    port, log = find_free_port("127.0.0.1", 0), folder / "door.log"
    keys = {
        "LOOKOUT_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET,
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "SLACK_BOT_TOKEN": TOKEN,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "deployments.cli.app", *DOORS[name].words, "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | keys,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),  # noqa: PLW1509 - one thread
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: is_answering(address, name, process, log), timeout_s=180, what="the door answers")
        yield address, process, log
    finally:
        process.terminate()
        process.wait()


def is_answering(address: str, name: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Return whether the server answers.

    Raises an error if its process has ended.
    """
    if process.poll() is not None:
        raise SystemExit(f"{name} ended: {log.read_text(encoding='utf-8')[-1_000:]}")
    with suppress(httpx.HTTPError):
        return httpx.get(address + DOORS[name].page, timeout=ANSWER_S, trust_env=False).status_code < 500
    return False


async def crowd_once(address: str, name: str, kind: str, count: int) -> tuple[float, int]:
    """Hold ``count`` connections open, and send requests from another client in this time.

    Return the longest time for one of these requests in seconds, and the number of requests that failed.
    """
    port, opening = int(address.rpartition(":")[2]), CROWDS[kind](DOORS[name].form)
    writers: list[asyncio.StreamWriter] = []

    async def hold() -> None:
        with suppress(OSError):
            async with asyncio.timeout(HELD_S):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writers.append(writer)
                writer.write(opening)
                await writer.drain()

    began = time.monotonic()
    held = [asyncio.create_task(hold()) for _ in range(count)]
    slowest, failed = 0.0, 0
    async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as client:
        while time.monotonic() - began < HELD_S:
            asked = time.monotonic()
            try:
                await client.get(address + DOORS[name].page)
            except httpx.HTTPError:
                failed += 1
            slowest = max(slowest, time.monotonic() - asked)
            await asyncio.sleep(0.2)
    await asyncio.gather(*held, return_exceptions=True)
    for writer in writers:
        writer.close()
    return slowest, failed


def main() -> int:
    """Test the servers for the given time, and then print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--door", choices=DOORS, default=None)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (8 * FILES, 8 * FILES))
    chance, faults = random.Random(options.seed), 0
    names = [options.door] if options.door else list(DOORS)
    print(f"seed {options.seed}", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder, open_door(name, Path(folder)) as (address, process, log):
            before_mb, end = (
                all_processes()[process.pid].rss_mb,
                time.monotonic() + 60 * options.minutes / len(names),
            )
            rounds: Counter[str] = Counter()
            slowest = 0.0
            while time.monotonic() < end:
                kind, count = chance.choice(list(CROWDS)), chance.choice([100, 400, CROWD])
                slow_s, failed = asyncio.run(crowd_once(address, name, kind, count))
                rounds[kind] += 1
                slowest = max(slowest, slow_s)
                if failed:
                    faults += 1
                    print(f"WRONG {name}, {count} × {kind}: {failed} others were not answered", flush=True)
            grown_mb = all_processes()[process.pid].rss_mb - before_mb
            wrong = [
                text
                for text, is_wrong in (
                    (f"grew by {grown_mb:.0f} MB", grown_mb > MAX_GROWTH_MB),
                    (f"logged {log.stat().st_size:,} bytes", log.stat().st_size > MAX_LOG_BYTES),
                    ("does not answer afterwards", not is_answering(address, name, process, log)),
                )
                if is_wrong
            ]
            faults += len(wrong)
            print(
                f"{name}: {rounds.total()} crowds ({dict(rounds)}), slowest answer to others {slowest:.1f} s, "
                f"grown by {grown_mb:.0f} MB, log {log.stat().st_size:,} bytes{'; WRONG: ' if wrong else ''}"
                f"{', '.join(wrong)}",
                flush=True,
            )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
