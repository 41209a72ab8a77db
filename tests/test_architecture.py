"""Test the architecture rules, such as allowed imports, one folder for each SDK, and no direct use of the clock.

Examples of violations prove that the checks find them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("flows", "monitors", "warehouse", "deployments")
STATIONS = ("alerts", "explain", "gate", "github", "goldset", "graders", "judge", "probes", "reports", "sources")
LEAVES = (
    "monitors.records",
    "monitors.errors",
    "monitors.facts",
    "monitors.domains",  # what an application talks about, as data
    "monitors.stats",
    "monitors.mutations",  # known-wrong answers: the gold set and the judge's canaries are tried by them
    "monitors.storage",
    "monitors.plural",
    "monitors.problems",  # what is wrong with a file of settings, in words
    "monitors.retry",
    "monitors.platforms",  # LangSmith and Langfuse: traffic is read there, suites and runs are stored there
    "monitors.json_path",  # probes read answers off the network by it, sources read stored conversations
    "monitors.child_environment",  # what Prefect's server, the browser and installers get of the environment
    "monitors.address_guard",  # where a target may lead: for pages in probes, for everything else in the HTTP client
    "monitors.http_client",  # what others serve: applications, logs, exports, platforms
    "monitors.request_headers",  # what authenticates at an application: of its API for probes, of its export for sources
)

WAREHOUSE_LEAVES = ("monitors.records", "monitors.errors", "monitors.plural", "monitors.storage")

SDK_HOMES: dict[str, tuple[str, ...]] = {
    "playwright": ("monitors/probes/browser/", "monitors/probes/inspect/", "deployments/install_browser.py"),
    "anthropic": ("monitors/judge/anthropic_client.py",),
    "openai": ("monitors/judge/openai_client.py",),
    "slack_sdk": ("monitors/alerts/slack/client.py", "deployments/receivers/slack_actions.py"),
    "huggingface_hub": ("monitors/probes/readiness.py", "monitors/sources/"),
    "pyarrow": (),  # DuckDB reads and writes Parquet
    "langsmith": ("monitors/platforms/langsmith/",),
    "duckdb": ("warehouse/",),
    "prefect": ("flows/", "deployments/"),
}

ENTRY_POINTS = (
    "flows/clock.py",
    "flows/runtime/run.py",
    "flows/runtime/secrets.py",
    "flows/runtime/slack.py",
    "flows/runtime/probe.py",
    "flows/data_folder.py",
    "deployments/cli/app.py",
    "deployments/receivers/deploys.py",
    "deployments/up/supervise.py",
)
"""The composition root and entry points. They may read the real clock, randomness and environment."""

SCRIPTS = (
    *("deployments/install_browser.py", "deployments/start.py", "deployments/demo/space.py"),
    "deployments/demo/agent/service.py",
)
"""Programs that `make` or another process starts. They may also read the clock, randomness and environment."""

OUTSIDE_READERS = {
    "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns",
    "os.environ", "os.getenv", "random.random", "random.choice", "random.randint", "random.shuffle",
    "secrets.token_hex", "secrets.token_bytes", "secrets.token_urlsafe", "uuid.uuid4", "uuid.uuid1", "os.urandom",
}  # fmt: skip


CONTEXT_SOURCES = {
    "utc_now",
    "get_environment",
    "generate_nonce",
    "load_pseudonym_key",
    "generate_random_key",
    "load_secret",
    "get_hub_token",
    "read_boot_and_uptime",
}
"""Functions that read the real clock, randomness or environment.

