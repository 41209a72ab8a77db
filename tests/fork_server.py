"""The command in tests without its start: a process that has imported everything forks for each command.

A start costs 1 to 4 s of CPU, nearly all of it imports, and the tests run the command hundreds of times. What is
forked here behaves as the script ``lookout`` does, or as ``python -m`` with a module of the tests: a session of its
own, its own arguments, folder, environment and pipes, its own end with its true exit code. `run` waits for the end,
`start` does not. Three things keep that honest:

- What a module read from the environment at its import must read the same in the command's: the server notes every
  such name, and refuses a command that would have read otherwise. That one is started as a real process; from the
  third in the same environment on, one more server has imported everything there.
- Prefect reads its settings at import. Its modules, and ours that import it, are hidden until the command imports
  the first of them; settings and logging are then read again, as at a first import.
- It has one thread and no event loop when it forks.

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
"""What commands import when they need it, and what reads nothing of a test's environment."""
OF_PREFECT = (
    *("prefect.flow_engine", "prefect.task_engine", "prefect.artifacts", "prefect.client.orchestration"),
    *("prefect.utilities.visualization", "prefect.logging.formatters", "fastapi", "anyio._backends._asyncio"),
)
READ_WHOLE = ("FSSPEC_", "LANG", "LC_", "LD_", "PYTHON", "SSL_", "TZ")
"""Names that the interpreter, or code that copies the whole environment, reads at the start."""
START_S = 120
WORTH_A_SERVER = 3
"""From so many commands of one environment on: a server costs what one or two commands cost that need Prefect."""
SERVERS = 3
"""So many environments at once have a server each; one more takes the place of the oldest."""
WARM = {"PYTHONPATH": str(ROOT), "COLUMNS": "160"}
"""What tests set besides, for the command to be forked."""

MEASURING = ("COVERAGE_PROCESS_START", "COVERAGE_TEST")
"""Set where coverage is measured, which goes on in the command whatever its environment (see `coverage_contexts`)."""


class _Blocked(BaseException):
    """Other code imports Prefect, whose turn comes later."""


class _Reads:
    """Which variables are read while modules are imported, and by whom."""

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
    """The code that asked for a variable by its name; ``None`` where other code copies the whole environment."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        ("<frozen os>", "<frozen _collections_abc>")
    ):
        if frame.f_code.co_name == "__iter__":
            return None
        frame = frame.f_back
    return frame.f_code


def _is_read_again(file: str) -> bool:
    """Prefect's settings are read again (`_read_settings`).

    fsspec copies everything for what begins with its name, and `platform` for a child that reads the interpreter's file.
    """
    read_again = ("/prefect/", "/pydantic_settings/", "/fsspec/config.py", "/platform.py")
    return any(part in file for part in read_again)


class _Hidden:
    """Modules that are loaded and not there: the first import of one of them brings all of them back."""

    def __init__(self, names: set[str]) -> None:
        self._modules = {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Python's own protocol of finders."""
        module = self._modules.get(name)
        if module is None:
            return None
        sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        _read_settings()
        return importlib.machinery.ModuleSpec(name, _Loaded(module), is_package=hasattr(module, "__path__"))


class _Loaded:
    """A loader of what is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, _spec: object) -> ModuleType:
        """The module itself."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run; its own spec is put back."""
        module.__spec__ = self._spec


def _read_settings() -> None:
    """What importing Prefect does besides defining things."""
    from prefect.context import refresh_global_settings_context
    from prefect.logging import configuration

    refresh_global_settings_context()
    configuration.PROCESS_LOGGING_CONFIG.clear()
    configuration.setup_logging()


def _imported() -> tuple[_Reads, _Hidden]:
    """Import everything: first what gets along without Prefect, then the rest, which is hidden again."""

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
    """Build the validators of a record and its subclasses, which a process otherwise does at their first use."""
    record.model_rebuild()
    for subclass in record.__subclasses__():
        build_records(subclass)


def _ours() -> list[str]:
    """List our modules except the demo's, which import Gradio. Most folders are namespace packages."""
    files = (file for package in OURS for file in sorted((ROOT / package).rglob("*.py")))
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return [name for name in names if not name.startswith("deployments.demo.") and "__" not in name]


