"""Test that the product changes state only through named methods, which the type checker can check.

Examples of untyped updates prove that the check finds them.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.tools.untyped_updates import TypeIndex, find_untyped_updates

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("monitors", "warehouse", "flows", "deployments")

STATE_MODULES = ("runs", "nightly", "estimates", "comparisons", "explanations", "snapshots")
"""Modules of `monitors.records` with the records for the state of runs and nightly runs."""

STATE_RECORDS = {
    *("Assessment", "RunFacts", "RunStart", "Repeatability", "RepeatabilityRun"),
    *("RunProgress", "SevereFailure", "JudgingRow"),
    *("IntakeCheckpoint", "NightlyState", "NightlyJudging", "GradedTurn", "SampledConversation", "StratumCount"),
    *("GoldDraft", "CaseDraft", "DraftOutcome", "DraftCandidate"),
}
"""Further records with state: a run, a nightly run or a draft in progress, and the rows on pages about them."""

MAX_UNKNOWN = 23
"""The maximum number of updates of a record whose type is unknown. Never increase this number.

With a higher number, an untyped update of state could be overlooked.
"""


@cache
def product_index() -> TypeIndex:
    index = TypeIndex()
    for tree in product_trees():
        index.add(tree)
    return index


def product_files() -> list[Path]:
    return [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]


@cache
def product_trees() -> list[ast.Module]:
    return [ast.parse(file.read_text(encoding="utf-8")) for file in product_files()]


@cache
def state_records() -> set[str]:
    trees = (
        ast.parse((ROOT / f"monitors/records/{name}.py").read_text(encoding="utf-8")) for name in STATE_MODULES
    )
    return STATE_RECORDS | {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def test_state_changes_only_through_named_methods():
    updates = [
        update
        for file in product_files()
        for update in find_untyped_updates(
            file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"), product_index()
        )
    ]
    untyped = [str(update) for update in updates if update.record in state_records()]
    assert not untyped, "\n".join(untyped)
    unknown = [str(update) for update in updates if update.record is None]
    assert len(unknown) <= MAX_UNKNOWN, "annotate what is copied:\n" + "\n".join(unknown)


def test_every_state_record_exists():
    assert state_records() <= product_index().attributes.keys()


def test_a_named_method_updates_fields_that_its_record_has():
    """If a method updates its record with a dictionary, each key is a field of the record.

    The type checker does not check these keys.
    """
    wrong: list[str] = []
    for tree in product_trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in state_records():
                wrong += [f"{node.name}.{key}" for key in _keys_updated(node) if not _has_field(node.name, key)]
    assert not wrong


def _keys_updated(record: ast.ClassDef) -> list[str]:
    dictionaries = [
        keyword.value
        for node in ast.walk(record)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.model_copy"
        for keyword in node.keywords
    ]
    assert all(isinstance(one, ast.Dict) for one in dictionaries), "a named method spells its fields out"
    return [ast.literal_eval(key) for one in dictionaries for key in one.keys if key is not None]


def _has_field(record: str, key: str) -> bool:
    own = key in fields_by_class().get(record, ())
    return own or any(_has_field(base, key) for base in product_index().bases.get(record, ()))


@cache
def fields_by_class() -> dict[str, set[str]]:
    return {
        node.name: {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        for tree in product_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


@pytest.mark.whole_only
@pytest.mark.parametrize(
    ("source", "record"),
    [
        ("def f(report: RunReport):\n    return report.model_copy(update={'verdict': 1})\n", "RunReport"),
        ("def f(report: RunReport | None):\n    return report.model_copy(update=changes)\n", "RunReport"),
        ("def f():\n    return RunReport.model_construct(verdict=1)\n", "RunReport"),
        ("def f(facts: RunFacts):\n    return RunReport(**facts.model_dump(exclude={'a'}))\n", "RunFacts"),
        ("def f(run: LiveRun):\n    return run.judging.model_copy(update={'why': ''})\n", "Judging"),
        ("def f(results: Sequence[CaseResult]):\n    return [one.model_copy(update={}) for one in results]\n", "CaseResult"),
        ("def f(draft: GoldDraft):\n    for x in [draft]:\n        pass\n    draft.model_copy(update={})\n", "GoldDraft"),
        ("def f(run: LiveRun):\n    facts = run.build_facts(now)\n    facts.model_copy(update={})\n", "RunFacts"),
        ("def f(text):\n    draft = CaseDraft.model_validate_json(text)\n    draft.model_copy(update={})\n", "CaseDraft"),
        (
            ("class X:\n    def __init__(self, report: NightlyReport):\n        self.report = report\n\n"
            "    def f(self):\n        self.report.model_copy(update={})\n"),
            "NightlyReport",
        ),
        ("async def f(c):\n    r = await asyncio.to_thread(find_last_accepted_report, c)\n    r.model_copy(update={})\n", "RunReport"),
    ],
)  # fmt: skip
def test_a_planted_update_is_found_with_its_record(source, record):
    index = TypeIndex(
        {name: dict(known) for name, known in product_index().attributes.items()},
        product_index().bases,
        product_index().functions,
        product_index().methods,
    )
    index.add(ast.parse(source))
    assert [update.record for update in find_untyped_updates("flows/x.py", source, index)] == [record]
    assert record in state_records()


@pytest.mark.parametrize(
    "source",
    [
        "def f(report: RunReport):\n    return report.with_recheck(recheck)\n",
        "def f(report: RunReport):\n    return report.model_dump(mode='json')\n",
        "class RunReport:\n    def add(self, x):\n        return self.model_copy(update={'recheck': x})\n",
    ],
)
def test_a_named_method_is_none(source):
    assert find_untyped_updates("flows/x.py", source, product_index()) == []
