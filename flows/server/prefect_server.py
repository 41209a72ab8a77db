"""Finds the Prefect server that records runs: the configured server, or a local server that is started if needed.

Call `connect_or_start` before anything imports ``prefect``, because Prefect reads its settings from the environment
at import.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, cast

import httpx

from monitors.child_environment import build_child_environment
from monitors.errors import MonitorError
from monitors.records.base import Record
from monitors.storage import make_private_folder, open_without_links, write_atomically
from warehouse.data_folder import open_lock_file

POLL_INTERVAL_S = 0.2
HEALTH_TIMEOUT_S = 10.0
"""Timeout for an answer of the server in seconds.

A server on an overloaded machine answers late. If no server runs, there is no wait, because the connection is
refused immediately.
"""

FIRST_PORT = 4200
PORTS_TO_TRY = 50
PORT_RELEASE_TIMEOUT_S = 3.0
STOP_TIMEOUT_S = 30.0
MAX_PORTS_LOST = 3
"""The start fails if another server takes the chosen port this many times."""
PROGRESS_INTERVAL_S = 30.0
"""Interval in seconds at which the progress of a slow start is reported."""
LOG = "server.log"
HEAP_LIMITS = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
"""Environment variables that limit the memory that glibc holds. The two thresholds are in bytes.

By default, each thread has its own heap. These heaps cost an idle server 3 to 13 MB. By default, freed blocks of up
to 32 MB also stay in the heap. They cost 6 MB.
"""

_WHEN_NOTED = (
    "import os, sys; os.read(0, 1) or sys.exit(1); os.dup2(os.open(os.devnull, os.O_RDONLY), 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""Code that the server's process runs first.

The code waits for a byte that confirms that the process's pid is stored.

If the parent process is killed before it sends this byte, the pipe ends, and the server's process also ends.
Therefore the pid of every running server is stored.
"""

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process has started, and whose exit codes it collects. A server may outlive this process."""


class PrefectUnavailable(MonitorError):
    """Raised if no Prefect server answers and none could be started."""

    retryable = True


class LocalServer(Record):
    """A local server. The next run finds the server through a file beside the server's database."""

    pid: int
    port: int

    @property
    def api_url(self) -> str:
        """The URL of the server's API."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui_url(self) -> str:
        """The URL of the server's UI."""
        return f"http://127.0.0.1:{self.port}"


def build_client_settings(api_url: str, home: Path) -> dict[str, str]:
    """Build the environment variables that Lookout's Prefect clients need besides the user's variables.

    Prefect's logs are not printed. They are sent to the server, which shows them on the page of a run.
    """
    return {
        "PREFECT_API_URL": api_url,
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",  # by default, Prefect stores runs for ever
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
    }


def connect_or_start(
    configured_url: str | None,
    home: Path,
    *,
    environment: MutableMapping[str, str],
    start_timeout_s: float,
    write_line: Callable[[str], None],
    outlives: bool = True,
) -> LocalServer | None:
    """Set the variables in ``environment`` for a server that answers. Return the server if it is a local server.

    A URL in the configuration has the highest priority, then ``PREFECT_API_URL``, then a local server. A configured
    server that does not answer is an error, because a second, empty server would hide the fault. When a local
    server starts, ``write_line`` is called with a progress line, and again every 30 seconds. ``outlives`` is false
    if the caller stops the server itself.
    """
    home = home.absolute()
    url = configured_url or environment.get("PREFECT_API_URL")
    local = None
    if url is None:
        local = _ensure_local_server(home, environment, start_timeout_s, write_line, outlives=outlives)
        url = local.api_url
    elif not _is_answering(url):
        raise PrefectUnavailable(
            f"no Prefect server answers at {url} (from PREFECT_API_URL or prefect.api_url). Start that server, or "
            "remove the address, so that Lookout starts a local server"
        )
    make_private_folder(home)
    for name, value in build_client_settings(url, home).items():
        if name in ("PREFECT_API_URL", "PREFECT_HOME"):
            environment[name] = value
        else:
            environment.setdefault(name, value)
    environment.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")  # Lookout itself reports a lost server
    return local


