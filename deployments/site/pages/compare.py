"""Two runs compared: what flipped first, whether chance explains it, and what else differs between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRequest, Paging, missing
from monitors.explain.what_changed import what_changed
from monitors.gate.compare import Pair, cluster_p_value, direction_of, p_value
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import that_matters
from monitors.records.base import Record, Severity
from monitors.records.comparisons import Direction
from monitors.records.grades import JudgeLineage
from monitors.stats.paired import ALPHA, fewest_to_notice, smallest_drop
from warehouse.queries.site.compared import (
    CasePair,
    FlippedAnswer,
    PairCounts,
    RunSide,
    flips_page,
    newest_run_of,
    pairs_of,
    run_before,
    run_side,
)

WAYS: Final = ("broke", "mended")
TOO_FEW: Final = "too few pairs to tell"
RARELY: Final = 1e-6


class DifferenceRow(Record):
    """Something that the two were run with. ``differs`` is ``None`` where one of them does not say."""

    what: str
    before: str
    now: str
    differs: bool | None


class PairSums(Record):
    """Pairs of one severity (``None``: of all), how many broke and were mended, and McNemar's exact p-value.

    ``smallest_drop`` is the share that must break to be noticed four times in five, ``None`` where none would be.
    """

    severity: Severity | None
    pairs: int
    broke: int
    mended: int
    p_value: float
    smallest_drop: float | None
    says: str


class CompareData(Record):
    """Two runs beside each other; ``None`` where there are no two.

    ``recorded`` is what of the facts recorded beside the grades differs; ``None`` where one has none.
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


SAID: Final = ("paths", "versions", "weights_version")
"""What the application, or somebody's configuration, says of a run in words of its own."""


def compare_page(request: PageRequest) -> Page:
    """The run ``now`` against the run ``before``: without these, the newest against the one before it."""
    paging, store = request.paging(), request.site.store
    asked_before, asked_now = request.text("before", "Run before"), request.text("now", "Run now")
    way = request.choice("way", "Flips", WAYS)
    now_id = asked_now or newest_run_of(store, None, None)
    before_id = asked_before or (run_before(store, now_id) if now_id else None)
    for place, run_id in enumerate((before_id, now_id)):
        request.fields[place] = request.fields[place].model_copy(update={"value": run_id or ""})
    now, before = _side(request, now_id), _side(request, before_id)
    if now is None or before is None:
        return Page("compare.html.j2", "Two runs compared", CompareData(before=before, now=now))
    pairs, left_out = pairs_of(store, before.run_id, now.run_id)
    flips, total = flips_page(
        store,
        before.run_id,
        now.run_id,
        broke=way == "broke" if way else None,
        rows=paging.rows,
        offset=paging.offset,
    )
    compared, mask = tuple(map(_pair, pairs)), request.mask(now.target)
    data = CompareData(
        before=mask_fields(before, mask, *SAID),
        now=mask_fields(now, mask, *SAID),
        differences=tuple(mask_fields(one, mask, "before", "now") for one in _differences(before, now)),
        recorded=_recorded(request, before, now),
        sums=tuple(_sums(compared, request.site.config.gate)),
        cluster_p_value=cluster_p_value(compared),
        left_out=left_out,
        warnings=tuple(_warnings(before, now)),
        flips=tuple(_masked(request, one, now.target) for one in flips),
        paging=paging.of(total),
    )
    return Page("compare.html.j2", "Two runs compared", data)


def _side(request: PageRequest, run_id: str | None) -> RunSide | None:
    if run_id is None:
        return None
    found = run_side(request.site.store, run_id)
    if found is None:
        raise missing(f"No run {run_id[:80]} is in the warehouse. The page Runs lists those there are.")
    return found


def _pair(pair: CasePair) -> Pair:
    return Pair(pair.case_id, pair.severity, pair.cluster or ("", pair.case_id), pair.before, pair.now)


