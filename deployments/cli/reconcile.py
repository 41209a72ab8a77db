"""``lookout reconcile``: compare the guard's log, the nightly runs and people's labels.

It prints what two detectors found and missed, in words for a first-time reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final

import typer

from deployments.cli.data_folder import load_pending
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.nightly.reconciliation import mark_log_figures_unknown, reconcile_detectors
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting
from monitors.config.file import load_config
from monitors.plural import plural
from monitors.records.estimates import RateEstimate
from monitors.records.reconciliation import NO_LOG, Figure, Interval, Reconciliation, Unknown


def format_reconciliation(reconciliation: Reconciliation) -> Iterator[str]:
    """Yield one line for each figure; the first names target and time. An unknown figure says why."""
    counts = reconciliation.counts
    yield f"{counts.target}, {counts.since:%Y-%m-%d %H:%M} to {counts.until:%Y-%m-%d %H:%M} UTC"
    yield f"  {_format_guard(reconciliation)}"
    yield from (f"  {line}" for line in _format_judge_estimate(reconciliation))
    recall = _format_recall(reconciliation)
    yield f"  The guard's recall (the share of all bad replies that it blocked): {recall}."
    yield f"  Missed by both: {_format_missed(reconciliation)}."
    if isinstance(reconciliation.judge_blind, Interval):
        judge_blind = _format_figure(reconciliation.judge_blind)
        yield f"  Even if the judge graded all conversations, it would pass {judge_blind} bad ones."
    yield f"  Estimate from the replies that both graded: {_format_two_detectors(reconciliation)}."
    yield from (f"  Note: {note}." for note in _list_notes(reconciliation))


def _format_guard(reconciliation: Reconciliation) -> str:
    guard = reconciliation.counts.guard
    held_back = f"The guard blocked {plural(guard.entries, 'reply', 'replies')}"
    if not guard.entries:
        unread = isinstance(reconciliation.recall, Unknown) and reconciliation.recall.why == NO_LOG
        return f"Blocked by the guard: unknown, because {NO_LOG}." if unread else f"{held_back}."
    if not isinstance(reconciliation.precision, Interval):
        alarms = f"; people marked {guard.wrong:,} of them as false alarms" if guard.wrong else ""
        return f"{held_back}{alarms} → precision unknown, because {reconciliation.precision.why}."
    right = _format_figure(reconciliation.held_back_rightly)
    return (
        f"{held_back}; people marked {guard.wrong:,} of {guard.labelled:,} as false alarms → precision "
        f"{_format_percent(reconciliation.precision)}: {right} were correctly blocked."
    )


def _format_judge_estimate(reconciliation: Reconciliation) -> Iterator[str]:
    nightly, flagged = reconciliation.counts.nightly, reconciliation.flagged
    if not isinstance(flagged, RateEstimate):
        yield f"Bad conversations served: unknown, because {flagged.why}."
        return
    coverage = f" (the judge graded {100 * flagged.coverage:.0f} % of them)" if flagged.coverage < 1 else ""
    yield (
        f"Of {plural(nightly.conversations, 'conversation')} in {plural(nightly.nightly_runs, 'night')} "
        f"the judge graded {nightly.graded:,} and failed {nightly.found:,} → {flagged.text} of all{coverage}."
    )
    if reconciliation.corrected:
        wrong, right = reconciliation.reviewed_wrong, reconciliation.reviewed_right
        record = f"people reviewed {wrong:,.0f} wrong and {right:,.0f} right answers"
        bad = _format_figure(reconciliation.served_bad)
        yield f"Corrected for the judge's own errors ({record}): {bad} bad conversations served."


def _format_recall(reconciliation: Reconciliation) -> str:
    if not isinstance(reconciliation.recall, Interval):
        return f"unknown, because {reconciliation.recall.why}"
    judge_note = "" if reconciliation.corrected else ", according to the judge alone"
    return f"{_format_percent(reconciliation.recall)}{judge_note}"


def _format_missed(reconciliation: Reconciliation) -> str:
    if not isinstance(reconciliation.missed, Interval):
        return f"unknown, because {reconciliation.missed.why}"
    served = plural(reconciliation.counts.nightly.conversations, "conversation")
    return f"about {reconciliation.missed.value:,.0f} of {served} {_format_limits(reconciliation.missed)}"


def _format_two_detectors(reconciliation: Reconciliation) -> str:
    if not isinstance(reconciliation.total_bad, Interval):
        return f"unknown, because {reconciliation.total_bad.why}"
    both = reconciliation.counts.overlap.both
    total = _format_figure(reconciliation.total_bad)
    return f"both found {both:,} → {total} bad replies in all, blocked or served"


def _list_notes(reconciliation: Reconciliation) -> Iterator[str]:
    """Yield what a reader must know to interpret the figures."""
    counts = reconciliation.counts
    nightly = counts.nightly
    confidence = 100 * reconciliation.confidence
    yield f"in about {confidence:.0f} of 100 such reports, the true value is within the brackets"
    if counts.guard.labelled:
        yield "precision assumes that the labelled entries are representative of all entries"
    if reconciliation.corrected:
        yield "the correction assumes that the judge errs on live traffic as often as on the reviewed answers"
    if nightly.bad_replies > nightly.found:
        yield (
            f"the {nightly.found:,} bad conversations contain {nightly.bad_replies:,} bad replies, and the guard "
            "counts replies: its recall is a little lower than shown"
        )
    if counts.overlap.matched:
        yield (
            f"{plural(counts.overlap.matched, 'entry', 'entries')} belong to a sampled conversation; in "
            f"{counts.overlap.same_reply:,} the nightly run graded the same reply"
        )
    if isinstance(reconciliation.total_bad, Interval):
        yield "this total is too low if both detectors miss the same replies"
    if counts.runs_left_out:
        yield f"{plural(counts.runs_left_out, 'earlier night')} skipped, because another judge graded them"


def _format_figure(estimate: Figure) -> str:
    assert isinstance(estimate, Interval)
    return f"about {estimate.value:,.0f} {_format_limits(estimate)}"


def _format_limits(estimate: Interval) -> str:
    return f"[{estimate.low:,.0f}, {estimate.high:,.0f}]"


def _format_percent(estimate: Interval) -> str:
    return f"{100 * estimate.value:.0f} % [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


WAIT_S: Final = 10.0


def reconcile_command(
    target: Annotated[str | None, typer.Argument(help="a target; default: all")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option(min=1, help="the number of days")] = 7,
    as_json: JsonOption = False,
) -> ExitCode:
    """Compare the app's own guard with the nightly judge, and estimate the failures that both missed."""
    from flows.clock import utc_now  # slack_sdk
    from flows.data_folder import open_store  # slack_sdk

    configured = load_config(config)
    names = tuple(configured.targets) if target is None else (target,)
    for name in names:
        configured.require_target(name)
    store, until = load_pending(open_store(configured)), utc_now()
    for name in names:
        with show_waiting(f"{name}: comparing guard and judge"):
            reconciliation = reconcile_detectors(store, name, until - timedelta(days=days), until, wait_s=WAIT_S)
        if configured.targets[name].hallucination_log is None:
            reconciliation = mark_log_figures_unknown(reconciliation)
        if as_json:
            write_json(reconciliation.model_dump_json() + "\n")
        else:
            make_terminal_console().print(
                "\n".join(format_reconciliation(reconciliation)), highlight=False, markup=False
            )
    return ExitCode.PASS
