"""The walls stand: who may import whom, one home per SDK, no hidden clocks. Planted violations prove that it bites."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("flows", "monitors", "warehouse", "deployments")
STATIONS = ("alerts", "gate", "github", "goldset", "graders", "judge", "probes", "reports", "sources")
LEAVES = (
    "monitors.records",
    "monitors.errors",
    "monitors.facts",
    "monitors.stats",
    "monitors.agreement",
    "monitors.exact_limits",
    "monitors.paired",
    "monitors.clusters",
    "monitors.bootstrap",
    "monitors.estimators",
    "monitors.drift",
    "monitors.reconcile",  # arithmetic over counts of two stations' detectors: it belongs to neither
    "monitors.json_path",  # probes read answers off the wire by it, sources read stored conversations
)

SDK_HOMES: dict[str, tuple[str, ...]] = {
    "playwright": ("monitors/probes/", "deployments/install_browser.py"),
    "anthropic": ("monitors/judge/anthropic_client.py",),
    "openai": ("monitors/judge/openai_client.py",),
    "slack_sdk": ("monitors/alerts/slack.py", "deployments/slack_actions.py"),
    "huggingface_hub": ("monitors/probes/readiness.py", "monitors/probes/hub_account.py", "monitors/sources/"),
    "pyarrow": ("monitors/sources/parquet_rows.py",),
    "langsmith": ("monitors/sources/langsmith_client.py",),
    "duckdb": ("warehouse/",),
    "prefect": ("flows/", "deployments/"),
}

ENTRY_POINTS = (
    "flows/wiring.py",
    "flows/keys.py",
    "deployments/cli.py",
    "deployments/serve.py",
    "deployments/webhook.py",
)
"""The composition root and the entry points: only these read the real clock, randomness and environment."""

SCRIPTS = ("deployments/install_browser.py", "deployments/check_python.py", "deployments/demo/space.py")
"""Programs of their own, started by make or as a separate process: each is its own entry point."""

OUTSIDE_READERS = {
    "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns",
    "os.environ", "os.getenv", "random.random", "random.choice", "random.randint", "random.shuffle",
    "secrets.token_hex", "secrets.token_bytes", "secrets.token_urlsafe", "uuid.uuid4", "uuid.uuid1", "os.urandom",
}  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A breach of a rule, with its place."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


def violations(path: str, source: str) -> Iterator[Violation]:
    """All breaches in one file. ``path`` is relative to the root, with forward slashes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for line, module in _imported(node):
            for rule in _import_rules(path, module):
                yield Violation(path, line, rule)
        if isinstance(node, ast.ImportFrom) and node.level:
            yield Violation(path, node.lineno, "no relative imports")
        yield from _outside(path, node)
        yield from _redacted(path, node)
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
    if package == "monitors" and top in {"flows", "warehouse", "deployments"}:
        yield f"monitors know neither orchestrator nor database nor the outside: {module}"
    if (
        package == "warehouse"
        and top in PACKAGES
        and not _within(module, "warehouse", "monitors.records", "monitors.errors")
    ):
        yield f"the warehouse imports records and errors only: {module}"
    if package == "flows" and top == "deployments":
        yield f"flows do not know how they are reached: {module}"
    station = _station(path)
    if station and top == "monitors" and not _within(module, f"monitors.{station}", *LEAVES):
        yield f"stations are strangers: {path} imports {module}"
    if _is_leaf(path) and top in PACKAGES and not _within(module, *LEAVES):
        yield f"a leaf imports leaves only: {module}"
    homes = SDK_HOMES.get(top)
    if homes and not path.startswith(homes):
        yield f"{top} has its home in {', '.join(homes)}"
    concrete = (
        _within(module, "monitors.probes", "monitors.graders") and not module.endswith(CONTRACTS)
    ) or _within(module, "monitors.judge.anthropic_client", "monitors.judge.openai_client")
    if package == "flows" and path not in COMPOSITION_ROOT and concrete:
        yield f"only wiring names concrete classes: {module}"