def find_running_server(home: Path) -> LocalServer | None:
    """Find the running local server of ``home``.

    Return ``None`` if the server does not run, or if another server uses its port.
    """
    server = find_server_process(home)
    return server if server and _is_serving(server, home) else None


def is_server_gone(error: BaseException) -> bool:
    """Return whether ``error`` means that Prefect's client cannot reach its server.

    The result is also true if the server does not know an object, because another data folder's server may now use
    the port. Connection errors of other services do not reach this function, because their clients raise a
    `MonitorError`.
    """
    if isinstance(error, httpx.TransportError | TimeoutError):
        return True
    unknown = type(error).__name__ == "ObjectNotFound" and type(error).__module__.startswith("prefect.")
    return unknown or str(error).startswith("Failed to reach API at")


class ServerOnMachine(Record):
    """A local server of a data folder on this machine. ``memory_mb`` is the total memory of its processes."""

    home: Path
    server: LocalServer
    memory_mb: float


def list_servers_on_machine() -> tuple[ServerOnMachine, ...]:
    """List this user's local servers that Lookout started, with their homes. Without ``/proc``, the list is empty.

    A server belongs to this user if the user owns its home folder. Without this rule, root would see the servers of
    all users.
    """
    servers: list[ServerOnMachine] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:  # the process has ended, or belongs to another user
            continue
        home = next(
            (Path(os.fsdecode(variable[13:])) for variable in variables if variable.startswith(b"PREFECT_HOME=")),
            None,
        )
        server = read_last_started_server(home) if home else None
        if (
            home
            and server
            and str(server.pid) == process.name
            and _is_owned_by_current_user(home)
            and _is_alive(server, home)
        ):
            servers.append(ServerOnMachine(home=home, server=server, memory_mb=measure_memory_mb(server)))
    return tuple(sorted(servers, key=lambda running: running.home))


def _is_owned_by_current_user(home: Path) -> bool:
    try:
        return home.stat().st_uid == os.getuid()
    except OSError:
        return False


