"""What asking again came to, in words that somebody understands at night."""

import pytest

from monitors.records.base import Severity
from monitors.records.explanations import BuildProof, CaseRecheck, PreviousBuild, Recheck, RecheckCount
from monitors.reports.rechecks import format_count, format_recheck, format_recheck_briefly

FAILS, RIGHT = RecheckCount(asked=5, failed=5), RecheckCount(asked=5, right=5)
SOMETIMES, SILENT = RecheckCount(asked=5, failed=2, right=3), RecheckCount(asked=5, no_answer=5)
PROVED = PreviousBuild(commit="4f2a91c", proof=BuildProof.PROVED)


def rechecked(*counts, previous=(), build=PROVED, **changes):
    there = (*previous, *[None] * (len(counts) - len(previous)))
    cases = tuple(
        CaseRecheck(case_id=f"case-{place}", severity=Severity.PAGE, here=here, previous=before)
        for place, (here, before) in enumerate(zip(counts, there, strict=True))
    )
    return Recheck(cases=cases, previous=build if previous else None, **changes)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (FAILS, "fails 5 of 5"),
        (SOMETIMES, "fails 2 of 5"),
        (RIGHT, "right 5 of 5"),
        (SILENT, "asked 5 times, 5 without an answer"),
        (RecheckCount(asked=5, failed=4, no_answer=1), "fails 4 of 5, 1 without an answer"),
        (RecheckCount(asked=5, right=4, ungraded=1), "right 4 of 5, 1 could not be graded"),
        (RecheckCount(asked=5, failed=5, in_another_way=2), "fails 5 of 5, 2 in another way than before"),
        (RecheckCount(), "not asked"),
    ],
)
def test_a_count_says_no_more_than_is_known(count, text):
    """No answer and no grade are neither right nor wrong."""
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, ""),
        (rechecked(problem="away"), "Asked again: nothing came back; away."),
        (rechecked(FAILS), "Asked again: fails 5 of 5."),
        (
            rechecked(FAILS, previous=[RIGHT]),
            "Asked again: fails 5 of 5. On the previous build 4f2a91c: right 5 of 5.",
        ),
        (rechecked(FAILS, FAILS), "Asked again: each of them fails 5 of 5."),
        (rechecked(FAILS, RIGHT), "Asked again: case-0 fails 5 of 5, case-1 right 5 of 5."),
        (
            rechecked(FAILS, FAILS, SOMETIMES, RIGHT, SILENT),
            (
                "Asked again: of 5 cases (5 times each) 2 fail every time, 1 fails sometimes, 1 is right every time, "
                "1 had no answer that could be graded."
            ),
        ),
        (rechecked(FAILS, FAILS, FAILS, FAILS), "Asked again: all 4 cases (5 times each) fail every time."),
        (
            rechecked(FAILS, previous=[RIGHT], build=PreviousBuild()),
            (
                "Asked again: fails 5 of 5. At the address of the previous build (of unknown commit; it does not "
                "name itself): right 5 of 5."
            ),
        ),
    ],
)
def test_a_message_has_one_line(found, line):
    """One case in figures, a few by name, more by how they did; nothing where nothing was asked."""
    assert format_recheck_briefly(found) == line


def test_a_message_speaks_of_its_own_cases_alone():
    """The line is about the cases that the message shows."""
    found = rechecked(FAILS, RIGHT)
    assert format_recheck_briefly(found, ["case-1", "elsewhere"]) == "Asked again: right 5 of 5."
    assert format_recheck_briefly(found, []) == ""


def test_what_was_not_asked_is_said_with_the_reason():
    """A report has a line a case, then what is missing."""
    previous = PreviousBuild(problem="no accepted run names a commit")
    found = rechecked(FAILS, left_out=2).model_copy(update={"previous": previous})
    assert format_recheck(found) == (
        "case-0 (severity 3): fails 5 of 5",
        "2 more severe cases failed and were not asked again (recheck.max_questions)",
        "The previous build: no accepted run names a commit",
    )
    assert format_recheck(rechecked(problem="away")) == ("Not asked again: away",)
    assert format_recheck(rechecked(FAILS, problem="time is up"))[-1] == "The rest was not asked again: time is up"
