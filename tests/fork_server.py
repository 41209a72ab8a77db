"""Run `lookout` in tests without its start-up time: a server that has imported everything forks for each command.

Starting the command costs 1 to 4 s of CPU time, mostly for imports, and the tests run it hundreds of times. `run`
waits until the command has ended, `start` does not. A forked command behaves like the script ``lookout``, or like
``python -m`` with a test module: it has its own session, arguments, folder, environment, pipes and exit code. Three
rules make a forked command equivalent to a new process:

- If a module reads an environment variable at import, the command must have the server's value of this variable.
  The server records the names of these variables, and refuses a command with a different value. The command is then
  started as a new process. For the third command with the same environment, a further server is started.
- Prefect reads its settings at import. Prefect's modules, and Lookout's modules that import Prefect, are hidden
  until the command imports one of them. Then Prefect's settings and logging configuration are read again.
- The server has one thread and no event loop when it forks.

Tests of the start itself (help, an empty environment, kills at the start, an installed wheel) start real processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.machinery
import json
import logging.config
import os
import runpy
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self

if TYPE_CHECKING:
    from pydantic import BaseModel

ROOT = Path(__file__).parent.parent
SCRIPT = Path(sys.executable).parent / "lookout"
OURS = ("flows", "monitors", "warehouse", "deployments")
LATER = (
    *("flows.nightly.checkpoint", "flows.runtime.run", "flows.server.prefect_server"),
    *("playwright.async_api", "duckdb", "httpx", "rich.progress", "rich.table", "rich.live"),
)
"""Modules that commands import lazily. They can be imported early because they read no variable that tests set."""
OF_PREFECT = (
    *("prefect.flow_engine", "prefect.task_engine", "prefect.artifacts", "prefect.client.orchestration"),
    *("prefect.utilities.visualization", "prefect.logging.formatters", "fastapi", "anyio._backends._asyncio"),
)
READ_WHOLE = ("FSSPEC_", "LANG", "LC_", "LD_", "PYTHON", "SSL_", "TZ")
"""Prefixes of variables whose reads are not recorded, for example because the interpreter reads them at start."""
START_S = 120
WORTH_A_SERVER = 3
"""When this many commands with the same environment were refused, a server with this environment is started.

Starting a server costs as much as one or two commands that need Prefect.
"""
SERVERS = 3
"""Maximum number of servers, each with its own environment. A new one replaces the oldest, but never the first."""
WARM = {"PYTHONPATH": str(ROOT), "COLUMNS": "160"}
"""Variables that tests set so that commands have the same values as the server, and can be forked."""

MEASURING = ("COVERAGE_PROCESS_START", "COVERAGE_TEST")
"""Variables of a coverage measurement. Each command gets these variables, so that its coverage is measured."""


class _Blocked(BaseException):
    """Raised if a module imports Prefect. The server imports the module later, together with Prefect."""


class _Reads:
    """Records the names of the environment variables that are read while modules are imported."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._plain = os._Environ.__getitem__

    def __enter__(self) -> Self:
        def noted(environment: Any, name: str) -> str:
            code = _reader()
            if code is not None and not _is_read_again(code.co_filename):
                self.names.add(name)
            return self._plain(environment, name)

        os._Environ.__getitem__ = noted  # type: ignore[method-assign]
        return self

    def __exit__(self, *_exc: object) -> None:
        os._Environ.__getitem__ = self._plain  # type: ignore[method-assign]


def _reader() -> CodeType | None:
    """Return the code that reads a variable by name, or ``None`` if this code copies the whole environment."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        ("<frozen os>", "<frozen _collections_abc>")
    ):
        if frame.f_code.co_name == "__iter__":
            return None
        frame = frame.f_back
    return frame.f_code


def _is_read_again(file: str) -> bool:
    """Return whether the reads of ``file`` need no record.

    Prefect's settings are read again in the command (`_read_settings`). fsspec reads only variables with its own
    prefix (see `READ_WHOLE`). `platform` only passes the environment to a child process.
    """
    read_again = ("/prefect/", "/pydantic_settings/", "/fsspec/config.py", "/platform.py")
    return any(part in file for part in read_again)


class _Hidden:
    """A module finder that hides loaded modules. The first import of a hidden module restores all of them."""

    def __init__(self, names: set[str]) -> None:
        self._modules = {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Implement Python's protocol for module finders."""
        module = self._modules.get(name)
        if module is None:
            return None
        sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        _read_settings()
        return importlib.machinery.ModuleSpec(name, _Loaded(module), is_package=hasattr(module, "__path__"))


