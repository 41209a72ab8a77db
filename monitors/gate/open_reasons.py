"""Reasons that leave a verdict open, and what is only said: outage, coverage, balance, flaky cases, blind spots."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.gate.sight import blind_spots, drop_words, limit_words, that_matters
from monitors.gate.weighing import Weighing
from monitors.records.base import Severity
from monitors.records.grades import Assessment
from monitors.records.runs import Coverage, ReasonKind, VerdictReason


def outage(run: Weighing) -> list[VerdictReason]:
    """The app was down."""
    if run.outage is None:
        return []
    return [VerdictReason(kind=ReasonKind.DEPLOY, text=f"the app did not serve: {run.outage}")]


def coverage(run: Weighing) -> list[VerdictReason]:
    """A run that was stopped, or could tell too little, of all cases or of the severe ones."""
    reasons: list[VerdictReason] = []
    if run.interrupted:
        text = f"the run was stopped: {len(run.assessments)} of {run.coverage.asked} cases were asked"
        reasons.append(VerdictReason(kind=ReasonKind.COVERAGE, text=text))
    told, asked, floor = run.coverage.told, run.coverage.asked, run.coverage.floor
    untold = [a for a in run.assessments if a.case_id not in run.told]
    if told < floor * asked or told == 0:
        reasons.append(_too_little(told, asked, "cases", untold, run.coverage))
    severe = [a for a in run.assessments if a.case_severity is Severity.PAGE]
    seen = sum(a.case_id in run.told for a in severe)
    if seen < floor * len(severe):
        blind = [a for a in untold if a.case_severity is Severity.PAGE]
        reasons.append(_too_little(seen, len(severe), "severity-3 cases", blind, run.coverage))
    return reasons


def _too_little(told: int, asked: int, what: str, untold: Sequence[Assessment], floor: Coverage) -> VerdictReason:
    text = f"only {told} of {asked} {what} could be told; {floor.floor:.0%} are needed"
    return VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(a.case_id for a in untold))


def unrated(run: Weighing) -> list[VerdictReason]:
    """An average rating was asked for, and there is none: that is no pass."""
    if run.ratings or not run.settings.rating_needed:
        return []
    text = f"no report was rated, so whether their average reaches {run.settings.min_rubric:g} cannot be told"
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)]


def balance(run: Weighing) -> list[VerdictReason]:
    """What the suite lacks; with `strict`, that decides."""
    strict = run.settings.strict
    return [VerdictReason(kind=ReasonKind.BALANCE, text=text, decisive=strict) for text in run.balance.shortfalls]


def flaky(run: Weighing) -> list[VerdictReason]:
    """Which cases were right only sometimes."""
    if not run.flaky:
        return []
    cases = "case is" if len(run.flaky) == 1 else "cases are"
    first = f"the first {run.flaky[0].words}" if len(run.flaky) > 1 else run.flaky[0].words
    text = f"{len(run.flaky)} {cases} flaky ({first}): counted as lost, and no one of them decides alone"
    ids = tuple(one.case_id for one in run.flaky)
    return [VerdictReason(kind=ReasonKind.FLAKY, text=text, case_ids=ids, decisive=False)]


def sight(run: Weighing) -> list[VerdictReason]:
    """The regressions that matter and that a comparison of this size would have missed, one line by severity."""
    return [
        VerdictReason(
            kind=ReasonKind.BLIND_SPOT,
            text=(
                f"severity {severity.value}: a loss of {_percent(that_matters(severity, run.settings))} matters; "
                f"over {spot.pairs:,} cases a comparison sees {drop_words(spot)}; {limit_words(spot)}"
            ),
            decisive=False,
        )
        for severity, spot in blind_spots(run.sights, run.settings).items()
    ]


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
