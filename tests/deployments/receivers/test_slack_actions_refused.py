"""Tests that only genuine button presses from Slack are accepted.

Forged, stale, malformed, too large and too slow requests are refused.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from deployments.receivers import slack_actions
from deployments.receivers.slack_actions import MAX_BODY_BYTES, parse_signing_secrets
from monitors.errors import ConfigError
from tests.deployments.receivers.slack_receiver import page, pressed, receiver
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.servers.slack import SlackServer
from tests.servers.slack_interaction import SIGNING_SECRET, form_of, interaction, signed

ACKNOWLEDGE = "lookout_acknowledge"
MENU = "lookout_one"


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def people(tmp_path, slack, clock):
    return build_operator_actions(tmp_path, slack, clock)


@pytest.fixture
async def door(people, clock):
    async with receiver(people, clock, build_notifier(people, clock).sender) as opened:
        yield opened


async def refused(people, door, body, headers, *statuses):
    answer = await door.post(body, headers)
    assert answer.status_code in (statuses or range(400, 500)), answer.text
    await door.aftermath.wait_until_idle()
    assert pressed(people) == ()


async def test_f25_a_wrong_signature_is_refused(people, clock, slack, door):
    await page(people, clock)
    body = form_of(interaction(slack, slack.messages[0], ACKNOWLEDGE))
    await refused(people, door, body, signed(body, clock(), secret="another-users-secret"), 401)
    await refused(people, door, body + b"&more=1", signed(body, clock()), 401)


@pytest.mark.parametrize("missing", ["x-slack-signature", "x-slack-request-timestamp", "content-type"])
async def test_f26_a_missing_header_is_refused(people, clock, slack, door, missing):
    await page(people, clock)
    body = form_of(interaction(slack, slack.messages[0], ACKNOWLEDGE))
    headers = {name: value for name, value in signed(body, clock()).items() if name != missing}
    await refused(people, door, body, headers)


@pytest.mark.whole_only
@pytest.mark.parametrize(("off_s", "taken"), [(-301, False), (301, False), (-299, True), (299, True)])
async def test_f27_five_minutes_either_way(people, slack, door, off_s, taken):
    await page(people, door.clock)
    body = form_of(interaction(slack, slack.messages[0], ACKNOWLEDGE))
    answer = await door.post(body, signed(body, door.clock() + timedelta(seconds=off_s)))
    await door.aftermath.wait_until_idle()
    assert answer.status_code == (200 if taken else 401)
    assert len(pressed(people)) == taken


DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000
BAD_BODIES = {
    "empty": b"",
    "no form": b"payload",
    "not JSON": form_of({})[:-3],
    "no object": urlencode({"payload": "[1,2]"}).encode(),
    "null": urlencode({"payload": "null"}).encode(),
    "deep": urlencode({"payload": DEEP}).encode(),
    "bad UTF-8": b"payload=%ff%fe",
    "raw bytes": b"payload=\xff\xfe",
    "NaN": urlencode({"payload": '{"type":"block_actions","user":{"id":"U0ASHA"},"x":NaN}'}).encode(),
    "Infinity": urlencode({"payload": '{"type":"block_actions","user":{"id":"U0ASHA"},"x":1e999}'}).encode(),
    "a key twice": urlencode({"payload": '{"type":"block_actions","type":"x","user":{"id":"U0ASHA"}}'}).encode(),
    "two payloads": b"payload=%7B%7D&payload=%7B%7D",
    "many fields": b"&".join(b"a%d=1" % n for n in range(100)),
    "a lone surrogate": urlencode(
        {"payload": '{"type":"block_actions","user":{"id":"U0ASHA"},"x":"\\ud800"}'}
    ).encode(),
    "no user": form_of({"type": "block_actions", "actions": []}),
    "a user who is none": form_of({"type": "block_actions", "user": {"id": "<!channel>"}, "actions": []}),
    "a value of ours that is none": form_of(
        {
            "type": "block_actions",
            "user": {"id": "U0ASHA"},
            "actions": [{"action_id": ACKNOWLEDGE, "value": "../x"}],
        }
    ),
    "a kind that is none": form_of(
        {
            "type": "block_actions",
            "user": {"id": "U0ASHA"},
            "actions": [{"action_id": MENU, "selected_option": {"value": f"delete_all LK-A {'0' * 64}"}}],
        }
    ),
}


async def test_f29_malformed_bodies_are_refused_and_never_a_server_error(people, door, clock):
    for name, body in BAD_BODIES.items():
        answer = await door.post(body, signed(body, clock()))
        assert answer.status_code == 400, f"{name}: {answer.status_code} {answer.text}"
    assert pressed(people) == ()


BAD_SIGNATURES = ["", "v0=", "v0=zz", "v1=" + "0" * 64, "v0=" + "0" * 63, "v0=" + "é" * 64, "v0=a,v0=b", "0" * 64]
BAD_STAMPS = ["", "now", "-1", "1e9", "9" * 400, "١٧٠٠٠٠٠٠٠٠", "1.5", "0x10"]


async def test_f29_malformed_headers_are_refused_and_never_a_server_error(people, door, clock):
    body = b"payload=%7B%7D"
    good = signed(body, clock())
    for name, values in (("x-slack-signature", BAD_SIGNATURES), ("x-slack-request-timestamp", BAD_STAMPS)):
        for value in values:
            headers = [(k.encode(), (value if k == name else v).encode()) for k, v in good.items()]
            answer = await door.client.post(door.url + "/slack/actions", content=body, headers=headers)
            assert answer.status_code == 401, f"{name} {value!r}: {answer.status_code}"
    twice = [(k.encode(), v.encode()) for k, v in good.items()] + [(b"x-slack-signature", b"v0=" + b"0" * 64)]
    assert (await door.client.post(door.url + "/slack/actions", content=body, headers=twice)).status_code == 401


async def test_f30_while_the_secret_is_changed_both_are_valid(people, clock, slack):
    await page(people, clock)
    both = parse_signing_secrets(f"a-new-secret-for-tests-0001, {SIGNING_SECRET}")
    async with receiver(people, clock, None, secrets=both) as door:
        for secret, status in ((both[0], 200), (both[1], 200), ("a-third-one-for-tests-0003", 401)):
            body = form_of(interaction(slack, slack.messages[0], ACKNOWLEDGE))
            assert (await door.post(body, signed(body, clock(), secret=secret))).status_code == status


@pytest.mark.parametrize("text", [None, "", " , ", "short"])
def test_f31_without_a_secret_it_refuses_to_start(text):
    with pytest.raises(ConfigError, match="SLACK_SIGNING_SECRET"):
        parse_signing_secrets(text)


async def test_f32_a_body_that_is_too_large_is_refused_before_it_is_read(people, door, clock):
    large = b"payload=" + b"a" * (10 * 2**20)
    await refused(people, door, large, signed(large, clock()), 413)


async def test_f101_unsigned_bodies_are_refused_before_they_are_read(people, door, clock):
    """A request whose headers contain no well-formed signature is refused before its body is read."""
    host, port = door.url.removeprefix("http://").split(":")
    headers = signed(b"", clock()) | {"host": host, "content-length": str(MAX_BODY_BYTES)}
    del headers["x-slack-signature"]
    lines = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    for _, writer in lines:
        writer.write(f"POST /slack/actions HTTP/1.1\r\n{head}\r\n".encode())
    for reader, writer in lines:
        assert b" 401 " in await reader.readline()
        writer.close()


async def test_f101_large_bodies_take_turns_and_small_ones_do_not_wait(people, door, clock, monkeypatch):
    monkeypatch.setattr(slack_actions, "BODY_TIMEOUT_S", 20.0)
    host, port = door.url.removeprefix("http://").split(":")
    large = signed(b"", clock()) | {"host": host, "content-length": str(MAX_BODY_BYTES)}
    head = "".join(f"{name}: {value}\r\n" for name, value in large.items())
    lines = [await asyncio.open_connection(host, int(port)) for _ in range(slack_actions.MAX_LARGE_BODIES * 3)]
    for _, writer in lines:
        writer.write(f"POST /slack/actions HTTP/1.1\r\n{head}\r\npayload=".encode())
    await refused(people, door, b"payload=x", signed(b"payload=y", clock()), 401)
    for _, writer in lines:
        writer.close()


async def test_f32_a_body_that_says_no_length_is_cut_off(people, door, clock):
    async def pieces():
        for _ in range(MAX_BODY_BYTES // 65_536 + 2):
            yield b"a" * 65_536

    answer = await door.client.post(door.url + "/slack/actions", content=pieces(), headers=signed(b"", clock()))
    assert answer.status_code == 413


async def test_f32_a_slow_body_is_cut_off(people, door, clock, monkeypatch):
    monkeypatch.setattr("deployments.receivers.slack_actions.BODY_TIMEOUT_S", 0.05)

    host, port = door.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    headers = signed(b"", clock()) | {"host": host, "content-length": "100"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"POST /slack/actions HTTP/1.1\r\n{head}\r\npayload=".encode())
    assert b" 408 " in await reader.readline()
    writer.close()
    await writer.wait_closed()
