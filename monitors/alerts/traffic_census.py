"""Incidents from the traffic census: each kind is an incident with a rate, reported when it begins, grows and ends.

A single disclosure, error shown as an answer, or message without an answer is a failure. Refusals and answers in
another language are rates of any application: an incident is only that there are many more of them than there were.
"More" is never noise: the odds at least doubled, and an exact test of the two nightly runs' counts says that one
rate would hardly give both (R. A. Fisher, "Statistical Methods for Research Workers", 1934, § 21.02).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, lgamma
from typing import Final, NamedTuple

from monitors.alerts.observe import ObservationContext, fingerprint
from monitors.alerts.redact import excerpt
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
    CensusKind.WRONG_LANGUAGE: "Answered in another language than asked",
    CensusKind.REFUSAL: "Declined to answer",
}
_MORE_WORDS: Final[dict[CensusKind, str]] = {
    CensusKind.WRONG_LANGUAGE: "More answers in another language than asked",
    CensusKind.REFUSAL: "More refusals than usual",
}

RATIO: Final = 2.0
"""Odds against odds: at small rates as much as the rates' own ratio, and still of use where half of all refuse."""
CHANCE: Final = 0.001
"""How likely one rate gives both runs' counts at most. Five kinds a night: one false alert in half a year."""
ENOUGH: Final = 0.05
"""Finding none, or fewer again, is the end only where one rate would hardly give both runs' counts."""
QUIET_NIGHTS: Final = 7
"""A week without a single one is over, however rare it was."""
REASON_CHARACTERS: Final = 500
_SHOWN_AS_NONE: Final = 0.0005
"""Below it one place after the point would say 0.0."""


class CensusCount(NamedTuple):
    """How many of how many."""

    found: int
    graded: int

    @property
    def share(self) -> float:
        """From 0 to 1; 0 where there were none."""
        return self.found / self.graded if self.graded else 0.0

    def __str__(self) -> str:
        return f"{self.found:,} of {self.graded:,} ({percent(self.share)} %)"


class NightlyCensus(Record):
    """One nightly run's census, as far as its alerts rest on it. ``whole`` says that every source was read."""

    due_at: UtcTime
    rates: tuple[CensusRate, ...]
    whole: bool = True

    def rate(self, kind: CensusKind) -> CensusRate | None:
        """The count of one kind."""
        return next((one for one in self.rates if one.kind is kind and one.graded), None)


class CensusSeverity(NamedTuple):
    """How severe a kind is, and the row of the severity table that says so."""

    severity: Severity
    row: str | None


class Ending(NamedTuple):
    """An incident that is over, by its case, and what showed it."""

    case_id: str
    text: str


def share_text(one: CensusRate) -> str:
    """``140 of 552 (25.4 %)``."""
    return str(_count(one)) if one.graded else "unknown: nothing could be graded for it"


def percent(share: float) -> str:
    """A share in per cent, with as many places as show that it is not zero."""
    return f"{100 * share:.2g}" if 0 < share < _SHOWN_AS_NONE else f"{100 * share:.1f}"


def census_case(kind: CensusKind) -> str:
    """Stands in a case's place: all conversations that show one kind are one incident."""
    return f"{TRAFFIC_CASE}{kind.failure_kind or kind}"


def census_observations(
    tonight: NightlyCensus,
    earlier: Sequence[NightlyCensus],
    examples: Sequence[CensusExample],
    *,
    at: ObservationContext,
    settings: AlertSettings,
    grades: Mapping[CensusKind, CensusSeverity],
) -> Iterator[Observation]:
    """One for each kind that is a failure, and for each of which there are many more than there were.

    ``earlier`` are the censuses of earlier nightly runs, oldest first.
    """
    shown = {one.kind: one for one in examples}
    for kind in CensusKind:
        rate = tonight.rate(kind)
        if rate is None or not rate.found:
            continue
        nightly_runs = [_count(one) for nightly in earlier if (one := nightly.rate(kind)) is not None]
        before = last_level(nightly_runs) if kind.always_fails else _usual(nightly_runs).usual
        more = before is not None and has_multiplied(before, _count(rate))
        if kind.always_fails or more:
            yield _observe_rate(
                rate,
                before,
                shown.get(kind),
                at=at,
                settings=settings,
                grade=grades[kind],
                multiplied=more and kind.always_fails,
            )


def census_over(
    tonight: NightlyCensus, earlier: Sequence[NightlyCensus], open_ones: Sequence[Incident]
) -> Iterator[Ending]:
    """Incidents that the census shows to be over, and how. A run that read only part of its traffic ends none."""
    open_cases = {one.case_id for one in open_ones}
    for kind in CensusKind:
        rate, case = tonight.rate(kind), census_case(kind)
        if case in open_cases and rate is not None and tonight.whole:
            text = _gone(rate, earlier) if kind.always_fails else _as_usual(rate, earlier)
            if text:
                yield Ending(case, text)


