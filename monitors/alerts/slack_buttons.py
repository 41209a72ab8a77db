"""The buttons under a message: which make sense, what they carry, and how a press is read back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.alerts.marks import is_left
from monitors.records.base import Record
from monitors.records.incidents import Alert, AlertItem
from monitors.records.marks import ActionKind

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
    """What a press says; ``None`` for a button that is not ours. Raises ``ValueError`` for a value that is not."""
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
        "text": _plain("The finding is labelled wrong and resolved. It is not told again for a while."),
        "confirm": _plain("It is false"),
        "deny": _plain("Go back"),
    }


def _option(kind: ActionKind, value: str) -> Block:
    return {"text": _plain(LABELS[kind]), "value": value}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}
