"""Run the verify flow from the command line: a Prefect server, a progress bar, the verdict, an exit code."""

from __future__ import annotations

import asyncio
import os
import sys

from rich.console import Console

from deployments.exit_codes import ExitCode, of_verdict
from deployments.terminal_progress import TerminalProgress
from deployments.verdict_text import print_verdict
from flows import prefect_server
from flows.progress import listener
from flows.request import VerifyRequest
from flows.wiring import configuration, prefect_home, runs_folder
from flows.wiring import console as message_console
from monitors.records.runs import RunReport


def verify_and_print(request: VerifyRequest, *, as_json: bool) -> ExitCode:
    """Verify, print, and say by exit code how it went. Ctrl-C keeps what was answered."""
    console = message_console
    config = configuration(request)
    prefect_server.connect(
        config.prefect.api_url,
        prefect_home(config),
        environment=os.environ,
        start_timeout_s=config.prefect.start_timeout_s,
        say=lambda line: console.print(f"[dim]{line}[/]"),
    )
    with TerminalProgress(console) as progress:
        listener.set(progress)
        try:
            report = asyncio.run(_flow(request))
        except (KeyboardInterrupt, asyncio.CancelledError):
            _say_stopped(console, progress)
            return ExitCode.INCONCLUSIVE
    if as_json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    else:
        print_verdict(Console(), report, report_page=runs_folder(config) / report.run_id / "report.html")
    return of_verdict(report.verdict)


async def _flow(request: VerifyRequest) -> RunReport:
    from flows.verify_deploy import verify_deploy  # Prefect takes 3 s to import, and reads its settings then

    return await verify_deploy(request)


def _say_stopped(console: Console, progress: TerminalProgress) -> None:
    if progress.run_id is None:
        console.print("\nStopped before anything was asked.")
        return
    console.print(
        f"\nStopped: {progress.answered} of {progress.cases} answers of run {progress.run_id} are kept. "
        "The same command within the hour goes on from there."
    )