In flows, only the composition root and the modules in `STARTS` may import them. Other modules use the context.
"""

STARTS = re.compile(r"flows/(?:\w+/flow|server/(?:keep|serve))\.py")
"""The modules that Prefect or `lookout up` starts: flows and processes."""

UNIQUE_NAMES = "monitors/probes/driver.py"
"""A module that may use randomness for the names of conversations, because no decision depends on them."""


TERMINAL = {
    "flows/terminal.py": "the one writer",
    "flows/terminal_console.py": "its colours, tables and bars",
    "flows/waiting.py": "the line that says what is being done, which it erases",
    "flows/nightly/census_worker.py": "its standard output is a pipe to the process that started it",
    "flows/hallucination_log/encoder_pool.py": "as a worker: its standard output is a pipe to the process that started it",
    "deployments/up/supervise.py": "imports the standard library only, because it runs as long as the installation",
    "flows/server/watch_server.py": "imports the standard library only, because it runs as long as the server",
    "deployments/start.py": "runs on any Python, before anything is installed, and prints only its own words",
}
"""The modules that may write to the terminal, with the reason."""

STREAMS = {"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
PRINTERS = {
    "print", "Console", "rich.console.Console", "rich.print", "rich.get_console", "typer.echo", "typer.secho",
    "typer.prompt", "typer.confirm", "click.echo", "click.secho", "logging.basicConfig", "logging.StreamHandler",
    "StreamHandler", "traceback.print_exc", "traceback.print_exception", "json.dump", "pprint", "pprint.pprint",
}  # fmt: skip
"""Calls that write to the terminal, or create an object that does."""


HTTP_CLIENTS = {
    "monitors/http_client.py": "the one client for what others serve",
    "monitors/alerts/liveness.py": "posts to one secret address, by aiohttp, which logs none; follows no redirect",
    "monitors/alerts/slack/client.py": "Slack's SDK wants aiohttp; follows no redirect",
    "flows/alerting/shared_server.py": "asks the configured Prefect",
    "flows/drill/receiver.py": "asks Lookout's own receiver",
    "flows/drill/stations.py": "asks Lookout's own receiver",
    "flows/drill/worker.py": "asks the configured Prefect",
    "flows/server/prefect_server.py": "asks the Prefect that Lookout started",
    "flows/server/schedule_state.py": "asks the configured Prefect",
    "deployments/receivers/readiness.py": "asks the configured Prefect",
    "deployments/cli/doctor/checks.py": "asks the configured Prefect",
    "deployments/demo/command.py": "asks the demo that it started",
}
"""The modules that may open an HTTP client, with the reason."""
CLIENT_MAKERS = re.compile(r"(httpx2?\.(Async)?Client|httpx2?\.(get|post|put|request|stream|head)"
                           r"|aiohttp\.(ClientSession|request)|(urllib\.)?request\.urlopen|urlopen"
                           r"|http\.client\.HTTPS?Connection|requests\.\w+)")  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A violation of an architecture rule, with its location."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


def violations(path: str, source: str) -> Iterator[Violation]:
    """Yield all violations in one file. ``path`` is relative to the root, with forward slashes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for line, module in _imported(node):
            for rule in _import_rules(path, module):
                yield Violation(path, line, rule)
        if isinstance(node, ast.ImportFrom) and node.level:
            yield Violation(path, node.lineno, "no relative imports")
        yield from _outside(path, node)
        yield from _redacted(path, node)
        yield from _flow(path, node)
        yield from _sql(path, node)
        yield from _terminal(path, node)
        yield from _http_client(path, node)
        yield from _renaming(path, node)
        yield from _context_variable(path, node)
    if path.endswith("__init__.py"):
        yield from (
            Violation(path, node.lineno, "no re-exports: import from the module that defines")
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
        )


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.lineno, node.module


