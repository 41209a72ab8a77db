"""Charts over time as inline SVG: a line with its interval, and bars. They need no script and print well.

A chart says in words what it shows (its title), so that nobody needs to see it; colours are the style sheet's.
Where nothing was counted there is a gap, never a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup, escape

WIDTH: Final = 240
HEIGHT: Final = 56
_EDGE: Final = 4


class TrendPoint(NamedTuple):
    """One value in the order of time. ``label`` says what it is in the chart's own words; ``None`` is a gap.

    ``low`` and ``high`` bound it; ``mark`` sets it apart, such as a failed run or a drift.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    mark: bool = False


class ChartScale(NamedTuple):
    """What the height of a chart spans, and where a limit is drawn."""

    bottom: float = 0.0
    top: float = 1.0
    limit: float | None = None


def scale_of(points: Sequence[TrendPoint], *, limit: float | None = None, floor: float = 0.0) -> ChartScale:
    """A scale that shows all of ``points`` with their intervals and the limit, and nothing below ``floor``."""
    values = [value for point in points for value in (point.value, point.low, point.high) if value is not None]
    values += [] if limit is None else [limit]
    if not values:
        return ChartScale(floor, floor + 1.0, limit)
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.05 or 0.05
    return ChartScale(max(floor, low - room), high + room, limit)


def trend_line(
    points: Sequence[TrendPoint], scale: ChartScale, title: str, *, width: int = WIDTH, height: int = HEIGHT
) -> Markup:
    """Values as a line, intervals as a band behind it, marked values as larger dots, the limit as a dashed line."""
    frame = _Frame(len(points), scale, width, height)
    parts = [frame.limit_line()]
    for run in _runs(points):
        if all(point.low is not None and point.high is not None for _, point in run):
            parts.append(frame.band(run))
        parts.append(frame.line(run))
    parts += [frame.dot(place, point) for place, point in enumerate(points) if point.value is not None]
    return _svg("trend", title, "".join(parts), width, height)


def trend_bars(
    points: Sequence[TrendPoint], scale: ChartScale, title: str, *, width: int = WIDTH, height: int = HEIGHT
) -> Markup:
    """Values as bars from the bottom, each with its interval as a whisker."""
    frame = _Frame(len(points), scale, width, height)
    bars = (frame.bar(place, point) for place, point in enumerate(points) if point.value is not None)
    return _svg("trend", title, frame.limit_line() + "".join(bars), width, height)


class StripCell(NamedTuple):
    """A thing in a row of things: ``kind`` is its class and its shape, ``label`` its words; ``mark`` sets it apart.

    ``kind`` is correct, failed, no_answer, ungraded or missing; each has a shape of its own.
    """

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


def outcome_strip(cells: Sequence[StripCell], title: str) -> Markup:
    """Outcomes in a row, each told by its shape as well as its colour; a marked one has a bar below."""
    inside = "".join(_strip_cell(place * _CELL, cell) for place, cell in enumerate(cells))
    return _svg("strip", title, inside, max(1, len(cells)) * _CELL, _CELL + 4)


def _strip_cell(x: int, cell: StripCell) -> str:
    shape = _SHAPES.get(cell.kind)
    inside = f'<rect x="1" y="1" width="14" height="14"/><path d="{shape}"/>' if shape else '<path d="M7 8H9"/>'
    bar = '<rect class="flip" x="1" y="16.5" width="14" height="3"/>' if cell.mark else ""
    kind = escape(cell.kind)
    return f'<g class="{kind}" transform="translate({x})"><title>{escape(cell.label)}</title>{inside}{bar}</g>'


class _Frame(NamedTuple):
    """Where values lie in the drawing."""

    points: int
    scale: ChartScale
    width: int
    height: int

    def x(self, place: int) -> float:
        return _EDGE + (place + 0.5) * (self.width - 2 * _EDGE) / max(1, self.points)

    def y(self, value: float) -> float:
        span = self.scale.top - self.scale.bottom or 1.0
        share = max(0.0, min(1.0, (value - self.scale.bottom) / span))
        return self.height - _EDGE - share * (self.height - 2 * _EDGE)

    def limit_line(self) -> str:
        if self.scale.limit is None:
            return ""
        y = self.y(self.scale.limit)
        return f'<line class="limit" x1="0" x2="{self.width}" y1="{y:.1f}" y2="{y:.1f}"/>'

    def band(self, run: Sequence[tuple[int, TrendPoint]]) -> str:
        upper = [f"{self.x(place):.1f},{self.y(point.high or 0):.1f}" for place, point in run]
        lower = [f"{self.x(place):.1f},{self.y(point.low or 0):.1f}" for place, point in reversed(run)]
        return f'<polygon class="band" points="{" ".join(upper + lower)}"/>'

    def line(self, run: Sequence[tuple[int, TrendPoint]]) -> str:
        places = " ".join(f"{self.x(place):.1f},{self.y(point.value or 0):.1f}" for place, point in run)
        return f'<polyline class="line" points="{places}"/>'

    def dot(self, place: int, point: TrendPoint) -> str:
        kind, radius = ("dot marked", 4) if point.mark else ("dot", 2)
        at = f'cx="{self.x(place):.1f}" cy="{self.y(point.value or 0):.1f}"'
        return f'<circle class="{kind}" {at} r="{radius}"><title>{escape(point.label)}</title></circle>'

    def bar(self, place: int, point: TrendPoint) -> str:
        step = (self.width - 2 * _EDGE) / max(1, self.points)
        top, foot = self.y(point.value or 0), self.height - _EDGE
        kind = "bar marked" if point.mark else "bar"
        size = f'width="{max(1.0, step - 2):.1f}" height="{max(1.0, foot - top):.1f}"'
        x = self.x(place)
        whisker = ""
        if point.low is not None and point.high is not None:
            ends = f'y1="{self.y(point.low):.1f}" y2="{self.y(point.high):.1f}"'
            whisker = f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
        at, label = f'x="{x - step / 2 + 1:.1f}" y="{top:.1f}"', escape(point.label)
        return f'<rect class="{kind}" {at} {size}><title>{label}</title></rect>{whisker}'


def _runs(points: Sequence[TrendPoint]) -> list[list[tuple[int, TrendPoint]]]:
    """The points without gaps between them, each with its place."""
    placed = groupby(enumerate(points), key=lambda one: one[1].value is not None)
    return [list(run) for is_known, run in placed if is_known]


def _svg(kind: str, title: str, inside: str, width: int, height: int) -> Markup:
    head = f'<svg class="{kind}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    # Numbers, fixed words and escaped labels are in here.
    return Markup(f"{head}<title>{escape(title)}</title>{inside}</svg>")  # noqa: S704 - see the line above
