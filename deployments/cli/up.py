"""``lookout up``: the whole monitor on one machine, in the foreground, with one log, until SIGTERM or SIGINT.

``lookout down`` ends the local Prefect server of a data folder, and says what else is running.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from deployments.cli.data_folder import data_folder_of
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from deployments.receivers.slack_actions import SECRET_VARIABLE as SLACK_SECRET
from deployments.up.one_installation import LOCK_NAME, is_held, only_one
from deployments.up.parts import LAST_PORT, check_deploys, check_whole, parts_of, site_port
from deployments.up.supervisor import OWN_NAME, RestartPolicy, SupervisedProcess, Supervisor, SupervisorLog
from flows.alerting.faults import Fault, notify_fault, resolve_faults
from flows.clock import utc_now
from flows.data_folder import PREFECT_FOLDER, RUNS_FOLDER
from flows.runtime.secrets import environment
from flows.runtime.slack import TOKEN_VARIABLE, WEBHOOK_VARIABLE, notifier_without_run
from flows.server import prefect_server
from flows.server.prefect_server import LocalServer, ServerOnMachine
from flows.server.schedules import planned_deployments
from flows.terminal import print_text, write_json, write_note
from flows.waiting import waiting
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, WarehouseUnwritable
from monitors.records.base import Record
from monitors.records.incidents import Capability

CONFIGURATION_EVERY_S: Final = 5.0
SUBJECT: Final = "up"
"""The subject of the messages, in the place of a target's name."""


def up_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address that receivers listen on")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=1, max=LAST_PORT, help="port for deploys; Slack's buttons have the next, the site the one after"
        ),
    ] = 8066,
) -> ExitCode:
    """Run the whole monitor on this machine: server, schedules, receivers, pages; until SIGTERM or Ctrl-C."""
    absolute = config.resolve()
    loaded = load_config(absolute)
    with ExitStack() as held:
        try:
            held.enter_context(
                only_one(loaded.data_folder, utc_now)
            )  # before the ports: they are the other one's too
        except WarehouseUnwritable:
            check_whole(loaded, host=host, port=port, environment=environment())  # which lists it with all else
            raise
        check_whole(loaded, host=host, port=port, environment=environment())
        parts = parts_of(loaded, absolute, host=host, port=port, environment=environment())
        log = _announced(absolute, parts)
        if loaded.site.enabled:
            log(OWN_NAME, f"the site: {loaded.site.address(site_port(loaded, port))}")
        for note in _left_out(loaded, environment()):
            log(OWN_NAME, note)
        asyncio.run(_run(parts, voice_of(loaded, log), absolute))
    return ExitCode.PASS


def _left_out(config: Config, variables: Mapping[str, str]) -> Iterator[str]:
    """What the owner may believe to be on, and is not."""
    if not config.deploys.triggers:
        instead = any(one.space is not None for one in config.targets.values())
        polled = "; the running commit of each Space is polled instead" if instead else ""
        yield f"no [[deploys.triggers]]: no deploy is received{polled}"
    if config.judge is not None:
        lacking = sorted({one.key_from for one in config.judge.models if not variables.get(one.key_from)})
        if lacking:
            yield f"the judge is off, and what it would decide stays ungraded: {', '.join(lacking)} is not set"
    if not variables.get(TOKEN_VARIABLE) and not variables.get(WEBHOOK_VARIABLE):
        yield f"nobody is alerted: neither {WEBHOOK_VARIABLE} nor {TOKEN_VARIABLE} is set, messages end in this log"
    if variables.get(SLACK_SECRET) and not config.alerts.slack_buttons:
        yield f"messages carry no buttons, although {SLACK_SECRET} is set: set slack_buttons = true under [alerts]"


def receive_and_run(
    config: Config, config_path: Path, *, host: str, port: int, environment: Mapping[str, str]
) -> ExitCode:
    """Run the receiver of deploys with a server and a runner, until SIGTERM or SIGINT; exit code 0.

    ``config_path`` is absolute. Raises `AlreadyRuns` when a ``lookout up`` runs over the data folder, and
    `ConfigError` for a deployment that is not Lookout's to register, or a port that is taken.
    """
    planned = {one.full_name for one in planned_deployments(config, config_path, config.schedules)}
    if config.deploys.deployment not in planned:
        raise ConfigError(
            f"deploys.deployment = {config.deploys.deployment!r} is a deployment of your own: serve it at a "
            "Prefect server that prefect.api_url names, or start `lookout receive --only` and see to its runs "
            "yourself"
        )
    with only_one(config.data_folder, utc_now):
        check_deploys(config, host=host, port=port, environment=environment)
        parts = parts_of(config, config_path, host=host, port=port, environment=environment, only_deploys=True)
        log = _announced(config_path, parts)
        log(OWN_NAME, "only deploys are verified; `lookout up` also keeps the schedules and follows logs")
        asyncio.run(_run(parts, voice_of(config, log), config_path))
    return ExitCode.PASS


def _announced(config_path: Path, parts: Sequence[SupervisedProcess]) -> Callable[[str, str], None]:
    """The log, which starts with the parts that are kept alive."""
    log = log_to_stderr(utc_now)
    log(OWN_NAME, f"{config_path}: {', '.join(part.name for part in parts)}")
    return log


