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
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from deployments.free_port import free_port
from tests.deployments.triggers.senders import deployed, github_headers, raw

TARGET_P99_MS = 200.0
START_S = 120


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--rate", type=int, default=100, help="requests per second")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, served("--nothing", folder) as url:
        plain = asyncio.run(measured(url, chosen.rate, chosen.seconds))
    with tempfile.TemporaryDirectory() as folder, served("--receiver", folder) as url:
        ours = asyncio.run(measured(url, chosen.rate, chosen.seconds))
        kept = sum(1 for _ in (Path(folder) / "deploys").rglob("*.json"))
    assert kept == len(ours), f"{kept} of {len(ours)} acknowledged deploys are kept"
    met = "met" if percentile(ours, 99) <= TARGET_P99_MS else "missed"
    print(f"{chosen.rate} requests/s for {chosen.seconds} s, {len(ours)} deliveries, each of another commit")
    print(f"a route that answers 202 at once: {figures(plain)}")
    print(f"P9 acknowledgement:               {figures(ours)} (p99 at most {TARGET_P99_MS:g} ms: {met})")


async def measured(url: str, rate: int, seconds: int) -> list[float]:
    """Milliseconds from sending to the whole answer, one for each request."""
    bodies = [raw(deployed(sha=f"{number:040x}")) for number in range(1, rate * seconds + 1)]
    signed = [(body, github_headers(body)) for body in bodies]
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as client:
        begun = time.perf_counter()

        async def one(number: int) -> float:
            await asyncio.sleep(begun + number / rate - time.perf_counter())
            body, headers = signed[number]
            sent = time.perf_counter()
            answer = await client.post(f"{url}/deploys/github", content=body, headers=headers)
            assert answer.status_code == 202, answer.text
            return (time.perf_counter() - sent) * 1_000

        return await asyncio.gather(*(one(number) for number in range(len(signed))))


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


def figures(values: list[float]) -> str:
    shares = ", ".join(f"p{share} {percentile(values, share):.1f} ms" for share in (50, 95, 99))
    return f"{shares}, longest {max(values):.1f} ms"


if __name__ == "__main__":
    main()
