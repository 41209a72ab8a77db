"""The verdict, PASS, FAIL or INCONCLUSIVE, with its reasons in order of weight.

Reasons to fail come from the run itself (the veto, the weighted score, missed targets, the reports' ratings), from
the comparison with the baseline (a drop of the ratings, a significant regression), and from questions asked in
several languages (Hindi may not be far behind English). Each decides only when it still stands with any one flaky
case taken to have been right (`monitors.gate.evaluate`). Other reasons leave a verdict open or are only notes:
outage, disputed answers, coverage, balance, what is not covered, flaky cases, blind spots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean

from monitors.gate.compare import FEWEST_PAIRS, ComparisonDetail, Pair, direction_of, p_value
from monitors.gate.metrics import MeasuredMetric, weight_of
from monitors.gate.ratings import BEST, Ratings, lowest_first, without_most_dropped, without_worst
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import blind_spots, format_drop, format_limit, that_matters
from monitors.plural import plural
from monitors.records.base import Finding, Language, Severity
from monitors.records.comparisons import (
    Balance,
    Comparison,
    DetectableDrop,
    Direction,
    FlakyCase,
    ParityGap,
    RatingFall,
    RubricAverage,
    RubricChange,
)
from monitors.records.grades import Assessment, CaseOutcome, format_policy_row
from monitors.records.runs import Coverage, ReasonKind, Scores, Verdict, VerdictReason, format_metric
from monitors.stats.paired import ALPHA


@dataclass(frozen=True, slots=True)
class GateInputs:
    """A run before its verdict: one assessment for each case, and what was reckoned from all of them.

    ``graded`` are the ids of the cases that say something about the application. ``outage`` is what was said of an
    app that was down. ``disputed`` are the cases that rules pass and a judge fails. ``compared`` is ``None``
    without a baseline, ``rubric`` where no report was rated. ``unrated`` are the cases whose report should have
    been.
    """

    assessments: Sequence[Assessment]
    graded: frozenset[str]
    flaky: Sequence[FlakyCase]
    scores: Scores
    measured: Sequence[MeasuredMetric]
    parity: Sequence[ParityGap]
    coverage: Coverage
    ratings: Ratings
    rubric: RubricAverage | None
    unrated: frozenset[str]
    compared: ComparisonDetail | None
    sights: Sequence[DetectableDrop]
    balance: Balance
    outage: str | None
    disputed: tuple[str, ...]
    interrupted: bool
    settings: GateSettings

    @property
    def flaky_ids(self) -> frozenset[str]:
        """Cases that were right only sometimes."""
        return frozenset(one.case_id for one in self.flaky)

    @property
    def enough_graded(self) -> bool:
        """Whether shares over the graded cases speak for the suite."""
        return self.coverage.graded >= self.coverage.floor * self.coverage.asked

    @property
    def enough_rated(self) -> bool:
        """Whether the ratings speak for all reports that should have one."""
        return len(self.ratings) >= self.coverage.floor * (len(self.ratings) + len(self.unrated))


ENOUGH_FLAKY = 2
"""So many flaky severity-3 cases together are a veto: one may be one odd question, two are the application."""


def veto(run: GateInputs) -> list[VerdictReason]:
    """One severity-3 failure fails the run, unless its case is flaky and the only one."""
    severe = [a for a in run.assessments if a.outcome is CaseOutcome.FAILED and a.severity is Severity.PAGE]
    if not severe:
        return []
    ids = tuple(a.case_id for a in severe)
    flaky = [one for one in run.flaky if one.case_id in ids]
    if len(severe) == len(flaky) < ENOUGH_FLAKY:
        text = (
            f"1 severity-3 failure is of a flaky case ({flaky[0].text}): alone it alerts, and does not fail the run"
        )
        return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids, decisive=False)]
    some = f" ({len(flaky)} of flaky cases)" if flaky else ""
    failures = "failure fails" if len(severe) == 1 else f"failures{some} fail"
    text = f"{len(severe)} severity-3 {failures} the run whatever the score{_raised(severe)}"
    return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids)]


def _raised(severe: Sequence[Assessment]) -> str:
    """How many of them are of less severe cases, and what raised them."""
    rows = [format_policy_row(a.policy_row) for a in severe if a.case_severity is not Severity.PAGE]
    if not rows:
        return ""
    which = "it counts" if len(severe) == 1 else f"{len(rows)} of them {'counts' if len(rows) == 1 else 'count'}"
    return f"; {which} as severity 3 because {' and '.join(sorted(set(rows)))}"


def weighted(run: GateInputs) -> list[VerdictReason]:
    """The weighted score below its floor; proven when no ungraded case could have lifted it."""
    scores, floor = run.scores, run.settings.min_weighted_score
    value = scores.weighted.value
    if value is None or value >= floor:
        return []
    not_correct = [a for a in run.assessments if a.case_id in run.graded and a.outcome is not CaseOutcome.CORRECT]
    text = f"weighted score {value:.3f} ({scores.weighted.earned}/{scores.weighted.total}) is below {floor:g}"
    flaky = (a for a in not_correct if a.case_id in run.flaky_ids)
    best = _best_case(run, None)
    without_flaky = max((_best_case(run, each) for each in flaky), default=best)
    if best >= floor:
        text += f"; even with every ungraded case right it might reach {best:.3f}"
    elif without_flaky >= floor:
        text += f"; without one flaky case it would be {without_flaky:.3f}"
    ids = tuple(a.case_id for a in not_correct)
    decisive = without_flaky < floor
    return [VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text=text, case_ids=ids, decisive=decisive)]


def _best_case(run: GateInputs, spare: Assessment | None) -> float:
    """The weighted score if everything ungraded, or not asked, had been right, and ``spare`` too.

    A failure that had been right would have no more than its case's weight. Cases that were not asked have no
    severity here: they count with the weight of severity 3, in the app's favour.
    """
    weights = run.settings.weights
    ungraded = [weight_of(a.case_severity, weights) for a in run.assessments if a.case_id not in run.graded]
    unasked = weight_of(Severity.PAGE, weights) * max(0, run.coverage.asked - len(run.assessments))
    more = sum(ungraded, Decimal(0)) + unasked
    earned, total = run.scores.weighted.earned + more, run.scores.weighted.total + more
    if spare is not None:
        right = weight_of(spare.case_severity, weights)
        earned, total = earned + right, total + right - weight_of(spare.severity, weights)
    return float(earned / total)


def missed_targets(run: GateInputs) -> list[VerdictReason]:
    """Missed targets decide only when enough cases were graded."""
    return [
        VerdictReason(
            kind=ReasonKind.METRIC_TARGET,
            text=_format_missed(measured),
            case_ids=measured.missed,
            decisive=run.enough_graded and _missed_without_flaky(measured, run.flaky_ids),
        )
        for measured in run.measured
        if measured.metric.met is Finding.NO
    ]


def _format_missed(measured: MeasuredMetric) -> str:
    metric = measured.metric
    counted = f"{metric.passed / metric.total:.3f} ({metric.passed}/{metric.total})"
    return f"{format_metric(metric.name)} {counted} is below its target {metric.target:.3g}"


def _missed_without_flaky(measured: MeasuredMetric, flaky: frozenset[str]) -> bool:
    metric = measured.metric
    spare = any(case_id in flaky for case_id in measured.missed)
    return metric.target is not None and (metric.passed + spare) / metric.total < metric.target


_ROUNDING = 9
"""Averages of whole ratings: a drop of exactly 0.3 must not fail for the want of a binary digit."""


def proven_ratings(run: GateInputs) -> list[VerdictReason]:
    """An average below its floor, or one that dropped too far, where the ratings are enough to say so."""
    return [reason for reason, proven in _failing_ratings(run) if proven]


def unsure_ratings(run: GateInputs) -> list[VerdictReason]:
    """The same where it may be chance, or reports that nobody rated may hide better: no failure, and no pass."""
    return [
        reason.add_remark("these ratings do not prove it") for reason, proven in _failing_ratings(run) if not proven
    ]


def _failing_ratings(run: GateInputs) -> Iterator[tuple[VerdictReason, bool]]:
    """Each with whether it is proven: by ratings that would show such a drop, or by the whole of its interval."""
    found, floor, limit = run.rubric, run.settings.min_rubric, run.settings.max_rubric_drop
    if found is not None and round(found.mean, _ROUNDING) < floor:
        proven = _shows(found, limit) or round(found.high, _ROUNDING) < floor
        at_best = _average([*run.ratings.values(), *[float(BEST)] * len(run.unrated)])
        yield _low_rating(run, found), proven and run.enough_graded and at_best < floor
    moved = run.compared.comparison.rubric if run.compared else None
    if run.compared and moved is not None and round(-moved.change, _ROUNDING) > limit:
        proven = _shows(moved, limit) or round(moved.high, _ROUNDING) < -limit
        drop = _rating_drop(run, moved, run.compared.ratings_before)
        yield drop, proven and run.enough_graded and run.enough_rated


def _shows(found: RubricAverage | RubricChange, drop: float) -> bool:
    """Whether so many ratings show a drop as small as this."""
    return found.detectable is not None and round(found.detectable, _ROUNDING) <= drop


def _low_rating(run: GateInputs, found: RubricAverage) -> VerdictReason:
    """It decides when it does without the flaky case that was rated lowest."""
    floor = run.settings.min_rubric
    low = tuple(case_id for case_id in lowest_first(run.ratings) if run.ratings[case_id] < floor)
    interval = f"{found.mean:.2f} (95 % CI {found.low:.2f} to {found.high:.2f})"
    text = f"average rating {interval} of {plural(len(found.ratings), 'report')} is below {floor:g} of 5"
    others = without_worst(run.ratings, run.flaky_ids)
    decisive = bool(others) and _average(others.values()) < floor
    return VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=low, decisive=decisive)


def _rating_drop(run: GateInputs, moved: RubricChange, before: Ratings) -> VerdictReason:
    """It decides when it does without the flaky case that fell furthest."""
    limit = run.settings.max_rubric_drop
    others = without_most_dropped(before, run.ratings, run.flaky_ids)
    drops = [before[case_id] - rating for case_id, rating in others.items() if case_id in before]
    return VerdictReason(
        kind=ReasonKind.RUBRIC,
        text=f"{_format_moved(moved)}; a drop above {limit:g} fails; {_format_falls(moved.fell)}",
        case_ids=tuple(fall.case_id for fall in moved.fell),
        decisive=bool(drops) and _average(drops) > limit,
    )


def _average(values: Iterable[float]) -> float:
    return round(fmean(values), _ROUNDING)


_MOST_FALLS = 3


def _format_moved(moved: RubricChange) -> str:
    return (
        f"average rating {moved.before:.2f} before and {moved.now:.2f} now, on the {moved.shared} reports of both "
        f"runs: {moved.change:+.2f} (95 % CI {moved.low:+.2f} to {moved.high:+.2f})"
    )


def _format_falls(fell: Sequence[RatingFall]) -> str:
    named = (f"{fall.case_id} ({fall.before:g} to {fall.now:g})" for fall in fell[:_MOST_FALLS])
    return f"{plural(len(fell), 'report')} fell, most of all {', '.join(named)}"


def regression(run: GateInputs) -> list[VerdictReason]:
    """What broke against the baseline, when chance alone does not explain it; or why they were not compared."""
    if run.compared is None:
        return []
    comparison = run.compared.comparison
    if comparison.refused:
        return [_refused(comparison)]
    found = _significant(run.compared)
    if not found:
        return []
    left = _significant_without_flaky(run.compared, run.flaky_ids)
    text = (
        f"{'; '.join(_format_change(comparison, one) for one in found)} (against run {comparison.baseline_run_id})"
    )
    if not left:
        text += "; not so without one flaky case"
    ids = comparison.newly_failing
    decisive = run.settings.fail_on_regression and bool(left)
    return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, case_ids=ids, decisive=decisive)]


def _refused(comparison: Comparison) -> VerdictReason:
    text = f"not compared with run {comparison.baseline_run_id}: {'; '.join(comparison.refused)}"
    return VerdictReason(kind=ReasonKind.REGRESSION, text=text, decisive=False)


def _significant(compared: ComparisonDetail) -> list[Severity | None]:
    """The severities of which more broke than chance explains; ``None`` stands for all together."""
    return [one for one, pairs in _groups(compared.pairs) if _is_worse(pairs)]


def _significant_without_flaky(compared: ComparisonDetail, flaky: frozenset[str]) -> list[Severity | None]:
    """The same with one flaky case taken to have been right."""
    return [one for one, pairs in _groups(compared.pairs) if _is_worse(_without_flaky(pairs, flaky))]


def _groups(pairs: Sequence[Pair]) -> Iterator[tuple[Severity | None, Sequence[Pair]]]:
    severities = sorted({pair.severity for pair in pairs}, reverse=True)
    if len(severities) > 1:
        yield None, pairs
    for severity in severities:
        yield severity, [pair for pair in pairs if pair.severity is severity]


def _without_flaky(pairs: Sequence[Pair], flaky: frozenset[str]) -> Sequence[Pair]:
    """Without one flaky case that broke, if there is any: which one makes no difference to a count."""
    left_out = next((pair for pair in pairs if pair.case_id in flaky and pair.difference > 0), None)
    return [pair for pair in pairs if pair is not left_out]


def _is_worse(pairs: Sequence[Pair]) -> bool:
    return direction_of(pairs) is Direction.WORSE and p_value(pairs) < ALPHA


def _format_change(comparison: Comparison, severity: Severity | None) -> str:
    if severity is None:
        broken, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
        return _format_comparison("", comparison.shared, broken, fixed, comparison.p_value)
    one = next(change for change in comparison.severities if change.severity is severity)
    what = f"severity-{severity.value} "
    return _format_comparison(what, one.shared, len(one.newly_failing), len(one.newly_fixed), one.p_value)


def _format_comparison(what: str, shared: int, broken: int, fixed: int, p: float) -> str:
    p_text = "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"  # noqa: PLR2004 - smaller says no more
    failing, mended = ("fails" if broken == 1 else "fail"), ("is" if fixed == 1 else "are")
    return f"of {shared:,} shared {what}cases {broken:,} newly {failing} and {fixed:,} {mended} fixed ({p_text})"


_DECIDING = frozenset({Language.HINDI})
"""What the target is about; the gap of another language is named."""


def in_pairs(gaps: Iterable[ParityGap]) -> frozenset[Language]:
    """The languages that are compared with English over pairs: enough were graded, and a limit is set."""
    return frozenset(gap.language for gap in gaps if gap.target is not None and gap.pairs >= FEWEST_PAIRS)


def parity_missed(run: GateInputs) -> list[VerdictReason]:
    """One for each language that is further behind English than is allowed, with the cases that make the gap."""
    return [_missed(gap, run) for gap in run.parity if gap.met is Finding.NO]


def _missed(gap: ParityGap, run: GateInputs) -> VerdictReason:
    behind = _behind(gap.language, run.assessments)
    spare = 1 if run.flaky_ids & {a.case_id for a in behind} else 0
    target = gap.target or 0.0
    holds = (gap.english_only - gap.other_only - spare) / gap.pairs > target
    text = (
        f"{gap.language} is {_points(gap.gap)} behind English over {plural(gap.pairs, 'pair')} "
        f"(95 % CI {100 * gap.low:.1f} to {100 * gap.high:.1f}); at most {_points(target)} are allowed"
    )
    return VerdictReason(
        kind=ReasonKind.METRIC_TARGET,
        text=text,
        case_ids=tuple(a.case_id for a in behind),
        decisive=run.enough_graded and holds and gap.language in _DECIDING,
    )


def _behind(language: Language, assessments: Sequence[Assessment]) -> list[Assessment]:
    """The cases in ``language`` that were wrong where their English partner was right."""
    right = {a.pair for a in assessments if a.language is Language.ENGLISH and a.factual_match is Finding.YES}
    wrong = (a for a in assessments if a.language is language and a.factual_match is Finding.NO)
    return [a for a in wrong if a.pair is not None and a.pair in right]


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def outage(run: GateInputs) -> list[VerdictReason]:
    """The app was down."""
    if run.outage is None:
        return []
    return [VerdictReason(kind=ReasonKind.DEPLOY, text=run.outage)]


def disputed(run: GateInputs) -> list[VerdictReason]:
    """Answers that the rules pass and the judge fails: a person must read them."""
    if not run.disputed:
        return []
    text = f"rules and judge disagree on {plural(len(run.disputed), 'answer')}: the rules pass, the judge fails"
    return [VerdictReason(kind=ReasonKind.DISPUTED, text=text, case_ids=run.disputed)]


def coverage(run: GateInputs) -> list[VerdictReason]:
    """A run that was stopped, or graded too little, of all cases or of the severe ones."""
    reasons: list[VerdictReason] = []
    if run.interrupted:
        text = f"the run was stopped after {len(run.assessments)} of {plural(run.coverage.asked, 'case')}"
        reasons.append(VerdictReason(kind=ReasonKind.COVERAGE, text=text))
    graded, asked, floor = run.coverage.graded, run.coverage.asked, run.coverage.floor
    ungraded = [a for a in run.assessments if a.case_id not in run.graded]
    if graded < floor * asked or graded == 0:
        reasons.append(_too_little(graded, asked, "cases", ungraded, run.coverage))
    severe = [a for a in run.assessments if a.case_severity is Severity.PAGE]
    seen = sum(a.case_id in run.graded for a in severe)
    if seen < floor * len(severe):
        blind = [a for a in ungraded if a.case_severity is Severity.PAGE]
        reasons.append(_too_little(seen, len(severe), "severity-3 cases", blind, run.coverage))
    return reasons


def uncovered(run: GateInputs) -> list[VerdictReason]:
    """What a PASS does not cover: severity-3 cases that were not graded, and cases that the baseline had right."""
    ungraded = [a for a in run.assessments if a.case_id not in run.graded and a.case_id not in run.disputed]
    before = run.compared.right_before if run.compared else frozenset[str]()
    severe = tuple(a.case_id for a in ungraded if a.case_severity is Severity.PAGE)
    no_longer = tuple(a.case_id for a in ungraded if a.case_id in before and a.case_id not in severe)
    texts = {
        f"{plural(len(severe), 'severity-3 case')} not graded": severe,
        f"{plural(len(no_longer), 'case')} right in the baseline and not graded now": no_longer,
    }
    return [
        VerdictReason(kind=ReasonKind.UNCOVERED, text=text, case_ids=ids, decisive=False)
        for text, ids in texts.items()
        if ids
    ]


def _too_little(
    graded: int, asked: int, what: str, ungraded: Sequence[Assessment], floor: Coverage
) -> VerdictReason:
    text = f"only {graded} of {asked} {what} could be graded; {floor.floor:.0%} are needed"
    worst_first = sorted(ungraded, key=lambda a: -a.case_severity)
    return VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(a.case_id for a in worst_first))


def unrated(run: GateInputs) -> list[VerdictReason]:
    """Too few reports were rated to speak of their average; where an average is required, that is no pass."""
    found, settings = run.rubric, run.settings
    if found is None:
        text = f"no report was rated, so nobody knows whether their average reaches {settings.min_rubric:g}"
        return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)] if settings.rating_needed else []
    moved = run.compared.comparison.rubric if run.compared else None
    texts = [
        _format_too_few(one, settings)
        for one in (found, moved)
        if one and not _shows(one, settings.max_rubric_drop)
    ]
    reasons = [
        VerdictReason(kind=ReasonKind.RUBRIC, text=text, decisive=settings.rating_needed) for text in texts[:1]
    ]
    return [*reasons, *_left_unrated(run)]


def _left_unrated(run: GateInputs) -> list[VerdictReason]:
    if run.enough_rated:
        return []
    rated, reports = len(run.ratings), len(run.ratings) + len(run.unrated)
    text = f"only {rated} of {plural(reports, 'report')} were rated; {run.coverage.floor:.0%} are needed"
    ids, decisive = tuple(sorted(run.unrated)), run.settings.rating_needed
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=ids, decisive=decisive)]


def _format_too_few(found: RubricAverage | RubricChange, settings: GateSettings) -> str:
    """What so many ratings show, and how many would do."""
    if isinstance(found, RubricAverage):
        count, rated = len(found.ratings), plural(len(found.ratings), "rated report")
    else:
        count, rated = found.shared, f"{plural(found.shared, 'report')} rated in both runs"
    if found.clusters is not None and found.clusters < count:
        rated += f", of {plural(found.clusters, 'cluster')},"
    limit = f"a drop of {settings.max_rubric_drop:g} in their average rating"
    if found.detectable is None:
        return f"{rated} cannot show {limit}: one rating has no spread"
    would_do = f"about {found.needed:,} would" if found.needed else "no suite is large enough for that"
    return f"{rated} cannot show {limit}, only one of {found.detectable:.2f} or more; {would_do}"


def balance(run: GateInputs) -> list[VerdictReason]:
    """What the suite lacks; with `strict`, that decides."""
    strict = run.settings.strict
    return [VerdictReason(kind=ReasonKind.BALANCE, text=text, decisive=strict) for text in run.balance.shortfalls]


def flaky(run: GateInputs) -> list[VerdictReason]:
    """Which cases were right only sometimes."""
    if not run.flaky:
        return []
    cases = "case is" if len(run.flaky) == 1 else "cases are"
    first = f"the first {run.flaky[0].text}" if len(run.flaky) > 1 else run.flaky[0].text
    text = f"{len(run.flaky)} {cases} flaky ({first}): counted as failed, and no one of them decides alone"
    ids = tuple(one.case_id for one in run.flaky)
    return [VerdictReason(kind=ReasonKind.FLAKY, text=text, case_ids=ids, decisive=False)]


def sight(run: GateInputs) -> list[VerdictReason]:
    """The regressions that matter and that a comparison of this size would have missed, one line by severity."""
    return [
        VerdictReason(
            kind=ReasonKind.BLIND_SPOT,
            text=(
                f"cases written as severity {severity.value}: {format_limit(spot)}; "
                f"a drop of {_percent(that_matters(severity, run.settings))} matters, "
                f"and a comparison of {plural(spot.pairs, 'case')} does not detect {format_drop(spot)}"
            ),
            decisive=False,
        )
        for severity, spot in blind_spots(run.sights, run.settings).items()
    ]


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def coverage_of(graded: frozenset[str], planned: int, settings: GateSettings) -> Coverage:
    """How many of the ``planned`` cases were graded."""
    return Coverage(asked=planned, graded=len(graded), floor=settings.coverage_floor)


def decide(run: GateInputs) -> tuple[Verdict, tuple[VerdictReason, ...]]:
    """The verdict over one assessment for each case.

    FAIL needs proof: a severity-3 failure, or a score or metric below its floor even if everything ungraded had
    been right. Without proof either way, for want of coverage, it is INCONCLUSIVE. Proof that rests on one flaky
    case is none.
    """
    failing = [
        *veto(run),
        *weighted(run),
        *missed_targets(run),
        *parity_missed(run),
        *proven_ratings(run),
        *regression(run),
    ]
    open_questions = [
        *outage(run),
        *disputed(run),
        *coverage(run),
        *unsure_ratings(run),
        *unrated(run),
        *balance(run),
    ]
    said = [*uncovered(run), *flaky(run), *sight(run)]
    reasons = (*failing, *open_questions, *said)
    if any(reason.decisive for reason in failing):
        return Verdict.FAIL, reasons
    if any(reason.decisive for reason in open_questions):
        return Verdict.INCONCLUSIVE, reasons
    return Verdict.PASS, reasons