class _Loaded:
    """A loader for modules that are already loaded."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, _spec: object) -> ModuleType:
        """Return the loaded module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, without executing the module again."""
        module.__spec__ = self._spec


def _read_settings() -> None:
    """Repeat the side effects of importing Prefect."""
    from prefect.context import refresh_global_settings_context
    from prefect.logging import configuration

    refresh_global_settings_context()
    configuration.PROCESS_LOGGING_CONFIG.clear()
    configuration.setup_logging()


def _imported() -> tuple[_Reads, _Hidden]:
    """Import every module that a command may need. Return the recorded reads and the hidden modules.

    Modules that work without Prefect are imported first. Then Prefect and the modules that need it are imported and
    hidden.
    """

    class Without:
        @staticmethod
        def find_spec(name: str, _path: object = None, _target: object = None) -> None:
            if name.split(".", maxsplit=1)[0] == "prefect":
                raise _Blocked

    waiting: list[str] = []
    without = Without()
    with _Reads() as reads:
        sys.meta_path.insert(0, without)
        for name in (*_ours(), *LATER):
            try:
                importlib.import_module(name)
            except _Blocked:
                waiting.append(name)
        sys.meta_path.remove(without)
        before = set(sys.modules)
        configure, logging.config.dictConfig = logging.config.dictConfig, lambda _config: None
        for name in (*waiting, *OF_PREFECT):
            importlib.import_module(name)
        logging.config.dictConfig = configure
    build_records(importlib.import_module("monitors.records.base").Record)
    late = {name for name in set(sys.modules) - before if name.split(".")[0] in {"prefect", *OURS}}
    return reads, _Hidden(late)


def build_records(record: type[BaseModel]) -> None:
    """Build the validators of a record class and its subclasses in advance, not at their first use."""
    record.model_rebuild()
    for subclass in record.__subclasses__():
        build_records(subclass)


def _ours() -> list[str]:
    """Return the names of Lookout's modules, without those of the demo, which import Gradio."""
    files = (file for package in OURS for file in sorted((ROOT / package).rglob("*.py")))
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return [name for name in names if not name.startswith("deployments.demo.") and "__" not in name]


class _Command:
    """A requested command, in the forked process that executes it."""

    def __init__(self, asked: dict[str, Any], pipes: Sequence[int], hidden: _Hidden) -> None:
        self._asked, self._pipes, self._hidden = asked, pipes, hidden

    def become(self) -> NoReturn:
        """Execute the command in this process, and end the process with the command's exit code."""
        os.setsid()
        for number, pipe in enumerate(self._pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(self._asked["cwd"])
        coerced = os.environ.get("LC_CTYPE")
        os.environ.clear()
        os.environ.update(self._asked["env"])
        if coerced and not {"LANG", "LC_ALL", "LC_CTYPE"} & set(self._asked["env"]):
            os.environ["LC_CTYPE"] = coerced  # as the interpreter does for itself
        if "coverage" in sys.modules:  # the server was started by a run that measures coverage
            tools = importlib.import_module("tests.tools.coverage_contexts")
            tools.name_context(os.environ.get("COVERAGE_TEST", ""))
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=stream is sys.stderr or stream.isatty())
        module = self._asked["module"]
        sys.argv = [module or str(SCRIPT), *self._asked["arguments"]]
        sys.path[0] = self._asked["cwd"] if module else str(SCRIPT.parent)
        script = ModuleType("__main__")
        script.__file__ = str(SCRIPT)
        sys.modules["__main__"] = script
        sys.meta_path.insert(0, self._hidden)
        _end(_code_of(_module(module) if module else _script))


