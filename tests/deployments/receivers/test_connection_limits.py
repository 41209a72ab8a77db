"""Tests that many idle, slow or genuine connections do not delay the response to a delivery or a health check."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress

import pytest

from deployments.receivers import connection_limits
from tests.deployments.deploy_receiver import receiver
from tests.deployments.triggers.senders import deployed, github_headers, raw, space_pushed

DELIVERIES = 1_000


@pytest.fixture
async def door(tmp_path):
    async with receiver(tmp_path) as opened:
        yield opened


def place_of(door):
    host, port = door.url.removeprefix("http://").split(":")
    return host, int(port)


@asynccontextmanager
async def crowd(door, how_many, sent=b""):
    """Open ``how_many`` connections that send ``sent`` and then nothing more."""
    lines = [await asyncio.open_connection(*place_of(door)) for _ in range(how_many)]
    try:
        for _, writer in lines:
            writer.write(sent)
        yield lines
    finally:
        for _, writer in lines:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in lines), return_exceptions=True)


def request_of(commit):
    body = raw(deployed(sha=commit))
    headers = {"host": "receiver", "content-length": str(len(body)), **github_headers(body)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /deploys/github HTTP/1.1\r\n{lines}connection: close\r\n\r\n".encode() + body


async def delivered(door, commit):
    """Send one delivery on its own connection. Return the HTTP status of the response as a string."""
    reader, writer = await asyncio.open_connection(*place_of(door))
    writer.write(request_of(commit))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer[9:12].decode()


HALF = b"POST /deploys/github HTTP/1.1\r\nhost: x\r\ncontent-le"


@pytest.mark.parametrize("sent", [b"", HALF], ids=["idle", "half a head"])
async def test_three_hundred_connections_that_say_nothing_stop_nobody(door, sent):
    async with crowd(door, 300, sent):
        assert (await door.client.get(f"{door.url}/healthz")).text == "ok"
        assert (await door.by_github(deployed())).status_code == 202


@pytest.mark.whole_only
@pytest.mark.parametrize(
    "sent", [b"", HALF, request_of("a" * 40)[:-20] + b"", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET"]
)
async def test_a_head_has_a_deadline_on_every_connection(door, monkeypatch, sent):
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 0.3)
    monkeypatch.setattr("deployments.receivers.deploys.BODY_TIMEOUT_S", 0.3)
    async with crowd(door, 3, sent) as lines:
        for reader, _ in lines:
            with suppress(ConnectionResetError):
                async with asyncio.timeout(30):
                    await reader.read()  # until the connection ends


async def test_a_head_that_drips_has_no_longer_deadline(door, monkeypatch):
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 0.5)
    async with crowd(door, 1) as ((reader, writer),):
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(b"x")
            await asyncio.wait({ended}, timeout=0.1)
        assert isinstance(ended.exception(), ConnectionError) or ended.result() == b""


async def test_one_address_keeps_no_more_than_its_share_waiting(door, monkeypatch):
    monkeypatch.setattr(connection_limits, "MAX_PER_PEER", 5)
    monkeypatch.setattr(connection_limits, "MIN_AGE_TO_CLOSE_S", 0.0)
    async with crowd(door, 20) as lines:
        reading = [asyncio.create_task(reader.read()) for reader, _ in lines]
        for _, ended in zip(range(15), asyncio.as_completed(reading), strict=False):
            with suppress(ConnectionResetError):
                await ended
        assert (await door.client.get(f"{door.url}/healthz")).text == "ok"
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


@pytest.mark.whole_only
async def test_a_thousand_signed_deliveries_at_once_are_all_accepted_and_stored(door):
    commits = [f"{number:040x}" for number in range(1, DELIVERIES + 1)]
    connection_limits.raise_file_limit()
    answers = await asyncio.gather(*(delivered(door, commit) for commit in commits))
    assert Counter(answers) == {"202": DELIVERIES}
    assert sorted(door.commits()) == commits


async def test_a_thousand_refs_of_a_branch_in_one_delivery_are_one_deploy(door):
    payload = space_pushed()
    payload["updatedRefs"] = [
        {"ref": "refs/heads/main", "oldSha": None, "newSha": f"{number:040x}"} for number in range(1, 1_001)
    ]
    assert (await door.by_hub(payload)).status_code == 202
    assert door.commits() == [f"{1_000:040x}"]