async def _run(parts: tuple[SupervisedProcess, ...], voice: SupervisorLog, config_path: Path) -> None:
    supervisor = Supervisor(parts, voice, RestartPolicy())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    watching = loop.create_task(_watch_configuration(config_path, voice.log))
    try:
        await supervisor.run()
    finally:
        watching.cancel()


async def _watch_configuration(path: Path, log: Callable[[str, str], None]) -> None:
    """Say what becomes of a change of the configuration: runs read it anew, what keeps running does not."""
    known = seen = await asyncio.to_thread(_content, path)
    while True:
        # A file is polled: its editor may replace it, which ends a watch on it.
        await asyncio.sleep(CONFIGURATION_EVERY_S)
        before, seen = seen, await asyncio.to_thread(_content, path)
        if seen in {known, None} or seen != before:  # an editor may be just writing it
            continue
        known = seen
        try:
            await asyncio.to_thread(load_config, path)
        except ConfigError as error:
            log(OWN_NAME, f"{path.name} has changed and cannot be read, so that no run can begin: {error}")
        else:
            log(
                OWN_NAME,
                f"{path.name} has changed: the next run of each target reads it; schedules, receivers and the site "
                "keep what they began with until `lookout up` is started again",
            )


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def voice_of(config: Config, log: Callable[[str, str], None]) -> SupervisorLog:
    """The log, and the messages about the monitor itself."""

    async def dies_again(name: str, deaths: int, code: int) -> None:
        detail = (
            f"The part {name!r} of `lookout up` has died {deaths} times in a row, last with exit code {code}. "
            "It is started again and again; its last lines in the log of `lookout up` say why."
        )
        notifier = await asyncio.to_thread(notifier_without_run, config, SUBJECT, Capability.UP)
        await notify_fault(notifier, Fault(_fault_name(name), detail))

    async def stands_again(name: str) -> None:
        notifier = await asyncio.to_thread(notifier_without_run, config, SUBJECT, Capability.UP)
        text = f"The part {name!r} of `lookout up` stands again."
        await resolve_faults(notifier, {_fault_name(name): text}, began_at=notifier.now())

    return SupervisorLog(log=log, dies_again=dies_again, stands_again=stands_again)


def log_to_stderr(now: Callable[[], datetime]) -> Callable[[str, str], None]:
    """One line each, with its time in UTC and the name of its part."""

    def log(name: str, line: str) -> None:
        write_note(f"{now():%Y-%m-%dT%H:%M:%SZ} {name:<8} | {line}\n")

    return log


def _fault_name(part: str) -> str:
    return f"PartDies:{part}"


class ShutdownReport(Record):
    """What ``lookout down`` did: the server that it ended, ``None`` when none ran, and other folders' servers."""

    data_folder: Path
    ended: LocalServer | None
    running: tuple[ServerOnMachine, ...]


def down_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    force: Annotated[bool, typer.Option("--force", help="also while a run needs it")] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """End the local Prefect server that runs have left running, and list those of other data folders."""
    folder = data_folder_of(config, data_folder).resolve()
    home = folder / PREFECT_FOLDER
    known = next((one for one in prefect_server.servers_on_machine() if one.home.resolve() == home), None)
    if not force:
        _refuse_while_used(folder)
    noted = prefect_server.noted_server(home)
    with waiting("Ending the Prefect server"):
        ended = noted if prefect_server.stop_server(home) else None
    found = ShutdownReport(data_folder=folder, ended=ended, running=prefect_server.servers_on_machine())
    if as_json:
        write_json(found.model_dump_json(indent=2) + "\n")
    else:
        for line in _lines(found, known, _own_server(config, environment())):
            print_text(line)
    return ExitCode.PASS


def _refuse_while_used(folder: Path) -> None:
    if is_held(folder / LOCK_NAME):
        raise ConfigError(
            f"`lookout up` runs over {folder} and would start its server again; stop that first (Ctrl-C, or "
            "systemctl stop lookout)"
        )
    runs = folder / RUNS_FOLDER
    held = [lock for pattern in ("*/*.lock", ".*.lock") for lock in runs.glob(pattern) if is_held(lock)]
    if held:
        named = held[0].parent.name if held[0].parent != runs else "a nightly run"
        raise ConfigError(f"{folder}: {named} is going on and needs the server; wait for it, or say --force")


def _own_server(config: Path, environment: Mapping[str, str]) -> str | None:
    """Somebody's own Prefect server, which we must not end."""
    configured = load_config(config).prefect.api_url if config.exists() else None
    return configured or environment.get("PREFECT_API_URL")


def _lines(found: ShutdownReport, known: ServerOnMachine | None, own: str | None) -> Iterator[str]:
    if found.ended is not None:
        memory = f", {known.memory_mb:.0f} MB" if known and known.memory_mb else ""
        yield f"Ended the Prefect server of {found.data_folder} ({found.ended.ui_url}{memory})."
    else:
        yield f"No local Prefect server of {found.data_folder} is running."
    if own is not None:
        yield f"{own} is a Prefect server of your own: it was left alone."
    if found.running:
        yield "These belong to other data folders; leave them if they are not yours:"
    for one in found.running:
        yield f"  {one.server.ui_url}  {one.memory_mb:.0f} MB  {one.home.parent}"
    if found.running:
        yield "`lookout down --data-folder FOLDER` ends one of yours."
