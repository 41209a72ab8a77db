"""``lookout reconcile``: compare the findings of the application's guard and of the nightly judge.

The guard is the part of the application that blocks bad replies. The command prints what the guard and the judge
found, and estimates what neither of them found. The data are the guard's log, the nightly runs and human labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final

import typer

from deployments.cli.data_folder import load_new_results_into_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.nightly.reconciliation import mark_figures_unknown_without_log, reconcile_detectors
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting
from monitors.config.file import load_config
from monitors.plural import plural
from monitors.records.estimates import RateEstimate
from monitors.records.reconciliation import NO_LOG, Figure, Interval, Reconciliation, Unknown


def format_guard_reconciliation(reconciliation: Reconciliation) -> Iterator[str]:
    """Yield the lines of the report: the target and the period, then a line for each figure, then the notes."""
    counts = reconciliation.counts
    yield f"{counts.target}, {counts.since:%Y-%m-%d %H:%M} to {counts.until:%Y-%m-%d %H:%M} UTC"
    yield f"  {_format_guard_line(reconciliation)}"
    yield from (f"  {line}" for line in _iterate_judge_lines(reconciliation))
    if isinstance(reconciliation.recall, Interval):
        judge_note = "" if reconciliation.corrected else ", not corrected for errors of the judge"
        recall = f"{_format_percent_interval(reconciliation.recall)}{judge_note}"
    else:
        recall = f"unknown, because {reconciliation.recall.why}"
    yield f"  The guard's recall (the share of all bad replies that it blocked): {recall}."
    yield (
        "  Bad replies that the guard and the judge both missed: "
        f"{_format_missed_by_judge_and_guard(reconciliation)}."
    )
    if isinstance(reconciliation.judge_blind, Interval):
        judge_blind = _format_estimate(reconciliation.judge_blind)
        yield f"  If the judge graded all conversations, it would still miss {judge_blind} bad conversations."
    yield (
        "  Another estimate, from the replies that the guard and the judge both checked: "
        f"{_format_estimated_total_bad(reconciliation)}."
    )
    yield from (f"  Note: {note}." for note in _iterate_reader_notes(reconciliation))


def _format_guard_line(reconciliation: Reconciliation) -> str:
    guard = reconciliation.counts.guard
    held_back = f"The guard blocked {plural(guard.entries, 'reply', 'replies')}"
    if not guard.entries:
        unread = isinstance(reconciliation.recall, Unknown) and reconciliation.recall.why == NO_LOG
        return f"Replies that the guard blocked: unknown, because {NO_LOG}." if unread else f"{held_back}."
    if not isinstance(reconciliation.precision, Interval):
        alarms = f". People marked {guard.wrong:,} of them as false alarms" if guard.wrong else ""
        return f"{held_back}{alarms}. The guard's precision is unknown, because {reconciliation.precision.why}."
    right = _format_estimate(reconciliation.held_back_rightly)
    return (
        f"{held_back}. People checked {guard.labelled:,} of them and marked {guard.wrong:,} as false alarms. So "
        f"the guard's precision is {_format_percent_interval(reconciliation.precision)}: {right} replies were "
        "blocked correctly."
    )


def _iterate_judge_lines(reconciliation: Reconciliation) -> Iterator[str]:
    nightly, flagged = reconciliation.counts.nightly, reconciliation.flagged
    if not isinstance(flagged, RateEstimate):
        yield f"Bad conversations that users saw: unknown, because {flagged.why}."
        return
    coverage = (
        f" (the graded conversations represent {100 * flagged.coverage:.0f} % of all)"
        if flagged.coverage < 1
        else ""
    )
    yield (
        f"In {plural(nightly.nightly_runs, 'night')}, the judge graded {nightly.graded:,} of "
        f"{plural(nightly.conversations, 'conversation')} and failed {nightly.found:,}. Estimate for all "
        f"conversations: {flagged.text}{coverage}."
    )
    if reconciliation.corrected:
        wrong, right = reconciliation.reviewed_wrong, reconciliation.reviewed_right
        record = f"{wrong:,.0f} wrong and {right:,.0f} right answers"
        bad = _format_estimate(reconciliation.served_bad)
        yield (
            f"People reviewed {record} that the judge graded. With the judge's errors corrected, the estimate is "
            f"that users saw {bad} bad conversations."
        )


def _format_missed_by_judge_and_guard(reconciliation: Reconciliation) -> str:
    if not isinstance(reconciliation.missed, Interval):
        return f"unknown, because {reconciliation.missed.why}"
    served = plural(reconciliation.counts.nightly.conversations, "conversation")
    return f"about {reconciliation.missed.value:,.0f} of {served} {_format_limits(reconciliation.missed)}"


def _format_estimated_total_bad(reconciliation: Reconciliation) -> str:
    if not isinstance(reconciliation.total_bad, Interval):
        return f"unknown, because {reconciliation.total_bad.why}"
    both = reconciliation.counts.overlap.both
    total = _format_estimate(reconciliation.total_bad)
    return f"both found {plural(both, 'bad reply', 'bad replies')}, so there were {total} in total, blocked or not"


def _iterate_reader_notes(reconciliation: Reconciliation) -> Iterator[str]:
    """Yield notes that help a reader to understand the figures."""
    counts = reconciliation.counts
    nightly = counts.nightly
    confidence = 100 * reconciliation.confidence
    yield f"in about {confidence:.0f} of 100 such reports, the true value is between the two numbers in brackets"
    if counts.guard.labelled:
        yield "the precision is correct only if the entries that people checked are representative of all entries"
    if reconciliation.corrected:
        yield (
            "the correction is valid only if the judge makes as many errors on live traffic as on the reviewed "
            "answers"
        )
    if nightly.bad_replies > nightly.found:
        yield (
            f"the guard counts replies, and {plural(nightly.found, 'bad conversation')} had "
            f"{plural(nightly.bad_replies, 'bad reply', 'bad replies')}. So the guard's real recall is a little "
            "lower"
        )
    if counts.overlap.matched:
        yield (
            f"the guard's log has {plural(counts.overlap.matched, 'entry', 'entries')} from sampled conversations. "
            f"For {counts.overlap.same_reply:,} of them, the nightly run graded the same reply"
        )
    if isinstance(reconciliation.total_bad, Interval):
        yield "the estimate from the replies that both checked is too low if both miss the same replies"
    if counts.runs_left_out:
        yield (
            f"Lookout did not count {plural(counts.runs_left_out, 'earlier night')}, because the graders or the "
            "judge changed"
        )


def _format_estimate(estimate: Figure) -> str:
    assert isinstance(estimate, Interval)
    return f"about {estimate.value:,.0f} {_format_limits(estimate)}"


def _format_limits(estimate: Interval) -> str:
    return f"[{estimate.low:,.0f}, {estimate.high:,.0f}]"


def _format_percent_interval(estimate: Interval) -> str:
    return f"{100 * estimate.value:.0f} % [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


WAIT_S: Final = 10.0


def reconcile_command(
    target: Annotated[str | None, typer.Argument(help="the name of a target; default: all targets")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option(min=1, help="the number of past days to compare")] = 7,
    as_json: JsonOption = False,
) -> ExitCode:
    """Compare the bad replies that the app's guard and the nightly judge found. Estimate how many both missed."""
    from flows.clock import utc_now  # slow: imports slack_sdk
    from flows.data_folder import open_store  # slow: imports slack_sdk

    configured = load_config(config)
    names = tuple(configured.targets) if target is None else (target,)
    for name in names:
        configured.require_target(name)
    store, until = load_new_results_into_warehouse(open_store(configured)), utc_now()
    for name in names:
        with show_waiting(f"{name}: comparing guard and judge"):
            reconciliation = reconcile_detectors(store, name, until - timedelta(days=days), until, wait_s=WAIT_S)
        if configured.targets[name].hallucination_log is None:
            reconciliation = mark_figures_unknown_without_log(reconciliation)
        if as_json:
            write_json(reconciliation.model_dump_json() + "\n")
        else:
            make_terminal_console().print(
                "\n".join(format_guard_reconciliation(reconciliation)), highlight=False, markup=False
            )
    return ExitCode.PASS
