"""Golden files: what a message of each kind looks like changes only on purpose."""

from __future__ import annotations

import json

import pytest

from monitors.alerts.slack.client import SlackBot
from monitors.alerts.slack.render import slack_text
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.monitors.alerts.make_docs import DOCS, GOLDEN, PICTURES, WIDTHS, digest_golden, golden, page, pictured
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.slack_rules import mentions, wrong_with
from tests.tools.alert_examples import SETTINGS, examples

ALL = examples()
REMAKE = "if this is meant: python -m tests.monitors.alerts.make_docs"


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_a_message_is_as_its_golden_file_says(example):
    for name, text in golden(example).items():
        assert (GOLDEN / name).read_text(encoding="utf-8") == text, REMAKE


def test_the_digest_is_as_its_golden_file_says():
    for name, text in digest_golden().items():
        assert (GOLDEN / name).read_text(encoding="utf-8") == text, REMAKE


def test_no_golden_file_is_left_over():
    assert {path.name for path in GOLDEN.iterdir()} == {name for example in ALL for name in golden(example)} | set(
        digest_golden()
    )


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_slack_would_take_it_and_nothing_personal_is_in_it(example):
    said = slack_text(example.alert, SETTINGS)
    sent = {"text": said.text, "blocks": json.loads(json.dumps(said.blocks))}
    assert wrong_with(sent) is None
    assert mentions(sent) == ["<@U"] * len(example.alert.marks), "only who did something is named"
    assert not [secret for secret in ("204417", "5010023", "meera.k@") if secret in json.dumps(sent)]


def test_every_kind_and_every_reason_has_an_example():
    assert {example.alert.kind for example in ALL} == set(IncidentKind)
    assert {example.alert.reason for example in ALL} == set(NotifyReason)


def test_the_document_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), REMAKE
    drawn = {path.name for path in PICTURES.iterdir()}
    assert drawn == {f"{name}-{width}.png" for name, _ in pictured() for width in WIDTHS}


async def test_a_real_sender_delivers_each():
    with SlackServer() as slack:
        settings = SETTINGS.model_copy(update={"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url})
        for example in ALL:
            sender = SlackBot(settings, token=TOKEN, now=lambda at=example.alert.created_at: at)
            await sender.send(example.alert)
        assert all(example.alert.id in message.text for example, message in zip(ALL, slack.messages, strict=True))