def has_multiplied(before: CensusCount, now: CensusCount) -> bool:
    """Whether the rate is another one and its odds are at least doubled."""
    odds = now.found * (before.graded - before.found), before.found * (now.graded - now.found)
    return odds[0] >= RATIO * odds[1] and chance_of_more(before, now) <= CHANCE


def chance_of_more(before: CensusCount, now: CensusCount) -> float:
    """The exact chance that ``now`` has so many or more of all that both found, if both runs have one rate."""
    found, graded = before.found + now.found, before.graded + now.graded
    most = min(found, now.graded)
    ways = _log_choose(graded, found)
    return min(
        1.0,
        fsum(
            exp(_log_choose(now.graded, each) + _log_choose(before.graded, found - each) - ways)
            for each in range(max(now.found, found - before.graded), most + 1)
        ),
    )


def last_level(nightly_runs: Sequence[CensusCount]) -> CensusCount | None:
    """The counts since the rate last changed, up or down: what the next run is compared with. Oldest first."""
    level: CensusCount | None = None
    for nightly in nightly_runs:
        other = level is None or has_multiplied(level, nightly) or has_multiplied(nightly, level)
        level = nightly if level is None or other else _together(level, nightly)
    return level


class _Usual(NamedTuple):
    usual: CensusCount | None = None
    raised: CensusCount | None = None
    """The last nightly run, where it was far above what is usual."""


def _usual(nightly_runs: Sequence[CensusCount]) -> _Usual:
    """What is usual: all nightly runs but those far above the ones before them."""
    found = _Usual()
    for nightly in nightly_runs:
        if found.usual is None:
            found = _Usual(nightly)
        elif has_multiplied(found.usual, nightly):
            found = _Usual(found.usual, nightly)
        else:
            found = _Usual(_together(found.usual, nightly))
    return found


def _observe_rate(
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
        return excerpt(text, limit=limit, account_patterns=at.account_patterns)

    kind, case = rate.kind, census_case(rate.kind)
    failure = kind.failure_kind if kind.always_fails else None
    title = FAILURE_TITLES[failure] if failure else _MORE_WORDS.get(kind, CENSUS_WORDS[kind])
    return Observation(
        fingerprint=fingerprint(at.target, IncidentKind.CASE_FAILURE, case),
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
        reason=shorten(_how_many(rate, before, example), REASON_CHARACTERS),
        origin=Origin.TRAFFIC,
        multiplied=multiplied,
    )


def _how_many(rate: CensusRate, before: CensusCount | None, example: CensusExample | None) -> str:
    times = f", from {rate.first_at:%Y-%m-%d %H:%M} to {rate.last_at:%Y-%m-%d %H:%M} UTC"
    earlier = f"; before: {before}" if before is not None else ""
    shown = f" Example {rate.example_id}: {example.finding}." if example is not None else ""
    counts = f"{rate.found:,} of {plural(rate.graded, 'conversation')} ({percent(_count(rate).share)} %)"
    return f"{counts}{times}{earlier}.{shown}"


def _gone(rate: CensusRate, earlier: Sequence[NightlyCensus]) -> str:
    """What shows that none is found any more; empty as long as that may be chance."""
    if rate.found:
        return ""
    without, last = [_count(rate)], None
    for nightly in reversed(earlier):
        one = nightly.rate(rate.kind)
        if one is not None and one.found:
            last = one
            break
        without += [_count(one)] if one is not None else []
    clear = sum(each.graded for each in without)
    surely = last is not None and chance_of_more(CensusCount(0, clear), _count(last)) <= ENOUGH
    if not surely and len(without) < QUIET_NIGHTS:
        return ""
    nightly_runs = "this night" if len(without) == 1 else f"the last {len(without)} nights"
    was = f" The last was completed at {last.last_at:%Y-%m-%d %H:%M} UTC." if last is not None else ""
    return f"None of the {plural(clear, 'conversation')} of {nightly_runs} showed it.{was}"


def _as_usual(rate: CensusRate, earlier: Sequence[NightlyCensus]) -> str:
    nightly_runs = [_count(one) for nightly in earlier if (one := nightly.rate(rate.kind)) is not None]
    found, now = _usual(nightly_runs), _count(rate)
    if found.usual is None or has_multiplied(found.usual, now):
        return ""
    if found.raised is None:
        return f"It has been so for all of the last {len(nightly_runs)} nights and is what is usual now: {now}."
    if chance_of_more(now, found.raised) > ENOUGH:
        return ""
    return f"It is as it was before: {now}; before: {found.usual}."


def _count(one: CensusRate) -> CensusCount:
    return CensusCount(one.found, one.graded)


def _together(one: CensusCount, other: CensusCount) -> CensusCount:
    return CensusCount(one.found + other.found, one.graded + other.graded)


def _log_choose(all_there_are: int, taken: int) -> float:
    return lgamma(all_there_are + 1) - lgamma(taken + 1) - lgamma(all_there_are - taken + 1)
