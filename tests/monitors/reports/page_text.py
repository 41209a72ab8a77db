"""Reads the visible words of an HTML page, one line for each block."""

from __future__ import annotations

from html.parser import HTMLParser

BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
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
HIDDEN = frozenset({"script", "style", "svg"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
        self._separate(tag)
        self.hidden += tag in HIDDEN

    def handle_endtag(self, tag: str) -> None:
        self._separate(tag)
        self.hidden -= tag in HIDDEN

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(" ".join(data.split()) if data.strip() else " ")

    def _separate(self, tag: str) -> None:
        self.parts.append("\n" if tag in BLOCKS else " | " if tag in CELLS else " ")


def page_text(html: str) -> str:
    """Return the text of ``html`` without styles and drawings. The cells of a table row are separated by bars."""
    reader = _Reader()
    reader.feed(html)
    lines = (" ".join(line.split()).strip("| ") for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)
