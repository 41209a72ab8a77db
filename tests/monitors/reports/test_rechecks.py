"""Test that the result of a recheck is described in words that an on-call engineer understands at night."""

import pytest

from monitors.records.base import Severity
from monitors.records.explanations import BuildProof, CaseRecheck, PreviousBuild, Recheck, RecheckCount
from monitors.reports.rechecks import format_recheck, format_recheck_briefly, format_recheck_count

FAILS, RIGHT = RecheckCount(asked=5, failed=5), RecheckCount(asked=5, right=5)
SOMETIMES, SILENT = RecheckCount(asked=5, failed=2, right=3), RecheckCount(asked=5, no_answer=5)
PROVED = PreviousBuild(commit="4f2a91c", proof=BuildProof.PROVED)


def rechecked(*counts, previous=(), build=PROVED, **changes):
    there = (*previous, *[None] * (len(counts) - len(previous)))
    cases = tuple(
        CaseRecheck(case_id=f"case-{place}", severity=Severity.CRITICAL, here=here, previous=before)
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
        (RecheckCount(asked=5, failed=5, in_another_way=2), "fails 5 of 5, 2 with another failure kind"),
        (RecheckCount(), "not asked"),
    ],
)
def test_a_count_says_no_more_than_is_known(count, text):
    """In the counts of a recheck, an answer that is missing or has no grade counts as neither right nor wrong."""
    assert format_recheck_count(count) == text


@pytest.mark.parametrize(
    "found",
    [
        rechecked(problem="away"),
        rechecked(FAILS),
        rechecked(FAILS, previous=[RIGHT]),
        rechecked(FAILS, FAILS),
        rechecked(FAILS, RIGHT),
        rechecked(FAILS, FAILS, SOMETIMES, RIGHT, SILENT),
        rechecked(FAILS, FAILS, FAILS, FAILS),
        rechecked(FAILS, previous=[RIGHT], build=PreviousBuild()),
    ],
    ids=["problem", "one", "previous build", "same", "two", "five", "four the same", "unknown build"],
)
def test_a_message_has_one_line(found, snapshot):
    """A message has one line about rechecks: figures for one case, names for a few cases, counts for more."""
    line = format_recheck_briefly(found)
    assert line.count("\n") == 0
    assert line == snapshot


def test_a_message_says_nothing_where_nothing_was_asked_again():
    """A message has no line about rechecks if none was made."""
    assert format_recheck_briefly(None) == ""


def test_a_message_speaks_of_its_own_cases_alone():
    """The line about rechecks covers only the cases that the message shows."""
    found = rechecked(FAILS, RIGHT)
    own = found.model_copy(update={"cases": found.cases[1:]})
    assert format_recheck_briefly(found, ["case-1", "elsewhere"]) == format_recheck_briefly(own)
    assert format_recheck_briefly(found, []) == ""


def test_unasked_cases_are_reported_with_the_reason(snapshot):
    """A report has a line for each rechecked case, and then the cases that were not rechecked, with the reason."""
    previous = PreviousBuild(problem="no accepted run has a commit")
    found = rechecked(FAILS, left_out=2).model_copy(update={"previous": previous})
    texts = [format_recheck(one) for one in (found, rechecked(problem="away"), rechecked(FAILS, problem="late"))]
    assert [len(lines) for lines in texts] == [3, 1, 2]
    assert texts == snapshot
