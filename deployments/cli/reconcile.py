"""``lookout reconcile``: compares the guard's log, the nightly runs and people's labels.

It prints what two detectors found and missed, in words for somebody who meets these figures for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final

import typer

from deployments.cli.data_folder import loaded
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.nightly.reconciliation import reconciled, without_log
from flows.terminal import write_json
from flows.terminal_console import terminal_console
from flows.waiting import waiting
from monitors.config.file import load_config
from monitors.plural import plural
from monitors.records.estimates import RateEstimate
from monitors.records.reconciliation import NO_LOG, Figure, Interval, Reconciliation, Unknown


def reconciliation_lines(found: Reconciliation) -> Iterator[str]:
    """A line a fact; the first names target and time. An unknown figure says why."""
    counts = found.counts
    yield f"{counts.target}, {counts.since:%Y-%m-%d %H:%M} to {counts.until:%Y-%m-%d %H:%M} UTC"
    yield f"  {_guard(found)}"
    yield from (f"  {line}" for line in _served(found))
    yield f"  The guard's recall (of all that was bad, the share that it held back): {_recall(found)}."
    yield f"  What neither saw: {_missed(found)}."
    if isinstance(found.judge_blind, Interval):
        yield f"  Even if the judge looked at all, it would pass {_about(found.judge_blind)} bad ones."
    yield f"  Two detectors on the same replies: {_two(found)}."
    yield from (f"  Note: {note}." for note in _notes(found))


def _guard(found: Reconciliation) -> str:
    guard = found.counts.guard
    held = f"The guard held back {plural(guard.entries, 'reply', 'replies')}"
    if not guard.entries:
        unread = isinstance(found.recall, Unknown) and found.recall.why == NO_LOG
        return f"What the guard held back: unknown, because {NO_LOG}." if unread else f"{held}."
    if not isinstance(found.precision, Interval):
        alarms = f"; people called {guard.wrong:,} of them false alarms" if guard.wrong else ""
        return f"{held}{alarms} → precision unknown, because {found.precision.why}."
    rightly = _about(found.held_back_rightly)
    return (
        f"{held}; people called {guard.wrong:,} of {guard.labelled:,} false alarms → precision "
        f"{_percent(found.precision)}: {rightly} were rightly held back."
    )


def _served(found: Reconciliation) -> Iterator[str]:
    nightly, flagged = found.counts.nightly, found.flagged
    if not isinstance(flagged, RateEstimate):
        yield f"What was served: unknown, because {flagged.why}."
        return
    coverage = f" (the judge graded {100 * flagged.coverage:.0f} % of them)" if flagged.coverage < 1 else ""
    yield (
        f"Of {plural(nightly.conversations, 'conversation')} in {plural(nightly.nightly_runs, 'night')} "
        f"the judge graded {nightly.graded:,} and failed {nightly.found:,} → {flagged.text} of all{coverage}."
    )
    if found.corrected:
        record = f"people reviewed {found.reviewed_wrong:,.0f} wrong and {found.reviewed_right:,.0f} right answers"
        bad = _about(found.served_bad)
        yield f"With the judge's own errors taken out ({record}): {bad} bad conversations served."


def _recall(found: Reconciliation) -> str:
    if not isinstance(found.recall, Interval):
        return f"unknown, because {found.recall.why}"
    as_said = "" if found.corrected else ", by the judge's word alone"
    return f"{_percent(found.recall)}{as_said}"


def _missed(found: Reconciliation) -> str:
    if not isinstance(found.missed, Interval):
        return f"unknown, because {found.missed.why}"
    served = plural(found.counts.nightly.conversations, "conversation")
    return f"about {found.missed.value:,.0f} of {served} {_limits(found.missed)}"


def _two(found: Reconciliation) -> str:
    if not isinstance(found.total_bad, Interval):
        return f"unknown, because {found.total_bad.why}"
    both = found.counts.overlap.both
    return f"{both:,} were found by both → {_about(found.total_bad)} bad replies in all, held back or served"


def _notes(found: Reconciliation) -> Iterator[str]:
    """What a reader must know to judge the figures."""
    counts = found.counts
    nightly = counts.nightly
    yield f"brackets hold the truth in about {100 * found.confidence:.0f} of 100 such reports, not in the others"
    if counts.guard.labelled:
        yield "precision takes the entries that people labelled as a fair part of all"
    if found.corrected:
        yield "the judge is taken to err on live traffic as it did on the answers that people reviewed"
    if nightly.bad_replies > nightly.found:
        yield (
            f"the {nightly.found:,} bad conversations hold {nightly.bad_replies:,} bad replies, and the guard "
            "counts replies: its recall is somewhat lower than said"
        )
    if counts.overlap.matched:
        yield (
            f"{plural(counts.overlap.matched, 'entry', 'entries')} belong to a sampled conversation; in "
            f"{counts.overlap.same_reply:,} the night saw the very reply that was held back"
        )
    if isinstance(found.total_bad, Interval):
        yield "two detectors that stumble over the same replies make that total too low"
    if counts.runs_left_out:
        yield f"{plural(counts.runs_left_out, 'earlier night')} left out: another judge graded them"


def _about(estimate: Figure) -> str:
    assert isinstance(estimate, Interval)
    return f"about {estimate.value:,.0f} {_limits(estimate)}"


def _limits(estimate: Interval) -> str:
    return f"[{estimate.low:,.0f}, {estimate.high:,.0f}]"


def _percent(estimate: Interval) -> str:
    return f"{100 * estimate.value:.0f} % [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


WAIT_S: Final = 10.0


def reconcile_command(
    target: Annotated[str | None, typer.Argument(help="a target; all of them when left out")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option(min=1, help="how many days back")] = 7,
    as_json: JsonOption = False,
) -> ExitCode:
    """Compare the app's own guard with the nightly judge, and estimate what both missed."""
    from flows.clock import utc_now  # slack_sdk
    from flows.data_folder import open_store  # slack_sdk

    configured = load_config(config)
    names = tuple(configured.targets) if target is None else (target,)
    for name in names:
        configured.target(name)
    store, until = loaded(open_store(configured)), utc_now()
    for name in names:
        with waiting(f"{name}: comparing guard and judge"):
            found = reconciled(store, name, until - timedelta(days=days), until, wait_s=WAIT_S)
        if configured.targets[name].hallucination_log is None:
            found = without_log(found)
        if as_json:
            write_json(found.model_dump_json() + "\n")
        else:
            terminal_console().print("\n".join(reconciliation_lines(found)), highlight=False, markup=False)
    return ExitCode.PASS