def _sums(pairs: Sequence[Pair], gate: GateSettings) -> Iterator[PairSums]:
    """All together, then each severity by itself, the severest first."""
    yield _sum(None, pairs, that_matters(Severity.ANNOYING, gate))
    for severity in sorted({pair.severity for pair in pairs}, reverse=True):
        same = [pair for pair in pairs if pair.severity is severity]
        yield _sum(severity, same, that_matters(severity, gate))


def _sum(severity: Severity | None, pairs: Sequence[Pair], matters: float) -> PairSums:
    return PairSums(
        severity=severity,
        pairs=len(pairs),
        broke=sum(pair.difference > 0 for pair in pairs),
        mended=sum(pair.difference < 0 for pair in pairs),
        p_value=p_value(pairs),
        smallest_drop=smallest_drop(len(pairs)),
        says=conclusion(pairs, matters),
    )


def conclusion(pairs: Sequence[Pair], matters: float) -> str:
    """What the pairs show, and no more than that; ``matters`` is the drop that must not go unnoticed."""
    drop, chance = smallest_drop(len(pairs)), p_value(pairs)
    if drop is None:
        return f"{TOO_FEW}: {fewest_to_notice()} must break, with none mended, and there are {len(pairs)}"
    if chance < ALPHA:
        way = "better" if direction_of(pairs) is Direction.BETTER else "worse"
        return f"{way}, and not by chance: it would do this {_how_often(chance)} if nothing had changed"
    unnoticed = f"a drop below {100 * drop:.1f} points can go unnoticed"
    if drop > matters:
        return f"{TOO_FEW}: {unnoticed}, and {100 * matters:.0f} matter"
    return f"no change shown, though {unnoticed}"


def _how_often(chance: float) -> str:
    return f"once in {1 / chance:,.0f} times" if chance > RARELY else "less than once in a million times"


def _warnings(before: RunSide, now: RunSide) -> Iterator[str]:
    """Why a flip may come from something else than the application."""
    if before.run_id == now.run_id:
        yield "Both are the same run."
    if before.target != now.target:
        yield "These are two targets: a flip is a difference between them, not a change."
    if before.suite_sha256 != now.suite_sha256:
        yield "The suites differ: only cases with the same question and the same right answer in both are paired."
    if before.judges and now.judges and set(before.judges) != set(now.judges):
        yield "The judges differ: a flip may be the judge's change and not the application's."
    for side, which in ((before, "earlier"), (now, "later")):
        if side.interrupted:
            yield f"The {which} run was stopped before it was finished."


def _differences(before: RunSide, now: RunSide) -> Iterator[DifferenceRow]:
    def row(what: str, value: Callable[[RunSide], str]) -> DifferenceRow:
        was, known = value(before), value(now)
        differs = was != known if was and known else None
        return DifferenceRow(what=what, before=was or "not known", now=known or "not known", differs=differs)

    yield row("target", lambda side: side.target)
    yield row("environment", lambda side: side.environment)
    yield row("commit", lambda side: side.commit or "")
    yield row("version of the app", lambda side: ", ".join(side.versions))
    yield row("models or paths that answered", lambda side: ", ".join(side.paths))
    yield row("suite", lambda side: f"{side.suite_name} {side.suite_sha256[:12]}")
    yield row("judges", lambda side: "; ".join(sorted(map(_judge, set(side.judges)))))
    yield row("severity weights", lambda side: side.weights_version)


def _recorded(request: PageRequest, before: RunSide, now: RunSide) -> tuple[str, ...] | None:
    """Deploy, content, page, settings, behaviour: what of it is known to differ."""
    earlier, later = (request.site.store.report(side.run_id) for side in (before, now))
    if earlier is None or later is None or earlier.snapshot is None or later.snapshot is None:
        return None
    changes = what_changed(later.snapshot, earlier).changes
    return tuple(request.masked(change.evidence, now.target) for change in changes)


def _judge(judge: JudgeLineage) -> str:

    return f"{judge.model}, prompt {judge.prompt_sha256[:8]}, rubric {judge.rubric_version}"


def _masked(request: PageRequest, flip: FlippedAnswer, target: str) -> FlippedAnswer:
    names = ("before_answer", "before_reason", "now_answer", "now_reason")
    return mask_fields(flip, request.mask(target), *names)
