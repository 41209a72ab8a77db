"""Draws charts over time as SVG, without scripts.

The title of a chart describes it in words, for screen readers. A missing value is a gap and never a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup, escape

DEFAULT_WIDTH: Final = 240
DEFAULT_HEIGHT: Final = 56
_EDGE: Final = 4


class TrendPoint(NamedTuple):
    """A value in a chart, or ``None`` for a gap.

    ``low`` and ``high`` are the limits of its interval. If ``mark`` is true, the point is highlighted.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    mark: bool = False


class ChartScale(NamedTuple):
    """The lowest and highest value of a chart, and the value of the limit line."""

    bottom: float = 0.0
    top: float = 1.0
    limit: float | None = None


def build_scale(points: Sequence[TrendPoint], *, limit: float | None = None, floor: float = 0.0) -> ChartScale:
    """Choose a scale that shows all ``points`` with their intervals and the limit.

    The scale never begins below ``floor``.
    """
    values = [value for point in points for value in (point.value, point.low, point.high) if value is not None]
    values += [] if limit is None else [limit]
    if not values:
        return ChartScale(floor, floor + 1.0, limit)
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.05 or 0.05
    return ChartScale(max(floor, low - room), high + room, limit)


def render_trend_line(
    points: Sequence[TrendPoint],
    scale: ChartScale,
    title: str,
    *,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
) -> Markup:
    """Draw values as a line, intervals as a band, marked values as large dots, and the limit as a dashed line."""
    frame = _Frame(len(points), scale, width, height)
    parts = [frame.render_limit()]
    for run in _split_at_gaps(points):
        if all(point.low is not None and point.high is not None for _, point in run):
            parts.append(frame.render_band(run))
        parts.append(frame.render_line(run))
    parts += [frame.render_dot(place, point) for place, point in enumerate(points) if point.value is not None]
    return _build_svg("trend", title, "".join(parts), width, height)


class StripCell(NamedTuple):
    """A cell in a row of outcomes. ``kind`` is correct, failed, no_answer, ungraded or missing."""

    kind: str
    label: str
    mark: bool = False


_CELL: Final = 16
_SHAPES: Final = {
    "correct": "M5 8.5 7.2 11 11.5 5.5",
    "failed": "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
    "no_answer": "M4 8H12",
    "ungraded": "M6 6.2C6 3.8 10 3.8 10 6.2C10 7.8 8 7.6 8 9.4M8 11.4V12.2",
}


def render_outcome_strip(cells: Sequence[StripCell], title: str) -> Markup:
    """Draw a row of outcomes, each kind with its own shape and colour. A marked outcome has a bar below it."""
    inside = "".join(_render_cell(place * _CELL, cell) for place, cell in enumerate(cells))
    return _build_svg("strip", title, inside, max(1, len(cells)) * _CELL, _CELL + 4)


def _render_cell(x: int, cell: StripCell) -> str:
    shape = _SHAPES.get(cell.kind)
    inside = f'<rect x="1" y="1" width="14" height="14"/><path d="{shape}"/>' if shape else '<path d="M7 8H9"/>'
    bar = '<rect class="flip" x="1" y="16.5" width="14" height="3"/>' if cell.mark else ""
    kind = escape(cell.kind)
    return f'<g class="{kind}" transform="translate({x})"><title>{escape(cell.label)}</title>{inside}{bar}</g>'


class _Frame(NamedTuple):
    """Maps values to coordinates and draws the parts of a chart."""

    points: int
    scale: ChartScale
    width: int
    height: int

    def compute_x(self, place: int) -> float:
        return _EDGE + (place + 0.5) * (self.width - 2 * _EDGE) / max(1, self.points)

    def compute_y(self, value: float) -> float:
        span = self.scale.top - self.scale.bottom or 1.0
        share = max(0.0, min(1.0, (value - self.scale.bottom) / span))
        return self.height - _EDGE - share * (self.height - 2 * _EDGE)

    def render_limit(self) -> str:
        if self.scale.limit is None:
            return ""
        y = self.compute_y(self.scale.limit)
        return f'<line class="limit" x1="0" x2="{self.width}" y1="{y:.1f}" y2="{y:.1f}"/>'

    def render_band(self, run: Sequence[tuple[int, TrendPoint]]) -> str:
        upper = [f"{self.compute_x(place):.1f},{self.compute_y(point.high or 0):.1f}" for place, point in run]
        lower = [
            f"{self.compute_x(place):.1f},{self.compute_y(point.low or 0):.1f}" for place, point in reversed(run)
        ]
        return f'<polygon class="band" points="{" ".join(upper + lower)}"/>'

    def render_line(self, run: Sequence[tuple[int, TrendPoint]]) -> str:
        places = " ".join(
            f"{self.compute_x(place):.1f},{self.compute_y(point.value or 0):.1f}" for place, point in run
        )
        return f'<polyline class="line" points="{places}"/>'

    def render_dot(self, place: int, point: TrendPoint) -> str:
        kind, radius = ("dot marked", 4) if point.mark else ("dot", 2)
        at = f'cx="{self.compute_x(place):.1f}" cy="{self.compute_y(point.value or 0):.1f}"'
        return f'<circle class="{kind}" {at} r="{radius}"><title>{escape(point.label)}</title></circle>'


def _split_at_gaps(points: Sequence[TrendPoint]) -> list[list[tuple[int, TrendPoint]]]:
    """Split the points at the gaps. Return groups of pairs: the index of a point, and the point."""
    placed = groupby(enumerate(points), key=lambda place_and_point: place_and_point[1].value is not None)
    return [list(run) for is_known, run in placed if is_known]


def _build_svg(kind: str, title: str, inside: str, width: int, height: int) -> Markup:
    head = f'<svg class="{kind}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    # The text contains only numbers, fixed words and escaped labels.
    return Markup(f"{head}<title>{escape(title)}</title>{inside}</svg>")  # noqa: S704 - see the line above
