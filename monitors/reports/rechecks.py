"""Formats the results of rechecks: one line in a message, and one line per case in a report.

A recheck asks a failed case again after the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from monitors.plural import plural
from monitors.records.explanations import BuildProof, CaseRecheck, PreviousBuild, Recheck, RecheckCount

ASKED_AGAIN_LABEL: Final = "Asked again:"
"""Label in a message for the results of asking failed cases again."""
RECHECK_HEADING: Final = "Severe failed cases, asked again"
"""Heading in a report for the results of asking failed cases again."""
_MAX_CASES_NAMED: Final = 3
"""Maximum number of cases that a message lists by name. If there are more cases, the message only counts them."""
_COMMIT_CHARACTERS: Final = 12


class _Tendency(StrEnum):
    """How often a case failed when it was asked again on one build: always, sometimes or never."""

    ALWAYS_FAILS = "always_fails"
    SOMETIMES_FAILS = "sometimes_fails"
    ALWAYS_RIGHT = "always_right"
    UNKNOWN = "unknown"


_TENDENCY_WORDS: Final[dict[_Tendency, tuple[str, str]]] = {
    _Tendency.ALWAYS_FAILS: ("fails every time", "fail every time"),
    _Tendency.SOMETIMES_FAILS: ("fails sometimes", "fail sometimes"),
    _Tendency.ALWAYS_RIGHT: ("is right every time", "are right every time"),
    _Tendency.UNKNOWN: ("had no answer that could be graded", "had no answer that could be graded"),
}
"""The words for each tendency of rechecked cases: first for one case, then for several cases."""


def format_recheck(recheck: Recheck | None) -> tuple[str, ...]:
    """Return one line per rechecked case, and lines that explain why other cases were not rechecked.

    The result is empty if there was no recheck.
    """
    if recheck is None:
        return ()
    return (
        *(_format_case_recheck(case, recheck.previous) for case in recheck.cases),
        *_explain_recheck_gaps(recheck),
    )


def format_recheck_briefly(recheck: Recheck | None, case_ids: Sequence[str] | None = None) -> str:
    """Return one line about the rechecks of ``case_ids``, or of all cases.

    The result is empty if no such case was rechecked.

    If the recheck started but received no answers, the line states the reason.
    """
    cases = [case for case in recheck.cases if case_ids is None or case.case_id in case_ids] if recheck else []
    if recheck is None or not cases:
        began = recheck is not None and recheck.problem and not recheck.cases and not recheck.left_out
        return f"{ASKED_AGAIN_LABEL} no answer; {recheck.problem}." if recheck and began else ""
    here = _format_counts({case.case_id: case.here for case in cases})
    there = {case.case_id: case.previous for case in cases if case.previous and case.previous.asked}
    previous = (
        f" {_format_previous_build(recheck.previous)}: {_format_counts(there)}."
        if there and recheck.previous
        else ""
    )
    stopped = f" The other cases were not asked again: {recheck.problem}." if recheck.problem else ""
    return f"{ASKED_AGAIN_LABEL} {here}.{previous}{stopped}"


def format_recheck_count(count: RecheckCount) -> str:
    """Format in how many rechecks one case failed, or in how many it was answered correctly.

    For example: ``fails 2 of 5`` or ``right 4 of 5, 1 without an answer``.
    """
    if not count.asked:
        return "not asked"
    outcome = f"fails {count.failed:,}" if count.failed else f"right {count.right:,}"
    first = (
        f"{outcome} of {count.asked:,}" if count.failed or count.right else f"asked {plural(count.asked, 'time')}"
    )
    others = [
        f"{count.in_another_way:,} with another failure kind" if count.in_another_way else "",
        f"{count.no_answer:,} without an answer" if count.no_answer else "",
        f"{count.ungraded:,} could not be graded" if count.ungraded else "",
    ]
    return ", ".join([first, *(text for text in others if text)])


def _format_case_recheck(case: CaseRecheck, previous: PreviousBuild | None) -> str:
    there = ""
    if previous is not None and case.previous is not None and case.previous.asked:
        there = f". {_format_previous_build(previous)}: {format_recheck_count(case.previous)}"
    return f"{case.case_id} (severity {int(case.severity)}): {format_recheck_count(case.here)}{there}"


def _explain_recheck_gaps(recheck: Recheck) -> list[str]:
    """Return texts that explain why cases were not asked again."""
    remarks: list[str] = []
    if recheck.problem:
        remarks.append(
            f"{'The other cases were not asked again' if recheck.cases else 'Not asked again'}: {recheck.problem}"
        )
    elif recheck.left_out:
        cases, were = plural(recheck.left_out, "other severe case"), "was" if recheck.left_out == 1 else "were"
        remarks.append(f"{cases} failed and {were} not asked again (limit: recheck.max_questions)")
    if recheck.previous and recheck.previous.problem:
        remarks.append(f"The previous build: {recheck.previous.problem}")
    return remarks


def _format_previous_build(previous: PreviousBuild) -> str:
    """Return the beginning of a sentence: it names the build that answered, or says that this build is unknown."""
    commit = previous.commit[:_COMMIT_CHARACTERS] if previous.commit else ""
    match previous.proof:
        case BuildProof.PROVED:
            return f"On the previous build {commit}"
        case BuildProof.ANOTHER:
            expected = f", not {commit}" if commit else ""
            return f"At the address of the previous build, where {previous.names} answers{expected}"
        case BuildProof.UNPROVED:
            expected = f"expected {commit}, but " if commit else ""
            return f"At the address of the previous build ({expected}the build there does not report its commit)"


def _format_counts(counts: Mapping[str, RecheckCount]) -> str:
    """Format the recheck results of several cases. A few cases are listed by name; more cases are only counted."""
    if len({format_recheck_count(count) for count in counts.values()}) == 1 and len(counts) <= _MAX_CASES_NAMED:
        every = "each of them " if len(counts) > 1 else ""
        return every + format_recheck_count(next(iter(counts.values())))
    if len(counts) <= _MAX_CASES_NAMED:
        return ", ".join(f"{case_id} {format_recheck_count(count)}" for case_id, count in counts.items())
    tendencies = [_choose_tendency(count) for count in counts.values()]
    tally = {tendency: tendencies.count(tendency) for tendency in _Tendency}
    parts = [f"{count:,} {_TENDENCY_WORDS[tendency][count > 1]}" for tendency, count in tally.items() if count]
    times = {count.asked for count in counts.values()}
    often = f" ({plural(times.pop(), 'time')} each)" if len(times) == 1 else ""
    if len(parts) == 1:
        return f"all {len(counts):,} cases{often} {_TENDENCY_WORDS[tendencies[0]][1]}"
    return f"of {len(counts):,} cases{often} {', '.join(parts)}"


def _choose_tendency(count: RecheckCount) -> _Tendency:
    if count.failed:
        return _Tendency.SOMETIMES_FAILS if count.right else _Tendency.ALWAYS_FAILS
    return _Tendency.ALWAYS_RIGHT if count.right else _Tendency.UNKNOWN
