"""``lookout watch``: follow the hallucination logs in a terminal, and send alerts as the schedule would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from deployments.cli.data_folder import settle_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, JsonOption, MovedOption
from flows.hallucination_log.follower import LogFollower, LogPoll, build_follower, format_poll, list_logs_to_follow
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console
from monitors.config.file import load_config


def watch_command(
    target: Annotated[str | None, typer.Argument(help="a target with a hallucination_log; default: all")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="poll once and end")] = False,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Follow the applications' hallucination logs; store new entries and send alerts about them."""
    loaded = load_config(config)
    settle_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
    followers = [build_follower(loaded, name) for name in list_logs_to_follow(loaded, target)]
    console = make_terminal_console(stderr=True)
    for log_follower in followers:
        every = "once" if once else f"every {log_follower.settings.poll_s:g} s"
        console.print(
            f"[bold]{log_follower.notifier.target}[/]  {log_follower.settings.at}  ·  {every}", highlight=False
        )
    return asyncio.run(_watch_logs(followers, console, once=once, as_json=as_json))


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
    result = await log_follower.poll_or_report()
    if as_json:
        write_json(result.model_dump_json() + "\n")
    elif _has_news(result) or not say_nothing:
        console.print(f"[dim]{log_follower.notifier.now():%H:%M:%S}[/]  {format_poll(result)}", highlight=False)
    return ExitCode.MONITOR if result.unreadable or result.found.aside_count else ExitCode.PASS


def _has_news(result: LogPoll) -> bool:
    return bool(result.unreadable or result.alerts or result.found.history or result.found.aside_count)