def measure_memory_mb(server: LocalServer) -> float:
    """Measure the memory of the server's processes in MB. The result is 0 if the memory is unknown."""
    pages = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            group = int((process / "stat").read_text().rpartition(")")[2].split()[2])
            if group == server.pid:
                pages += int((process / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def read_last_started_server(home: Path) -> LocalServer | None:
    """Read which local server was last started for ``home``.

    The server may have ended since then. Return ``None`` if no server was ever recorded.
    """
    try:
        return LocalServer.model_validate_json(_build_note_path(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def find_server_process(home: Path) -> LocalServer | None:
    """Find the process of the local server of ``home``, even if the server does not answer.

    Return ``None`` if the process does not run.
    """
    server = read_last_started_server(home)
    return server if server and _is_alive(server, home) else None


def _is_alive(server: LocalServer, home: Path) -> bool:
    """Return whether the process with the server's pid is a Prefect server of ``home``.

    The stored pid alone is not enough. The file may have been copied from another folder, and after a reboot
    another process may have the pid. Therefore the process is inspected.
    """
    pid = server.pid
    if _has_proc():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            is_server = b"prefect\0server\0" in command and f"--port\0{server.port}\0".encode() in command
            return is_server and _has_home(Path(f"/proc/{pid}"), home)
        except OSError:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _has_home(process: Path, home: Path) -> bool:
    """Return whether ``home`` is the working folder of a server's process.

    The working folder of the process is still ``home`` after the folder was renamed.
    """
    if (process / "cwd").samefile(home):
        return True
    if _build_note_path(process / "cwd").exists():
        return False
    # Earlier versions started the server in the working folder of the command.
    return os.fsencode(f"PREFECT_HOME={home.absolute()}") in (process / "environ").read_bytes().split(b"\0")


def _has_proc() -> bool:
    """Return whether ``/proc`` exists, which is needed to identify processes."""
    return Path("/proc/self").exists()


def stop_server(home: Path) -> bool:
    """Stop the local server of ``home``. Return false if no server runs.

    Before the stop, this process sends its last log lines to the server. A server that does not answer is also
    stopped. A server that does not end within 30 s is killed.
    """
    server = find_server_process(home)
    if server is None or not (_has_proc() or _is_serving(server, home)):
        return False
    if "prefect" in sys.modules and _is_answering(server.api_url):
        from prefect.logging.handlers import APILogHandler  # imported already, or there are no lines to send

        APILogHandler().flush()
    os.killpg(server.pid, signal.SIGTERM)
    if not _wait_for_end(server, home, STOP_TIMEOUT_S):
        os.killpg(server.pid, signal.SIGKILL)
        _wait_for_end(server, home, STOP_TIMEOUT_S)
    _build_note_path(home).unlink(missing_ok=True)
    return True


def _wait_for_end(server: LocalServer, home: Path, within_s: float) -> bool:
    """Wait up to ``within_s`` seconds until the server has ended. Return whether it ended in time.

    If the server is a child of this process, its exit code is collected.
    """
    child = _children.get(server.pid)
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if child.poll() is not None if child is not None else not _is_alive(server, home):
            _children.pop(server.pid, None)
            return True
        # Only a child process sends an event when it ends, so the process is polled.
        time.sleep(POLL_INTERVAL_S)
    return False


def _ensure_local_server(
    home: Path,
    environment: Mapping[str, str],
    start_timeout_s: float,
    write_line: Callable[[str], None],
    *,
    outlives: bool,
) -> LocalServer:
    """Return the local server of ``home``. If none answers, stop a server that hangs, and start a new server."""
    make_private_folder(home)  # Prefect does not create parent folders, and warns of it at every start
    with _lock_home(home):
        running = find_running_server(home)
        if running is not None:
            return running
        coming = find_server_process(home)
        if coming is not None:
            if not _is_answering(coming.api_url):
                write_line("Waiting for the local Prefect server that another run started …")
                if _wait_until_serving(coming, home, start_timeout_s, write_line):
                    return coming
            stop_server(home)  # the server hangs, or its folder was renamed while it uses the old path
        use = "; later runs also use it; `lookout down` stops it" if outlives else ""
        write_line(f"Starting a local Prefect server (about 15 s{use}) …")
        with _lock_port_choice(start_timeout_s):
            return _start_server(home, environment, start_timeout_s, write_line)


def _start_server(
    home: Path, environment: Mapping[str, str], start_timeout_s: float, write_line: Callable[[str], None]
) -> LocalServer:
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]
    before = read_last_started_server(home)
    # A client that knows the old port finds the server again if it uses the same port.
    port = _choose_port(before.port if before else None)
    others = 0
    while True:
        server, process = _spawn_server(home, environment, port)
        if _wait_until_serving(server, home, start_timeout_s, write_line):
            return server
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            raise PrefectUnavailable(
                f"the local Prefect server did not answer within {start_timeout_s:g} s. Read its log "
                f"{home / LOG}, or raise prefect.start_timeout_s"
            )
        others += 1
        if others == MAX_PORTS_LOST or _is_free(port):
            raise PrefectUnavailable(
                f"the local Prefect server ended with exit code {process.returncode}; read its log {home / LOG}"
            )
        port = _choose_port(None)  # a killed process may have started a server on this port in the meantime


def _spawn_server(
    home: Path, environment: Mapping[str, str], port: int
) -> tuple[LocalServer, subprocess.Popen[bytes]]:
    """Start the server's process. The process waits until its pid is stored in a file beside the database."""
    server_start = ("-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port))
    command = [sys.executable, "-c", _WHEN_NOTED, *server_start]
    variables = {
        **build_child_environment(environment),
        **build_client_settings(f"http://127.0.0.1:{port}/api", home),
        **HEAP_LIMITS,
    }
    with os.fdopen(open_without_links(home / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            command,
            env=variables,
            cwd=home,  # the working folder identifies the server's home, see `_has_home`
            stdout=output,
            stderr=output,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    _children[process.pid] = process
    server = LocalServer(pid=process.pid, port=port)
    write_atomically(_build_note_path(home), server.model_dump_json())
    if process.stdin is not None:
        # `_wait_until_serving` notices a process that has ended.
        with suppress(BrokenPipeError), process.stdin as noted:
            noted.write(b"1")
    return server, process


def _wait_until_serving(
    server: LocalServer, home: Path, within_s: float, write_line: Callable[[str], None]
) -> bool:
    """Wait until the server answers. Return whether it answered in time.

    The result is false if the server ends, or if it does not answer within ``within_s`` seconds. Progress is
    written with ``write_line``.
    """
    child = _children.get(server.pid)
    began, lines_written = time.monotonic(), 0
    while not _is_serving(server, home):
        ended = child.poll() is not None if child is not None else not _is_alive(server, home)
        so_far_s = time.monotonic() - began
        if ended or so_far_s > within_s:
            return False
        if so_far_s >= (lines_written + 1) * PROGRESS_INTERVAL_S:
            lines_written = int(so_far_s // PROGRESS_INTERVAL_S)
            write_line(f"Still starting after {so_far_s:.0f} s. A busy machine takes longer …")
        # A starting server sends no event, so its port is polled.
        time.sleep(POLL_INTERVAL_S)
    return True


def _build_note_path(home: Path) -> Path:
    return home / "server.json"


def _is_answering(api_url: str) -> bool:
    return _get_json(api_url, "health") is not None


def _is_serving(server: LocalServer, home: Path) -> bool:
    """Return whether the server of ``home``, and not another server, answers on the server's port.

    A server that does not show its settings is accepted as the right server.
    """
    if not _is_answering(server.api_url):
        return False
    match _get_json(server.api_url, "admin/settings"):
        case {"home": str(own)}:
            return Path(own).resolve() == home.resolve()
        case _:
            return True


def _get_json(api_url: str, path: str) -> object:
    """Get an answer of the server as JSON. Return ``None`` if the server does not answer."""
    try:
        response = httpx.get(
            f"{api_url.rstrip('/')}/{path}",
            timeout=HEALTH_TIMEOUT_S,
            trust_env=not is_local_address(api_url),
            verify=httpx.URL(api_url).scheme != "http",  # HTTP needs no certificates; reading them takes 20 ms
        )
        return cast("object", response.json()) if response.is_success else None
    except (httpx.HTTPError, ValueError):
        return None


def is_local_address(url: str) -> bool:
    """Return whether ``url`` is an address of this machine, for which no proxy is used."""
    return httpx.URL(url).host in ("127.0.0.1", "localhost", "::1")


def _choose_port(port_before: int | None) -> int:
    """Choose a port: ``port_before``, or Prefect's usual port, or the next port that no process uses.

    A server that was just killed occupies its port for a moment.
    """
    end = time.monotonic() + PORT_RELEASE_TIMEOUT_S
    while port_before is not None and time.monotonic() < end:
        if _is_free(port_before):
            return port_before
        # The kernel frees a port a short time after its process has ended.
        time.sleep(POLL_INTERVAL_S)
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TO_TRY):
        if _is_free(port):
            return port
    raise PrefectUnavailable(
        f"ports {FIRST_PORT} to {FIRST_PORT + PORTS_TO_TRY - 1} are all in use; set PREFECT_API_URL to your own "
        "Prefect server"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a killed server leaves connections open
        return _try_bind(probe, port)


@contextmanager
def _lock_port_choice(wait_s: float) -> Generator[None]:
    """Hold a lock while a port is chosen, so that two servers that start together use different ports.

    Two data folders on one machine can start servers at the same time. The lock is held until the server listens. A
    server that does not get its port ends only after some time. Until then, the answers of the other server would
    look like the answers of this server. The lock is a bound UDP port, the port `FIRST_PORT`. If another program
    still uses this UDP port after ``wait_s`` seconds, the start continues without the lock.
    """
    end = time.monotonic() + wait_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as choosing:
        while not _try_bind(choosing, FIRST_PORT) and time.monotonic() < end:
            # Another start holds the lock for as long as it needs, and no event says when it is free.
            time.sleep(POLL_INTERVAL_S)
        yield


def _try_bind(candidate: socket.socket, port: int) -> bool:
    try:
        candidate.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


@contextmanager
def _lock_home(home: Path) -> Generator[TextIO]:
    """Hold a lock while a server starts, so that two runs that begin at the same time start only one server."""
    with open_lock_file(home / "server.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
