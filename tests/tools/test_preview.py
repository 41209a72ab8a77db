"""Test that the HTML preview of a message escapes the text of an answer."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from monitors.alerts.redact import build_redacted_excerpt
from monitors.alerts.slack.render import render_alert
from monitors.records.incidents import IncidentKind
from tests.monitors.alerts.hostile import HOSTILE
from tests.monitors.alerts.sample_observations import alert, observation
from tests.tools.alert_examples import SETTINGS, examples
from tests.tools.alert_preview import preview_page


class Seen(HTMLParser):
    """The tags and the links in an HTML page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.words += data


def page_of(*alerts) -> Seen:
    return Seen(preview_page([render_alert(one, SETTINGS) for one in alerts]))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_f83_the_text_of_an_answer_is_escaped(text):
    seen = page_of(alert(observation(answered=build_redacted_excerpt(text, limit=280) or None)))
    assert not seen.tags & {"script", "img", "iframe", "link", "form", "input"}
    assert seen.links == ["https://lookout.example/runs/run-1/report.html"]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_every_kind_has_a_picture(example):
    seen = page_of(example.alert)
    assert example.alert.id in seen.words
    whose = "Lookout tests its own alerts" if example.alert.kind is IncidentKind.DRILL else example.alert.target
    assert whose in seen.words


def test_an_unknown_block_is_named():
    said = render_alert(alert(), SETTINGS)
    broken = said.model_copy(update={"blocks": ({"type": "carousel"},)})
    with pytest.raises(ValueError, match="carousel"):
        preview_page([broken])