def _script() -> int:
    from deployments.cli.app import main

    return main()


def _module(name: str) -> Callable[[], object]:
    """Return a function that runs a module like ``python -m``."""

    def whole() -> None:
        runpy.run_module(name, run_name="__main__", alter_sys=True)

    return whole


def _code_of(main: Callable[[], object]) -> int:
    """Call ``main``, and return the exit code that the interpreter would use."""
    try:
        sys.exit(main())  # type: ignore[arg-type]
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - as the interpreter does with whatever comes
        sys.excepthook(*sys.exc_info())
    return 1


def _end(code: int) -> NoReturn:
    """End this process like the interpreter, but skip the cleanup of about 2,000 modules."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code & 0xFF)


def _served(listener: socket.socket, parent: int) -> _Command:
    """Fork a process for each requested command, until the tests end.

    Returns only in a forked process, and returns the command that this process must execute.
    """
    given = _started_with()
    reads, hidden = _imported()
    _read_authorities()
    if threading.active_count() != 1 or len([*Path("/proc/self/task").iterdir()]) != 1:
        raise AssertionError("what was imported started a thread: a fork of it would lack that")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a process that watches over a command ends alone
    gc.collect()
    gc.freeze()
    events = selectors.DefaultSelector()
    events.register(listener, selectors.EVENT_READ)
    events.register(parent, selectors.EVENT_READ)
    while True:
        ready = {key.fd for key, _ in events.select()}
        if parent in ready:  # its other end is closed: the tests are over
            os._exit(0)
        asking, _ = listener.accept()
        if os.fork() == 0:
            events.close()
            listener.close()
            os.close(parent)
            return _watched(asking, reads, hidden, given)
        asking.close()


def _read_authorities() -> None:
    """Read the certificate authorities once for all commands, because a read for each HTTP client takes 30 ms."""
    ssl.create_default_context = cache(ssl.create_default_context)
    importlib.import_module("httpx").Client().close()


def _started_with() -> dict[str, str]:
    """Return the environment with which this process was started, without the interpreter's additions."""
    pairs = Path("/proc/self/environ").read_bytes().decode(errors="surrogateescape").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _watched(asking: socket.socket, reads: _Reads, hidden: _Hidden, given: Mapping[str, str]) -> _Command:
    """Fork again: the child process executes the command, and this process reports the child's exit code.

    Returns only in the child process, and returns the command. If the environment does not fit, the command is
    refused and this process ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, pipes, _, _ = socket.recv_fds(asking, 1, 3)
    with asking.makefile("rw", encoding="utf-8") as talk:
        asked = json.loads(talk.readline())
        differs = [
            name for name in _needed(reads, given, asked["env"]) if given.get(name) != asked["env"].get(name)
        ]
        if differs:
            talk.write(json.dumps({"refused": sorted(differs)}) + "\n")
            talk.flush()
            os._exit(0)
        command = os.fork()
        if command:
            for pipe in pipes:
                os.close(pipe)
            talk.write(json.dumps({"pid": command}) + "\n")
            talk.flush()
            code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            with contextlib.suppress(OSError):  # the caller has gone
                talk.write(json.dumps({"code": code}) + "\n")
                talk.flush()
            os._exit(0)
    asking.close()
    return _Command(asked, pipes, hidden)


def _needed(reads: _Reads, given: Mapping[str, str], asked: Mapping[str, str]) -> set[str]:
    """Return the names of the variables that must be equal in the server's and the command's environment."""
    return reads.names | {name for name in (*given, *asked) if name.startswith(READ_WHOLE)}


class ForkServer:
    """A running fork server. ``environment`` is the environment in which the server imports all modules."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lookout-fork-")
        self._address = f"{self._folder.name}/socket"
        self._log = Path(self._folder.name) / "log"
        closes, self._lives = os.pipe()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._address)
        listener.listen(64)
        # The same folder for all of them, so that no home of a person's is touched; it is read again by each command.
        variables = {**environment, "PREFECT_HOME": f"{self._folder.name}/prefect"}
        (Path(self._folder.name) / "prefect").mkdir()
        with listener, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(listener.fileno()), str(closes)],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(listener.fileno(), closes),
            )
        os.close(closes)

    def close(self) -> None:
        """End the server. Running commands continue."""
        os.close(self._lives)
        self._process.wait(START_S)
        self._folder.cleanup()

    def start(
        self,
        command: Sequence[str],
        streams: Sequence[int],
        *,
        module: str | None,
        cwd: Path,
        env: Mapping[str, str],
    ) -> Process | tuple[str, ...]:
        """Start the command, and return its process.

        If the server refuses the command, return the names of the variables that differ.
        """
        asking = socket.socket(socket.AF_UNIX)
        asking.settimeout(START_S)
        asking.connect(self._address)
        socket.send_fds(asking, [b"."], list(streams))
        asked = {"arguments": [*command], "module": module, "cwd": str(cwd), "env": dict(env)}
        asking.sendall(json.dumps(asked).encode() + b"\n")
        said = _Said(asking)
        answer = said.next(START_S)
        if answer is None:
            raise AssertionError(f"the fork server ended: {self._log.read_text(encoding='utf-8')}")
        if "refused" in answer:
            asking.close()
            return tuple(answer["refused"])
        return Process(command, answer["pid"], said.code, forked=True)


