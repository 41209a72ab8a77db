"""Block Kit → HTML that looks about as Slack shows it: for documents, for looking at a message before 3 a.m."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final, cast

from monitors.alerts.preview_style import STYLE
from monitors.alerts.slack_blocks import SlackText
from monitors.alerts.slack_buttons import Block
from monitors.alerts.wording import MONITOR_MARK, RECOVERED_MARK, SEVERITY_MARKS
from monitors.records.base import Severity

_PERSON: Final = re.compile(r"&lt;@([UW][A-Z0-9]+)&gt;")
_LINK: Final = re.compile(r"&lt;(https?://[^|\s]+?)\|(.+?)&gt;")
_CODE: Final = re.compile(r"`([^`\n]+)`")
_BOLD: Final = re.compile(r"\*([^*\n]+)\*")
_ITALIC: Final = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
_ENTITY: Final = re.compile(r"&amp;(amp|lt|gt);")

MARKS: Final = {
    SEVERITY_MARKS[Severity.PAGE]: "red",
    SEVERITY_MARKS[Severity.WRONG]: "orange",
    SEVERITY_MARKS[Severity.ANNOYING]: "yellow",
    RECOVERED_MARK: "green",
    MONITOR_MARK: "grey",
    "⚠️": "yellow",
}


def preview_page(said: Sequence[SlackText], *, title: str = "Alerts") -> str:
    """One HTML page with ``said`` as posts of one channel; no script, nothing fetched."""
    posts = "\n".join(preview(one) for one in said)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style><main>{posts}</main></html>\n"
    )


def preview(said: SlackText) -> str:
    """One post as HTML. What a notification would show stands above it."""
    blocks = "\n".join(_block(block) for block in said.blocks)
    return (
        f'<article><p class="notice">{_plain(said.text)}</p>'
        '<div class="post"><div class="face">L</div><div class="body">'
        f'<p class="who"><b>Lookout</b> <span class="app">APP</span></p>{blocks}</div></div></article>'
    )


def _block(block: Block) -> str:
    match block["type"]:
        case "header":
            return f"<h3>{_plain(_text_of(block))}</h3>"
        case "section":
            menu = '<span class="menu">⋯</span>' if "accessory" in block else ""
            return f'<div class="section">{menu}{_mrkdwn(_text_of(block))}</div>'
        case "context":
            shown = " ".join(_mrkdwn(str(element["text"])) for element in _elements(block))
            return f'<div class="context">{shown}</div>'
        case "actions":
            return f'<div class="actions">{"".join(_button(element) for element in _elements(block))}</div>'
        case unknown:
            raise ValueError(
                f"no preview for a block of type {unknown!r}; known are header, section, context, actions"
            )


def _text_of(block: Block) -> str:
    return str(cast("Block", block["text"])["text"])


def _elements(block: Block) -> Sequence[Block]:
    return cast("Sequence[Block]", block["elements"])


def _button(element: Block) -> str:
    primary = ' class="primary"' if element.get("style") == "primary" else ""
    return f"<span{primary}>{_plain(_text_of(element))}</span>"


def _plain(text: str) -> str:
    """Escape for HTML; Slack's own three entities are shown as what they stand for."""
    return _emoji(_ENTITY.sub(r"&\1;", html.escape(text, quote=False)))


def _emoji(shown: str) -> str:
    """Draw our own marks: not every machine that makes pictures has a font for them."""
    for mark, name in MARKS.items():
        shown = shown.replace(mark, f'<i class="mark {name}" title="{mark}"></i>')
    return shown


def _mrkdwn(text: str) -> str:
    lines = text.split("\n")
    out: list[str] = []
    for line in lines:
        quoted = line.startswith(">")
        shown = _inline(line[1:] if quoted else line)
        out.append(f"<blockquote>{shown}</blockquote>" if quoted else f"<p>{shown}</p>")
    return "".join(out)


def _inline(text: str) -> str:
    """Slack's marks within one line. Links are found before entities are resolved: only ours are live."""
    shown = html.escape(text, quote=True)
    shown = _LINK.sub(r'<a href="\1">\2</a>', shown)
    shown = _PERSON.sub(r'<span class="person">@\1</span>', shown)
    shown = _CODE.sub(r"<code>\1</code>", shown)
    shown = _BOLD.sub(r"<b>\1</b>", shown)
    shown = _ITALIC.sub(r"<i>\1</i>", shown)
    return _emoji(_ENTITY.sub(r"&\1;", shown))
