"""The part of ``results.md`` that says how well the graders bite."""

from __future__ import annotations

from collections.abc import Iterator

from monitors.records.runs import RunReport
from monitors.reports.bite_rows import bite_view


def suite_bite(report: RunReport) -> Iterator[str]:
    """What the graders caught of replies that are known to be wrong."""
    view = bite_view(report)
    if view is None:
        return
    yield "## Do the graders bite?"
    yield ""
    yield view.sentence
    yield ""
    yield "| known-bad reply | tried | caught | for a judge | passed | by |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for row in view.rows:
        yield f"| {row.name} | {row.twins} | {row.caught} | {row.left} | {row.passed} | {row.graders} |"