class _Said:
    """Reads the server's reports about a forked command, line by line."""

    def __init__(self, talk: socket.socket) -> None:
        self._talk = talk
        self._lines = b""

    def next(self, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the next line, or ``None`` after the last line.

        Raises `TimeoutError` after ``timeout_s`` seconds, or `BlockingIOError` if ``timeout_s`` is 0.
        """
        self._talk.settimeout(timeout_s)
        while b"\n" not in self._lines:
            received = self._talk.recv(1 << 16)
            if not received:
                return None
            self._lines += received
        line, _, self._lines = self._lines.partition(b"\n")
        return json.loads(line)

    def code(self, timeout_s: float | None) -> int:
        """Return the exit code. Raises `TimeoutError` if the command has not ended after ``timeout_s`` seconds."""
        try:
            answer = self.next(timeout_s)
        except BlockingIOError:
            raise TimeoutError from None
        if answer is None:
            raise AssertionError("nobody knows how the process ended")
        self._talk.close()
        return int(answer["code"])


class Process:
    """A running command with the methods of `subprocess.Popen` that the tests use. Its pipes are text streams."""

    def __init__(
        self, command: Sequence[str], pid: int, code: Callable[[float | None], int], *, forked: bool
    ) -> None:
        self.args, self.pid, self.forked = [*command], pid, forked
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self._code = code

    def poll(self) -> int | None:
        """Return the exit code, or ``None`` if the command still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code and return it.

        A negative code is the number of the signal that ended the command.
        """
        if self.returncode is None:
            try:
                self.returncode = self._code(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Write ``input`` to the command, wait until the command has ended, and return its output and errors."""
        said = {"stdout": "", "stderr": ""}

        def written() -> None:
            with contextlib.suppress(BrokenPipeError), self.stdin or contextlib.nullcontext() as pipe:
                if pipe is not None and input:
                    pipe.write(input)

        def read(name: str) -> None:
            pipe = getattr(self, name)
            if pipe is not None:
                with pipe:
                    said[name] = pipe.read()

        threads = [threading.Thread(target=written, daemon=True)]
        threads += [threading.Thread(target=read, args=(name,), daemon=True) for name in said]
        for thread in threads:
            thread.start()
        end = None if timeout is None else time.monotonic() + timeout
        for thread in threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0, **said)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        return said["stdout"], said["stderr"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


@cache
def bare_home() -> Path:
    """Return the home folder of all commands that this process starts. It is empty at first.

    A test can check which files a command wrote there.
    """
    folder = tempfile.TemporaryDirectory(prefix="lookout-home-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def bare(**variables: str) -> dict[str, str]:
    """Return the environment of a shell on a new machine, without variables of this test run.

    Only ``variables`` differ between tests, so that all tests can use one server.
    """
    stay = {name: os.environ[name] for name in ("PATH", "CHROMIUM_PATH") if name in os.environ}
    return stay | {"HOME": str(bare_home())} | WARM | variables


_servers: list[ForkServer] = []
_refused: Counter[tuple[tuple[str, str | None], ...]] = Counter()
"""The number of commands that all servers refused, by environment.

An environment is identified by its differences from the environment of the first server.
"""


def run(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    given: str | bytes = "",
    timeout_s: float = 240,
    module: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``lookout``, or ``python -m module``, until it ends. ``given`` is its standard input.

    ``env`` is the complete environment: the command inherits nothing. After ``timeout_s`` seconds, the command's
    whole session is killed, and `subprocess.TimeoutExpired` is raised.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(*arguments, cwd=cwd, env=env, module=module, **pipes) as process:
        try:
            text = given if isinstance(given, str) else given.decode(errors="surrogateescape")
            out, err = process.communicate(text, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess([*arguments], process.wait(), out, err)


def start(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    module: str | None = None,
    stdin: int | IO[Any] = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.DEVNULL,
    stderr: int | IO[Any] = subprocess.DEVNULL,
) -> Process:
    """Start ``lookout``, or ``python -m module``, like `subprocess.Popen` with text pipes.

    The command is forked if a server has an equivalent environment (see the module's docstring). Otherwise, a new
    process is started.
    """
    env = {**env, **{name: os.environ[name] for name in MEASURING if name in os.environ}}
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    ours: dict[str, int] = {}
    theirs: list[int] = []
    with contextlib.ExitStack() as opened:
        for name, stream in streams.items():
            if stream == subprocess.PIPE:
                reads, writes = os.pipe()
                number, ours[name] = (reads, writes) if name == "stdin" else (writes, reads)
                opened.callback(os.close, number)
            elif stream == subprocess.DEVNULL:
                number = os.open(os.devnull, os.O_RDWR)
                opened.callback(os.close, number)
            elif stream == subprocess.STDOUT:
                number = theirs[1]
            else:
                number = stream if isinstance(stream, int) else stream.fileno()
            theirs.append(number)
        process = _forked(arguments, theirs, module=module, cwd=cwd, env=env) or _begun(
            [sys.executable, "-m", module, *arguments] if module else [str(SCRIPT), *arguments], theirs, cwd, env
        )
    for name, number in ours.items():
        mode = "w" if name == "stdin" else "r"
        stream = os.fdopen(number, mode, encoding="utf-8", errors="surrogateescape", newline="")
        setattr(process, name, stream)
    return process


def _begun(command: Sequence[str], streams: Sequence[int], cwd: Path, env: Mapping[str, str]) -> Process:
    """Start the command as a new process, without the fork server."""
    standard = dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))
    process = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **standard)

    def code(timeout_s: float | None) -> int:
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    return Process(command, process.pid, code, forked=False)


def _forked(
    command: Sequence[str], streams: Sequence[int], *, module: str | None, cwd: Path, env: Mapping[str, str]
) -> Process | None:
    """Fork the command from the server with an equivalent environment.

    Return ``None`` if there is no such server yet.
    """
    if not _servers:
        atexit.register(_end_servers)
        _servers.append(ForkServer(os.environ | WARM))
    differs: tuple[str, ...] = ()
    for server in _servers:
        answer = server.start(command, streams, module=module, cwd=cwd, env=env)
        if isinstance(answer, Process):
            return answer
        differs = differs or answer
    key = tuple((name, env.get(name)) for name in differs)
    _refused[key] += 1
    if _refused[key] < WORTH_A_SERVER:
        return None
    if len(_servers) == SERVERS:
        _servers.pop(1).close()
    _servers.append(ForkServer(env))
    answer = _servers[-1].start(command, streams, module=module, cwd=cwd, env=env)
    return answer if isinstance(answer, Process) else None


def _end_servers() -> None:
    while _servers:
        _servers.pop().close()


if __name__ == "__main__":
    _served(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).become()
