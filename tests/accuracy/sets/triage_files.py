"""Compares the files that a fix changed with the files that agents and simple methods report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from monitors.facts.source_files import FileAgreement, compute_agreement, to_canonical_path
from monitors.graders.base import TriageSettings
from tests.accuracy.figure import Figure, Measured, build_share
from tests.accuracy.rows import read_rows

NAME = "triage/issues"
PUBLISHED = {
    "first file": (0.772, 0.772, 0.772),
    "all its files": (0.303, 0.946, 0.429),
    "every known file": (0.029, 1.0, 0.053),
    "known files whose name stands in the issue": (0.140, 0.275, 0.160),
}
"""Precision, recall and F1 from the set's own notes. The measured scores must be the same."""
NEAR = 0.0015
"""Maximum difference between a measured and a published score.

It is half a unit of the last published digit, plus the rounding error of both scores.
"""


def measure(data: Path) -> Measured:
    """Measure the published baselines again, as scores and as shares of replies that pass."""
    rows = list(read_rows(data / "triage" / "issues.jsonl"))
    repository_files: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        repository_files[row["repository"]] |= {
            to_canonical_path(path) for path in (*row["gold_files"], *row["baseline_files"])
        }
    lists: dict[str, list[FileAgreement]] = {what: [] for what in PUBLISHED}
    for row in rows:
        every, issue = sorted(repository_files[row["repository"]]), f"{row['issue_title']}\n{row['issue_body']}"
        named: dict[str, Iterable[str]] = {
            "first file": row["baseline_files"][:1],
            "all its files": row["baseline_files"],
            "every known file": every,
            "known files whose name stands in the issue": [p for p in every if PurePosixPath(p).name in issue],
        }
        for what, paths in named.items():
            lists[what].append(compute_agreement(paths, row["gold_files"]))
    return Measured(tuple(figure for what, overlaps in lists.items() for figure in _build_figures(what, overlaps)))


def _build_figures(what: str, overlaps: list[FileAgreement]) -> Iterable[Figure]:
    count = len(overlaps)
    means = (
        sum(overlap.precision for overlap in overlaps) / count,
        sum(overlap.recall for overlap in overlaps) / count,
        sum(overlap.f1 for overlap in overlaps) / count,
    )
    for name, value, published in zip(("precision", "recall", "F1"), means, PUBLISHED[what], strict=True):
        off = abs(value - published)
        yield Figure(NAME, f"{what}: {name}, published {published:.3f}", value, value, value, count)
        yield Figure(NAME, f"{what}: {name}, distance", off, off, off, count, NEAR, at_most=True)
    passed = sum(overlap.f1 >= TriageSettings().min_files_f1 for overlap in overlaps)
    limit = 0.05 if what == "every known file" else None
    yield build_share(NAME, f"{what}: passes the grader", passed, count, target=limit, at_most=limit is not None)
