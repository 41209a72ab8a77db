"""Text from outside in Markdown: it stays text, whatever it says.

Two ways. Whatever an application or a user wrote goes into a code span, where no renderer looks for links, HTML,
mentions, formulas or emoji. Our own sentences, which may quote a name from outside, are escaped.
"""

from __future__ import annotations

import re
from typing import Final

from monitors.reports.visible import show_invisible
from monitors.reports.wording import shortened

_TICKS: Final = re.compile(r"`+")
# What marks up within a line; what only counts at its beginning never stands there.
_MARKUP: Final = re.compile(r"([\\`*_\[\]|~$^])")
# GitHub resolves these after Markdown, where a backslash no longer helps; a word joiner draws nothing and does.
_REFERENCES: Final = re.compile(r"(?i)(@|#(?=\d)|\bGH(?=-\d)|(?<=\w)://|\bwww(?=\.)|:(?=[\d_-]*[a-z+][\w+-]*:))")
_WORD_JOINER: Final = "\u2060"


def code_span(text: str, limit: int) -> str:
    """The text as one inert code span, on one line, at most ``limit`` characters; safe in a table cell.

    A pipe is written as a similar character: inside code, a table's pipe cannot be escaped for every renderer.
    """
    line = shortened(show_invisible(text), limit).replace("|", "¦")
    if not line:
        return "(empty)"
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def inert(text: str, limit: int = 600) -> str:
    """A sentence that may quote something from outside, escaped: no markup, HTML, link, mention or reference."""
    line = shortened(show_invisible(text), limit)
    unresolved = _REFERENCES.sub(lambda found: found[0][0] + _WORD_JOINER + found[0][1:], line)
    return _MARKUP.sub(r"\\\1", unresolved.replace("&", "&amp;").replace("<", "&lt;"))
