"""Reports incidents from the traffic census of a nightly run.

The census counts what rules find in all conversations. Each kind of finding is one incident with a rate. A single
disclosure, a single error shown as an answer, or a single message without an answer is a failure. Refusals and
answers in another language occur in any application. Therefore they are an incident only if they increase a lot. An
increase is large if the odds at least doubled, and if Fisher's exact test rejects the hypothesis that the rate is
the same as before (R. A. Fisher, "Statistical Methods for Research Workers", 1934, § 21.02).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, lgamma
from typing import Final, NamedTuple

from monitors.alerts.observe import ObservationContext, compute_fingerprint
from monitors.alerts.redact import build_redacted_excerpt
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import FAILURE_TITLES, TRAFFIC_CASE
from monitors.plural import plural
from monitors.records.base import Blame, Record, Severity, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.incidents import Incident, IncidentKind, Observation, Redacted
from monitors.records.nightly import CensusExample, CensusKind, CensusRate

CENSUS_WORDS: Final[dict[CensusKind, str]] = {
    CensusKind.DISCLOSURE: "Personal data disclosed",
    CensusKind.ERROR_LEAK: "Error shown as an answer",
    CensusKind.NO_ANSWER: "No answer",
    CensusKind.WRONG_LANGUAGE: "Answer not in the language of the question",
    CensusKind.REFUSAL: "Declined to answer",
}
_MORE_WORDS: Final[dict[CensusKind, str]] = {
    CensusKind.WRONG_LANGUAGE: "More answers not in the language of the question",
    CensusKind.REFUSAL: "More refusals than usual",
}

MIN_ODDS_RATIO: Final = 2.0
"""Minimum factor by which the odds of a finding must grow to count as an increase.

For small rates, the rate grows by about the same factor.
"""
MAX_CHANCE: Final = 0.001
"""Maximum p-value of an increase.

If five kinds of findings are tested every night, this gives about one false alert in half a year.
"""
MAX_END_CHANCE: Final = 0.05
"""Maximum p-value of a decrease that ends an incident."""
MIN_QUIET_NIGHTS: Final = 7
"""Number of nightly runs without a finding after which an incident ends.

