import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.base import Finding
from monitors.records.runs import Latency, Metric
from monitors.reports.figures import compute_axis_start, render_latency_histogram, render_metric_range
from monitors.stats.intervals import compute_percentile, compute_wilson_interval

TIMES = st.lists(st.floats(0, 10**7, allow_nan=False), min_size=1, max_size=60)


def latency(times: list[float], objective_ms: float = 4_000) -> Latency:
    return Latency(
        answered=len(times),
        p50_ms=compute_percentile(times, 0.5),
        p95_ms=compute_percentile(times, 0.95),
        objective_p50_ms=objective_ms,
    )


def metric(passed: int, total: int, target: float | None = None) -> Metric:
    low, high = compute_wilson_interval(passed, total)
    return Metric(name="m", passed=passed, total=total, low=low, high=high, target=target, met=Finding.UNGRADED)


@given(TIMES)
def test_every_answer_is_under_some_bar_and_every_line_inside(times):
    svg = ET.fromstring(str(render_latency_histogram(times, latency(times))))
    width = float(svg.get("viewBox", "").split()[2])
    for element in svg.iter():
        xs = [float(value) for name, value in element.items() if name in {"x", "x1", "x2"}]
        assert all(0 <= x <= width for x in xs)
    bars = [bar for bar in svg.iter("rect") if bar.get("class") == "bar"]
    assert 1 <= len(bars) <= len(times)
    assert max(float(bar.get("height", "0")) for bar in bars) > 100


def test_bars_are_as_high_as_they_are_many():
    svg = ET.fromstring(str(render_latency_histogram([100.0] * 4 + [3_900.0], latency([100.0]))))
    heights = [float(bar.get("height", "0")) for bar in svg.iter("rect")]
    assert heights[0] == pytest.approx(4 * heights[1], abs=0.2)


def test_the_drawing_says_in_words_what_it_shows():
    assert "p50 2.0 s" in str(render_latency_histogram([2_000.0], latency([2_000.0])))
    assert "50.0 %, from" in str(render_metric_range(metric(5, 10)))
    assert "nothing counted" in str(render_metric_range(metric(0, 0, 0.9)))


@given(st.integers(0, 50), st.integers(0, 50), st.none() | st.floats(0, 1), st.floats(0, 0.9))
def test_the_interval_holds_its_dot(passed, missed, target, floor):
    svg = ET.fromstring(str(render_metric_range(metric(passed, passed + missed, target), floor)))
    dots = [float(dot.get("cx", "")) for dot in svg.iter("circle")]
    bands = [(float(b.get("x", "")), float(b.get("width", ""))) for b in svg.iter("rect")]
    assert all(x - 0.2 <= dot <= x + max(width, 1) + 0.2 for dot, (x, width) in zip(dots, bands, strict=True))


def test_one_axis_for_all_metrics():
    assert compute_axis_start([metric(9, 10, 0.95), metric(98, 100, 0.3)]) == pytest.approx(0.3)
    assert compute_axis_start([]) == 0.0
