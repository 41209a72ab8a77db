"""Tests of a message of each kind, as Slack gets it (snapshots) and as the terminal shows it (docs/alerts.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitors.alerts.slack.client import SlackBot
from monitors.alerts.slack.render import render_alert, render_digest
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.monitors.alerts.make_docs import DOCS, PICTURES, WIDTHS, page, pictured, write_page
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.slack_rules import mentions, wrong_with
from tests.tools.alert_examples import SETTINGS, digest_example, examples

ALL = examples()


def pretty(rendered) -> str:
    """Return the message as JSON, with one value on each line."""
    return json.dumps({"text": rendered.text, "blocks": rendered.blocks}, ensure_ascii=False, indent=1)


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_the_blocks_of_a_message(example, snapshot):
    assert pretty(render_alert(example.alert, SETTINGS)) == snapshot


def test_the_blocks_of_the_digest(snapshot):
    assert pretty(render_digest(digest_example())) == snapshot


@pytest.mark.usefixtures("snapshot")
def test_the_page_holds_the_text_of_each_message(request):
    """docs/alerts.md contains the text of each message.

    So the page serves as the snapshot of the terminal output. `make snapshots` updates it.
    """
    if request.config.getoption("update_snapshots"):
        write_page()
    assert DOCS.read_text(encoding="utf-8") == page(), "renew it with make snapshots"


def test_every_picture_of_the_page_is_there():
    names = {path.name for path in PICTURES.iterdir()}
    assert names == {f"{name}-{width}.png" for name, _ in pictured() for width in WIDTHS}
    assert all(f"{Path(PICTURES).name}/{name}" in page() for name in names)


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_slack_would_take_it_and_nothing_personal_is_in_it(example):
    rendered = render_alert(example.alert, SETTINGS)
    sent = {"text": rendered.text, "blocks": json.loads(json.dumps(rendered.blocks))}
    assert wrong_with(sent) is None
    assert mentions(sent) == ["<@U"] * len(example.alert.marks), "only who did something is named"
    assert not [secret for secret in ("204417", "5010023", "meera.k@") if secret in json.dumps(sent)]


def test_every_kind_and_every_reason_has_an_example():
    assert {example.alert.kind for example in ALL} == set(IncidentKind)
    closed = {NotifyReason.CLOSED}  # built like a recovery, with another first word and reason
    assert {example.alert.reason for example in ALL} == set(NotifyReason) - closed


async def test_a_real_sender_delivers_each():
    with SlackServer() as slack:
        settings = SETTINGS.model_copy(update={"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url})
        for example in ALL:
            sender = SlackBot(settings, token=TOKEN, now=lambda at=example.alert.created_at: at)
            await sender.send(example.alert)
        assert all(example.alert.id in message.text for example, message in zip(ALL, slack.messages, strict=True))
