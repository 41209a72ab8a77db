"""``lookout watch``: follow the hallucination logs in a terminal, and send alerts about new entries.

With ``--runs``, the command also starts runs, for a Prefect work pool. ``lookout up`` does this itself.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.cli.data_folder import claim_data_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, JsonOption, MovedOption
from flows.clock import utc_now
from flows.hallucination_log.follower import LogFollower, build_log_follower, format_poll, select_targets_to_follow
from flows.runtime.run import start_or_connect_to_prefect
from flows.runtime.slack import write_line_to_stderr
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError


def watch_command(
    target: Annotated[
        str | None, typer.Argument(help="the name of a target with a hallucination_log; default: all such targets")
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="read each log once, then exit")] = False,
    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="also watch Spaces, deploys and traffic sources, and start a Prefect run for each change. Use "
            "this only with a work pool, because `lookout up` does this itself",
        ),
    ] = False,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Follow the applications' hallucination logs. Store new entries and send alerts about them."""
    loaded = load_config(config)
    claim_data_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
    if runs:
        if target is not None or once:
            raise ConfigError("--runs watches all targets until you stop it, so give neither a target nor --once")
        return _watch_and_start_runs(loaded, config.resolve())
    followers = [build_log_follower(loaded, name) for name in select_targets_to_follow(loaded, target)]
    console = make_terminal_console(stderr=True)
    for log_follower in followers:
        every = "once" if once else f"every {log_follower.settings.poll_s:g} s"
        console.print(
            f"[bold]{log_follower.notifier.target}[/]  {log_follower.settings.at}  ·  {every}", highlight=False
        )

    async def follow_all_logs() -> ExitCode:
        codes = (_follow_log(log_follower, console, once=once, as_json=as_json) for log_follower in followers)
        return max(await asyncio.gather(*codes))

    return asyncio.run(follow_all_logs())


def _watch_and_start_runs(config: Config, config_path: Path) -> ExitCode:
    start_or_connect_to_prefect(config)
    from flows.watching.watcher import Watcher  # Prefect reads its settings at import, so it must be connected

    watcher = Watcher(config, config_path, now=utc_now, write_line=write_line_to_stderr)
    if not watcher.names:
        raise ConfigError(
            "there is nothing to watch. Configure a Space, a hallucination_log, a traffic source or a GitHub "
            "trigger for a target"
        )
    write_line_to_stderr(f"watching {', '.join(watcher.names)}")
    asyncio.run(watcher.run())
    return ExitCode.PASS


async def _follow_log(log_follower: LogFollower, console: Console, *, once: bool, as_json: bool) -> ExitCode:
    while True:
        code = await _poll_log(log_follower, console, as_json=as_json, is_quiet=not once)
        if once:
            return code
        # A log file sends no events, so it is polled at the configured interval.
        await asyncio.sleep(log_follower.settings.poll_s)


async def _poll_log(log_follower: LogFollower, console: Console, *, as_json: bool, is_quiet: bool) -> ExitCode:
    """Read the log once. Return the exit code MONITOR if the log, or a part of it, could not be read."""
    result = await log_follower.poll_and_report_errors()
    if as_json:
        write_json(result.model_dump_json() + "\n")
    elif not is_quiet or result.unreadable or result.alerts or result.found.history or result.found.aside_count:
        console.print(f"[dim]{log_follower.notifier.now():%H:%M:%S}[/]  {format_poll(result)}", highlight=False)
    return ExitCode.MONITOR if result.unreadable or result.found.aside_count else ExitCode.PASS
