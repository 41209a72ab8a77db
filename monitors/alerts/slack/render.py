"""Alerts and the nightly digest as Slack's Block Kit: within Slack's limits and inert, whatever the app said.

Also the buttons under a message: which make sense, what they carry, and how a press is read back. The digest has a
plain text too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.alerts.digest import Digest, digest_headline, digest_lines
from monitors.alerts.message import (
    IN_COMMON,
    TO_DO,
    MessageSection,
    is_left,
    mark_line,
    message,
    one_of_each_first,
    utc,
)
from monitors.alerts.redact import ELLIPSIS, escape, fit, inert, inert_but, visible
from monitors.alerts.settings import AlertSettings
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.incidents import ActionKind, Alert, AlertItem, Link

Block = dict[str, object]
"""One block of a message, or a part of one, as Slack's JSON has it."""

BUTTONS: Final[dict[str, ActionKind]] = {
    "lookout_acknowledge": ActionKind.ACKNOWLEDGE,
    "lookout_false_alarm": ActionKind.FALSE_ALARM,
    "lookout_add_to_gold": ActionKind.ADD_TO_GOLD,
}
"""Slack's ``action_id`` of each button. Of a message with several failures only the first is for all of them."""
MENU: Final = "lookout_one"
"""The ``action_id`` of the menu beside one of several failures."""

LABELS: Final[dict[ActionKind, str]] = {
    ActionKind.ACKNOWLEDGE: "Acknowledge",
    ActionKind.FALSE_ALARM: "False alarm",
    ActionKind.ADD_TO_GOLD: "Add to gold",
    ActionKind.RESOLVE: "Resolve",
}
VALUE_CHARACTERS: Final = 150
"""Slack's limit on a menu option's value; a button's is 2,000 (docs.slack.dev, reference/block-kit)."""

_BUTTON_VALUE: Final = re.compile(r"([A-Za-z0-9_-]{1,40}) ([0-9]{1,6})", re.ASCII)
_MENU_VALUE: Final = re.compile(r"([a-z_]{1,20}) ([A-Za-z0-9_-]{1,40}) ([0-9a-f]{64})")


class Press(Record):
    """A press as its button says it: what, about which message, and which one of its failures."""

    kind: ActionKind
    alert_id: str
    fingerprints: tuple[str, ...] = ()
    shown: int = 1


def buttons(alert: Alert) -> Block | None:
    """The row of buttons below ``alert``; ``None`` where nothing is left to do."""
    alone = len(alert.items) == 1
    wanted = list(BUTTONS.items()) if alone else list(BUTTONS.items())[:1]
    left = [
        _button(action_id, kind, alert)
        for action_id, kind in wanted
        if any(is_left(kind, item, alert.marks) for item in alert.items)
    ]
    return {"type": "actions", "block_id": f"lookout-{alert.id}", "elements": left} if left else None


def menu(alert: Alert, item: AlertItem) -> Block | None:
    """What can be done about one of several failures; ``None`` where nothing is left."""
    left = [kind for kind in BUTTONS.values() if is_left(kind, item, alert.marks)]
    options = [_option(kind, f"{kind.value} {alert.id} {item.incident.fingerprint}") for kind in left]
    fits = all(len(str(option["value"])) <= VALUE_CHARACTERS for option in options)
    return {"type": "overflow", "action_id": MENU, "options": options} if options and fits else None


def pressed(action_id: str, value: str) -> Press | None:
    """What a press means; ``None`` for a button that is not ours. Raises ``ValueError`` for a value that is not."""
    if action_id == MENU:
        kind, alert_id, fingerprint = _groups(_MENU_VALUE, value)
        return Press(kind=ActionKind(kind), alert_id=alert_id, fingerprints=(fingerprint,))
    if action_id not in BUTTONS:
        return None
    alert_id, shown = _groups(_BUTTON_VALUE, value)
    return Press(kind=BUTTONS[action_id], alert_id=alert_id, shown=int(shown))


def _groups(pattern: re.Pattern[str], value: str) -> Sequence[str]:
    found = pattern.fullmatch(value)
    if found is None:
        raise ValueError("the button carries a value that no button of ours has")
    return found.groups()