COMPOSITION_ROOT = (
    "flows/wiring.py",
    "flows/alert_wiring.py",
    "flows/judge_wiring.py",
    "flows/log_wiring.py",
    "flows/night_wiring.py",
)
"""Where configuration becomes live objects. Only the first reads the environment."""

CONTRACTS = (
    ".settings",
    ".base",
    ".driver",
    ".runner",
    ".schedule",
    ".panel",
    ".traffic_panel",
    ".readiness",
    ".outage",
    ".evidence_age",
)
"""Modules of a station that hold protocols and plain functions, which flows may call."""


def _within(module: str, *homes: str) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in homes)


def _station(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "monitors" and len(parts) > 2 and parts[1] in STATIONS else None


def _is_leaf(path: str) -> bool:
    return path.startswith(("monitors/records/", "monitors/facts/")) or path in (
        "monitors/errors.py",
        "monitors/stats.py",
        "monitors/agreement.py",
        "monitors/exact_limits.py",
        "monitors/paired.py",
        "monitors/clusters.py",
        "monitors/bootstrap.py",
        "monitors/estimators.py",
        "monitors/drift.py",
        "monitors/reconcile.py",
        "monitors/json_path.py",
    )


def _outside(path: str, node: ast.AST) -> Iterator[Violation]:
    if path in ENTRY_POINTS or path in SCRIPTS or not isinstance(node, ast.Attribute):
        return
    name = ast.unparse(node)
    if any(name == reader or name.endswith(f".{reader}") for reader in OUTSIDE_READERS):
        yield Violation(path, node.lineno, f"clock, randomness and environment are arguments: {name}")


def _redacted(path: str, node: ast.AST) -> Iterator[Violation]:
    makes = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Redacted"
    if makes and path != "monitors/alerts/redact.py":
        yield Violation(path, node.lineno, "only monitors/alerts/redact.py makes Redacted text")


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
    folders = {p.name for p in (ROOT / "monitors").iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert folders <= {*STATIONS, "records", "facts"}


@pytest.mark.parametrize(
    ("path", "source", "rule"),
    [
        ("monitors/gate/x.py", "import prefect", "prefect has its home"),
        ("monitors/gate/x.py", "from warehouse.store import Store", "monitors know neither"),
        ("monitors/gate/x.py", "from monitors.graders.base import Grader", "stations are strangers"),
        ("monitors/gate/x.py", "from monitors.config import Config", "stations are strangers"),
        ("monitors/gate/x.py", "def f():\n    import duckdb", "duckdb has its home"),
        ("monitors/facts/x.py", "from monitors.gate.policy import floor_of", "a leaf imports leaves only"),
        ("warehouse/x.py", "from monitors.gate.policy import floor_of", "the warehouse imports records"),
        ("warehouse/x.py", "import flows.steps", "the warehouse imports records"),
        ("flows/x.py", "import deployments.cli", "flows do not know"),
        ("flows/verify_deploy.py", "from monitors.probes.browser import BrowserDriver", "only wiring names"),
        ("flows/judging.py", "from monitors.judge.openai_client import OpenAIJudge", "only wiring names"),
        ("monitors/judge/judge.py", "import anthropic", "anthropic has its home"),
        ("monitors/judge/judge.py", "import openai", "openai has its home"),
        ("monitors/alerts/compose.py", "import slack_sdk", "slack_sdk has its home"),
        ("monitors/alerts/compose.py", "text = Redacted('x')", "only monitors/alerts/redact.py"),
        ("flows/steps.py", "from datetime import datetime\nnow = datetime.now()", "clock, randomness"),
        ("warehouse/x.py", "import os\nhome = os.environ['HOME']", "clock, randomness"),
        ("monitors/gate/__init__.py", "from monitors.gate.policy import floor_of", "no re-exports"),
        ("monitors/gate/x.py", "from . import policy", "no relative imports"),
    ],
)
def test_a_planted_violation_is_found(path, source, rule):
    assert any(rule in violation.rule for violation in violations(path, source))


def test_an_honest_file_has_none():
    source = "from monitors.records.base import Record\nfrom monitors.gate.policy import floor_of\n"
    assert list(violations("monitors/gate/x.py", source)) == []
