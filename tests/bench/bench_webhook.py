"""P9: how long a sender waits for the acknowledgement under 100 requests/s, beside a server that does nothing.

    python -m tests.bench.bench_webhook [--seconds 30] [--rate 100]

Every delivery is signed as GitHub's are and names a commit of its own, so each is proven, read, and on the disk
before its answer: the worst case, as a real day has a few deploys. Prefect is away, so all of them stay waiting. The
baseline is the same server with a route that answers 202 at once. Each server is a process of its own, and requests
start on time whether or not those before them are answered: a server that falls behind shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from deployments.demo.configuration import free_port
from tests.deployments.triggers.senders import deployed, github_headers, raw
from tests.process_tree import descendants

TARGET_P99_MS = 200.0
START_S = 120


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--rate", type=int, default=100, help="requests per second")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, served("--nothing", folder) as url:
        plain = timed(url, chosen.rate, chosen.seconds)
    with tempfile.TemporaryDirectory() as folder, served("--receiver", folder) as url:
        ours = timed(url, chosen.rate, chosen.seconds)
        kept = sum(1 for _ in (Path(folder) / "deploys").rglob("*.json"))
    assert kept == len(ours.took_ms), f"{kept} of {len(ours.took_ms)} acknowledged deploys are kept"
    met = "met" if percentile(ours.took_ms, 99) <= TARGET_P99_MS else "missed"
    print(f"{chosen.rate} requests/s for {chosen.seconds} s, {kept} deliveries, each of another commit")
    print(f"a route that answers 202 at once: {figures(plain)}")
    print(f"P9 acknowledgement:               {figures(ours)} (p99 at most {TARGET_P99_MS:g} ms: {met})")


class Timed(NamedTuple):
    """How long each answer took, and what one cost the server's cores."""

    took_ms: list[float]
    cpu_ms: float


def timed(url: str, rate: int, seconds: int) -> Timed:
    before = server_cpu_s()
    took_ms = asyncio.run(measured(url, rate, seconds))
    return Timed(took_ms, (server_cpu_s() - before) * 1_000 / len(took_ms))


async def measured(url: str, rate: int, seconds: int) -> list[float]:
    """Milliseconds from sending to the whole answer, one for each request."""
    host, port = url.removeprefix("http://").split(":")
    requests = [request_of(f"{number:040x}") for number in range(1, rate * seconds + 1)]
    free: list[Line] = []
    begun = time.perf_counter()

    async def one(number: int) -> float:
        await asyncio.sleep(begun + number / rate - time.perf_counter())
        sent = time.perf_counter()
        while free and free[-1].reader.at_eof():
            free.pop().writer.close()  # the server has closed what was idle for long
        line = free.pop() if free else Line(*await asyncio.open_connection(host, int(port)))
        await line.ask(requests[number])
        took_ms = (time.perf_counter() - sent) * 1_000
        free.append(line)
        return took_ms

    took = await asyncio.gather(*(one(number) for number in range(len(requests))))
    for line in free:
        line.writer.close()
    return took


class Line(NamedTuple):
    """A connection that is used again. A client library would cost more of the cores than the receiver does."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes) -> None:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 202 " in head[:16], head
        await self.reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))


def request_of(commit: str) -> bytes:
    body = raw(deployed(sha=commit))
    headers = {"host": "receiver", "content-length": str(len(body)), **github_headers(body)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /deploys/github HTTP/1.1\r\n{lines}\r\n".encode() + body


def server_cpu_s() -> float:
    """What the server of this bench took of the cores so far."""
    return sum(one.cpu_s for one in descendants(os.getpid()))


@contextmanager
def served(what: str, folder: str) -> Iterator[str]:
    port = free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "tests.bench.webhook_server", what, "--port", str(port), "--folder", folder]
    process = subprocess.Popen(command)
    try:
        end = time.monotonic() + START_S
        while not listens(port):
            assert process.poll() is None, "the server did not come up"
            assert time.monotonic() < end, "the server did not come up"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def figures(timed: Timed) -> str:
    shares = ", ".join(f"p{share} {percentile(timed.took_ms, share):.1f} ms" for share in (50, 95, 99))
    return f"{shares}, longest {max(timed.took_ms):.1f} ms, CPU {timed.cpu_ms:.1f} ms each"


if __name__ == "__main__":
    main()
