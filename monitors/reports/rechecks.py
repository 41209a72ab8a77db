"""What asking failed cases again came to, in words: briefly for a message, a line a case for a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from monitors.plural import plural
from monitors.records.explanations import BuildProof, CaseRecheck, PreviousBuild, Recheck, RecheckCount

ASKED_AGAIN: Final = "Asked again:"
"""What stands before what asking again came to."""
IS_IT_STILL_SO: Final = "Is it still so? Failed severe cases, asked again"
"""The heading in a report."""
_CASES_NAMED: Final = 3
"""More of them are counted by how they did; the report names each."""
_COMMIT_CHARACTERS: Final = 12


class _Tendency(StrEnum):
    """How a case did over all its askings at one place."""

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
"""Of one case, and of several."""


def format_recheck(found: Recheck | None) -> tuple[str, ...]:
    """A line a case, then what was not asked and why; none where nothing was to be asked."""
    if found is None:
        return ()
    return (*(_case_line(one, found.previous) for one in found.cases), *_remarks(found))


def format_recheck_briefly(found: Recheck | None, case_ids: Sequence[str] | None = None) -> str:
    """One line for a message about these cases, or about all, and why not all was asked.

    Empty where none of them was asked again, except where the asking began and nothing came back.
    """
    cases = [one for one in found.cases if case_ids is None or one.case_id in case_ids] if found else []
    if found is None or not cases:
        began = found is not None and found.problem and not found.cases and not found.left_out
        return f"{ASKED_AGAIN} nothing came back; {found.problem}." if found and began else ""
    here = _all_of({one.case_id: one.here for one in cases})
    there = {one.case_id: one.previous for one in cases if one.previous and one.previous.asked}
    previous = f" {_on_previous(found.previous)}: {_all_of(there)}." if there and found.previous else ""
    stopped = f" The rest was not asked again: {found.problem}." if found.problem else ""
    return f"{ASKED_AGAIN} {here}.{previous}{stopped}"


def format_count(count: RecheckCount) -> str:
    """``fails 5 of 5``, ``fails 2 of 5``, ``right 4 of 5, 1 without an answer``: never more than is known."""
    if not count.asked:
        return "not asked"
    known = f"fails {count.failed:,}" if count.failed else f"right {count.right:,}"
    first = f"{known} of {count.asked:,}" if count.failed or count.right else f"asked {count.asked:,} times"
    others = [
        f"{count.in_another_way:,} in another way than before" if count.in_another_way else "",
        f"{count.no_answer:,} without an answer" if count.no_answer else "",
        f"{count.ungraded:,} could not be graded" if count.ungraded else "",
    ]
    return ", ".join([first, *(text for text in others if text)])


def _case_line(one: CaseRecheck, previous: PreviousBuild | None) -> str:
    there = ""
    if previous is not None and one.previous is not None and one.previous.asked:
        there = f". {_on_previous(previous)}: {format_count(one.previous)}"
    return f"{one.case_id} (severity {int(one.severity)}): {format_count(one.here)}{there}"


def _remarks(found: Recheck) -> list[str]:
    """What was not asked, and why."""
    remarks: list[str] = []
    if found.problem:
        remarks.append(f"{'The rest was not asked again' if found.cases else 'Not asked again'}: {found.problem}")
    elif found.left_out:
        cases = plural(found.left_out, "more severe case")
        remarks.append(f"{cases} failed and {_were(found.left_out)} not asked again (recheck.max_questions)")
    if found.previous and found.previous.problem:
        remarks.append(f"The previous build: {found.previous.problem}")
    return remarks


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _on_previous(previous: PreviousBuild) -> str:
    """Where the answers came from, as far as it is known."""
    commit = previous.commit[:_COMMIT_CHARACTERS] if previous.commit else ""
    match previous.proof:
        case BuildProof.PROVED:
            return f"On the previous build {commit}"
        case BuildProof.ANOTHER:
            expected = f", not {commit}" if commit else ""
            return f"At the address of the previous build, where {previous.names} answers{expected}"
        case BuildProof.UNPROVED:
            known = f"{commit}; it" if commit else "of unknown commit; it"
            return f"At the address of the previous build ({known} does not name itself)"


def _all_of(counts: Mapping[str, RecheckCount]) -> str:
    """One case in figures, a few by name with theirs, more by how they did."""
    if len({format_count(count) for count in counts.values()}) == 1 and len(counts) <= _CASES_NAMED:
        every = "each of them " if len(counts) > 1 else ""
        return every + format_count(next(iter(counts.values())))
    if len(counts) <= _CASES_NAMED:
        return ", ".join(f"{case_id} {format_count(count)}" for case_id, count in counts.items())
    tendencies = [_tendency(count) for count in counts.values()]
    tally = {one: tendencies.count(one) for one in _Tendency}
    parts = [f"{count:,} {_TENDENCY_WORDS[one][count > 1]}" for one, count in tally.items() if count]
    times = {count.asked for count in counts.values()}
    often = f" ({times.pop()} times each)" if len(times) == 1 else ""
    if len(parts) == 1:
        return f"all {len(counts):,} cases{often} {_TENDENCY_WORDS[tendencies[0]][1]}"
    return f"of {len(counts):,} cases{often} {', '.join(parts)}"


def _tendency(count: RecheckCount) -> _Tendency:
    if count.failed:
        return _Tendency.SOMETIMES_FAILS if count.right else _Tendency.ALWAYS_FAILS
    return _Tendency.ALWAYS_RIGHT if count.right else _Tendency.UNKNOWN
