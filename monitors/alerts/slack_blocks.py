"""An alert as Slack's Block Kit: within Slack's limits whatever the application said, and inert."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.alerts.headline import one_of_each_first
from monitors.alerts.inert import ELLIPSIS, escape, fit, inert, visible
from monitors.alerts.marks import mark_line
from monitors.alerts.message import Message, Part, message
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack_buttons import Block, buttons, menu
from monitors.records.base import Record
from monitors.records.incidents import Alert, AlertItem, Link

HEADER_CHARACTERS: Final = 150
SECTION_CHARACTERS: Final = 3_000
CONTEXT_CHARACTERS: Final = 2_000
"""Slack's limits on a header, a section's text and a context element (docs.slack.dev, reference/block-kit)."""
PARTS_CHARACTERS: Final = 9_000
"""All failures together. Slack refuses a message whose blocks add up to more than about 13,000 characters
(`msg_blocks_too_long`, undocumented), so the parts share less."""
ROW_CHARACTERS: Final = 120
LINKS_CHARACTERS: Final = 1_500
URL_CHARACTERS: Final = 1_000
QUOTE_AT_LEAST: Final = 80
MARKS_SHOWN: Final = 6
"""What people did, line by line; more than this nobody does at 3 a.m."""

_ADDRESS: Final = re.compile(r"https?://[^\s|<>]+")


class SlackText(Record):
    """What is posted: ``text`` is the one-line fallback for notifications, ``blocks`` is what is shown."""

    text: str
    blocks: tuple[Block, ...]


def slack_text(alert: Alert, settings: AlertSettings) -> SlackText:
    """Render ``alert``. First line: what broke, how bad, where; last line: the id that a duplicate shares."""
    words = message(alert, group_limit=settings.group_limit)
    room = min(SECTION_CHARACTERS, PARTS_CHARACTERS // len(words.parts))
    blocks = [header(words.headline), context(_where(words))]
    shown = zip(words.parts, one_of_each_first(alert.items), strict=False)  # what is beyond the parts is counted
    blocks += [
        section(_part(part, 0 if words.alone else n, room)) | _menu(alert, item, words, settings)
        for n, (part, item) in enumerate(shown, start=1)
    ]
    if words.more:
        blocks.append(section(f"… *{inert(words.more)}*"))
    if words.links:
        blocks.append(section(link_line(words.links)))
    if alert.marks:
        blocks.append(section(_marks(alert)))
    if settings.slack_buttons and not words.over and (left := buttons(alert)):
        blocks.append(left)
    blocks.append(context(f"`{words.id}` · run `{inert(words.run_id)}` · {words.at}"))
    return SlackText(text=inert(words.one_line), blocks=tuple(blocks))


def header(text: str) -> Block:
    """The first line."""
    shown = fit(escape(visible(text)), HEADER_CHARACTERS)
    return {"type": "header", "text": {"type": "plain_text", "text": shown, "emoji": False}}


def section(text: str) -> Block:
    """A paragraph of ``mrkdwn`` that is inert already."""
    return {"type": "section", "text": _mrkdwn(fit(text, SECTION_CHARACTERS))}


def context(text: str) -> Block:
    """A small grey line of ``mrkdwn`` that is inert already."""
    return {"type": "context", "elements": [_mrkdwn(fit(text, CONTEXT_CHARACTERS))]}


def _mrkdwn(text: str) -> Block:
    """``verbatim`` keeps Slack from turning bare addresses and names into links of its own."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _where(words: Message) -> str:
    pieces = [f"*{inert(words.why_sent)}*", inert(words.since), inert(words.scores)]
    return " · ".join(piece for piece in pieces if piece)


def _part(part: Part, number: int, room: int) -> str:
    """One failure in at most ``room`` characters; ``number`` 0 is an only one, whose name is the headline."""
    frame = [_title(part, number), *_findings(part, room // 4)]
    quotes = [(label, inert(text)) for label, text in part.excerpts]
    left = room - sum(len(line) + 1 for line in frame) - sum(len(label) + 6 for label, _ in quotes)
    each = max(QUOTE_AT_LEAST, left // len(quotes)) if quotes else 0
    shown = (f">*{label}* {fit(text, each)}" for label, text in quotes)
    return "\n".join(line for line in (frame[0], *shown, *frame[1:]) if line)


def _title(part: Part, number: int) -> str:
    case = f"`{inert(part.case_id)}`" if part.case_id else ""
    if number:
        return f"*{number}. {inert(part.heading)}* {case}".rstrip()
    return f"*Case* {case}" if case else ""


def _findings(part: Part, room: int) -> list[str]:
    label = f"*{part.finding_label}* " if part.finding_label else ""
    row = f" by row `{fit(inert(part.row), ROW_CHARACTERS)}`{part.row_note}" if part.row else ""
    return [
        f"{label}{fit(inert(part.finding), room)}",
        f"*{part.severity}*{row}" if row else "",
        f"_{inert(part.history)}_" if part.history else "",
        "⚠️ unconfirmed: it rests on one judge" if part.unconfirmed else "",
        f"⚠️ flaky: {inert(part.flaky)}; it does not decide the verdict alone" if part.flaky else "",
    ]


def link_line(links: Sequence[Link]) -> str:
    """As many whole links as fit: a cut one would lead elsewhere."""
    shown: list[str] = []
    for link in map(_link, links):
        if sum(map(len, shown)) + len(link) > LINKS_CHARACTERS:
            return " · ".join([*shown, ELLIPSIS])
        shown.append(link)
    return " · ".join(shown)


def _link(link: Link) -> str:
    """A link where there is an address; a path is shown to be copied."""
    if _ADDRESS.fullmatch(link.href) and len(link.href) <= URL_CHARACTERS:
        return f"<{escape(link.href)}|{inert(link.label)}>"
    return f"{inert(link.label)} `{fit(inert(link.href), URL_CHARACTERS)}`"


def _marks(alert: Alert) -> str:
    """Who did what, the newest last: as many as a person reads."""
    return "\n".join(mark_line(mark, alert, slack=True) for mark in alert.marks[-MARKS_SHOWN:])


def _menu(alert: Alert, item: AlertItem, words: Message, settings: AlertSettings) -> Block:
    """Of several failures each has its own menu: a false alarm is about one of them."""
    if words.alone or words.over or not settings.slack_buttons:
        return {}
    found = menu(alert, item)
    return {"accessory": found} if found else {}
