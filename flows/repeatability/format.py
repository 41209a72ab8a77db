"""Repeatability as text: for a terminal, a digest, the site and Prefect's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from monitors.gate.repeatability import FEWEST_PAIRS, NO_ANSWER
from monitors.plural import plural
from monitors.records.grades import FAILURE_WORDS
from monitors.records.self_checks import FlipRate, Repeatability, RepeatabilityRun, RepeatAdvice

TOO_FEW: Final = "too few pairs to tell"
MOST_NAMED: Final = 5
_KINDS: Final = {kind.value: text for kind, text in FAILURE_WORDS.items()} | {NO_ANSWER: NO_ANSWER}


def format_repeatability(figures: Repeatability) -> Iterator[str]:
    """All figures, a line a fact."""
    size = f"{plural(figures.suite_cases, 'case')}, {figures.severity_3_cases:,} of severity 3"
    yield f"{figures.target}: repeatability of suite {figures.suite_name} ({size})"
    yield f"  {_pairs(figures)}"
    if not figures.pairs:
        return
    yield ""
    yield f"  {'flip rate':<31}{'flips':>5}{'pairs':>6}  {'rate (95 % CI)':<24}came again"
    yield from (f"  {_rate_line(rate)}" for rate in figures.rates)
    yield ""
    yield f"  {_named('flipped', figures.flipped) if figures.flipped else 'no case flipped'}"
    if figures.steady_failures:
        yield f"  {_named('failed in most askings: a fault, no noise', figures.steady_failures)}"
    yield f"  {noise_text(figures)}"
    yield ""
    yield from _advice(figures)


def _pairs(figures: Repeatability) -> str:
    sources = [f"{plural(figures.sessions, 'session')} that asked cases twice"] if figures.sessions else []
    sources += [f"{figures.free_pairs:,} of them from runs on one commit"] if figures.free_pairs else []
    void = f"; {plural(figures.void_sessions, 'session')} void: a deploy came in between"
    known = f"{plural(figures.pairs, 'pair')} of {plural(figures.cases, 'case')}"
    text = ", ".join([known, *sources]) if figures.pairs else "no case was asked twice and graded both times yet"
    return text + (void if figures.void_sessions else "")


def _rate_line(rate: FlipRate) -> str:
    name = rate_name(rate)
    again = f"{rate.again:,} of {rate.shown:,}" if rate.shown else "never seen"
    return f"{name:<31}{rate.flips:>5,}{rate.pairs:>6,}  {flip_text(rate):<24}{again}"


def rate_name(rate: FlipRate) -> str:
    """What a flip rate is about, as alerts and reports say it."""
    return _KINDS.get(rate.name, rate.name)


def flip_text(rate: FlipRate) -> str:
    """A flip rate with its interval, or that there are too few pairs."""
    if not rate.enough:
        return TOO_FEW
    return f"{_percent(rate.flips / rate.pairs)} ({_interval(rate.low, rate.high)})"


def noise_text(figures: Repeatability) -> str:
    """The share of askings that fail by chance."""
    if figures.noise is None:
        return "noise: no case without a fault was asked twice and graded both times"
    interval = _interval(figures.noise_low, figures.noise_high)
    return f"noise: {_percent(figures.noise)} of the askings of a case without a fault fail (95 % CI {interval})"


def _advice(figures: Repeatability) -> Iterator[str]:
    if not figures.advice:
        yield f"  false-FAIL rate of the gate: {TOO_FEW} ({figures.pairs:,}; at least {FEWEST_PAIRS} are needed)"
        return
    yield f"  {false_fail_text(figures)}"
    yield ""
    shows = [missed.shows for missed in figures.advice[0].missed]
    yield "  What asking severity-3 cases more often does, and how many % of their faults are"
    yield "  missed (no FAIL, no alert) when they show in so many % of answers:"
    heads = "".join(f"{f'{100 * share:g} %':<15}" for share in shows)
    yield f"  {'asks':<8}{'asked':>6}  {'false FAIL (95 % CI)':<22}{heads}".rstrip()
    yield from (f"  {_advice_line(one, now=number == 0)}" for number, one in enumerate(figures.advice))
    if not shows:
        yield "  The suite has no case of severity 3: asking them again changes nothing."


def _advice_line(advice: RepeatAdvice, *, now: bool) -> str:
    found = advice.false_fail
    rate = f"{_percent(found.rate)} ({_interval(found.low, found.high)})"
    missed = "".join(f"{f'{100 * one.no_fail:.1f}, {100 * one.no_alert:.1f}':<15}" for one in advice.missed)
    name = f"{found.repeats} (now)" if now else f"{found.repeats}"
    return f"{name:<8}{found.probes:>6,}  {rate:<22}{missed}".rstrip()


def advice_text(advice: RepeatAdvice) -> str:
    """What one number of repeats buys, in a sentence."""
    found = advice.false_fail
    times = "once" if found.repeats == 1 else f"{found.repeats} times"
    interval = _interval(found.low, found.high)
    missed = ", ".join(
        f"{_percent(one.no_fail)} of faults that show in {100 * one.shows:g} % of answers" for one in advice.missed
    )
    text = f"severity 3 asked {times} ({found.probes:,} questions): false FAIL {_percent(found.rate)} ({interval})"
    return f"{text}; the verdict misses {missed}" if missed else text


def false_fail_text(figures: Repeatability) -> str:
    """How often the gate fails by chance as it is configured, or that nobody knows."""
    if not figures.advice:
        return TOO_FEW
    found = figures.advice[0].false_fail
    text = f"the gate fails {found.failed:,} of {found.runs:,} simulated runs by chance"
    return f"{text}: {_percent(found.rate)} (95 % CI {_interval(found.low, found.high)})"


def session_in_one_line(session: RepeatabilityRun) -> str:
    """What a session came to."""
    asked = f"{len(session.cases):,} of {plural(session.sampled, 'case')} asked twice"
    if session.void:
        return f"{session.target}: {asked}, void: {session.void}"
    stopped = f" ({session.stopped})" if session.stopped else ""
    figures = f"; {digest_text(session.figures)}" if session.figures else ""
    return f"{session.target}: {asked}{stopped}{figures}"


def digest_text(figures: Repeatability) -> str:
    """The flip rate and the false-FAIL rate, on one line."""
    if not figures.rates:
        return "no pair was graded yet"
    rate = figures.rates[0]
    flips = f"{rate.flips:,} of {plural(rate.pairs, 'pair')} flipped"
    if not figures.advice:
        return f"{flips}: {TOO_FEW}"
    found = figures.advice[0].false_fail
    interval = _interval(found.low, found.high)
    return f"{flips}, {flip_text(rate)}; false FAIL {_percent(found.rate)} (95 % CI {interval})"


def _named(what: str, case_ids: tuple[str, ...]) -> str:
    more = f" and {len(case_ids) - MOST_NAMED:,} more" if len(case_ids) > MOST_NAMED else ""
    return f"{what}: {', '.join(case_ids[:MOST_NAMED])}{more}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f}"
