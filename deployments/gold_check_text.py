"""The findings of ``lookout gold check`` for people: grouped by what was looked for, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitors.goldset.findings import Check, GoldFinding, Place, Weight
from monitors.records.cases import GoldCase

SHOWN = 10
"""Findings of one group that are told one by one; ``--json`` has all."""

TITLES = {
    Check.UNREADABLE: "Lines that give no case",
    Check.SEVERITY: "Cases without a severity",
    Check.DUPLICATE: "Asked twice",
    Check.CONTRADICTION: "Contradictions",
    Check.DISCLOSURE: "Personal data",
    Check.LANGUAGE: "Language",
    Check.SELF: "Gold that its own graders fail",
    Check.QUOTE: "Clauses that are not in their document",
    Check.TWINS: "Wrong answers that the graders miss",
    Check.BALANCE: "Balance",
}


def told(suite: Path, cases: Sequence[GoldCase], findings: Sequence[GoldFinding]) -> str:
    """The whole text; its last line is the conclusion."""
    lines = [f"{suite}: {len(cases)} cases", *_spread(cases)]
    for check in Check:
        group = sorted((one for one in findings if one.check is check), key=lambda one: one.weight is Weight.SHOULD)
        lines += _group(TITLES[check], group)
    must = sum(one.weight is Weight.MUST for one in findings)
    should = len(findings) - must
    lines += ["", _conclusion(must, should)]
    return "\n".join(lines)


def _spread(cases: Sequence[GoldCase]) -> Iterator[str]:
    severities = Counter(f"severity {int(case.severity)}" for case in cases)
    languages = Counter(case.language.value for case in cases)
    refusals = sum(case.expected_refusal for case in cases)
    for counts in (severities, languages):
        yield "  " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    yield f"  {refusals} expected refusals"


def _group(title: str, group: Sequence[GoldFinding]) -> Iterator[str]:
    if not group:
        return
    yield f"\n{title} ({len(group)})"
    for finding in group[:SHOWN]:
        mark = "✕" if finding.weight is Weight.MUST else "·"
        yield f"  {mark} {', '.join(map(_place, finding.places)) or 'the suite'}"
        yield f"      {finding.what}"
        yield f"      → {finding.do}"
    if len(group) > SHOWN:
        yield f"  … and {len(group) - SHOWN} more; --json lists all"


def _place(place: Place) -> str:
    return f"line {place.line} {place.case_id}" if place.case_id else f"line {place.line}"


def _conclusion(must: int, should: int) -> str:
    if not must and not should:
        return "Nothing found."
    look = f"{should} to look at" if should else ""
    mend = f"{must} must be mended" if must else "nothing must be mended"
    return "; ".join(filter(None, (mend, look))).capitalize() + "."
