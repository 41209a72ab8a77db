"""Draws a badge for a README or a wiki: a small SVG image that shows the verdict of a target."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

from monitors.records.runs import Verdict
from monitors.reports.format import VERDICT_MARKS

NO_DATA: Final = "no data"
_COLOURS: Final = {
    Verdict.PASS.value: "#1d6b3c",
    Verdict.FAIL.value: "#a8201a",
    Verdict.INCONCLUSIVE.value: "#7d5300",
}
_NEUTRAL: Final = "#5d6269"
_CHARACTER: Final = 7.2
_EDGE: Final = 8
_HEIGHT: Final = 20


def render_badge(target: str, word: str) -> Markup:
    """Return an SVG badge with two texts: the name ``target`` on the left and ``word`` on the right.

    ``word`` is a verdict, or `NO_DATA` if the target has no recent grades.
    """
    mark = next((f"{mark} " for verdict, mark in VERDICT_MARKS.items() if verdict.value == word), "")
    left, right = _measure_width(target), _measure_width(f"{mark}{word}")
    title = escape(f"{target}: {word}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{left}" height="{_HEIGHT}" fill="#1b1d20"/>',
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLOURS.get(word, _NEUTRAL)}"/>',
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        f'<text x="{_EDGE}" y="14">{escape(target)}</text>',
        f'<text x="{left + _EDGE}" y="14">{escape(mark + word)}</text>',
        "</g></svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - numbers, fixed words, and escaped names


def _measure_width(text: str) -> int:
    return round(len(text) * _CHARACTER) + 2 * _EDGE
