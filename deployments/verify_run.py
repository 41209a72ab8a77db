"""Run the verify flow from the command line: a Prefect server, a progress bar, the verdict, an exit code."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

from rich.console import Console

from deployments.exit_codes import ExitCode, of_verdict
from deployments.terminal_progress import TerminalProgress
from deployments.verdict_text import print_verdict
from flows.progress import listener
from flows.request import VerifyRequest
from flows.wiring import configuration, connect_prefect, runs_folder
from flows.wiring import console as message_console
from monitors.config import Config
from monitors.goldset.load import load_suite
from monitors.records.base import Severity
from monitors.records.runs import RunReport


def verify_and_print(request: VerifyRequest, *, as_json: bool) -> ExitCode:
    """Verify, print, and say by exit code how it went."""
    report = verified(request)
    if report is None:
        return ExitCode.INCONCLUSIVE
    if as_json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    else:
        folder = runs_folder(configuration(request)) / report.run_id
        print_verdict(Console(), report, report_page=folder / "report.html")
    return of_verdict(report.verdict)


def verified(request: VerifyRequest) -> RunReport | None:
    """The run's report; ``None`` when a person stopped it. Ctrl-C keeps what was answered."""
    console = message_console
    config = configuration(request)
    _say_what(console, config, request)
    connect_prefect(config)
    with TerminalProgress(console) as progress:
        listener.set(progress)
        try:
            return asyncio.run(_flow(request))
        except (KeyboardInterrupt, asyncio.CancelledError):
            _say_stopped(console, progress)
            return None


def _say_what(console: Console, config: Config, request: VerifyRequest) -> None:
    """What will be asked, read before anything slow starts: a broken suite is told in a second."""
    target = config.target(request.target)
    suite = load_suite(target.suite)
    severe = sum(case.severity is Severity.PAGE for case in suite.cases)
    console.print(
        f"[bold]{request.target}[/]  {target.url or target.space}  ·  {suite.name}: {len(suite.cases)} cases, "
        f"{severe} of severity 3",
        highlight=False,
    )


async def _flow(request: VerifyRequest) -> RunReport:
    from flows.verify_deploy import verify_deploy  # Prefect takes 3 s to import, and reads its settings then

    # A flow that returns a state hands out the state's data.
    return cast("RunReport", await verify_deploy(request))


def _say_stopped(console: Console, progress: TerminalProgress) -> None:
    if progress.run_id is None:
        console.print("\nStopped before anything was asked.")
        return
    console.print(
        f"\nStopped: {progress.answered} of {progress.cases} answers of run {progress.run_id} are kept. "
        "The same command within the hour goes on from there."
    )
