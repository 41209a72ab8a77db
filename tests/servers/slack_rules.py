"""Check messages against Slack's limits.

Sources: docs.slack.dev, reference/block-kit/blocks/* and reference/methods/chat.postMessage. The limit for the text
of all blocks together (error `msg_blocks_too_long`) is undocumented. It was observed at about 13,200 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MAX_BLOCKS = 50
MAX_TEXT = 40_000
MAX_BLOCKS_TEXT = 13_200
LIVE_MENTION = re.compile(r"<(?:!(?:channel|here|everyone|subteam\^)|@[UW])|(?<![\w<])@(?:channel|here|everyone)\b")
LIVE_LINK = re.compile(r"<(?:https?|mailto|tel|slack):?[^>|]*(?:\|([^>]*))?>")

_KEYS = {
    "header": {"type", "text", "block_id"},
    "section": {"type", "text", "fields", "accessory", "block_id", "expand"},
    "context": {"type", "elements", "block_id"},
    "actions": {"type", "elements", "block_id"},
    "divider": {"type", "block_id"},
}
_OVERFLOW_KEYS = {"type", "action_id", "options", "confirm"}
_CONFIRM_LIMITS = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
_BUTTON_KEYS = {"type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label"}


def wrong_with(message: dict[str, Any]) -> str | None:
    """Return the name of Slack's error for ``message``, or ``None`` if Slack would accept it."""
    blocks = message.get("blocks") or []
    text = message.get("text") or ""
    if not text and not blocks:
        return "no_text"
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return "msg_too_long"
    if not isinstance(blocks, list) or len(blocks) > MAX_BLOCKS:
        return "invalid_blocks"
    if not all(_is_block(block) for block in blocks):
        return "invalid_blocks"
    if sum(len(shown) for shown in texts(blocks)) > MAX_BLOCKS_TEXT:
        return "msg_blocks_too_long"
    return None


def texts(part: Any) -> Iterator[str]:
    """Yield all texts in a block or a list of blocks, at any depth."""
    if isinstance(part, list):
        for child in part:
            yield from texts(child)
    elif isinstance(part, dict):
        for key, child in part.items():
            if key == "text" and isinstance(child, str):
                yield child
            else:
                yield from texts(child)


def mentions(message: dict[str, Any]) -> list[str]:
    """Return the mentions in ``message`` that would notify users in Slack."""
    shown = [message.get("text") or "", *texts(message.get("blocks") or [])]
    return [match.group() for text in shown for match in LIVE_MENTION.finditer(text)]


def links(message: dict[str, Any]) -> list[str]:
    """Return the links of ``message``."""
    shown = [message.get("text") or "", *texts(message.get("blocks") or [])]
    return [match.group() for text in shown for match in LIVE_LINK.finditer(text)]


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in _KEYS:
        return False
    kind = block["type"]
    if set(block) - _KEYS[kind] or len(block.get("block_id", "")) > 255:
        return False
    match kind:
        case "header":
            return _is_text(block.get("text"), 150, kinds={"plain_text"})
        case "section":
            return _is_section(block)
        case "context":
            elements = block.get("elements")
            return _is_list(elements, 10) and all(_is_text(element, 3_000) for element in elements)
        case "actions":
            elements = block.get("elements")
            return _is_list(elements, 25) and all(_is_button(element) for element in elements)
        case _:
            return True


def _is_section(block: dict[str, Any]) -> bool:
    if "accessory" in block and not (_is_button(block["accessory"]) or _is_overflow(block["accessory"])):
        return False
    fields = block.get("fields")
    if fields is not None and not (_is_list(fields, 10) and all(_is_text(field, 2_000) for field in fields)):
        return False
    return fields is not None if "text" not in block else _is_text(block["text"], 3_000)


def _is_list(value: Any, most: int) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= most


def _is_text(value: Any, most: int, kinds: frozenset[str] | set[str] = frozenset({"plain_text", "mrkdwn"})) -> bool:
    if not isinstance(value, dict) or value.get("type") not in kinds:
        return False
    allowed = {"type", "text", "emoji"} if value["type"] == "plain_text" else {"type", "text", "verbatim"}
    return not set(value) - allowed and isinstance(value.get("text"), str) and 1 <= len(value["text"]) <= most


def _is_button(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") != "button" or set(value) - _BUTTON_KEYS:
        return False
    limits = (("action_id", 255), ("value", 2_000), ("url", 3_000))
    short = all(len(value.get(key, "")) <= most for key, most in limits) and _is_confirm(value.get("confirm"))
    return short and _is_text(value.get("text"), 75, kinds={"plain_text"})


def _is_overflow(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") != "overflow" or set(value) - _OVERFLOW_KEYS:
        return False
    short = len(value.get("action_id", "")) <= 255 and _is_confirm(value.get("confirm"))
    return short and _is_list(value.get("options"), 5) and all(_is_option(option) for option in value["options"])


def _is_option(value: Any) -> bool:
    is_known = isinstance(value, dict) and not set(value) - {"text", "value", "description", "url"}
    return is_known and len(value.get("value", "")) <= 150 and _is_text(value.get("text"), 75, kinds={"plain_text"})


def _is_confirm(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or set(value) - {*_CONFIRM_LIMITS, "style"}:
        return False
    return all(_is_text(value.get(key), most, kinds={"plain_text"}) for key, most in _CONFIRM_LIMITS.items())
