"""Forged, stale, malformed, too large and too slow deliveries are refused, and no part of them is stored."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployments.triggers.routes import load_secrets
from monitors.config.sections import DeploySender
from monitors.errors import ConfigError
from tests.deployments.deploy_receiver import each_sender, receiver
from tests.deployments.triggers.senders import (
    GITHUB_SECRET,
    NOW,
    announced,
    deployed,
    github,
    github_headers,
    hub_headers,
    raw,
    space_pushed,
    standard_headers,
    standard_signature,
)


@pytest.fixture
async def door(tmp_path):
    async with receiver(tmp_path) as opened:
        yield opened


def genuine():
    """Return a valid delivery of each sender: the sender's name, the body and the headers."""
    deployment, message = raw(deployed()), raw(announced())
    return {
        "github": (deployment, github_headers(deployment)),
        "huggingface": (raw(space_pushed()), hub_headers()),
        "standard": (message, standard_headers(message)),
    }


PROOF = {"github": "x-hub-signature-256", "huggingface": "x-webhook-secret", "standard": "webhook-signature"}


@pytest.mark.parametrize("sender", PROOF)
async def test_f25_a_wrong_signature_is_refused(door, sender):
    body, headers = genuine()[sender]
    forged = {
        "github": github_headers(body, secret="another-users-secret"),
        "huggingface": hub_headers(secret="another-users-secret"),
        "standard": headers | {"webhook-signature": standard_signature(b"other", int(NOW.timestamp()))},
    }[sender]
    answer = await door.post(sender, body, forged)
    assert answer.status_code == 401
    assert door.commits() == []
    assert await door.metric(f'lookout_webhook_refused_total{{provider="{sender}",reason="wrong_signature"}}') == 1
    assert (await door.post(sender, body, headers)).status_code == 202, "the same was genuine but for its proof"


@pytest.mark.parametrize("sender", PROOF)
async def test_f25_a_changed_body_is_refused(door, sender):
    body, headers = genuine()[sender]
    answer = await door.post(sender, body.replace(b"main", b"evil") + b" ", headers)
    assert (answer.status_code == 401) is (sender != "huggingface"), "the Hub signs nothing"


NEEDED = {
    "github": ["x-hub-signature-256", "x-github-event", "content-type"],
    "huggingface": ["x-webhook-secret", "content-type"],
    "standard": ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type"],
}


@pytest.mark.parametrize(("sender", "missing"), [(one, name) for one, names in NEEDED.items() for name in names])
async def test_f26_a_missing_header_or_one_that_comes_twice_is_refused(door, sender, missing):
    body, headers = genuine()[sender]
    without = [(name, value) for name, value in headers.items() if name != missing]
    for given in (without, [*headers.items(), (missing, headers[missing])]):
        answer = await door.post(sender, body, given)
        assert 400 <= answer.status_code < 500
    assert door.commits() == []


@pytest.mark.parametrize(("off_s", "status"), [(-301, 401), (-299, 202), (299, 202), (301, 401)])
async def test_f27_five_minutes_either_way(door, off_s, status):
    assert (await door.by_standard(announced(), NOW + timedelta(seconds=off_s))).status_code == status
    assert len(door.commits()) == (status == 202)


DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
BODIES = {
    "empty": b"",
    "not JSON": b"deployed",
    "cut off": raw(deployed())[:-3],
    "a list": b"[]",
    "null": b"null",
    "a number": b"17",
    "10,000 deep": DEEP,
    "10,000 deep lists": b"[" * 10_000 + b"]" * 10_000,
    "bad UTF-8": b'{"a":"\xff\xfe"}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + raw(deployed()),
    "a lone surrogate": b'{"a":"\\ud800"}',
    "NUL": b"\x00",
}
AMBIGUOUS = {
    "a key twice": b'{"type":"x","type":"deploy.succeeded"}',
    "a key twice, deep inside": b'{"type":"deploy.succeeded","data":{"x":{"commit":"a","commit":"b"}}}',
    "NaN": b'{"type":"deploy.succeeded","x":NaN}',
    "Infinity": b'{"type":"deploy.succeeded","x":-Infinity}',
    "a number beyond all": b'{"type":"deploy.succeeded","x":1e999}',
}


@pytest.mark.parametrize("name", BODIES)
async def test_f29_a_malformed_body_is_refused_and_never_a_server_error(door, name):
    async for answer in each_sender(door, BODIES[name]):
        assert answer.status_code == 400, answer.text
    assert door.commits() == []


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_f33_ambiguous_or_empty_payloads_are_refused(door, name):
    async for answer in each_sender(door, AMBIGUOUS[name]):
        assert answer.status_code == 400, answer.text
    assert door.commits() == []


SIGNATURES = [
    b"",
    b"v1",
    b"v1,",
    b",",
    b"v1,,x",
    b"v1,a,b",
    b"v1,AAA",
    b"v1,\xff\xfe",
    "v1,é".encode(),
    b"sha256=",
    b"sha256=zz",
    b"9" * 9_000,
]


@pytest.mark.parametrize("value", SIGNATURES)
async def test_f29_a_malformed_signature_is_refused_and_never_a_server_error(door, value):
    for sender, (body, headers) in genuine().items():
        sent = [
            (name.encode(), value if name == PROOF[sender] else text.encode()) for name, text in headers.items()
        ]
        answer = await door.post(sender, body, sent)
        assert answer.status_code == 401, f"{sender}: {answer.text}"
    assert door.commits() == []


async def test_f30_old_and_new_secret_are_valid_at_once(tmp_path):
    found = load_secrets(
        {DeploySender.GITHUB}, {"LOOKOUT_GITHUB_WEBHOOK_SECRET": f"a-new-secret-for-tests, {GITHUB_SECRET}"}
    )
    async with receiver(tmp_path, parsers=[github(secrets=found[DeploySender.GITHUB])]) as door:
        body = raw(deployed())
        for secret, status in (
            ("a-new-secret-for-tests", 202),
            (GITHUB_SECRET, 200),
            ("a-third-secret-for-tests", 401),
        ):
            answer = await door.post("github", body, github_headers(body, secret=secret))
            assert answer.status_code == status


@pytest.mark.parametrize("text", [None, "", " , ", "short", f"{GITHUB_SECRET},short"])
def test_f31_without_a_secret_it_refuses_to_start(text):
    environment = {} if text is None else {"LOOKOUT_GITHUB_WEBHOOK_SECRET": text}
    with pytest.raises(ConfigError, match="LOOKOUT_GITHUB_WEBHOOK_SECRET") as refused:
        load_secrets({DeploySender.GITHUB}, environment)
    assert GITHUB_SECRET not in str(refused.value)
