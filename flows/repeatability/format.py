"""Formats the figures of repeatability as text, for a terminal, the digest, the site and Prefect's UI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from monitors.gate.repeatability import MIN_PAIRS, NO_ANSWER
from monitors.plural import plural
from monitors.records.grades import FAILURE_WORDS
from monitors.records.self_checks import FlipRate, Repeatability, RepeatabilityRun, RepeatAdvice

TOO_FEW_TEXT: Final = "too few pairs for a result"
MAX_CASES_NAMED: Final = 5
_KINDS: Final = {kind.value: text for kind, text in FAILURE_WORDS.items()} | {NO_ANSWER: NO_ANSWER}


def format_repeatability(figures: Repeatability) -> Iterator[str]:
    """Yield all figures. Each line has one figure."""
    size = f"{plural(figures.suite_cases, 'case')}, {figures.severity_3_cases:,} of severity 3"
    yield f"{figures.target}: repeatability of suite {figures.suite_name} ({size})"
    yield f"  {_format_pair_counts_and_sources(figures)}"
    if not figures.pairs:
        return
    yield ""
    yield f"  {'flip rate':<31}{'flips':>5}{'pairs':>6}  {'rate (95 % CI)':<24}failed both times"
    yield from (f"  {_format_rate_line(rate)}" for rate in figures.rates)
    yield ""
    yield f"  {_format_case_list('flipped', figures.flipped) if figures.flipped else 'no case flipped'}"
    if figures.steady_failures:
        yield f"  {_format_case_list('failed most of the time: a fault, not noise', figures.steady_failures)}"
    yield f"  {format_chance_failure_rate(figures)}"
    yield ""
    yield from _format_advice(figures)


def _format_pair_counts_and_sources(figures: Repeatability) -> str:
    sources = [f"from {plural(figures.sessions, 'session')} that asked cases twice"] if figures.sessions else []
    sources += [f"{figures.free_pairs:,} of the pairs from runs on one commit"] if figures.free_pairs else []
    void = f"; {plural(figures.void_sessions, 'session')} discarded, because of a deploy during the session"
    pairs = f"{plural(figures.pairs, 'pair')} of {plural(figures.cases, 'case')}"
    text = ", ".join([pairs, *sources]) if figures.pairs else "no case has two graded answers yet"
    return text + (void if figures.void_sessions else "")


def _format_rate_line(rate: FlipRate) -> str:
    name = format_rate_name(rate)
    again = f"{rate.again:,} of {rate.shown:,}" if rate.shown else "no failure"
    return f"{name:<31}{rate.flips:>5,}{rate.pairs:>6,}  {format_flip_rate(rate):<24}{again}"


def format_rate_name(rate: FlipRate) -> str:
    """Return the name that alerts and reports show for a flip rate."""
    return _KINDS.get(rate.name, rate.name)


def format_flip_rate(rate: FlipRate) -> str:
    """Format the share of pairs with different grades, with its interval, or say that there are too few pairs."""
    if not rate.enough:
        return TOO_FEW_TEXT
    return f"{_format_percent(rate.flips / rate.pairs)} ({_format_interval(rate.low, rate.high)})"


def format_chance_failure_rate(figures: Repeatability) -> str:
    """Format the share of answers that fail by chance, among cases that usually pass."""
    if figures.noise is None:
        return "noise: unknown, because no case without a fault has two graded answers yet"
    interval = _format_interval(figures.noise_low, figures.noise_high)
    noise = _format_percent(figures.noise)
    return f"noise: {noise} of the answers to cases without a fault fail (95 % CI {interval})"


def _format_advice(figures: Repeatability) -> Iterator[str]:
    if not figures.advice:
        yield f"  false-FAIL rate of the gate: {TOO_FEW_TEXT} ({figures.pairs:,} of the {MIN_PAIRS} needed pairs)"
        return
    yield f"  {format_false_fail_rate(figures)}"
    yield ""
    shows = [missed.shows for missed in figures.advice[0].missed]
    yield "  If severity-3 cases are asked more often: the percentage of their faults without a FAIL, and"
    yield "  without an alert. Each column is for faults that occur in this percentage of the answers:"
    heads = "".join(f"{f'{100 * share:g} %':<15}" for share in shows)
    yield f"  {'asks':<8}{'asked':>6}  {'false FAIL (95 % CI)':<22}{heads}".rstrip()
    yield from (f"  {_format_advice_line(advice, now=number == 0)}" for number, advice in enumerate(figures.advice))
    if not shows:
        yield "  The suite has no severity-3 cases, so there is no effect."


def _format_advice_line(advice: RepeatAdvice, *, now: bool) -> str:
    false_fail = advice.false_fail
    rate = f"{_format_percent(false_fail.rate)} ({_format_interval(false_fail.low, false_fail.high)})"
    missed = "".join(
        f"{f'{100 * missed.no_fail:.1f}, {100 * missed.no_alert:.1f}':<15}" for missed in advice.missed
    )
    name = f"{false_fail.repeats} (now)" if now else f"{false_fail.repeats}"
    return f"{name:<8}{false_fail.probes:>6,}  {rate:<22}{missed}".rstrip()


def format_repeat_advice(advice: RepeatAdvice) -> str:
    """Format a sentence about the verdict's error rates if severity-3 cases are asked a given number of times."""
    false_fail = advice.false_fail
    times = "once" if false_fail.repeats == 1 else f"{false_fail.repeats} times"
    interval = _format_interval(false_fail.low, false_fail.high)
    missed = ", ".join(
        f"{_format_percent(missed.no_fail)} of faults that show in {100 * missed.shows:g} % of answers"
        for missed in advice.missed
    )
    rate = _format_percent(false_fail.rate)
    text = f"severity 3 asked {times} ({false_fail.probes:,} questions): false FAIL {rate} ({interval})"
    return f"{text}; the verdict misses {missed}" if missed else text


