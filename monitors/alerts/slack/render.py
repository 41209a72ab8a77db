"""Renders alerts and the nightly digest for Slack, within Slack's limits.

Text from outside has no effect in Slack: no mentions, no links, no formatting. This module also renders and parses
the buttons of a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from monitors.alerts.digest import Digest, format_digest_headline, format_worst_open_incidents
from monitors.alerts.message import (
    TO_DO_LABEL,
    MessageSection,
    build_message,
    format_operator_mark,
    format_utc,
    is_action_available,
    sort_one_of_each_kind_first,
)
from monitors.alerts.redact import (
    ELLIPSIS,
    disable_slack_markup,
    disable_slack_markup_except,
    escape_for_slack,
    remove_invisible_characters,
    truncate_escaped_text,
)
from monitors.alerts.settings import AlertSettings
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.incidents import ActionKind, Alert, AlertItem, Link

Block = dict[str, object]
"""One block of a message, or a part of a block, as Slack's JSON."""

BUTTONS: Final[dict[str, ActionKind]] = {
    "lookout_acknowledge": ActionKind.ACKNOWLEDGE,
    "lookout_false_alarm": ActionKind.FALSE_ALARM,
    "lookout_add_to_gold": ActionKind.ADD_TO_GOLD,
}
"""The action of each button, keyed by Slack's ``action_id``.

A message about several failures has only the first button.
"""
MENU: Final = "lookout_one"
"""The ``action_id`` of the menu that stands beside each failure in a message about several failures."""

LABELS: Final[dict[ActionKind, str]] = {
    ActionKind.ACKNOWLEDGE: "Acknowledge",
    ActionKind.FALSE_ALARM: "False alarm",
    ActionKind.ADD_TO_GOLD: "Add to gold",
    ActionKind.RESOLVE: "Resolve",
}
VALUE_CHARACTERS: Final = 150
"""Maximum length of a menu option's value in characters (docs.slack.dev, reference/block-kit).

The value of a button can have 2,000 characters.
"""

_BUTTON_VALUE: Final = re.compile(r"([A-Za-z0-9_-]{1,40}) ([0-9]{1,6})", re.ASCII)
_MENU_VALUE: Final = re.compile(r"([a-z_]{1,20}) ([A-Za-z0-9_-]{1,40}) ([0-9a-f]{64})")


class ButtonAction(Record):
    """The action of a button, on a whole alert or only on the failures in ``fingerprints``.

    ``shown`` is the number of failures in the message when the button was added.
    """

    kind: ActionKind
    alert_id: str
    fingerprints: tuple[str, ...] = ()
    shown: int = 1


def build_buttons(alert: Alert) -> Block | None:
    """Build the row of buttons below ``alert``. Return ``None`` if no action is available."""
    is_only_item = len(alert.items) == 1
    candidates = list(BUTTONS.items()) if is_only_item else list(BUTTONS.items())[:1]
    elements = [
        _build_button(action_id, kind, alert)
        for action_id, kind in candidates
        if any(is_action_available(kind, item, alert.marks) for item in alert.items)
    ]
    return {"type": "actions", "block_id": f"lookout-{alert.id}", "elements": elements} if elements else None


def build_menu(alert: Alert, item: AlertItem) -> Block | None:
    """Build the menu of actions for one of several failures.

    Return ``None`` if no action is available, or if a value is too long for Slack.
    """
    kinds = [kind for kind in BUTTONS.values() if is_action_available(kind, item, alert.marks)]
    options = [
        {"text": _build_plain_text(LABELS[kind]), "value": f"{kind.value} {alert.id} {item.incident.fingerprint}"}
        for kind in kinds
    ]
    fits = all(len(str(option["value"])) <= VALUE_CHARACTERS for option in options)
    return {"type": "overflow", "action_id": MENU, "options": options} if options and fits else None


def parse_button_action(action_id: str, value: str) -> ButtonAction | None:
    """Return the action of a pressed button. Return ``None`` for a button of another application.

    Raises ``ValueError`` if a Lookout button has an invalid value.
    """
    if action_id == MENU:
        kind, alert_id, fingerprint = _parse_button_value(_MENU_VALUE, value)
        return ButtonAction(kind=ActionKind(kind), alert_id=alert_id, fingerprints=(fingerprint,))
    if action_id not in BUTTONS:
        return None
    alert_id, shown = _parse_button_value(_BUTTON_VALUE, value)
    return ButtonAction(kind=BUTTONS[action_id], alert_id=alert_id, shown=int(shown))


def _parse_button_value(pattern: re.Pattern[str], value: str) -> Sequence[str]:
    match = pattern.fullmatch(value)
    if match is None:
        raise ValueError("the value is not from a Lookout button")
    return match.groups()


def _build_button(action_id: str, kind: ActionKind, alert: Alert) -> Block:
    """Build a button.

    The button's value contains the number of failures in the message. If this number grows, pressing the button
    again is a new action.
    """
    button: Block = {
        "type": "button",
        "action_id": action_id,
        "text": _build_plain_text(LABELS[kind]),
        "value": f"{alert.id} {len(alert.items)}",
    }
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return button | {"style": "primary"}
        case ActionKind.FALSE_ALARM:
            return button | {"confirm": _build_false_alarm_confirmation()}
        case _:
            return button


