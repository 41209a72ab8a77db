"""Test that messages stay within Slack's limits and contain no active markup, whatever the application answers."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.redact import build_redacted_excerpt
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot
from monitors.alerts.slack.render import render_alert
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, Link, Redacted
from tests.monitors.alerts.hostile import HOSTILE, hostile_text
from tests.monitors.alerts.sample_observations import (
    ANSWERED,
    ASKED,
    EXPECTED,
    NIGHT,
    REASON,
    SETTINGS,
    TITLE,
    alert,
    alert_with_items,
    items,
    observation,
    outage,
)
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.slack_rules import LIVE_LINK, links, mentions, texts, wrong_with

BUTTONS = SETTINGS.model_copy(update={"slack_buttons": True})


def payload(sent, settings: AlertSettings = BUTTONS) -> dict[str, object]:
    said = render_alert(sent, settings)
    return {"text": said.text, "blocks": json.loads(json.dumps(said.blocks))}


MOVED = "Usefulness 4.3 → 3.8, triage accuracy unchanged"


@cache
def short_of(text: str) -> Redacted:
    return build_redacted_excerpt(text, limit=SETTINGS.excerpt_characters)


def said_by_the_app(text: str, case_id: str = "case-1", **changes: object):
    """Build a failure in which every free text is ``text``."""
    short = short_of(text)
    words = {"asked": short or None, "expected": short or None, "answered": short or None}
    return observation(
        case_id, reason=short or observation().reason, policy_row=text[:400] or None, **(words | changes)
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_f82_mentions_and_masked_links_in_an_answer_are_inert(text):
    sent = payload(alert(said_by_the_app(text)))
    assert wrong_with(sent) is None
    assert mentions(sent) == []
    assert links(sent) == ["<https://lookout.example/runs/run-1/report.html|report>"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_f82_mentions_and_masked_links_in_a_report_are_inert(text):
    """Mentions and masked links in an agent's report are inert.

    The field ``dimensions`` is made inert too, although it normally contains only Lookout's own figures.
    """
    sent = payload(alert(said_by_the_app(text, is_report=True)).model_copy(update={"dimensions": text}))
    assert wrong_with(sent) is None
    assert mentions(sent) == []
    assert links(sent) == ["<https://lookout.example/runs/run-1/report.html|report>"]


def test_a_report_is_named_as_such_with_how_the_dimensions_moved(snapshot):
    sent = payload(
        alert(said_by_the_app("The queue is full.", is_report=True)).model_copy(update={"dimensions": MOVED})
    )
    shown = "\n".join(texts(sent["blocks"]))
    assert MOVED in shown
    assert shown.count("* The queue is full.") == 4
    assert shown == snapshot
    assert sent["text"].count("“The queue is full.”") == 2
    assert "*Asked*" not in shown


@pytest.mark.parametrize("length", range(80, 112))
def test_f82_a_cut_makes_no_mention_of_a_longer_word(length):
    sent = payload(alert(said_by_the_app("y" * length + " @everyonexyz @channelxyz")))
    assert mentions(sent) == []


@given(hostile_text)
def test_f82_nothing_an_answer_says_rings_links_or_breaks_out(text):
    sent = payload(alert(said_by_the_app(text)))
    assert wrong_with(sent) is None
    assert mentions(sent) == []
    assert links(sent) == ["<https://lookout.example/runs/run-1/report.html|report>"]
    (part,) = [block for block in sent["blocks"] if block["type"] == "section" and "leak" not in str(block)][:1]
    assert part["text"]["text"].count("`") % 2 == 0
    assert "```" not in "".join(texts(sent["blocks"]))


async def test_f82_slack_itself_would_ring_nobody():
    with SlackServer() as slack:
        settings = AlertSettings(slack_channel="C0ALERTS", slack_api_url=slack.api_url)
        for number, text in enumerate(HOSTILE):
            await SlackBot(settings, token=TOKEN, now=lambda: NIGHT).send(
                alert(said_by_the_app(text, f"case-{number}"))
            )
        assert len(slack.messages) == len(HOSTILE)
        assert [message.rings for message in slack.messages] == [[]] * len(HOSTILE)


@pytest.mark.parametrize("count", [1, 2, 10, 500])
@pytest.mark.parametrize(
    "text", ["&" * 20_000, "<!channel>" * 2_000, "वाक्य " * 5_000], ids=["amp", "ring", "hindi"]
)
def test_f17_text_over_the_limits_is_cut_visibly(count, text):
    """Text that exceeds Slack's limits is cut visibly.

    The text stays within the limits even if escaping turns one character into five.
    """
    wide = AlertSettings(slack_channel="C0ALERTS", group_limit=10, excerpt_characters=1000, slack_buttons=True)
    long = build_redacted_excerpt(text, limit=1000)
    seen = [
        said_by_the_app(text, f"case-{number}", asked=long, expected=long, answered=long) for number in range(count)
    ]
    sent = payload(alert(*seen), wide)
    assert wrong_with(sent) is None
    assert "…" in "".join(texts(sent["blocks"]))


def test_f17_the_longest_names_still_fit():
    long = "x" * 199
    seen = observation(long, target=long, run_id=long, policy_row="r" * 5_000)
    many = tuple(Link(label=f"link {n}", href=f"https://lookout.example/{'p' * 900}/{n}") for n in range(40))
    sent = payload(alert(seen, target=long, run_id=long, links=many))
    assert wrong_with(sent) is None
    shown = "".join(texts(sent["blocks"]))
    assert 1 <= shown.count("<http") == len(links(sent)) < 40


@given(
    st.lists(
        st.tuples(st.sampled_from(list(FailureKind)), st.sampled_from(list(Severity)), hostile_text),
        min_size=1,
        max_size=30,
    )
)
def test_any_group_is_within_slacks_limits_and_counts_all(failures):
    seen = [
        said_by_the_app(text, f"case-{number}", failure=kind, severity=severity)
        for number, (kind, severity, text) in enumerate(failures)
    ]
    sent = payload(alert(*seen))
    assert wrong_with(sent) is None
    if len(seen) > 1:
        head = sent["blocks"][0]["text"]["text"]
        assert str(len(seen)) in head or "…" in head


def test_the_first_line_says_what_how_bad_and_where():
    head = payload(alert())["blocks"][0]["text"]["text"]
    assert head.split(" · ") == ["🔴 SEV 3", str(TITLE), "demo", "leak-1"]


def test_the_fallback_says_it_all_in_one_line():
    text = payload(alert())["text"]
    assert "\n" not in text
    assert len(text) <= 700
    for piece in (
        "SEV 3",
        str(TITLE),
        "demo",
        "leak-1",
        "4f2a91c07b",
        alert().id,
    ):
        assert piece in text


def test_the_message_shows_what_a_person_needs(snapshot):
    shown = "\n".join(texts(payload(alert())["blocks"]))
    for piece in (
        "4f2a91c07b (2026-03-01 02:00 UTC)",
        "0.871",
        "0.952",
        "`leak-1`",
        *(str(text)[:20] for text in (ASKED, EXPECTED, ANSWERED, REASON)),
        "|report>",
        "`runs/run-1/leak-1.zip`",
        f"`{alert().id}`",
        "`run-1`",
    ):
        assert piece in shown
    assert shown == snapshot


@pytest.mark.parametrize("doubt", [{"unconfirmed": True}, {"flaky": "2 of 3 asks"}], ids=["unconfirmed", "flaky"])
def test_a_doubt_about_a_failure_is_shown(doubt, snapshot):
    """A message marks a failure that is uncertain.

    A failure is uncertain if only one judge reported it, or if the case is right only sometimes.
    """
    plain, doubted = (
        "\n".join(texts(payload(alert(one))["blocks"])).splitlines()
        for one in (observation(), observation(**doubt))
    )
    (added,) = [line for line in doubted if line not in plain]
    assert "⚠️" in added
    assert added == snapshot


def test_every_kind_of_fault_is_shown_at_least_once_before_one_is_shown_twice():
    seen = [observation(f"a-{number}", failure=FailureKind.WRONG_FACT) for number in range(9)]
    seen += [observation("z", failure=FailureKind.MISSING_CITATION), observation("zz")]
    shown = [
        block["text"]["text"].splitlines()[0]
        for block in payload(alert(*seen))["blocks"]
        if block["type"] == "section"
        and block["text"]["text"].startswith("*")
        and "To do" not in block["text"]["text"]
    ]
    assert [re.findall(r"`(.+)`", line) for line in shown] == [["zz"], ["a-0"], ["z"]]


def test_buttons_carry_the_id_and_come_only_when_they_can_work():
    with_buttons = payload(alert())["blocks"]
    (actions,) = [block for block in with_buttons if block["type"] == "actions"]
    assert {element["value"] for element in actions["elements"]} == {f"{alert().id} 1"}
    assert all(block["type"] != "actions" for block in payload(alert(), SETTINGS)["blocks"])


def test_scores_are_promised_while_the_run_goes_on_and_left_out_where_there_are_none(snapshot):
    expected = payload(alert(flat=None, weighted=None, under_way=True))
    assert expected != payload(alert(flat=None, weighted=None))
    assert expected == snapshot
    assert "score" not in str(payload(alert_with_items(items(outage(IncidentKind.APP_DOWN)))))


def test_a_link_to_nowhere_safe_is_shown_as_text():
    strange = Link(label="report", href="https://x.example/|<!channel>")
    sent = payload(alert(links=(strange, Link(label="a|b", href="javascript:alert(1)"))))
    assert [found for text in texts(sent["blocks"]) for found in LIVE_LINK.findall(text)] == []
    assert mentions(sent) == []