class _Command:
    """A command as asked for, in the process that becomes it."""

    def __init__(self, asked: dict[str, Any], pipes: Sequence[int], hidden: _Hidden) -> None:
        self._asked, self._pipes, self._hidden = asked, pipes, hidden

    def become(self) -> NoReturn:
        """Run to the end, which is this process's own."""
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
    """As ``python -m`` runs it."""

    def whole() -> None:
        runpy.run_module(name, run_name="__main__", alter_sys=True)

    return whole


def _code_of(main: Callable[[], object]) -> int:
    """What ``main`` does, and the exit code that the interpreter makes of it."""
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
    """End as the interpreter does, but do not take 2,000 modules apart."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code & 0xFF)


def _served(listener: socket.socket, parent: int) -> _Command:
    """Fork for each command that is asked for, until the tests end. Returns only in what becomes a command."""
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
    """Once, for all commands: it takes 30 ms for each HTTP client, and nearly all of them speak to loopback."""
    ssl.create_default_context = cache(ssl.create_default_context)
    importlib.import_module("httpx").Client().close()


def _started_with() -> dict[str, str]:
    """This process's environment as it was given, without what the interpreter added to it."""
    pairs = Path("/proc/self/environ").read_bytes().decode(errors="surrogateescape").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _watched(asking: socket.socket, reads: _Reads, hidden: _Hidden, given: Mapping[str, str]) -> _Command:
    """Fork once more, tell how the command ended, and end; returns in the command."""
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
    """The variables that must be the same in both environments."""
    return reads.names | {name for name in (*given, *asked) if name.startswith(READ_WHOLE)}


class ForkServer:
    """The server as the tests see it. ``environment`` is what it imports everything in."""

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
        """End the server; commands that still run go on, as processes of a shell do."""
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
        """The command as it runs; or the names of the variables for which it needs another server."""
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
    """What is said of a forked command, line by line."""

    def __init__(self, talk: socket.socket) -> None:
        self._talk = talk
        self._lines = b""

    def next(self, timeout_s: float | None) -> dict[str, Any] | None:
        """``None`` when nobody is left to say anything. Raises `BlockingIOError` and `TimeoutError`."""
        self._talk.settimeout(timeout_s)
        while b"\n" not in self._lines:
            received = self._talk.recv(1 << 16)
            if not received:
                return None
            self._lines += received
        line, _, self._lines = self._lines.partition(b"\n")
        return json.loads(line)

    def code(self, timeout_s: float | None) -> int:
        """The exit code. Raises `TimeoutError` while there is none."""
        try:
            answer = self.next(timeout_s)
        except BlockingIOError:
            raise TimeoutError from None
        if answer is None:
            raise AssertionError("nobody knows how the process ended")
        self._talk.close()
        return int(answer["code"])


class Process:
    """A command that runs, as `subprocess.Popen` shows one: what of it the tests use. Its pipes are text."""

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
        """Its exit code, once it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for the signal that killed it; `subprocess.TimeoutExpired` after so many s."""
        if self.returncode is None:
            try:
                self.returncode = self._code(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Write its input, read its outputs to their ends, and wait for its end."""
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
    """An empty home for commands of this process's tests: what a command leaves there, the test finds."""
    folder = tempfile.TemporaryDirectory(prefix="lookout-home-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def bare(**variables: str) -> dict[str, str]:
    """What a shell has on a machine where nothing was ever set up, and nothing of this test run's own.

    The same in all tests but for ``variables``, so that one server serves them.
    """
    stay = {name: os.environ[name] for name in ("PATH", "CHROMIUM_PATH") if name in os.environ}
    return stay | {"HOME": str(bare_home())} | WARM | variables


_servers: list[ForkServer] = []
_refused: Counter[tuple[tuple[str, str | None], ...]] = Counter()
"""How often each environment was asked for, as far as the first server's differs from it."""


def run(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    given: str | bytes = "",
    timeout_s: float = 240,
    module: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``lookout`` with these arguments, this whole environment and this input, to its end.

    Or ``python -m module``. Its whole session is killed when it takes too long.
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
    """Start ``lookout``, or ``python -m module``, as `subprocess.Popen` does. What is a pipe is read as text.

    Forked where that is the same (see above), else in a process of its own.
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
    """A process of its own."""
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
    """The command out of the server whose environment reads the same; ``None`` where none does yet."""
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
