"""The text of a page as a reader sees it, for snapshots."""

from __future__ import annotations

import re
from html.parser import HTMLParser

BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "summary",
        "svg",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "title",
        "tr",
        "ul",
    ]
)
CELLS = frozenset({"td", "th"})
INVISIBLE = frozenset({"head", "script", "style", "template"})


class _Reader(HTMLParser):
    """Collects the text inside the main element. Each block begins a line, and a bar separates the cells of a row.

    The time of the warehouse copy in the footer is the real time of day, so it is replaced with ``TIME``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._in_main = 0
        self._hidden = 0
        self._in_footer = False
        self._in_time = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._in_main += tag == "main"
        self._hidden += tag in INVISIBLE
        self._in_footer |= tag == "footer"
        self._in_time |= tag == "time"
        self._divide(tag)

    def handle_endtag(self, tag: str) -> None:
        self._divide(tag)
        self._in_main -= tag == "main"
        self._hidden -= tag in INVISIBLE
        self._in_footer &= tag != "footer"
        self._in_time &= tag != "time"

    def handle_data(self, data: str) -> None:
        if self._in_main and not self._hidden:
            self.parts.append("TIME" if self._in_footer and self._in_time else re.sub(r"\s+", " ", data))

    def _divide(self, tag: str) -> None:
        if tag in BLOCKS or tag == "br":
            self.parts.append("\n")
        elif tag in CELLS:
            self.parts.append(" | ")


def page_text(html: str) -> str:
    """Return the visible text of the main part of ``html``, one line for each block."""
    reader = _Reader()
    reader.feed(html)
    lines = (
        re.sub(r" +", " ", line.replace(" |  | ", " | ")).strip(" |") for line in "".join(reader.parts).split("\n")
    )
    return "\n".join(line for line in lines if line)
