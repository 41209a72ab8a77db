"""Tests of cases on a platform such as LangSmith.

A case is unchanged after a round trip, and a person's edits on the platform are read.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from monitors.goldset.changes import ChangedBy, DatasetComparison, DatasetDiff, format_dataset_diff
from monitors.goldset.examples import (
    build_example_from_case,
    find_case_id,
    make_example_id,
    read_case_from_example,
    read_pushed_sha256,
)
from monitors.goldset.lines import Unusable
from monitors.platforms.platform import Example
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.triage import Issue, TriageReference, TriageTask
from tests.builders import gold_case
from tests.monitors.goldset.any_cases import any_case, any_suite
from tests.tiers import scale_examples

DATASET = "9f0c2f9e-0d39-4f5b-9c86-1f6d3f0f6f57"
PERSON = Example(id="people-1", inputs={"question": "A wig?"}, outputs={"answer": "Yes."})

LAWS = settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def stored(example: Example) -> Example:
    """Return the dataset entry as it is after a platform has stored it as JSON."""
    return Example.model_validate_json(json.dumps(example.model_dump(mode="json")))


@LAWS
@given(any_case())
def test_every_case_comes_back_as_it_went(case: GoldCase) -> None:
    example = stored(build_example_from_case(case, DATASET))
    assert read_case_from_example(example) == case
    assert find_case_id(example) == case.id


@LAWS
@given(any_case())
def test_nothing_of_a_case_is_stored_twice(case: GoldCase) -> None:
    """No part of a case is stored twice, so that an edit cannot contradict another copy."""
    example = build_example_from_case(case, DATASET)
    places = (example.inputs, example.outputs or {}, dict(example.metadata["lookout"]))
    names = [name for place in places for name in place]
    assert len(names) == len(set(names))


@LAWS
@given(any_suite())
@pytest.mark.whole_only
def test_a_suite_that_was_pushed_does_not_differ(suite: list[GoldCase]) -> None:
    comparison = DatasetComparison(suite, DATASET)
    for case in reversed(suite):
        comparison.add(stored(build_example_from_case(case, DATASET)))
    diff = comparison.build_diff()
    assert diff.is_empty
    assert diff.same == len(suite)
    assert not diff.unmarked


def test_an_issue_stands_in_the_inputs_and_its_reference_in_the_outputs() -> None:
    """On the platform, the inputs contain the issue and the outputs contain the reference."""
    task = TriageTask(
        issue=Issue(title="Lock is lost", body="Since 2.4", url="https://github.com/a/b/issues/3"),
        reference=TriageReference(relevant_files=("src/lock.py",), shortest_path=4),
    )
    example = build_example_from_case(gold_case(triage=task), DATASET)
    assert example.inputs["issue_title"] == "Lock is lost"
    assert example.outputs is not None
    assert example.outputs["reference"] == {"relevant_files": ["src/lock.py"], "shortest_path": 4}


def test_a_persons_edit_of_question_and_gold_counts() -> None:
    case = gold_case(alternatives=("two years",))
    entry = build_example_from_case(case, DATASET)
    edited = entry.model_copy(
        update={"inputs": {"question": "How long?"}, "outputs": dict(entry.outputs or {}, gold="36 months")}
    )
    assert read_case_from_example(edited) == case.model_copy(update={"turns": ("How long?",), "gold": "36 months"})


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"outputs": None}, '"gold" is missing'),
    ({"outputs": {"gold": ""}}, '"gold" "" is not valid'),
    ({"outputs": {"gold": "24 months", "severity": 3}}, "is in both outputs and metadata.lookout"),
    ({"outputs": {"gold": "24 months", "golden": True}}, 'unknown key "golden"; did you mean "gold"?'),
    ({"inputs": {"messages": [{"role": "assistant", "content": "Hi"}]}}, '"messages" cannot contain'),
    ({"inputs": {"messages": "How long?"}}, '"messages" cannot contain "How long?"'),
]


@pytest.mark.parametrize(("changes", "problem"), BROKEN)
def test_an_edit_that_makes_no_case_says_what_is_wrong(changes: dict[str, Any], problem: str) -> None:
    found = read_case_from_example(build_example_from_case(gold_case(), DATASET).model_copy(update=changes))
    assert isinstance(found, Unusable)
    assert any(problem in one for one in found.problems)
    assert found.case_id == "case-1"


def test_splits_and_other_metadata_of_people_stay_when_a_case_is_written_again() -> None:
    there = build_example_from_case(gold_case(), DATASET).model_copy(
        update={"splits": ("test", "hard"), "source_trace": "trace-1"}
    )
    there = there.model_copy(update={"metadata": {**there.metadata, "owner": "asha"}})
    again = build_example_from_case(gold_case(severity=Severity.CRITICAL), DATASET, there)
    assert (again.id, again.splits, again.source_trace) == (there.id, ("test", "hard"), "trace-1")
    assert again.metadata["owner"] == "asha"


def compared(suite: list[GoldCase], *entries: Example) -> DatasetDiff:
    comparison = DatasetComparison(suite, DATASET)
    for entry in entries:
        comparison.add(entry)
    return comparison.build_diff()


def edited_there(pushed: GoldCase, **changes: Any) -> Example:
    """Return the dataset entry of a pushed case after a person made ``changes`` on the platform."""
    entry = build_example_from_case(pushed, DATASET)
    now = build_example_from_case(pushed.model_copy(update=changes), DATASET)
    ours = dict(now.metadata["lookout"], pushed=read_pushed_sha256(entry))
    return now.model_copy(update={"metadata": {"lookout": ours}})


SIDES = [
    ({"gold": "36 months"}, {}, ChangedBy.SUITE),
    ({}, {"gold": "36 months"}, ChangedBy.DATASET),
    ({"gold": "36 months"}, {"gold": "12 months"}, ChangedBy.BOTH),
]


@pytest.mark.parametrize(("here", "there", "side"), SIDES)
def test_the_side_that_changed_a_case_since_the_last_push_is_known(
    here: dict[str, Any], there: dict[str, Any], side: ChangedBy
) -> None:
    diff = compared([gold_case(**here)], edited_there(gold_case(), **there))
    (changed,) = diff.changed
    assert changed.changed_by is side
    assert [key.key for key in changed.changes] == ["gold"]


def test_the_same_edit_on_both_sides_is_no_difference_but_wants_a_new_mark() -> None:
    diff = compared([gold_case(gold="36 months")], edited_there(gold_case(), gold="36 months"))
    assert diff.is_empty
    assert len(diff.unmarked) == 1


def test_an_entry_whose_mark_was_deleted_is_a_conflict_and_not_overwritten_in_silence() -> None:
    entry = build_example_from_case(gold_case(gold="36 months"), DATASET)
    ours = {key: value for key, value in dict(entry.metadata["lookout"]).items() if key != "pushed"}
    diff = compared([gold_case()], entry.model_copy(update={"metadata": {"lookout": ours}}))
    assert [one.changed_by for one in diff.changed] == [ChangedBy.BOTH]


def test_all_groups_are_listed_with_both_values() -> None:
    """A comparison lists each group of differing cases, with both values of a case.

    The groups are conflicts, added, removed, broken and human-made cases, and copies.
    """
    suite = [gold_case(gold="36 months"), gold_case("new")]
    other = build_example_from_case(gold_case("broken"), DATASET)
    copy = build_example_from_case(gold_case("copied"), "another dataset")
    diff = compared(
        suite,
        edited_there(gold_case(), gold="12 months"),
        build_example_from_case(gold_case("gone"), DATASET),
        other.model_copy(update={"outputs": None}),
        PERSON,
        copy,
    )
    text = "\n".join(format_dataset_diff(diff, max_entries=10))
    for line in (
        "Conflicts: changed in both since the last push (1)",
        'case-1: gold is "36 months" in the suite, "12 months" in the dataset',
        "Only in the suite (1)",
        "Only in the dataset (1)",
        "Not valid after an edit in the dataset (1)",
        "Added by people in the dataset (1)",
        f"Copies of cases in the dataset: delete them there (1)\n  {copy.id}",
    ):
        assert line in text


def test_ids_are_the_same_at_every_push_and_differ_between_datasets_and_cases() -> None:
    assert make_example_id(DATASET, "a") == make_example_id(DATASET, "a")
    assert len({make_example_id(DATASET, "a"), make_example_id(DATASET, "b"), make_example_id("other", "a")}) == 3
