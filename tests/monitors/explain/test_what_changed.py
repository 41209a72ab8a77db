"""Tests of the differences between a run and the last accepted run.

Recorded facts are listed by side (application or Lookout). Changed behaviour is listed only if it is significant.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.explain.what_changed import find_run_changes
from monitors.records.grades import JudgeLineage
from monitors.records.snapshots import AnswerMark, ChangeKind, RunSnapshot
from monitors.reports.figures import BOTH_SIDES, OUR_SIDE, format_changes_since_last_pass
from tests.builders import NOON
from tests.monitors.reports.example_run import example_run

REPORT = example_run(correct=1).report
SUITE, OTHER_SUITE = "3f" * 32, "9a" * 32
JUDGE = JudgeLineage(model="judge-a", prompt_sha256="11" * 32, rubric_version="1")


def mark(number: int, **changes: object) -> AnswerMark:
    """Build the fingerprint of an answer about one of four documents."""
    document = f"Plan {number % 4}"
    known = {
        "case_id": f"case-{number}",
        "document": document,
        "cited": (document,),
        "text": f"words {number}",
        "figures": (f"f{number}",),
        "characters": 120 + number,
        "total_ms": 400 + number,
    }
    return AnswerMark.model_validate(known | changes)


def marks(count: int = 40, **changes: object) -> tuple[AnswerMark, ...]:
    return tuple(mark(number, **changes) for number in range(count))


def run_snapshot(**changes: object) -> RunSnapshot:
    """Build the snapshot of a run in which every fact is known."""
    known = {
        "commit": "aaa",
        "versions": {"x-app-version": {"1.4.2": 40}},
        "models": {"small-1": 40},
        "fingerprints": {"fp_44": 40},
        "pages": 40,
        "titles": {"Chat": 40},
        "frameworks": {"Gradio 6.31.0": 40},
        "bundles": {"app-1.js": 40, "app-1.css": 40},
        "shells": {"abcd": 40},
        "documents": {f"Plan {n}": 10 for n in range(4)},
        "document_versions": {"Plan 0": {"v1": 10}, "Plan 1": {"v1": 10}},
        "answers": marks(),
        "suite_sha256": SUITE,
        "cases": 40,
        "graders": {"factual": "3", "language": "1"},
        "settings": {"gate": "1", "probe": "2", "graders": "3"},
        "judges": (JUDGE,),
        "concurrency": 4,
        "browser": "Chromium 155",
        "lookout": "0.1.0",
    }
    return RunSnapshot.model_validate(known | changes)


def changed(now: RunSnapshot, before: RunSnapshot | None = None):
    return find_run_changes(now, REPORT.model_copy(update={"snapshot": before or run_snapshot()}))


def lines(now: RunSnapshot, before: RunSnapshot | None = None) -> list[tuple[str, str]]:
    """Return the side (such as "model") and the evidence of each difference."""
    return [(str(one.kind), one.evidence) for one in changed(now, before).changes if not one.follows]


CAUSES = [
    ("application", {"commit": "bbb"}),
    ("application", {"commit": "bbb", "deployed_at": NOON}),
    ("application", {"versions": {"x-app-version": {"1.5.0": 40}}}),
    ("model", {"models": {"small-2": 40}}),
    ("model", {"models": {"small-1": 28, "small-2": 12}}),
    ("model", {"fingerprints": {"fp_71": 40}}),
    ("content", {"document_versions": {"Plan 0": {"v1": 10}, "Plan 1": {"v2": 10}}}),
    ("page", {"titles": {"Error": 40}}),
    ("page", {"frameworks": {"Gradio 7.0": 40}}),
    ("page", {"bundles": {"app-2.js": 40, "app-1.css": 40}}),
    ("page", {"shells": {"ef01": 40}}),
    ("suite", {"suite_sha256": OTHER_SUITE, "cases": 41}),
    ("monitor", {"graders": {"factual": "4", "language": "1"}}),
    ("monitor", {"graders": {"factual": "3"}}),
    ("limit", {"settings": {"gate": "9", "probe": "2", "graders": "3"}}),
    ("monitor", {"judges": (JUDGE.model_copy(update={"model": "judge-b"}),)}),
    ("monitor", {"browser": "Chromium 156"}),
    ("monitor", {"lookout": "0.2.0"}),
]


def test_each_recorded_fact_is_named_on_its_side_with_what_it_was(snapshot):
    """Each recorded fact that differs gives one line with the former value, under the side to which it belongs.

    No other difference is claimed.
    """
    claimed = [lines(run_snapshot(**change)) for _, change in CAUSES]
    assert [[side for side, _ in one] for one in claimed] == [[side] for side, _ in CAUSES]
    assert [text for ((_, text),) in claimed] == snapshot


def about(plan: int, **changes: object) -> tuple[AnswerMark, ...]:
    """Build 40 answers. ``changes`` are applied only to the answers about the document ``plan``."""
    return tuple(mark(n, **(changes if n % 4 == plan else {})) for n in range(40))


REWORDED = tuple(mark(n, text=f"reworded {n}") for n in range(40))
"""The answers of an application that rewords every answer and changes no figure."""
BEHAVIOUR = [
    ("content", about(1, text="other", figures=("other",))),
    (
        "content",
        tuple(mark(n, text=f"reworded {n}", **({"figures": ("other",)} if n % 4 == 1 else {})) for n in range(40)),
    ),
    ("model", tuple(mark(n, text=f"reworded {n}", refused=n % 3 == 0) for n in range(40))),
    ("application", tuple(mark(n, total_ms=1400 + n) for n in range(40))),
    ("application", tuple(mark(n, text=f"reworded {n}", characters=300 + n) for n in range(40))),
    ("application", tuple(mark(n, text=f"reworded {n}", cited=()) for n in range(40))),
]


def test_behaviour_is_named_beyond_chance(snapshot):
    """A change of behaviour is claimed only if it is significant, even if no recorded fact differs.

    The line states the former and the new figure.
    """
    claimed = [lines(run_snapshot(answers=answers)) for _, answers in BEHAVIOUR]
    assert [[side for side, _ in one] for one in claimed] == [[side] for side, _ in BEHAVIOUR]
    assert [text for ((_, text),) in claimed] == snapshot


GONE = tuple(mark(n, **({"refused": True, "cited": (), "text": "no"} if n % 4 == 1 else {})) for n in range(40))


def test_a_document_that_is_gone_is_one_change_with_all_that_it_brings(snapshot):
    """The removal of a document is reported as one change.

    Answers about the document then refuse and cite nothing. This consequence is not reported as a second change.
    """
    ((side, text),) = lines(run_snapshot(answers=GONE, documents={f"Plan {n}": 10 for n in (0, 2, 3)}))
    assert side == "content"
    assert text == snapshot


QUIET = [
    {"answers": REWORDED},
    {
        "answers": tuple(
            mark(n, text=f"reworded {n}", figures=(f"f{n}", "2")[: 1 + (n % 4 == 1)]) for n in range(40)
        )
    },
    {"answers": tuple(mark(n, total_ms=520 + n) for n in range(40))},
    {"answers": tuple(mark(n, refused=n < 4) for n in range(40))},
    {"answers": tuple(mark(n, text="other", figures=("other",)) for n in range(2)) + marks()[2:]},
    {"models": {"small-1": 39, "small-2": 1}},
    {"fingerprints": {f"fp_{n}": 1 for n in range(40)}},
    {"bundles": {"app-1.js": 40, "app-1.css": 40, "chunk-77.js": 3}},
    {"commit": None, "models": {}, "document_versions": {}, "browser": None, "judges": (), "titles": {}},
]


@pytest.mark.parametrize("change", QUIET)
def test_changes_within_chance_or_unknown_are_not_claimed(change):
    """Rewordings, a slow hour, stray values, ids, lazily loaded scripts and missing values are not reported."""
    assert lines(run_snapshot(**change)) == []


def test_latency_at_another_concurrency_is_not_the_applications(snapshot):
    """A different latency is not attributed to the application if the concurrency differs.

    The same application takes longer if more questions are asked at the same time.
    """
    slow = tuple(mark(n, total_ms=1400 + n) for n in range(40))
    ((side, text),) = lines(run_snapshot(answers=slow, concurrency=8))
    assert side == "unknown"
    assert text == snapshot


def test_behaviour_beside_a_recorded_change_is_what_followed(snapshot):
    """A change of behaviour next to a recorded change is described as a consequence of the recorded change.

    For example, if a new model refuses more often, the refusals are attributed to the new model.
    """
    refusing = tuple(mark(n, refused=n % 2 == 0) for n in range(40))
    found = changed(run_snapshot(models={"small-2": 40}, answers=refusing))
    assert [(one.kind, one.follows) for one in found.changes] == [
        (ChangeKind.MODEL, False),
        (ChangeKind.MODEL, True),
    ]
    assert format_changes_since_last_pass(found) == snapshot


def test_answers_to_another_suite_or_read_by_another_lookout_are_not_compared():
    """Answers are not compared if the suite, Lookout's version or Lookout's settings differ.

    In another suite, the same case id may belong to another question.
    """
    other = about(1, text="other", figures=("other",))
    for change in (
        {"suite_sha256": OTHER_SUITE},
        {"lookout": "0.2.0"},
        {"settings": {"graders": "9", "probe": "2"}},
    ):
        assert all(side in ("suite", "monitor") for side, _ in lines(run_snapshot(answers=other, **change)))


def test_a_change_of_ours_is_said_to_be_ours_and_beside_one_of_the_apps_neither_is_the_cause(snapshot):
    """A change on Lookout's side, such as a stricter grader, is described as Lookout's.

    If the application changed too, neither change is described as the cause.
    """
    ours = run_snapshot(graders={"factual": "4", "language": "1"})
    assert format_changes_since_last_pass(changed(ours))[0] == OUR_SIDE
    both = changed(ours.model_copy(update={"commit": "bbb"}))
    assert both.has_changes_on_both_sides
    assert {one.kind for one in both.changes} == {ChangeKind.MONITOR, ChangeKind.APPLICATION}
    assert format_changes_since_last_pass(both)[0] == BOTH_SIDES
    assert format_changes_since_last_pass(both) == snapshot


def test_without_an_earlier_pass_or_its_snapshot_the_reason_is_given(snapshot):
    """Without an earlier PASS, or without its snapshot, the report says why there is no comparison."""
    assert [
        format_changes_since_last_pass(found)
        for found in (find_run_changes(run_snapshot(), None), changed(run_snapshot()))
    ] == snapshot
    old = find_run_changes(run_snapshot(), REPORT.model_copy(update={"snapshot": None}))
    assert (old.since_run_id, bool(old.missing)) == (REPORT.run_id, True)


def test_cases_of_only_one_run_are_named_as_not_compared():
    """A fact that only one of the two runs recorded is named as not compared.

    For example, if one run does not know its model, the model does not count as unchanged.
    """
    assert changed(run_snapshot(models={}, commit=None)).not_known == ("deploy", "model")


VALUES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), max_size=4)
SNAPSHOTS = st.builds(
    lambda models, prints, titles, bundles, documents, refused, slow: run_snapshot(
        models=models,
        fingerprints=prints,
        titles=titles,
        bundles=bundles,
        documents=documents,
        answers=tuple(mark(n, refused=n in refused, total_ms=slow + n) for n in range(20)),
    ),
    *[VALUES] * 5,
    st.sets(st.integers(0, 19)),
    st.integers(0, 5000),
)


@given(SNAPSHOTS)
def test_a_run_compared_with_itself_says_nothing(one):
    """A comparison of a run with itself finds no changes, whatever facts the run recorded."""
    assert changed(one, one).changes == ()


@given(SNAPSHOTS, SNAPSHOTS, st.randoms(use_true_random=False))
def test_the_order_in_which_things_were_recorded_does_not_matter(before, now, chance):
    """The order in which facts were recorded does not matter.

    Values and answers in another order give the same lines.
    """

    def shuffled(one: RunSnapshot) -> RunSnapshot:
        update: dict[str, object] = {}
        for name in ("models", "fingerprints", "titles", "documents"):
            items = list(getattr(one, name).items())
            chance.shuffle(items)
            update[name] = dict(items)
        answers = list(one.answers)
        chance.shuffle(answers)
        return one.model_copy(update={**update, "answers": tuple(answers)})

    assert changed(shuffled(now), shuffled(before)) == changed(now, before)
