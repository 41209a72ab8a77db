"""P9: measure how long a sender waits for a response at 100 requests/s, and with 1,000 deliveries at once.

    python -m tests.bench.bench_webhook [--pairs 5] [--seconds 8] [--rate 100] [--at-once 1000]

Every delivery is signed as GitHub signs it, and contains a new commit. Therefore each delivery is verified, parsed
and stored on disk before its response. This is the worst case, because a real day has few deploys. Prefect is not
running, so all deploys stay pending. The baseline is the same server with a route that answers 202 immediately.
Each server is a separate process, and the two are measured alternately. Requests start on time even if earlier
requests have no response yet, so a server that falls behind becomes visible. Sender and server share the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from deployments.demo.configuration import find_free_port
from tests.bench.measurements import Figure, report
from tests.deployments.triggers.senders import deployed, github_headers, raw
from tests.process_tree import all_processes, descendants

MAX_P99_MS = 200.0
START_S = 120
REUSED_S = 1
"""Maximum idle time of a reused connection, in seconds.

uvicorn closes a connection that is idle for 5 s, which could happen just when a request is sent.
"""
FILES = 4_096
"""The limit of open files that the sender sets for itself.

The usual limit of 1,024 is too low for a thousand simultaneous connections.
"""


class Chosen(NamedTuple):
    """The sizes that the options of this bench select."""

    pairs: int
    seconds: int
    rate: int
    at_once: int


class Served(NamedTuple):
    """A running server, and the numbers of the commits that this server has not been sent yet."""

    url: str
    pid: int
    numbers: Iterator[int]


def main() -> int:
    """Return exit code 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--seconds", type=int, default=8, help="of each half of a pair")
    options.add_argument("--rate", type=int, default=100, help="requests per second")
    options.add_argument("--at-once", type=int, default=1_000)
    chosen = Chosen(**vars(options.parse_args()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_receiver("--nothing", folder) as plain,
        serve_receiver("--receiver", folder) as ours,
    ):
        pairs = [(measure_ms(ours, chosen), measure_ms(plain, chosen)) for _ in range(chosen.pairs)]
        answers = asyncio.run(send_burst(ours, chosen.at_once))
        stored = sum(1 for _ in (Path(folder) / "deploys").rglob("*.json"))
    burst = [took_ms for took_ms in answers if isinstance(took_ms, float)]
    lost = Counter(ended for ended in answers if isinstance(ended, str))
    acknowledged = sum(len(sample.took_ms) for sample, _ in pairs) + len(burst)
    if stored != acknowledged:
        raise SystemExit(f"{stored} deploys are stored of {acknowledged} that were acknowledged")
    missed = sum(not report(sample) for sample in build_figures(pairs, burst, lost, chosen))
    return int(missed > 0)


def build_figures(
    pairs: Sequence[tuple[Timed, Timed]], burst: Sequence[float], lost: Counter[str], chosen: Chosen
) -> list[Figure]:
    """Build the figures to report."""
    others = "".join(f"; {count} ended with {name}" for name, count in lost.items())
    same = f"each signed, of another commit, on disk before its answer; {chosen.seconds} s each"
    return [
        Figure(
            id="P9",
            what=f"acknowledgement under {chosen.rate} deliveries/s, p99",
            unit="ms",
            values=tuple(compute_percentile(ours.took_ms, 99) for ours, _ in pairs),
            goal=MAX_P99_MS,
            baseline="a route that answers 202 at once, ms",
            baselines=tuple(compute_percentile(plain.took_ms, 99) for _, plain in pairs),
            worst=True,
            note=same,
        ),
        Figure(
            id="P9",
            what="CPU of the receiver for one delivery",
            unit="ms",
            values=tuple(ours.cpu_ms for ours, _ in pairs),
            baseline="the route, ms",
            baselines=tuple(plain.cpu_ms for _, plain in pairs),
        ),
        Figure(
            id="P9",
            what=f"{chosen.at_once:,} deliveries at one moment: accepted",
            unit="deliveries",
            values=(float(len(burst)),),
            goal=float(chosen.at_once),
            better="higher",
            note=f"the last was acknowledged after {max(burst, default=0.0) / 1000:.1f} s{others}",
        ),
    ]


class Timed(NamedTuple):
    """How long each response took, and the server's CPU time for one response."""

    took_ms: list[float]
    cpu_ms: float


def measure_ms(server: Served, chosen: Chosen) -> Timed:
    """Measure the response times of one server, and its CPU time for each response, in milliseconds."""
    before = measure_cpu_s(server.pid)
    took_ms = asyncio.run(measure_deliveries(server, chosen.rate, chosen.seconds))
    return Timed(took_ms, (measure_cpu_s(server.pid) - before) * 1_000 / len(took_ms))


async def send_burst(server: Served, count: int) -> list[float | str]:
    """Send ``count`` deliveries at the same time.

    Return for each delivery the milliseconds until its acknowledgement, or the name of the error. All deliveries
    are sent before the first response is read.
    """
    host, port = server.url.removeprefix("http://").split(":")
    requests = [build_request(f"{next(server.numbers):040x}") for _ in range(count)]
    began = time.perf_counter()
    lines = [socket.create_connection((host, int(port))) for _ in requests]
    for line, request in zip(lines, requests, strict=True):
        line.sendall(request)

    async def answered(opened: socket.socket) -> float | str:
        try:
            line = Line(*await asyncio.open_connection(sock=opened))
            await line.answer()
        except (OSError, AssertionError, asyncio.IncompleteReadError) as error:
            return type(error).__name__
        line.writer.close()
        return (time.perf_counter() - began) * 1_000

    return await asyncio.gather(*map(answered, lines))


async def measure_deliveries(server: Served, rate: int, seconds: int) -> list[float]:
    """Send ``rate`` deliveries per second. For each, return the milliseconds until its response is complete."""
    host, port = server.url.removeprefix("http://").split(":")
    requests = [build_request(f"{next(server.numbers):040x}") for _ in range(rate * seconds)]
    free: list[tuple[Line, float]] = []
    begun = time.perf_counter()

    async def one(number: int) -> float:
        await asyncio.sleep(begun + number / rate - time.perf_counter())
        sent = time.perf_counter()
        while free and sent - free[-1][1] > REUSED_S:
            free.pop()[0].writer.close()
        line = free.pop()[0] if free else Line(*await asyncio.open_connection(host, int(port)))
        await line.ask(requests[number])
        took_ms = (time.perf_counter() - sent) * 1_000
        free.append((line, time.perf_counter()))
        return took_ms

    took = await asyncio.gather(*(one(number) for number in range(len(requests))))
    for line, _ in free:
        line.writer.close()
    return took


class Line(NamedTuple):
    """A reusable HTTP connection. It avoids a client library, which would use more CPU time than the receiver."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes) -> None:
        self.writer.write(request)
        await self.answer()

    async def answer(self) -> None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 202 " in head[:16], head
        await self.reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))


def build_request(commit: str) -> bytes:
    body = raw(deployed(sha=commit))
    headers = {"host": "receiver", "content-length": str(len(body)), **github_headers(body)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /deploys/github HTTP/1.1\r\n{lines}\r\n".encode() + body


def measure_cpu_s(pid: int) -> float:
    """Return the CPU time that a server has used so far, in seconds."""
    return sum(process.cpu_s for process in [all_processes()[pid], *descendants(pid)])


@contextmanager
def serve_receiver(what: str, folder: str) -> Iterator[Served]:
    port = find_free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "tests.bench.webhook_server", what, "--port", str(port), "--folder", folder]
    process = subprocess.Popen(command)
    try:
        end = time.monotonic() + START_S
        while not wait_for_receiver(port):
            assert process.poll() is None, "the server did not come up"
            assert time.monotonic() < end, "the server did not come up"
            time.sleep(0.2)
        yield Served(f"http://127.0.0.1:{port}", process.pid, itertools.count(1))
    finally:
        process.terminate()
        process.wait()


def wait_for_receiver(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def compute_percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


if __name__ == "__main__":
    sys.exit(main())