This applies even if the rate was too low for a test.
"""
MAX_REASON_CHARACTERS: Final = 500
_MIN_ONE_DECIMAL: Final = 0.0005
"""Minimum share that is shown with one decimal. A smaller share would be shown as 0.0 and needs more decimals."""


class CensusCount(NamedTuple):
    """The number of graded conversations, and how many of them have a kind of finding."""

    found: int
    graded: int

    @property
    def found_ratio(self) -> float:
        """The share of conversations with the finding, from 0 to 1.

        The share is 0 if no conversation was graded.
        """
        return self.found / self.graded if self.graded else 0.0

    def __str__(self) -> str:
        return f"{self.found:,} of {self.graded:,} ({format_percent(self.found_ratio)} %)"


class NightlyCensus(Record):
    """The rates that one nightly run found, by kind. ``whole`` is true if every source was read completely."""

    due_at: UtcTime
    rates: tuple[CensusRate, ...]
    whole: bool = True

    def find_rate(self, kind: CensusKind) -> CensusRate | None:
        """Return the rate of one kind. Return ``None`` if no conversation was graded for this kind."""
        return next((rate for rate in self.rates if rate.kind is kind and rate.graded), None)


class CensusSeverity(NamedTuple):
    """The severity of a kind of finding, and the row of the severity table that sets this severity."""

    severity: Severity
    row: str | None


class Ending(NamedTuple):
    """The case id of an incident that has ended, and the reason."""

    case_id: str
    text: str


def format_rate(rate: CensusRate) -> str:
    """Format a rate: ``140 of 552 (25.4 %)``."""
    return (
        str(_build_count(rate))
        if rate.graded
        else "unknown: Lookout could not grade any conversation for this kind"
    )


def format_percent(share: float) -> str:
    """Format a share in percent, with enough decimals to show that it is not zero."""
    return f"{100 * share:.2g}" if 0 < share < _MIN_ONE_DECIMAL else f"{100 * share:.1f}"


def build_census_case_id(kind: CensusKind) -> str:
    """Return the case id for a kind of finding. All conversations with this kind of finding are one incident."""
    return f"{TRAFFIC_CASE}{kind.failure_kind or kind}"


def build_census_observations(
    tonight: NightlyCensus,
    earlier: Sequence[NightlyCensus],
    examples: Sequence[CensusExample],
    *,
    at: ObservationContext,
    settings: AlertSettings,
    grades: Mapping[CensusKind, CensusSeverity],
) -> Iterator[Observation]:
    """Yield observations: for each kind of finding that occurred and is always a failure, or whose rate rose a lot.

    ``tonight`` is the census of this nightly run. ``earlier`` are the censuses of earlier nightly runs, oldest
    first.
    """
    example_by_kind = {example.kind: example for example in examples}
    for kind in CensusKind:
        rate = tonight.find_rate(kind)
        if rate is None or not rate.found:
            continue
        nightly_runs = [
            _build_count(earlier_rate)
            for nightly in earlier
            if (earlier_rate := nightly.find_rate(kind)) is not None
        ]
        before = (
            sum_counts_since_rate_change(nightly_runs)
            if kind.always_fails
            else _compute_usual_level(nightly_runs).usual
        )
        more = before is not None and has_doubled_significantly(before, _build_count(rate))
        if kind.always_fails or more:
            yield _build_rate_observation(
                rate,
                before,
                example_by_kind.get(kind),
                at=at,
                settings=settings,
                grade=grades[kind],
                multiplied=more and kind.always_fails,
            )


def find_ended_census_incidents(
    tonight: NightlyCensus, earlier: Sequence[NightlyCensus], open_incidents: Sequence[Incident]
) -> Iterator[Ending]:
    """Yield the incidents that have ended, with the reason. Yields nothing if a source was not read completely.

    ``tonight`` is the census of this nightly run. ``earlier`` are the censuses of earlier nightly runs.
    """
    open_cases = {incident.case_id for incident in open_incidents}
    for kind in CensusKind:
        rate, case = tonight.find_rate(kind), build_census_case_id(kind)
        if case in open_cases and rate is not None and tonight.whole:
            text = (
                _explain_end_by_no_findings(rate, earlier)
                if kind.always_fails
                else _explain_end_by_usual_rate(rate, earlier)
            )
            if text:
                yield Ending(case, text)


def has_doubled_significantly(before: CensusCount, now: CensusCount) -> bool:
    """Return whether the odds of a finding at least doubled, and the increase is statistically significant."""
    odds = now.found * (before.graded - before.found), before.found * (now.graded - now.found)
    return odds[0] >= MIN_ODDS_RATIO * odds[1] and compute_increase_p_value(before, now) <= MAX_CHANCE


def compute_increase_p_value(before: CensusCount, now: CensusCount) -> float:
    """Return the p-value of the increase (one-sided exact test).

    The p-value is the probability that chance alone gives at least ``now.found`` findings if the rate is unchanged.
    """
    found, graded = before.found + now.found, before.graded + now.graded
    most = min(found, now.graded)
    ways = _compute_log_binomial(graded, found)
    return min(
        1.0,
        fsum(
            exp(
                _compute_log_binomial(now.graded, count)
                + _compute_log_binomial(before.graded, found - count)
                - ways
            )
            for count in range(max(now.found, found - before.graded), most + 1)
        ),
    )


def sum_counts_since_rate_change(nightly_runs: Sequence[CensusCount]) -> CensusCount | None:
    """Sum the counts of the nightly runs since the rate last rose or fell a lot.

    ``nightly_runs`` are sorted, oldest first. Return ``None`` if there are no nightly runs.
    """
    level: CensusCount | None = None
    for nightly in nightly_runs:
        has_changed = (
            level is None or has_doubled_significantly(level, nightly) or has_doubled_significantly(nightly, level)
        )
        level = nightly if level is None or has_changed else _add_counts(level, nightly)
    return level


class _UsualLevel(NamedTuple):
    usual: CensusCount | None = None
    raised: CensusCount | None = None
    """The counts of the last nightly run, if its rate was far above the usual level. Otherwise ``None``."""


def _compute_usual_level(nightly_runs: Sequence[CensusCount]) -> _UsualLevel:
    """Compute the usual rate of a finding.

    A nightly run whose rate is far above that of the earlier runs is excluded.

    ``nightly_runs`` are sorted, oldest first.
    """
    level = _UsualLevel()
    for nightly in nightly_runs:
        if level.usual is None:
            level = _UsualLevel(nightly)
        elif has_doubled_significantly(level.usual, nightly):
            level = _UsualLevel(level.usual, nightly)
        else:
            level = _UsualLevel(_add_counts(level.usual, nightly))
    return level


def _build_rate_observation(
    rate: CensusRate,
    before: CensusCount | None,
    example: CensusExample | None,
    *,
    at: ObservationContext,
    settings: AlertSettings,
    grade: CensusSeverity,
    multiplied: bool,
) -> Observation:
    def shorten(text: str, limit: int = settings.excerpt_characters) -> Redacted:
        return build_redacted_excerpt(text, limit=limit, account_patterns=at.account_patterns)

    kind, case = rate.kind, build_census_case_id(rate.kind)
    failure = kind.failure_kind if kind.always_fails else None
    title = FAILURE_TITLES[failure] if failure else _MORE_WORDS.get(kind, CENSUS_WORDS[kind])
    return Observation(
        fingerprint=compute_fingerprint(at.target, IncidentKind.CASE_FAILURE, case),
        kind=IncidentKind.CASE_FAILURE,
        target=at.target,
        run_id=at.run_id,
        seen_at=at.seen_at,
        severity=grade.severity,
        blame=Blame.APP,
        failure_kind=failure,
        case_id=case,
        policy_row=grade.row,
        title=shorten(title),
        asked=(shorten(example.asked) or None) if example else None,
        answered=(shorten(example.answered) or None) if example else None,
        reason=shorten(_format_reason(rate, before, example), MAX_REASON_CHARACTERS),
        origin=Origin.TRAFFIC,
        multiplied=multiplied,
    )


def _format_reason(rate: CensusRate, before: CensusCount | None, example: CensusExample | None) -> str:
    times = f", from {rate.first_at:%Y-%m-%d %H:%M} to {rate.last_at:%Y-%m-%d %H:%M} UTC"
    earlier = f"; before: {before}" if before is not None else ""
    shown = f" Example {rate.example_id}: {example.finding}." if example is not None else ""
    percent = format_percent(_build_count(rate).found_ratio)
    counts = f"{rate.found:,} of {plural(rate.graded, 'conversation')} ({percent} %)"
    return f"{counts}{times}{earlier}.{shown}"


def _explain_end_by_no_findings(rate: CensusRate, earlier: Sequence[NightlyCensus]) -> str:
    """Explain that the incident has ended, because the finding no longer occurs.

    Return an empty string if the incident has not ended, or if the absence of findings may be chance.
    """
    if rate.found:
        return ""
    without, last_found = [_build_count(rate)], None
    for nightly in reversed(earlier):
        earlier_rate = nightly.find_rate(rate.kind)
        if earlier_rate is not None and earlier_rate.found:
            last_found = earlier_rate
            break
        without += [_build_count(earlier_rate)] if earlier_rate is not None else []
    conversations = sum(count.graded for count in without)
    surely = (
        last_found is not None
        and compute_increase_p_value(CensusCount(0, conversations), _build_count(last_found)) <= MAX_END_CHANCE
    )
    if not surely and len(without) < MIN_QUIET_NIGHTS:
        return ""
    nightly_runs = "this night" if len(without) == 1 else f"the last {len(without)} nights"
    last = (
        last_found and f" The last conversation with this fault ended at {last_found.last_at:%Y-%m-%d %H:%M} UTC."
    )
    return f"None of the {plural(conversations, 'conversation')} of {nightly_runs} had this fault.{last or ''}"


def _explain_end_by_usual_rate(rate: CensusRate, earlier: Sequence[NightlyCensus]) -> str:
    nightly_runs = [
        _build_count(earlier_rate)
        for nightly in earlier
        if (earlier_rate := nightly.find_rate(rate.kind)) is not None
    ]
    level, now = _compute_usual_level(nightly_runs), _build_count(rate)
    if level.usual is None or has_doubled_significantly(level.usual, now):
        return ""
    if level.raised is None:
        return (
            f"The rate was this high in each of the last {len(nightly_runs)} nights, so Lookout now treats it as "
            f"normal: {now}."
        )
    if compute_increase_p_value(now, level.raised) > MAX_END_CHANCE:
        return ""
    return f"The rate is back at its earlier level. Now: {now}. Before: {level.usual}."


def _build_count(rate: CensusRate) -> CensusCount:
    return CensusCount(rate.found, rate.graded)


def _add_counts(first: CensusCount, second: CensusCount) -> CensusCount:
    return CensusCount(first.found + second.found, first.graded + second.graded)


def _compute_log_binomial(total: int, taken: int) -> float:
    return lgamma(total + 1) - lgamma(taken + 1) - lgamma(total - taken + 1)
