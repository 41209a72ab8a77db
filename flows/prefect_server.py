"""A Prefect server to record runs on: the configured one, or a local one that is started once and reused.

Must be called before anything imports ``prefect``, which reads its settings from the environment at import.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import httpx

from monitors.errors import MonitorError, WarehouseUnwritable
from monitors.records.base import Record

POLL_INTERVAL_S = 0.2
HEALTH_TIMEOUT_S = 10.0
"""A server on a machine at its limit answers late; one that is gone refuses at once."""

FIRST_PORT = 4200
PORTS_TO_TRY = 50
PORT_FREED_S = 3.0
STOP_TIMEOUT_S = 30.0

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process has started: they outlive it, but while it lives it must reap them."""


class PrefectUnavailable(MonitorError):
    """No Prefect server answers, and none could be started."""

    retryable = True


class LocalServer(Record):
    """A local server as noted beside its database, so that the next run finds it."""

    pid: int
    port: int

    @property
    def api_url(self) -> str:
        """Where its API answers."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui_url(self) -> str:
        """Where people look at runs."""
        return f"http://127.0.0.1:{self.port}"


def settings_for(api_url: str, home: Path) -> dict[str, str]:
    """Environment variables that a Prefect client of ours needs, besides what the user has set.

    Logs go to the server, where a run's page shows them; the terminal shows the run itself.
    """
    return {
        "PREFECT_API_URL": api_url,
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
    }


def connect(
    configured_url: str | None,
    home: Path,
    *,
    environment: MutableMapping[str, str],
    start_timeout_s: float,
    say: Callable[[str], None],
) -> LocalServer | None:
    """Point ``environment`` at a server that answers; the local server when it is ours, else ``None``.

    A URL in the configuration wins over ``PREFECT_API_URL``, which wins over a local server. A configured server
    that does not answer is an error: a second, empty one would hide it. ``say`` gets one line when the start takes
    time.
    """
    url = configured_url or environment.get("PREFECT_API_URL")
    local = None
    if url is None:
        local = _local_server(home, environment, start_timeout_s, say)
        url = local.api_url
    elif not _answers(url):
        raise PrefectUnavailable(
            f"no Prefect server answers at {url}; start it, or leave the address out to get a local one"
        )
    _make(home)
    for name, value in settings_for(url, home).items():
        if name in ("PREFECT_API_URL", "PREFECT_HOME"):
            environment[name] = value
        else:
            environment.setdefault(name, value)
    return local


def running_server(home: Path) -> LocalServer | None:
    """The local server of ``home`` if it lives and answers: on its port another one may listen by now."""
    server = _noted(home)
    return server if server and _lives(server.pid) and _answers(server.api_url) else None


def _noted(home: Path) -> LocalServer | None:
    try:
        return LocalServer.model_validate_json(_note(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _lives(pid: int) -> bool:
    """Whether it is a server still: after a restart of the machine the number may be anybody's."""
    try:
        return b"prefect\0server\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        pass
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stop_server(home: Path) -> bool:
    """Stop the local server of ``home``, once it has this process's last log lines; false when none was running."""
    server = running_server(home)
    if server is None:
        return False
    if "prefect" in sys.modules:
        from prefect.logging.handlers import APILogHandler  # loaded already, or there is nothing to send

        APILogHandler().flush()
    os.killpg(server.pid, signal.SIGTERM)
    child = _children.pop(server.pid, None)
    if child is not None:
        child.wait(STOP_TIMEOUT_S)
    _note(home).unlink(missing_ok=True)
    return True


def _local_server(
    home: Path, environment: Mapping[str, str], start_timeout_s: float, say: Callable[[str], None]
) -> LocalServer:
    _make(home)
    with _one_at_a_time(home):
        known = running_server(home)
        if known is not None:
            return known
        say("Starting a local Prefect server (about 15 s; it is reused by later runs) …")
        with _one_choice_of_port(start_timeout_s):
            return _start(home, environment, start_timeout_s)


def _make(home: Path) -> None:
    """Prefect makes no folder above its home, and warns of it at every start."""
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseUnwritable(
            f"{home}: cannot be written ({error.strerror}); set data_folder in lookout.toml to a folder that can"
        ) from error


def _start(home: Path, environment: Mapping[str, str], start_timeout_s: float) -> LocalServer:
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]
    before = _noted(home)
    # Who knows the server at its old place need not look for it when it comes back there.
    port = _free_port(before.port if before else None)
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    variables = {**environment, **settings_for(f"http://127.0.0.1:{port}/api", home)}
    log = home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            command, env=variables, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
        )
    _children[process.pid] = process
    server = LocalServer(pid=process.pid, port=port)
    deadline = time.monotonic() + start_timeout_s
    while not _answers(server.api_url):
        if process.poll() is not None:
            raise PrefectUnavailable(
                f"the local Prefect server ended with code {process.returncode}; its log: {log}"
            )
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            raise PrefectUnavailable(
                f"the local Prefect server did not answer within {start_timeout_s:g} s; its log: {log}; "
                "give it longer with prefect.start_timeout_s"
            )
        time.sleep(POLL_INTERVAL_S)
    _note(home).write_text(server.model_dump_json(), encoding="utf-8")
    return server


def _note(home: Path) -> Path:
    return home / "server.json"


def _answers(api_url: str) -> bool:
    try:
        answer = httpx.get(
            f"{api_url.rstrip('/')}/health", timeout=HEALTH_TIMEOUT_S, trust_env=not _is_local(api_url)
        )
    except httpx.HTTPError:
        return False
    return answer.is_success and _is_json(answer.text)


def _is_local(api_url: str) -> bool:
    """A proxy stands between us and other machines, never between us and ourselves."""
    return httpx.URL(api_url).host in ("127.0.0.1", "localhost", "::1")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _free_port(known: int | None) -> int:
    """The ``known`` one, or Prefect's usual port, or the next one that nobody listens on.

    A server that was just killed holds its port for a moment.
    """
    end = time.monotonic() + PORT_FREED_S
    while known is not None and time.monotonic() < end:
        if _is_free(known):
            return known
        time.sleep(POLL_INTERVAL_S)
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TO_TRY):
        if _is_free(port):
            return port
    raise PrefectUnavailable(
        f"ports {FIRST_PORT} to {FIRST_PORT + PORTS_TO_TRY - 1} are taken; set PREFECT_API_URL to a server of yours"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that was killed leaves remains
        return _bound(probe, port)


@contextmanager
def _one_choice_of_port(wait_s: float) -> Generator[None]:
    """Two servers of one machine that start together, of two data folders, must not both take the next free port.

    Held until the server listens: one that loses the port dies late, and the other's answers would pass for its
    own. What is held is the same number as a UDP port, which ends with this process. When it is still taken after
    ``wait_s`` seconds, it is something else's, and the start goes on without.
    """
    end = time.monotonic() + wait_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as choosing:
        while not _bound(choosing, FIRST_PORT) and time.monotonic() < end:
            time.sleep(POLL_INTERVAL_S)
        yield


def _bound(to_be: socket.socket, port: int) -> bool:
    try:
        to_be.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


@contextmanager
def _one_at_a_time(home: Path) -> Generator[TextIO]:
    """Two runs that start together start one server."""
    with (home / "server.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