def _build_false_alarm_confirmation() -> Block:
    """Build the confirmation dialog for a false alarm, because a single tap must not mute a leak."""
    return {
        "title": _build_plain_text("False alarm?"),
        "text": _build_plain_text(
            "Lookout marks the finding as wrong, resolves it, and sends no alerts about it for a while."
        ),
        "confirm": _build_plain_text("It is false"),
        "deny": _build_plain_text("Go back"),
    }


def _build_plain_text(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


HEADER_CHARACTERS: Final = 150
SECTION_CHARACTERS: Final = 3_000
CONTEXT_CHARACTERS: Final = 2_000
"""Maximum length of a context element in Slack, in characters (docs.slack.dev, reference/block-kit).

`HEADER_CHARACTERS` and `SECTION_CHARACTERS` are the maximum lengths of a header and of a section's text.
"""
PARTS_CHARACTERS: Final = 9_000
"""Maximum total length of the texts about all failures in a message, in characters.

Slack refuses a message of more than about 13,000 characters (`msg_blocks_too_long`, undocumented).
"""
ROW_CHARACTERS: Final = 120
LINKS_CHARACTERS: Final = 1_500
URL_CHARACTERS: Final = 1_000
MIN_QUOTE_CHARACTERS: Final = 80
MAX_MARKS_SHOWN: Final = 6
"""Maximum number of operator actions that a message shows. The newest actions are shown."""

_ADDRESS: Final = re.compile(r"https?://[^\s|<>]+")


class SlackText(Record):
    """A message for Slack. ``text`` is one line for notifications, and ``blocks`` is what Slack shows."""

    text: str
    blocks: tuple[Block, ...]


def render_alert(alert: Alert, settings: AlertSettings) -> SlackText:
    """Render ``alert``.

    The first line contains the fault, its severity and the target. The last line contains the alert's id, the run
    and the time.
    """
    content = build_message(alert, group_limit=settings.group_limit, site_url=settings.site_url)
    offers_actions = settings.slack_buttons and not content.is_over
    texts = sum(1 + len(part.examples) for part in content.parts)
    limit = min(SECTION_CHARACTERS, PARTS_CHARACTERS // texts)
    make_safe = partial(disable_slack_markup_except, ids=content.case_ids)

    why_since_scores = [
        f"*{make_safe(content.why_sent)}*",
        disable_slack_markup(content.since),
        disable_slack_markup(content.scores),
    ]
    blocks = [
        build_header(content.headline),
        build_context(" · ".join(piece for piece in why_since_scores if piece)),
    ]
    if alert.marks:  # first, so that readers of the channel see who handles the alert
        marks = (format_operator_mark(mark, alert, slack=True) for mark in alert.marks[-MAX_MARKS_SHOWN:])
        blocks.append(build_section("\n".join(marks)))
    if content.dimensions:
        blocks.append(build_section(disable_slack_markup(content.dimensions)))
    if content.explanations:
        blocks.append(build_section("\n".join(map(make_safe, content.explanations))))

    shown = zip(
        content.parts, sort_one_of_each_kind_first(alert.items), strict=False
    )  # items beyond the limit are counted
    for number, (part, item) in enumerate(shown, start=1):
        name = "" if content.has_one_failure else f"{number}."
        block = build_section(_format_part(part, name, limit, content.case_ids))
        # Each of several failures has its own menu, because a false alarm is about one failure.
        if offers_actions and not content.has_one_failure and (accessory := build_menu(alert, item)):
            block |= {"accessory": accessory}
        blocks.append(block)
        blocks += [
            build_section(_format_part(case, f"{name}{n}.", limit, content.case_ids))
            for n, case in enumerate(part.examples, start=1)
        ]

    if content.more:
        blocks.append(build_section(f"… *{disable_slack_markup(content.more)}*"))
    if content.to_do:
        blocks.append(build_section(f"*{TO_DO_LABEL}* {disable_slack_markup(content.to_do)}"))
    if content.links:
        blocks.append(build_section(format_links_that_fit(content.links)))
    if offers_actions and (row := build_buttons(alert)):
        blocks.append(row)
    blocks.append(build_context(f"`{content.id}` · run `{disable_slack_markup(content.run_id)}` · {content.at}"))
    return SlackText(text=make_safe(content.one_line, content.address), blocks=tuple(blocks))


def build_header(text: str) -> Block:
    """Build the header block with the first line of a message."""
    shown = truncate_escaped_text(escape_for_slack(remove_invisible_characters(text)), HEADER_CHARACTERS)
    return {"type": "header", "text": {"type": "plain_text", "text": shown, "emoji": False}}


def build_section(text: str) -> Block:
    """Build a paragraph of ``mrkdwn``. ``text`` must already be escaped for Slack.

    ``verbatim`` prevents Slack from turning addresses and names into links.
    """
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": truncate_escaped_text(text, SECTION_CHARACTERS), "verbatim": True},
    }


def build_context(text: str) -> Block:
    """Build a small grey line of ``mrkdwn``. ``text`` must already be escaped for Slack."""
    shown = truncate_escaped_text(text, CONTEXT_CHARACTERS)
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": shown, "verbatim": True}]}


def _format_part(part: MessageSection, number: str, room: int, case_ids: Sequence[str]) -> str:
    """Format one failure in at most ``room`` characters.

    ``number`` is the failure's number in the message, or an empty string if the message has only one failure.
    """
    case = disable_slack_markup_except(part.case_id, ids=[part.case_id])
    case = f"`{case.strip('`')}`" if case else ""
    title = f"*Case* {case}" if case else ""
    if number:
        severity = "" if part.finding else f" · {part.severity.lower()}"  # a gate's headline has the worst severity
        title = f"*{number} {disable_slack_markup(part.heading)}* {case}".rstrip() + severity

    limit = room // 4
    label = f"*{part.finding_label}* " if part.finding_label else ""
    findings = [
        f"{label}{truncate_escaped_text(disable_slack_markup_except(part.finding, part.address, case_ids), limit)}",
        f"*{part.severity}*: {truncate_escaped_text(disable_slack_markup(part.row), ROW_CHARACTERS)}"
        if part.row
        else "",
        f"_{disable_slack_markup(part.history)}_" if part.history else "",
        f"_{truncate_escaped_text(disable_slack_markup_except(part.others, ids=case_ids), limit)}_"
        if part.others
        else "",
        f"⚠️ {part.doubt}" if part.doubt else "",
        f"⚠️ flaky: {disable_slack_markup(part.flaky)}. A flaky case alone does not decide the verdict"
        if part.flaky
        else "",
    ]

    # The excerpts share the room that is left.
    quotes = [(label, disable_slack_markup(text)) for label, text in part.excerpts]
    remaining = room - sum(len(line) + 1 for line in (title, *findings))
    remaining -= sum(len(label) + 6 for label, _ in quotes)
    limit_per_quote = max(MIN_QUOTE_CHARACTERS, remaining // len(quotes)) if quotes else 0
    lines = [
        title,
        *(f">*{label}* {truncate_escaped_text(text, limit_per_quote)}" for label, text in quotes),
        *findings,
    ]
    return "\n".join(line for line in lines if line)


def format_links_that_fit(links: Sequence[Link]) -> str:
    """Format as many complete links as fit. No link is cut, because a cut link would lead to another page.

    A local path is shown as code.
    """
    shown: list[str] = []
    for link in links:
        if _ADDRESS.fullmatch(link.href) and len(link.href) <= URL_CHARACTERS:
            text = f"<{escape_for_slack(link.href)}|{disable_slack_markup(link.label)}>"
        else:
            path = truncate_escaped_text(disable_slack_markup(link.href), URL_CHARACTERS)
            text = f"{disable_slack_markup(link.label)} `{path}`"
        if sum(map(len, shown)) + len(text) > LINKS_CHARACTERS:
            return " · ".join([*shown, ELLIPSIS])
        shown.append(text)
    return " · ".join(shown)


def render_digest(digest: Digest) -> SlackText:
    """Render ``digest`` within Slack's limits."""
    blocks = [build_header(format_digest_headline(digest))]
    figures = _list_figures(digest)
    if figures:
        blocks.append(
            build_section(
                "\n".join(
                    f"*{disable_slack_markup(label)}* {disable_slack_markup(value)}" for label, value in figures
                )
            )
        )
    if lines := format_worst_open_incidents(digest):
        case_ids = [incident.case_id for incident in digest.open_incidents if incident.case_id]
        blocks.append(build_section("\n".join(disable_slack_markup_except(line, ids=case_ids) for line in lines)))
    if digest.links:
        blocks.append(build_section(format_links_that_fit(digest.links)))
    blocks.append(
        build_context(f"`{digest.id}` · run `{disable_slack_markup(digest.run_id)}` · {format_utc(digest.made_at)}")
    )
    first_figures = ", ".join(f"{label} {value}" for label, value in figures[:3])
    one_line = " · ".join(part for part in (format_digest_headline(digest), first_figures, digest.id) if part)
    return SlackText(text=disable_slack_markup(one_line), blocks=tuple(blocks))


def format_digest_as_plain_text(digest: Digest) -> str:
    """Format the digest as plain text for a terminal or a file."""
    figures = [f"{label}: {value}" for label, value in _list_figures(digest)]
    links = [f"{link.label}: {link.href}" for link in digest.links]
    foot = f"{digest.id} · run {digest.run_id} · {format_utc(digest.made_at)}"
    return "\n".join(
        [format_digest_headline(digest), *figures, *format_worst_open_incidents(digest), *links, foot, ""]
    )


def _list_figures(digest: Digest) -> tuple[tuple[str, str], ...]:
    recovered = (("recovered", plural(digest.recovered, "incident")),) if digest.recovered else ()
    note = (("note", remove_invisible_characters(digest.note)),) if digest.note else ()
    return (*((figure.label, figure.value) for figure in digest.figures), *recovered, *note)
