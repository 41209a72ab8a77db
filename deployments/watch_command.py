"""``lookout watch``: follow the hallucination logs from a terminal, telling what is new as the schedule would."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from deployments.exit_codes import ExitCode
from flows.log_follower import LogFollower, Looked
from flows.log_wiring import follower, logs_to_follow
from flows.log_words import in_words
from monitors.config import load_config
from monitors.errors import MonitorError


def watch_command(config_path: Path, target: str | None, *, once: bool, as_json: bool) -> ExitCode:
    """Look until interrupted, or once. What breaks is said, and the next look tries again.

    Exit code 0; 4 when a single look could not be made.
    """
    config = load_config(config_path)
    followers = [follower(config, name) for name in logs_to_follow(config, target)]
    console = Console(stderr=True)
    for one in followers:
        every = "once" if once else f"every {one.settings.look_s:g} s"
        console.print(f"[bold]{one.desk.target}[/]  {one.settings.at}  ·  {every}", highlight=False)
    return asyncio.run(_watch(followers, console, once=once, as_json=as_json))


async def _watch(followers: Sequence[LogFollower], console: Console, *, once: bool, as_json: bool) -> ExitCode:
    codes = await asyncio.gather(*(_follow(one, console, once=once, as_json=as_json) for one in followers))
    return max(codes)


async def _follow(one: LogFollower, console: Console, *, once: bool, as_json: bool) -> ExitCode:
    while True:
        code = await _look(one, console, as_json=as_json, say_nothing=not once)
        if once:
            return code
        await asyncio.sleep(one.settings.look_s)


async def _look(one: LogFollower, console: Console, *, as_json: bool, say_nothing: bool) -> ExitCode:
    try:
        looked = await one.look()
    except MonitorError as error:
        console.print(f"{one.desk.target}: {error}", style="red", highlight=False)
        return ExitCode.MONITOR
    if as_json:
        sys.stdout.write(looked.model_dump_json() + "\n")
        sys.stdout.flush()
    elif _is_news(looked) or not say_nothing:
        console.print(f"[dim]{one.desk.now():%H:%M:%S}[/]  {in_words(looked)}", highlight=False)
    return ExitCode.MONITOR if looked.unreadable else ExitCode.PASS


def _is_news(looked: Looked) -> bool:
    return bool(looked.unreadable or looked.alerts or looked.found.history or looked.found.aside_count)
