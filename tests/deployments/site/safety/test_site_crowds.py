"""Tests that connections that never finish sending a form block no other user, and are closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from deployments.receivers import connection_limits
from deployments.receivers.connection_limits import RepeatFilter
from tests.deployments.site.safety.guarded_site import guarded_site

HEADS = {
    "login": b"POST /login HTTP/1.1\r\nhost: HOST\r\ncontent-length: 100\r\n\r\na",
    "chunked": b"POST /login HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n",
    "a page that reads no form": b"POST /review/name HTTP/1.1\r\nhost: HOST\r\ncontent-length: 100\r\n\r\na",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with guarded_site(tmp_path_factory.mktemp("site"), trusted_proxies=["127.0.0.1"]) as guarded:
        yield guarded.site.address


@asynccontextmanager
async def crowd(address: str, heads: list[bytes]) -> AsyncIterator[list[asyncio.StreamReader]]:
    place = urlsplit(address)
    lines = [await asyncio.open_connection(place.hostname, place.port) for _ in heads]
    try:
        for (_, writer), head in zip(lines, heads, strict=True):
            writer.write(head.replace(b"HOST", place.netloc.encode()))
        yield [reader for reader, _ in lines]
    finally:
        for _, writer in lines:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in lines), return_exceptions=True)


async def wait_for_end(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionResetError):
        async with asyncio.timeout(30):
            await reader.read()


def is_open(reader: asyncio.StreamReader) -> bool:
    return not reader.at_eof() and reader.exception() is None


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_f100_a_form_that_never_ends_is_closed_and_stops_nobody(site, monkeypatch, head):
    monkeypatch.setattr(connection_limits, "BODY_TIMEOUT_S", 1.0)
    async with crowd(site, [head] * 100) as readers:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            assert (await client.get(f"{site}/healthz")).status_code == 200
        await asyncio.gather(*map(wait_for_end, readers))


async def test_f100_a_body_that_drips_has_no_longer_deadline(site, monkeypatch):
    monkeypatch.setattr(connection_limits, "BODY_TIMEOUT_S", 0.5)
    place = urlsplit(site)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(HEADS["a page that reads no form"].replace(b"HOST", place.netloc.encode()))
    ended = asyncio.create_task(wait_for_end(reader))
    while not ended.done():
        writer.write(b"x")
        await asyncio.wait({ended}, timeout=0.1)
    writer.close()


async def test_f100_one_client_keeps_its_share_and_others_behind_the_same_proxy_theirs(site, monkeypatch):
    monkeypatch.setattr(connection_limits, "MAX_PER_PEER", 5)
    monkeypatch.setattr(connection_limits, "MIN_AGE_TO_CLOSE_S", 0.0)

    def head_from(client: str) -> bytes:
        return HEADS["login"].replace(b"\r\n\r\n", f"\r\nx-forwarded-for: {client}\r\n\r\n".encode())

    quiet = [head_from("203.0.113.9")] * 3
    async with crowd(site, quiet) as others:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:  # then it has read the idle heads
            await client.get(f"{site}/healthz")
        await close_all_but_its_share(site, head_from("203.0.113.1"), others)


async def close_all_but_its_share(site: str, head: bytes, others: list[asyncio.StreamReader]) -> None:
    async with crowd(site, [head] * 20) as readers:
        ends = [asyncio.create_task(wait_for_end(reader)) for reader in readers]
        for _, ended in zip(range(15), asyncio.as_completed(ends), strict=False):
            await ended
        assert all(map(is_open, others))
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


def test_f100_the_log_counts_what_it_would_repeat():
    now_s, written = 0.0, []
    repeats = RepeatFilter(lambda: now_s)
    for second in range(130):
        now_s = float(second)
        record = logging.LogRecord(
            "asyncio", logging.ERROR, "", 0, "socket.accept() out of system resource", (), None
        )
        if repeats.filter(record):
            written.append(record.getMessage())
    assert (
        written
        == ["socket.accept() out of system resource"]
        + ["socket.accept() out of system resource (repeated 59 times since the last line)"] * 2
    )
    assert repeats.filter(logging.LogRecord("asyncio", logging.ERROR, "", 0, "something else", (), None))
