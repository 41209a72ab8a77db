"""Tests that the body of a delivery is limited in size, and in the time in which it must arrive."""

from __future__ import annotations

import asyncio
import socket

import pytest

from deployments.receivers.deploys import MAX_BODY_BYTES
from tests.deployments.deploy_receiver import receiver
from tests.deployments.triggers.senders import (
    github_headers,
    hub_headers,
    space_pushed,
    standard_headers,
)


@pytest.fixture
async def door(tmp_path):
    async with receiver(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("sender", ["github", "huggingface", "standard"])
async def test_f32_a_body_that_is_too_large_is_refused_before_it_is_read(door, sender):
    large = b'{"a":"' + b"a" * (10 * 2**20) + b'"}'
    headers = {"github": github_headers(large), "huggingface": hub_headers(), "standard": standard_headers(large)}[
        sender
    ]
    assert (await door.post(sender, large, headers)).status_code == 413


async def test_f32_a_body_that_says_no_length_is_cut_off(door):
    sent = 0

    async def pieces():
        nonlocal sent
        for _ in range(10 * 2**20 // 65_536):
            sent += 65_536
            yield b"a" * 65_536

    answer = await door.client.post(f"{door.url}/deploys/huggingface", content=pieces(), headers=hub_headers())
    assert answer.status_code == 413
    assert sent >= MAX_BODY_BYTES


async def spoken(door, head, body=b""):
    """Send bytes that no client library would send, and return the response."""
    host, port = door.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head + body)
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line


def head_of(headers, path="/deploys/huggingface"):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nhost: x\r\n{lines}\r\n".encode()


async def test_f32_a_slow_body_is_cut_off(door, monkeypatch):
    monkeypatch.setattr("deployments.receivers.deploys.BODY_TIMEOUT_S", 0.05)
    head = head_of(hub_headers() | {"content-length": "100"})
    assert b" 408 " in await spoken(door, head, b'{"a":')


async def test_f32_a_body_that_breaks_off_does_no_harm(door):
    host, port = door.url.removeprefix("http://").split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port))) as half:
            half.sendall(head_of(hub_headers() | {"content-length": "100"}) + b'{"a":')
    assert (await door.by_hub(space_pushed())).status_code == 202


@pytest.mark.parametrize("length", ["-1", "1e9", "9" * 30, "abc"])
async def test_f32_a_length_that_is_none_is_refused(door, length):
    assert b" 4" in (await spoken(door, head_of(hub_headers() | {"content-length": length})))[:13]