def _import_rules(path: str, module: str) -> Iterator[str]:
    top = module.split(".", maxsplit=1)[0]
    package = path.split("/", maxsplit=1)[0]
    if top == "tests":
        yield f"the tests are not part of what is installed: {module}"
    if package == "monitors" and top in {"flows", "warehouse", "deployments"}:
        yield f"monitors know neither orchestrator nor database nor the outside: {module}"
    if package == "warehouse" and top in PACKAGES and not _within(module, "warehouse", *WAREHOUSE_LEAVES):
        yield f"the warehouse imports records, errors and plain tools only: {module}"
    if package == "flows" and top == "deployments":
        yield f"flows do not know how they are reached: {module}"
    station = _station(path)
    if station and top == "monitors" and not _within(module, f"monitors.{station}", *LEAVES):
        yield f"stations are strangers: {path} imports {module}"
    if _is_leaf(path) and top in PACKAGES and not _within(module, *LEAVES):
        yield f"a leaf imports leaves only: {module}"
    if path in READERS_OF_GRADERS and _within(module, "monitors.graders.base", "monitors.records.grades"):
        yield f"only monitors/graders/factual.py builds factual grades, its readers give readings: {module}"
    homes = SDK_HOMES.get(top)
    if homes is not None and not path.startswith(homes):
        yield f"{top} has its home in {', '.join(homes) or 'no place'}"
    concrete = (_within(module, "monitors.probes", "monitors.graders") and module not in CONTRACTS) or _within(
        module, "monitors.judge.anthropic_client", "monitors.judge.openai_client"
    )
    if package == "flows" and path not in COMPOSITION_ROOT and concrete:
        yield f"only wiring names concrete classes: {module}"


READERS_OF_GRADERS = (
    "monitors/graders/claims.py",
    "monitors/graders/golds.py",
    "monitors/graders/statements.py",
    "monitors/graders/verbatim.py",
)
"""The modules that extract facts from a gold and a reply for the factual grader. They must not build grades.

`polarity` is not listed, because it imports reasons from `monitors.graders.base`.
"""

COMPOSITION_ROOT = (
    "flows/runtime/judge.py",
    "flows/runtime/probe.py",
    "flows/runtime/run.py",
    "flows/runtime/secrets.py",
    "flows/runtime/slack.py",
    "flows/hallucination_log/follower.py",
    "flows/nightly/context.py",
    "flows/drill/context.py",
    "flows/repeatability/context.py",
)
"""The modules that build objects such as drivers, judges and graders from the configuration."""

CONTRACTS = (
    "monitors.probes.settings",
    "monitors.probes.driver",
    "monitors.probes.runner",
    "monitors.probes.readiness",
    "monitors.probes.request_limit",
    "monitors.probes.evidence_age",
    "monitors.graders.base",
    "monitors.graders.panel",
    "monitors.graders.traffic_panel",
)
"""Modules of probes and graders that flows may import, because they contain no concrete driver or grader."""


def _within(module: str, *homes: str) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in homes)


