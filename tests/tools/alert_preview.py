"""Render a Slack message as HTML in the style of Slack's light theme, as a preview or for documents."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final, cast

from monitors.alerts.slack.render import Block, SlackText
from monitors.alerts.wording import MONITOR_MARK, RECOVERED_MARK, SEVERITY_MARKS
from monitors.records.base import Severity

STYLE: Final = """
* { box-sizing: border-box; margin: 0; }
body { background: #fff; color: #1d1c1d; font: 15px/1.46 Lato, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 640px; margin: 0 auto; padding: 8px 0; }
article { padding: 8px 16px; overflow-wrap: anywhere; }
.notice { background: #2b2b2f; color: #f5f5f5; border-radius: 10px; padding: 8px 12px; margin-bottom: 10px;
  font-size: 13px; line-height: 1.35; }
.post { display: flex; gap: 8px; }
.face { flex: none; width: 36px; height: 36px; border-radius: 8px; background: #173f35; color: #fff;
  display: grid; place-items: center; font-weight: 900; }
.body { flex: 1; min-width: 0; }
.app { background: #e8e8e8; color: #616061; font-size: 10px; font-weight: 700; padding: 1px 3px;
  border-radius: 2px; }
h3 { font-size: 18px; line-height: 1.3; margin: 4px 0; }
.section { margin: 6px 0; }
.menu { float: right; border: 1px solid #bbb; border-radius: 4px; padding: 0 10px; margin-left: 8px;
  font-weight: 700; }
.person { background: #e8f1f8; color: #1264a3; border-radius: 3px; padding: 0 2px; }
.context { color: #616061; font-size: 13px; line-height: 1.4; margin: 4px 0; }
.context p { display: inline; }
blockquote { border-left: 4px solid #ddd; padding-left: 12px; }
code { background: #f6f6f6; border: 1px solid #ddd; border-radius: 3px; color: #c01343; padding: 1px 3px;
  font: 12px "DejaVu Sans Mono", monospace; }
.mark { display: inline-block; width: .8em; height: .8em; border-radius: 50%; vertical-align: -.05em; }
.red { background: #dd2e44; } .orange { background: #f4900c; } .yellow { background: #fdcb58; }
.green { background: #2eb67d; border-radius: 2px; } .grey { background: #8899a6; border-radius: 2px; }
a { color: #1264a3; text-decoration: none; }
.actions { display: flex; gap: 8px; flex-wrap: wrap; margin: 8px 0; }
.actions span { border: 1px solid #bbb; border-radius: 4px; padding: 4px 12px; font-size: 13px; font-weight: 700; }
.actions .primary { background: #007a5a; border-color: #007a5a; color: #fff; }
"""


_PERSON: Final = re.compile(r"&lt;@([UW][A-Z0-9]+)&gt;")
_LINK: Final = re.compile(r"&lt;(https?://[^|\s]+?)\|(.+?)&gt;")
_CODE: Final = re.compile(r"`([^`\n]+)`")
_BOLD: Final = re.compile(r"\*([^*\n]+)\*")
_ITALIC: Final = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
_ENTITY: Final = re.compile(r"&amp;(amp|lt|gt);")

MARKS: Final = {
    SEVERITY_MARKS[Severity.CRITICAL]: "red",
    SEVERITY_MARKS[Severity.MAJOR]: "orange",
    SEVERITY_MARKS[Severity.MINOR]: "yellow",
    RECOVERED_MARK: "green",
    MONITOR_MARK: "grey",
    "⚠️": "yellow",
}


def preview_page(messages: Sequence[SlackText], *, title: str = "Alerts") -> str:
    """Return an HTML page that shows ``messages`` as posts in a channel, without scripts or external resources."""
    posts = "\n".join(preview(message) for message in messages)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style><main>{posts}</main></html>\n"
    )


def preview(message: SlackText) -> str:
    """Return one Slack message as HTML. The text of its push notification is shown above it."""
    blocks = "\n".join(_block(block) for block in message.blocks)
    return (
        f'<article><p class="notice">{_plain(message.text)}</p>'
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
    """Convert plain text from Slack to HTML. Slack's three entities, such as ``&amp;``, are not escaped again."""
    return _emoji(_ENTITY.sub(r"&\1;", html.escape(text, quote=False)))


def _emoji(shown: str) -> str:
    """Replace Lookout's emoji with images, because not every machine has an emoji font."""
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
    """Convert Slack's markup in one line to HTML.

    Links are converted before entities, so that only links that Lookout wrote become active.
    """
    shown = html.escape(text, quote=True)
    shown = _LINK.sub(r'<a href="\1">\2</a>', shown)
    shown = _PERSON.sub(r'<span class="person">@\1</span>', shown)
    shown = _CODE.sub(r"<code>\1</code>", shown)
    shown = _BOLD.sub(r"<b>\1</b>", shown)
    shown = _ITALIC.sub(r"<i>\1</i>", shown)
    return _emoji(_ENTITY.sub(r"&\1;", shown))
