"""The page that compares two runs: changed results, whether chance can explain them, and other differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRequest, Paging, build_not_found_error
from monitors.explain.what_changed import find_run_changes
from monitors.gate.compare import Pair, compute_cluster_p_value, compute_p_value, find_change_direction
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import get_relevant_drop
from monitors.records.base import Record, Severity
from monitors.records.comparisons import Direction
from monitors.records.grades import JudgeLineage
from monitors.stats.paired import ALPHA, compute_min_detectable_breaks, compute_min_detectable_drop
from warehouse.queries.site.compared import (
    FlippedAnswer,
    PairCounts,
    RunSide,
    find_last_completed_run_id,
    find_previous_run_of_same_suite,
    load_case_pairs,
    load_flips_page,
    load_run_to_compare,
)

FLIP_DIRECTIONS: Final = ("broke", "fixed")
TOO_FEW: Final = "too few pairs for a result"
MIN_SHOWN_CHANCE: Final = 1e-6


class DifferenceRow(Record):
    """A condition of the two compared runs, such as the commit.

    ``differs`` is ``None`` if a run did not record the condition.
    """

    what: str
    before: str
    now: str
    differs: bool | None


class PairSums(Record):
    """The numbers of compared, broken and fixed cases of one severity. A severity of ``None`` means all severities.

    ``p_value`` is from McNemar's exact test. ``smallest_drop`` is the smallest share of broken cases that a
    comparison detects with 80 % power. ``smallest_drop`` is ``None`` if no share can be detected.
    """

    severity: Severity | None
    pairs: int
    broke: int
    fixed: int
    p_value: float
    smallest_drop: float | None
    says: str


class CompareData(Record):
    """The comparison of two runs. ``before`` or ``now`` is ``None`` if fewer than two runs exist.

    ``recorded`` lists the recorded conditions that differ. ``recorded`` is ``None`` if the conditions of one run
    were not recorded.
    """

    before: RunSide | None
    now: RunSide | None
    differences: tuple[DifferenceRow, ...] = ()
    recorded: tuple[str, ...] | None = None
    sums: tuple[PairSums, ...] = ()
    cluster_p_value: float | None = None
    left_out: PairCounts | None = None
    warnings: tuple[str, ...] = ()
    flips: tuple[FlippedAnswer, ...] = ()
    paging: Paging = Paging()


REPORTED_FIELDS: Final = ("paths", "versions", "weights_version")
"""Fields of a compared run that contain free text from the application or the configuration. They are masked."""


def build_compare_page(request: PageRequest) -> Page:
    """Build the page that compares the run ``now`` with the run ``before``.

    The defaults are the two newest runs.
    """
    paging, store = request.read_paging(), request.site.store
    asked_before, asked_now = (
        request.read_and_show_text_filter("before", "Run before"),
        request.read_and_show_text_filter("now", "Run now"),
    )
    way = request.read_and_show_choice_filter("way", "Flips", FLIP_DIRECTIONS)
    now_id = asked_now or find_last_completed_run_id(store, None, None)
    before_id = asked_before or (find_previous_run_of_same_suite(store, now_id) if now_id else None)
    for place, run_id in enumerate((before_id, now_id)):
        request.fields[place] = request.fields[place].with_value(run_id)
    now, before = _load_run_side(request, now_id), _load_run_side(request, before_id)
    if now is None or before is None:
        return Page("compare.html.j2", "Two runs compared", CompareData(before=before, now=now))
    pairs, left_out = load_case_pairs(store, before.run_id, now.run_id)
    flips, total = load_flips_page(
        store,
        before.run_id,
        now.run_id,
        broke=way == "broke" if way else None,
        rows=paging.rows,
        offset=paging.offset,
    )
    compared = tuple(
        Pair(pair.case_id, pair.severity, pair.cluster or ("", pair.case_id), pair.before, pair.now)
        for pair in pairs
    )
    mask = request.build_redactor(now.target)
    data = CompareData(
        before=mask_fields(before, mask, *REPORTED_FIELDS),
        now=mask_fields(now, mask, *REPORTED_FIELDS),
        differences=tuple(mask_fields(row, mask, "before", "now") for row in _iterate_differences(before, now)),
        recorded=_find_recorded_changes(request, before, now),
        sums=tuple(_summarize_pairs(compared, request.site.config.gate)),
        cluster_p_value=compute_cluster_p_value(compared),
        left_out=left_out,
        warnings=tuple(_iterate_comparison_warnings(before, now)),
        flips=tuple(
            mask_fields(flip, mask, "before_answer", "before_reason", "now_answer", "now_reason") for flip in flips
        ),
        paging=paging.with_total(total),
    )
    return Page("compare.html.j2", "Two runs compared", data)


def _load_run_side(request: PageRequest, run_id: str | None) -> RunSide | None:
    if run_id is None:
        return None
    side = load_run_to_compare(request.site.store, run_id)
    if side is None:
        raise build_not_found_error(f"Run {run_id[:80]} is not in the warehouse. The page Runs lists all runs.")
    return side


def _summarize_pairs(pairs: Sequence[Pair], gate: GateSettings) -> Iterator[PairSums]:
    """Yield the counts of all cases, then the counts of each severity, highest first."""
    yield _summarize_group(None, pairs, get_relevant_drop(Severity.MINOR, gate))
    for severity in sorted({pair.severity for pair in pairs}, reverse=True):
        same = [pair for pair in pairs if pair.severity is severity]
        yield _summarize_group(severity, same, get_relevant_drop(severity, gate))


def _summarize_group(severity: Severity | None, pairs: Sequence[Pair], matters: float) -> PairSums:
    return PairSums(
        severity=severity,
        pairs=len(pairs),
        broke=sum(pair.difference > 0 for pair in pairs),
        fixed=sum(pair.difference < 0 for pair in pairs),
        p_value=compute_p_value(pairs),
        smallest_drop=compute_min_detectable_drop(len(pairs)),
        says=format_comparison_conclusion(pairs, matters),
    )


def format_comparison_conclusion(pairs: Sequence[Pair], matters: float) -> str:
    """Format the conclusion of the comparison. ``matters`` is the smallest drop that a comparison should detect."""
    drop, chance = compute_min_detectable_drop(len(pairs)), compute_p_value(pairs)
    if drop is None:
        return (
            f"{TOO_FEW}: a result needs at least {compute_min_detectable_breaks()} broken and no fixed cases, but "
            f"there are only {len(pairs)} pairs"
        )
    if chance < ALPHA:
        way = "better" if find_change_direction(pairs) is Direction.BETTER else "worse"
        return f"{way}, more than chance explains. Chance alone causes this {_format_frequency(chance)}"
    unnoticed = f"a drop of less than {100 * drop:.1f} points can stay undetected"
    if drop > matters:
        return f"{TOO_FEW}: {unnoticed}, but a drop of {100 * matters:.0f} points matters"
    return f"no significant change, but {unnoticed}"


def _format_frequency(chance: float) -> str:
    return f"once in {1 / chance:,.0f} times" if chance > MIN_SHOWN_CHANCE else "less than once in a million times"


def _iterate_comparison_warnings(before: RunSide, now: RunSide) -> Iterator[str]:
    """Yield the reasons why a changed result may not be caused by the application."""
    if before.run_id == now.run_id:
        yield "This page compares the run with itself."
    if before.target != now.target:
        yield (
            "The runs have different targets. A flip shows a difference between the targets, not a change of one "
            "target."
        )
    if before.suite_sha256 != now.suite_sha256:
        yield "The suites differ, so only cases with the same question and the same right answer are paired."
    if before.judges and now.judges and set(before.judges) != set(now.judges):
        yield "The judges differ, so a flip may come from the judge instead of the application."
    for side, position in ((before, "earlier"), (now, "later")):
        if side.interrupted:
            yield f"The {position} run was stopped before the end."


def _iterate_differences(before: RunSide, now: RunSide) -> Iterator[DifferenceRow]:
    def row(label: str, value: Callable[[RunSide], str]) -> DifferenceRow:
        previous, current = value(before), value(now)
        differs = previous != current if previous and current else None
        return DifferenceRow(
            what=label, before=previous or "not known", now=current or "not known", differs=differs
        )

    yield row("target", lambda side: side.target)
    yield row("environment", lambda side: side.environment)
    yield row("commit", lambda side: side.commit or "")
    yield row("version of the app", lambda side: ", ".join(side.versions))
    yield row("models or paths that answered", lambda side: ", ".join(side.paths))
    yield row("suite", lambda side: f"{side.suite_name} {side.suite_sha256[:12]}")
    yield row("judges", lambda side: "; ".join(sorted(map(_format_judge, set(side.judges)))))
    yield row("severity weights", lambda side: side.weights_version)


def _find_recorded_changes(request: PageRequest, before: RunSide, now: RunSide) -> tuple[str, ...] | None:
    """Return the recorded differences in deploy, content, page, settings and behaviour.

    Returns ``None`` if one of the runs has no such record.
    """
    earlier, later = (request.site.store.find_report(side.run_id) for side in (before, now))
    if earlier is None or later is None or earlier.snapshot is None or later.snapshot is None:
        return None
    changes = find_run_changes(later.snapshot, earlier).changes
    return tuple(request.redact_text(change.evidence, now.target) for change in changes)


def _format_judge(judge: JudgeLineage) -> str:

    return f"{judge.model}, prompt {judge.prompt_sha256[:8]}, rubric {judge.rubric_version}"