def _station(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "monitors" and len(parts) > 2 and parts[1] in STATIONS else None


def _is_leaf(path: str) -> bool:
    return _within(path.removesuffix(".py").replace("/", "."), *LEAVES)


def _outside(path: str, node: ast.AST) -> Iterator[Violation]:
    if path in {*ENTRY_POINTS, *SCRIPTS, UNIQUE_NAMES}:
        return
    names: list[str] = []
    match node:
        case ast.Attribute():
            names = [ast.unparse(node)]
        case ast.ImportFrom(module="flows.clock" | "flows.runtime.secrets") if path.startswith("flows/"):
            starts = path in COMPOSITION_ROOT or STARTS.fullmatch(path)
            names = [] if starts else [f"context.{a.name}" for a in node.names if a.name in CONTEXT_SOURCES]
            yield from (
                Violation(path, node.lineno, f"{name} comes with the context that is passed down") for name in names
            )
            return
        case ast.ImportFrom():
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        case _:
            return
    for name in names:
        if any(name == reader or name.endswith(f".{reader}") for reader in OUTSIDE_READERS):
            yield Violation(path, node.lineno, f"clock, randomness and environment are arguments: {name}")


def _redacted(path: str, node: ast.AST) -> Iterator[Violation]:
    makes = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Redacted"
    if makes and path != "monitors/alerts/redact.py":
        yield Violation(path, node.lineno, "only monitors/alerts/redact.py makes Redacted text")


SQL = re.compile(
    r"\s*(?:with\s+\w+\s+as\b|select\b[^;]*\bfrom\b|select\s+\d|insert\s+into\b|delete\s+from\b|update\s+\w+\s+set\b"
    r"|create\s+(?:or\s+replace\s+)?(?:table|view|index)\b)",
    re.IGNORECASE,
)


def _sql(path: str, node: ast.AST) -> Iterator[Violation]:
    """Find strings outside `warehouse/` that start like an SQL statement."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    if not path.startswith("warehouse/") and SQL.match(text):
        yield Violation(path, node.lineno, "SQL has its home in warehouse/: ask it a named question")


def _terminal(path: str, node: ast.AST) -> Iterator[Violation]:
    if path in TERMINAL:
        return
    reached: set[str] = set()
    match node:
        case ast.Attribute():
            reached = {ast.unparse(node)} & STREAMS
        case ast.ImportFrom(module="sys"):
            reached = {f"sys.{alias.name}" for alias in node.names} & STREAMS
        case ast.Call():
            reached = {ast.unparse(node.func)} & PRINTERS
        case _:
            return
    for name in reached:
        yield Violation(path, node.lineno, f"only flows/terminal.py writes to the terminal: {name}")


def _http_client(path: str, node: ast.AST) -> Iterator[Violation]:
    """Find calls that open an HTTP client, and subclasses of HTTP clients, except in `HTTP_CLIENTS`."""
    made = [node.func] if isinstance(node, ast.Call) else node.bases if isinstance(node, ast.ClassDef) else []
    for name in map(ast.unparse, made):
        if path not in HTTP_CLIENTS and CLIENT_MAKERS.fullmatch(name):
            yield Violation(path, getattr(node, "lineno", 0), f"only monitors/http_client.py opens one: {name}")


def _context_variable(path: str, node: ast.AST) -> Iterator[Violation]:
    """Find calls of `ContextVar` in flows. A flow must receive everything through its arguments."""
    made = path.startswith("flows/") and isinstance(node, ast.Call)
    if made and ast.unparse(node.func).rsplit(".", maxsplit=1)[-1] == "ContextVar":
        yield Violation(path, node.lineno, "what lives comes with the context that is passed down: no ContextVar")


def _flow(path: str, node: ast.AST) -> Iterator[Violation]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        names = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
        if names & {"flow", "prefect.flow"} and not FLOW_HOME.fullmatch(path):
            yield Violation(path, node.lineno, f"a @flow stands in flows/*/flow.py: {node.name}")


def _renaming(path: str, node: ast.AST) -> Iterator[Violation]:
    """Find calls that rename a file: `os.replace` and similar functions, or a method with one argument.

    ``str.replace`` has two arguments, so it is not reported.
    """
    if path == "monitors/storage.py" or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name, of_a_path = ast.unparse(node.func), len(node.args) == 1 and not node.keywords
    if name in {"os.replace", "os.rename", "shutil.move"} or (
        node.func.attr in {"replace", "rename"} and of_a_path
    ):
        yield Violation(path, node.lineno, f"only monitors/storage.py puts files in place: {name}")


FLOW_HOME = re.compile(r"flows/\w+/flow\.py")


def project_files() -> list[Path]:
    return sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))


def test_the_walls_stand():
    found = [
        str(violation)
        for file in project_files()
        for violation in violations(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_every_station_is_known_to_the_rules():
    folders = {file.relative_to(ROOT / "monitors").parts[0] for file in (ROOT / "monitors").glob("*/**/*.py")}
    assert folders == {*STATIONS, "records", "facts", "domains", "stats", "mutations", "platforms", "config"}


@pytest.mark.parametrize(
    ("path", "source", "rule"),
    [
        ("monitors/gate/x.py", "import prefect", "prefect has its home"),
        ("monitors/gate/x.py", "from warehouse.database.store import Store", "monitors know neither"),
        ("monitors/gate/x.py", "from monitors.graders.base import Grader", "stations are strangers"),
        (
            "monitors/graders/claims.py",
            "from monitors.graders.base import judged",
            "only monitors/graders/factual.py",
        ),
        ("monitors/gate/x.py", "from monitors.config.file import Config", "stations are strangers"),
        ("monitors/gate/x.py", "def f():\n    import duckdb", "duckdb has its home"),
        ("monitors/facts/x.py", "from monitors.gate.assess import floor_of", "a leaf imports leaves only"),
        ("warehouse/x.py", "from monitors.gate.assess import floor_of", "the warehouse imports records"),
        ("warehouse/x.py", "import flows.steps", "the warehouse imports records"),
        ("flows/x.py", "import deployments.cli.app", "flows do not know"),
        ("flows/verify/flow.py", "from monitors.probes.browser.driver import BrowserDriver", "only wiring names"),
        ("flows/verify/judging.py", "from monitors.judge.openai_client import OpenAIJudge", "only wiring names"),
        ("monitors/judge/judge.py", "import anthropic", "anthropic has its home"),
        ("monitors/judge/judge.py", "import openai", "openai has its home"),
        ("monitors/alerts/group.py", "import slack_sdk", "slack_sdk has its home"),
        ("monitors/alerts/group.py", "text = Redacted('x')", "only monitors/alerts/redact.py"),
        ("flows/steps.py", "from datetime import datetime\nnow = datetime.now()", "clock, randomness"),
        ("warehouse/x.py", "import os\nhome = os.environ['HOME']", "clock, randomness"),
        ("monitors/judge/x.py", "from uuid import uuid4", "clock, randomness"),
        ("flows/verify/alerts.py", "from flows.clock import utc_now", "comes with the context"),
        ("flows/verify/alerts.py", "from flows.runtime.secrets import get_environment", "comes with the context"),
        ("flows/x.py", "listener: ContextVar[Listener] = ContextVar('listener')", "comes with the context"),
        (
            "flows/runtime/run.py",
            "import contextvars\nnow = contextvars.ContextVar('now')",
            "comes with the context",
        ),
        ("deployments/cli/sql.py", "import sys\nsys.stdout.write(text)", "only flows/terminal.py writes"),
        ("flows/x.py", "from sys import stderr", "only flows/terminal.py writes"),
        ("monitors/gate/x.py", "print(answer)", "only flows/terminal.py writes"),
        ("deployments/x.py", "import typer\ntyper.echo(answer)", "only flows/terminal.py writes"),
        (
            "deployments/x.py",
            "from rich.console import Console\nConsole().print(answer)",
            "only flows/terminal.py writes",
        ),
        ("deployments/x.py", "import logging\nlogging.basicConfig()", "only flows/terminal.py writes"),
        ("deployments/cli/sql.py", "from tests.tools.fences import x", "not part of what is installed"),
        ("flows/x.py", "import os\nos.replace(beside, path)", "only monitors/storage.py puts files in place"),
        ("warehouse/x.py", "beside.replace(path)", "only monitors/storage.py puts files in place"),
        ("monitors/gate/x.py", "path.rename(goal)", "only monitors/storage.py puts files in place"),
        ("flows/nightly/read.py", "@flow(name='x')\ndef x():\n    pass", "a @flow stands in"),
        ("deployments/up/parts.py", "@flow\nasync def x():\n    pass", "a @flow stands in"),
        ("monitors/gate/__init__.py", "from monitors.gate.assess import floor_of", "no re-exports"),
        ("monitors/gate/x.py", "from . import policy", "no relative imports"),
        ("flows/x.py", "store.query('select verdict from runs')", "SQL has its home"),
        ("monitors/sources/x.py", "httpx.AsyncClient(timeout=3)", "only monitors/http_client.py opens one"),
        ("monitors/sources/x.py", "class Mine(httpx.Client):\n    pass", "only monitors/http_client.py opens one"),
        ("flows/x.py", "urllib.request.urlopen(address)", "only monitors/http_client.py opens one"),
        ("flows/x.py", 'QUERY = """\nwith a as (select 1) select * from a"""', "SQL has its home"),
    ],
)
def test_a_planted_violation_is_found(path, source, rule):
    assert any(rule in violation.rule for violation in violations(path, source))


def test_an_honest_file_has_none():
    source = "from monitors.records.base import Record\nfrom monitors.gate.assess import floor_of\n'a b'.replace(' ', '')\n"
    assert list(violations("monitors/gate/x.py", source)) == []
