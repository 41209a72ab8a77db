"""Measures whether Lookout reads facts in clauses of health policies and durations in Hinglish requests.

Each row has one labelled fact.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from monitors.facts.quantities.scan import read_facts
from tests.accuracy.figure import Measured, TellingError, build_share
from tests.accuracy.lessons import add_lessons
from tests.accuracy.rows import read_rows
from tests.accuracy.values import match_facts

NAME = "quantities/clauses"


def measure(data: Path) -> Measured:
    """Measure recall. Precision is not measured, because a clause states more facts than the labelled one."""
    figures, errors = [], []
    clauses = list(read_rows(data / "quantities" / "policy_clauses.jsonl"))
    for label, rows, target, baseline in (
        ("policy clauses, value found", clauses, 0.95, None),
        ("policy clauses, said in digits", [row for row in clauses if row["literal"]], None, 1.00),
        ("policy clauses, said another way", [row for row in clauses if not row["literal"]], None, 0.02),
        ("Hinglish durations", list(read_rows(data / "quantities" / "hinglish_durations.jsonl")), None, 0.82),
    ):
        hits = [_is_found(row) for row in rows]
        figures.append(build_share(NAME, label, sum(hits), len(rows), target=target, baseline=baseline))
        if target is None:
            missed = [row for row, hit in zip(rows, hits, strict=True) if not hit]
            errors += [TellingError(NAME, row["id"], f"{label}: missed", "") for row in missed]
    return Measured(tuple(figures), add_lessons(errors, 5), (_list_kinds(clauses),))


def _is_found(row: dict[str, Any]) -> bool:
    facts = [fact for fact in read_facts(row["text"]) if fact.kind.value == row["kind"]]
    return not match_facts(facts, row["expected"])[2]


def _list_kinds(rows: list[dict[str, Any]]) -> str:
    counted = Counter(row["kind"] for row in rows)
    kinds = ", ".join(f"{kind} {count}" for kind, count in counted.most_common())
    return f"The number of policy clauses of each kind: {kinds}."
