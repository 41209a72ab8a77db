"""``lookout watch``: follow the hallucination logs in a terminal, and send alerts as a run would.

With ``--runs`` it is the watcher of a work pool: the one that ``lookout up`` has in its runner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.cli.data_folder import settle_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, JsonOption, MovedOption
from flows.clock import utc_now
from flows.hallucination_log.follower import (
    LogFollower,
    LogPoll,
    build_log_follower,
    format_poll,
    list_targets_with_logs,
)
from flows.runtime.run import connect_to_prefect
from flows.runtime.slack import log_line
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError


def watch_command(
    target: Annotated[str | None, typer.Argument(help="a target with a hallucination_log; default: all")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="poll once and end")] = False,
    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="also watch Spaces and deploys, and start a Prefect run for what is new; for a work pool, since "
            "`lookout up` does it itself",
        ),
    ] = False,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Follow the applications' hallucination logs; store new entries and send alerts about them."""
    loaded = load_config(config)
    settle_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
    if runs:
        if target is not None or once:
            raise ConfigError(
                "--runs watches all targets until it is stopped; it takes neither a target nor --once"
            )
        return _watch_with_runs(loaded, config.resolve())
    followers = [build_log_follower(loaded, name) for name in list_targets_with_logs(loaded, target)]
    console = make_terminal_console(stderr=True)
    for log_follower in followers:
        every = "once" if once else f"every {log_follower.settings.poll_s:g} s"
        console.print(
            f"[bold]{log_follower.notifier.target}[/]  {log_follower.settings.at}  ·  {every}", highlight=False
        )
    return asyncio.run(_watch_logs(followers, console, once=once, as_json=as_json))


def _watch_with_runs(config: Config, config_path: Path) -> ExitCode:
    connect_to_prefect(config)
    from flows.watching.watcher import Watcher  # Prefect reads its settings at import, so it must be connected

    watcher = Watcher(config, config_path, now=utc_now, write_line=log_line)
    if not watcher.names:
        raise ConfigError(
            "there is nothing to watch: no target has a Space, a hallucination_log or a GitHub trigger"
        )
    log_line(f"watching {', '.join(watcher.names)}")
    asyncio.run(watcher.run())
    return ExitCode.PASS


async def _watch_logs(followers: Sequence[LogFollower], console: Console, *, once: bool, as_json: bool) -> ExitCode:
    codes = await asyncio.gather(
        *(_follow_log(log_follower, console, once=once, as_json=as_json) for log_follower in followers)
    )
    return max(codes)


async def _follow_log(log_follower: LogFollower, console: Console, *, once: bool, as_json: bool) -> ExitCode:
    while True:
        code = await _poll_log(log_follower, console, as_json=as_json, say_nothing=not once)
        if once:
            return code
        # A log file is polled; its pause is a setting.
        await asyncio.sleep(log_follower.settings.poll_s)


async def _poll_log(log_follower: LogFollower, console: Console, *, as_json: bool, say_nothing: bool) -> ExitCode:
    """Poll once; return MONITOR when the log could not be read. The next poll tries again."""
    result = await log_follower.poll_and_report_errors()
    if as_json:
        write_json(result.model_dump_json() + "\n")
    elif _has_news(result) or not say_nothing:
        console.print(f"[dim]{log_follower.notifier.now():%H:%M:%S}[/]  {format_poll(result)}", highlight=False)
    return ExitCode.MONITOR if result.unreadable or result.found.aside_count else ExitCode.PASS


def _has_news(result: LogPoll) -> bool:
    return bool(result.unreadable or result.alerts or result.found.history or result.found.aside_count)
