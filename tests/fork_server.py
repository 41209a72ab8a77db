"""The command in tests without its start: a process that has imported everything forks for each command.

A start costs 1 to 2 s of CPU, nearly all of it imports, and the tests run the command hundreds of times. What is
forked here behaves as the script ``lookout`` does: a session of its own, its own arguments, folder, environment and
pipes, its own end with its true exit code. Three things keep that honest:

- What a module read from the environment at its import must read the same in the command's: the server notes every
  such name, and refuses a command that would have read otherwise. `run` then starts a real process.
- Prefect reads its settings at import. Its modules, and ours that import it, are hidden until the command imports
  the first of them; settings and logging are then read anew, as at a first import.
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
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn, Self

ROOT = Path(__file__).parent.parent
SCRIPT = Path(sys.executable).parent / "lookout"
OURS = ("flows", "monitors", "warehouse", "deployments")
LATER = ("playwright.async_api", "duckdb", "httpx", "rich.progress", "rich.table", "rich.live")
"""What commands import when they need it, and what reads nothing of a test's environment."""
OF_PREFECT = (
    *("prefect.flow_engine", "prefect.task_engine", "prefect.artifacts", "prefect.client.orchestration"),
    *("prefect.utilities.visualization", "prefect.logging.formatters", "fastapi", "anyio._backends._asyncio"),
)
READ_WHOLE = ("FSSPEC_", "LANG", "LC_", "LD_", "PYTHON", "TZ")
"""Names that the interpreter, or somebody who copies the whole environment, reads at the start."""
START_S = 120
WARM = {"PYTHONPATH": str(ROOT), "COLUMNS": "160"}
"""What tests set besides, for the command to be forked."""


class _Blocked(BaseException):
    """Somebody imports Prefect, whose turn comes later."""


class _Reads:
    """Which variables are read while modules are imported, and by whom."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._plain = os._Environ.__getitem__

    def __enter__(self) -> Self:
        def noted(environment: Any, name: str) -> str:
            code = _reader()
            if code is not None and not _reads_anew(code.co_filename):
                self.names.add(name)
            return self._plain(environment, name)

        os._Environ.__getitem__ = noted  # type: ignore[method-assign]
        return self

    def __exit__(self, *_exc: object) -> None:
        os._Environ.__getitem__ = self._plain  # type: ignore[method-assign]


def _reader() -> CodeType | None:
    """The code that asked for a variable by its name; ``None`` where somebody copies the whole environment."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        ("<frozen os>", "<frozen _collections_abc>")
    ):
        if frame.f_code.co_name == "__iter__":
            return None
        frame = frame.f_back
    return frame.f_code


def _reads_anew(file: str) -> bool:
    """Prefect's settings are read again (`_read_settings`); fsspec copies everything for what begins with its name."""
    return any(part in file for part in ("/prefect/", "/pydantic_settings/", "/fsspec/config.py"))


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
    late = {name for name in set(sys.modules) - before if name.split(".")[0] in {"prefect", *OURS}}
    return reads, _Hidden(late)


def _ours() -> list[str]:
    """Our modules but the demo's, which import Gradio."""
    packages = [importlib.import_module(name) for name in OURS]
    found = (
        m.name for package in packages for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    return [name for name in found if not name.startswith("deployments.demo")]


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
        sys.argv = [str(SCRIPT), *self._asked["arguments"]]
        sys.path[0] = str(SCRIPT.parent)
        script = ModuleType("__main__")
        script.__file__ = str(SCRIPT)
        sys.modules["__main__"] = script
        sys.meta_path.insert(0, self._hidden)
        _end(_code_of_script())


def _code_of_script() -> int:
    """What the script ``lookout`` does, and the exit code that the interpreter makes of it."""
    from deployments.cli.app import main

    try:
        sys.exit(main())
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
    given = dict(os.environ)
    reads, hidden = _imported()
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
            with contextlib.suppress(OSError):  # whoever asked has gone
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
        # The same folder for all of them, so that no home of a person's is touched; it is read anew by each command.
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

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], given: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str] | tuple[str, ...]:
        """What the command did; or the names of the variables for which it needs a process of its own."""
        ours, theirs = zip(*(os.pipe() for _ in range(2)), strict=True)
        their_input, our_input = os.pipe()
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(START_S)
            asking.connect(self._address)
            socket.send_fds(asking, [b"."], [their_input, *theirs])
            for pipe in (their_input, *theirs):
                os.close(pipe)
            with asking.makefile("rw", encoding="utf-8") as talk:
                talk.write(json.dumps({"arguments": [*arguments], "cwd": str(cwd), "env": dict(env)}) + "\n")
                talk.flush()
                answer = json.loads(talk.readline() or self._died())
                if "refused" in answer:
                    for pipe in (*ours, our_input):
                        os.close(pipe)
                    return tuple(answer["refused"])
                said = _exchanged(answer["pid"], our_input, ours, given.encode(), timeout_s)
                code = json.loads(talk.readline() or self._died())["code"]
        return subprocess.CompletedProcess([*arguments], code, *(text.decode() for text in said))

    def _died(self) -> NoReturn:
        raise AssertionError(f"the fork server ended: {self._log.read_text(encoding='utf-8')}")


def _exchanged(pid: int, our_input: int, ours: Sequence[int], given: bytes, timeout_s: float) -> list[bytes]:
    """Write its input and read its outputs to their ends; its whole session is killed when it takes too long."""
    said = [b"", b""]

    def written() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(our_input, "wb", buffering=0) as pipe:
            pipe.write(given)

    def read(number: int) -> None:
        with os.fdopen(ours[number], "rb") as pipe:
            said[number] = pipe.read()

    threads = [threading.Thread(target=written), *(threading.Thread(target=read, args=(n,)) for n in range(2))]
    late = threading.Timer(timeout_s, os.killpg, (pid, signal.SIGKILL))
    late.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not late.is_alive():
        raise subprocess.TimeoutExpired(str(pid), timeout_s, *said)
    late.cancel()
    late.join()
    return said


_server: list[ForkServer] = []


def run(
    *arguments: str, cwd: Path, env: Mapping[str, str], given: str = "", timeout_s: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run ``lookout`` with these arguments, this whole environment and this input, to its end.

    Forked where that is the same (see above), else in a process of its own.
    """
    if not _server:
        _server.append(ForkServer(os.environ | WARM))
        atexit.register(lambda: _server.pop().close())
    done = _server[0].run(arguments, cwd=cwd, env=env, given=given, timeout_s=timeout_s)
    if isinstance(done, subprocess.CompletedProcess):
        return done
    return subprocess.run(
        [SCRIPT, *arguments],
        cwd=cwd,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


if __name__ == "__main__":
    _served(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).become()