def _button(action_id: str, kind: ActionKind, alert: Alert) -> Block:
    """``value`` holds how many failures the message shows: when it grows, a new press is another one."""
    button: Block = {
        "type": "button",
        "action_id": action_id,
        "text": _plain(LABELS[kind]),
        "value": f"{alert.id} {len(alert.items)}",
    }
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return button | {"style": "primary"}
        case ActionKind.FALSE_ALARM:
            return button | {"confirm": _asks_first()}
        case _:
            return button


def _asks_first() -> Block:
    """A thumb at 3 a.m. must not mute a leak by itself."""
    return {
        "title": _plain("False alarm?"),
        "text": _plain("Lookout labels the finding wrong, resolves it, and stays quiet about it for a while."),
        "confirm": _plain("It is false"),
        "deny": _plain("Go back"),
    }


def _option(kind: ActionKind, value: str) -> Block:
    return {"text": _plain(LABELS[kind]), "value": value}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


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
"""What people did, line by line; nobody does more than this at 3 a.m."""

_ADDRESS: Final = re.compile(r"https?://[^\s|<>]+")


class SlackText(Record):
    """A post: ``text`` is the one-line fallback for notifications, ``blocks`` is what Slack shows."""

    text: str
    blocks: tuple[Block, ...]


def slack_text(alert: Alert, settings: AlertSettings) -> SlackText:
    """Render ``alert``. First line: what broke, how bad, where; last line: the id that a duplicate shares."""
    content = message(alert, group_limit=settings.group_limit, site_url=settings.site_url)
    offers_actions = settings.slack_buttons and not content.is_over
    texts = sum(1 + len(part.examples) for part in content.parts)
    room = min(SECTION_CHARACTERS, PARTS_CHARACTERS // texts)

    why_since_scores = [f"*{inert(content.why_sent)}*", inert(content.since), inert(content.scores)]
    blocks = [header(content.headline), context(" · ".join(piece for piece in why_since_scores if piece))]
    if alert.marks:  # before all else: whoever opens the channel sees that somebody has it
        marks = (mark_line(mark, alert, slack=True) for mark in alert.marks[-MARKS_SHOWN:])
        blocks.append(section("\n".join(marks)))
    if content.dimensions:
        blocks.append(section(inert(content.dimensions)))
    explained = [inert(content.again)] if content.again else []
    explained += [f"{IN_COMMON} {inert(cause)}" for cause in content.in_common]
    explained += [inert(change) for change in content.changed]
    if explained:
        blocks.append(section("\n".join(explained)))

    shown = zip(content.parts, one_of_each_first(alert.items), strict=False)  # what is beyond the parts is counted
    for number, (part, item) in enumerate(shown, start=1):
        name = "" if content.is_alone else f"{number}."
        block = section(_format_part(part, name, room))
        # A menu for each of several failures: a false alarm is about one of them.
        if offers_actions and not content.is_alone and (accessory := menu(alert, item)):
            block |= {"accessory": accessory}
        blocks.append(block)
        blocks += [
            section(_format_part(case, f"{name}{n}.", room)) for n, case in enumerate(part.examples, start=1)
        ]

    if content.more:
        blocks.append(section(f"… *{inert(content.more)}*"))
    if content.to_do:
        blocks.append(section(f"*{TO_DO}* {inert(content.to_do)}"))
    if content.links:
        blocks.append(section(link_line(content.links)))
    if offers_actions and (row := buttons(alert)):
        blocks.append(row)
    blocks.append(context(f"`{content.id}` · run `{inert(content.run_id)}` · {content.at}"))
    return SlackText(text=inert_but(content.one_line, content.address), blocks=tuple(blocks))


def header(text: str) -> Block:
    """The first line."""
    shown = fit(escape(visible(text)), HEADER_CHARACTERS)
    return {"type": "header", "text": {"type": "plain_text", "text": shown, "emoji": False}}


def section(text: str) -> Block:
    """A paragraph of ``mrkdwn`` that is inert already.

    ``verbatim`` stops Slack from turning bare addresses and names into links of its own.
    """
    return {"type": "section", "text": {"type": "mrkdwn", "text": fit(text, SECTION_CHARACTERS), "verbatim": True}}


def context(text: str) -> Block:
    """A small grey line of ``mrkdwn`` that is inert already."""
    shown = fit(text, CONTEXT_CHARACTERS)
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": shown, "verbatim": True}]}


def _format_part(part: MessageSection, number: str, room: int) -> str:
    """One failure in at most ``room`` characters; without ``number`` an only one, whose name is the headline."""
    case = f"`{inert(part.case_id)}`" if part.case_id else ""
    title = f"*Case* {case}" if case else ""
    if number:
        severity = "" if part.finding else f" · {part.severity.lower()}"  # a gate's headline has the worst of all
        title = f"*{number} {inert(part.heading)}* {case}".rstrip() + severity

    limit = room // 4
    label = f"*{part.finding_label}* " if part.finding_label else ""
    findings = [
        f"{label}{fit(inert_but(part.finding, part.address), limit)}",
        f"*{part.severity}*: {fit(inert(part.row), ROW_CHARACTERS)}" if part.row else "",
        f"_{inert(part.history)}_" if part.history else "",
        f"_{fit(inert(part.others), limit)}_" if part.others else "",
        f"⚠️ {part.doubt}" if part.doubt else "",
        f"⚠️ flaky: {inert(part.flaky)}; it does not decide the verdict alone" if part.flaky else "",
    ]

    # The excerpts share what the rest leaves.
    quotes = [(label, inert(text)) for label, text in part.excerpts]
    left = room - sum(len(line) + 1 for line in (title, *findings))
    left -= sum(len(label) + 6 for label, _ in quotes)
    each = max(QUOTE_AT_LEAST, left // len(quotes)) if quotes else 0
    lines = [title, *(f">*{label}* {fit(text, each)}" for label, text in quotes), *findings]
    return "\n".join(line for line in lines if line)


def link_line(links: Sequence[Link]) -> str:
    """As many whole links as fit: a cut one would lead elsewhere. A path is shown to be copied."""
    shown: list[str] = []
    for link in links:
        if _ADDRESS.fullmatch(link.href) and len(link.href) <= URL_CHARACTERS:
            text = f"<{escape(link.href)}|{inert(link.label)}>"
        else:
            text = f"{inert(link.label)} `{fit(inert(link.href), URL_CHARACTERS)}`"
        if sum(map(len, shown)) + len(text) > LINKS_CHARACTERS:
            return " · ".join([*shown, ELLIPSIS])
        shown.append(text)
    return " · ".join(shown)


def digest_text(digest: Digest) -> SlackText:
    """Render ``digest`` within Slack's limits."""
    blocks = [header(digest_headline(digest))]
    figures = _figures(digest)
    if figures:
        blocks.append(section("\n".join(f"*{inert(label)}* {inert(value)}" for label, value in figures)))
    if lines := digest_lines(digest):
        blocks.append(section("\n".join(inert(line) for line in lines)))
    if digest.links:
        blocks.append(section(link_line(digest.links)))
    blocks.append(context(f"`{digest.id}` · run `{inert(digest.run_id)}` · {utc(digest.made_at)}"))
    return SlackText(text=inert(_one_line(digest)), blocks=tuple(blocks))


def digest_plain(digest: Digest) -> str:
    """The same for a terminal or a file."""
    figures = [f"{label}: {value}" for label, value in _figures(digest)]
    links = [f"{link.label}: {link.href}" for link in digest.links]
    foot = f"{digest.id} · run {digest.run_id} · {utc(digest.made_at)}"
    return "\n".join([digest_headline(digest), *figures, *digest_lines(digest), *links, foot, ""])


def _figures(digest: Digest) -> tuple[tuple[str, str], ...]:
    recovered = (("recovered", plural(digest.recovered, "incident")),) if digest.recovered else ()
    note = (("note", visible(digest.note)),) if digest.note else ()
    return (*((one.label, one.value) for one in digest.figures), *recovered, *note)


def _one_line(digest: Digest) -> str:
    figures = ", ".join(f"{label} {value}" for label, value in _figures(digest)[:3])
    return " · ".join(piece for piece in (digest_headline(digest), figures, digest.id) if piece)