def format_false_fail_rate(figures: Repeatability) -> str:
    """Format how often the configured gate fails by chance, or say that there are too few pairs of answers."""
    if not figures.advice:
        return TOO_FEW_TEXT
    false_fail = figures.advice[0].false_fail
    text = f"the gate fails {false_fail.failed:,} of {false_fail.runs:,} simulated runs by chance"
    return (
        f"{text}: {_format_percent(false_fail.rate)} (95 % CI {_format_interval(false_fail.low, false_fail.high)})"
    )


def format_session_briefly(session: RepeatabilityRun) -> str:
    """Format the result of a session as one line."""
    asked = f"{len(session.cases):,} of {plural(session.sampled, 'case')} asked twice"
    if session.void:
        return f"{session.target}: {asked}, not valid: {session.void}"
    stopped = f" ({session.stopped})" if session.stopped else ""
    figures = f"; {format_repeatability_for_digest(session.figures)}" if session.figures else ""
    return f"{session.target}: {asked}{stopped}{figures}"


def format_repeatability_for_digest(figures: Repeatability) -> str:
    """Format the flip rate and the false-FAIL rate as one line, for the digest."""
    if not figures.rates:
        return "no pair has been graded yet"
    rate = figures.rates[0]
    flips = f"{rate.flips:,} of {plural(rate.pairs, 'pair')} flipped"
    if not figures.advice:
        return f"{flips}: {TOO_FEW_TEXT}"
    false_fail = figures.advice[0].false_fail
    interval = _format_interval(false_fail.low, false_fail.high)
    return f"{flips}, {format_flip_rate(rate)}; false FAIL {_format_percent(false_fail.rate)} (95 % CI {interval})"


def _format_case_list(label: str, case_ids: tuple[str, ...]) -> str:
    more = f" and {len(case_ids) - MAX_CASES_NAMED:,} more" if len(case_ids) > MAX_CASES_NAMED else ""
    return f"{label}: {', '.join(case_ids[:MAX_CASES_NAMED])}{more}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _format_interval(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f}"
