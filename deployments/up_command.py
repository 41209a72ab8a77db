"""``lookout up``: the whole monitor on one machine, in the foreground, with one log, until it is told to stop."""

from __future__ import annotations

import asyncio
import fcntl
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from deployments.exit_codes import ExitCode
from deployments.supervisor import OWN_NAME, Part, Patience, Supervisor, Voice
from deployments.up_parts import check_whole, parts_of
from flows.fault_over import fault_over
from flows.monitor_fault import Fault, tell_fault
from flows.wiring import desk_without_run, utc_now
from monitors.config import Config, load_config
from monitors.errors import ConfigError

SUBJECT: Final = "up"
"""What the messages are about, in the place of a target's name."""


def up_command(config_path: Path, *, host: str, port: int, environment: Mapping[str, str]) -> ExitCode:
    """Run everything until SIGTERM or SIGINT; exit code 0 then.

    Raises `ConfigError` naming all that is missing or wrong before anything is started.
    """
    absolute = config_path.resolve()
    config = load_config(absolute)
    check_whole(config, host=host, port=port, environment=environment)
    parts = parts_of(config, absolute, host=host, port=port, environment=environment)
    with _only_one(config):
        log = log_to_stderr(utc_now)
        log(OWN_NAME, f"{absolute}: {', '.join(part.name for part in parts)}")
        if not config.deploys.triggers:
            log(OWN_NAME, "no [[deploys.triggers]]: no deploy is received, targets with a Space are looked at")
        asyncio.run(_run(parts, voice_of(config, log)))
    return ExitCode.PASS


async def _run(parts: tuple[Part, ...], voice: Voice) -> None:
    supervisor = Supervisor(parts, voice, Patience())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    await supervisor.run()


def voice_of(config: Config, log: Callable[[str, str], None]) -> Voice:
    """The log, and the messages about the monitor itself."""

    async def dies_again(name: str, deaths: int, code: int) -> None:
        detail = (
            f"The part {name!r} of `lookout up` has died {deaths} times in a row, last with exit code {code}. "
            "It is started again and again; its last lines in the log of `lookout up` say why."
        )
        desk = await asyncio.to_thread(desk_without_run, config, SUBJECT)
        await tell_fault(desk, Fault(_fault_name(name), detail))

    async def stands_again(name: str) -> None:
        desk = await asyncio.to_thread(desk_without_run, config, SUBJECT)
        words = f"The part {name!r} of `lookout up` stands again."
        await fault_over(desk, _fault_name(name), began_at=desk.now(), words=words)

    return Voice(log=log, dies_again=dies_again, stands_again=stands_again)


def log_to_stderr(now: Callable[[], datetime]) -> Callable[[str, str], None]:
    """One line each, with its time in UTC and the name of its part."""

    def log(name: str, line: str) -> None:
        sys.stderr.write(f"{now():%Y-%m-%dT%H:%M:%SZ} {name:<8} | {line}\n")
        sys.stderr.flush()

    return log


def _fault_name(part: str) -> str:
    return f"PartDies:{part}"


@contextmanager
def _only_one(config: Config) -> Generator[None]:
    """Two over one data folder would do everything twice. The lock ends with this process, however it ends."""
    with (config.data_folder / "up.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"another `lookout up` runs over {config.data_folder}; stop it first, or set another data_folder"
            ) from None
        yield
