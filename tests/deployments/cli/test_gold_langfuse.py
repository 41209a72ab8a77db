"""`lookout gold push`, `diff` and `pull` as a suite's owner runs them, with a Langfuse dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import fork_server
from tests.in_process import run_in_process
from tests.servers.langfuse import PUBLIC, SECRET, LangfuseServer

CONFIG = """
data_folder = "data"
[langfuse]
host = "{langfuse}"
project = "evaluations"
production_project = "bot"
[targets.bot]
url = "https://staging.example.com"
suite = "suite.jsonl"
"""
CASE = {"severity": 2, "language": "en", "type": "returns", "provenance": {"pipeline": "manual"}}
SUITE = [
    CASE | {"id": "returns", "question": "How many days do I have to send a lamp back?", "gold": "30 days"},
    CASE | {"id": "price", "turns": ["I live in Oslo.", "What is delivery?"], "gold": "12 euros", "severity": 3},
]
DATASET = "langfuse:shop/gold & more"


class Owner(NamedTuple):
    """A suite of two cases and a Langfuse server."""

    folder: Path
    langfuse: LangfuseServer

    def gold(self, command: str, *options: str) -> Any:
        """Run ``lookout gold …`` in an environment with Langfuse's keys."""
        environment = fork_server.bare(LANGFUSE_PUBLIC_KEY=PUBLIC, LANGFUSE_SECRET_KEY=SECRET)
        done = run_in_process("gold", command, DATASET, *options, cwd=self.folder, env=environment)
        assert SECRET not in done.stdout + done.stderr
        return done

    def suite(self) -> dict[str, Any]:
        """Return the cases of the suite file, keyed by id."""
        lines = (self.folder / "suite.jsonl").read_text(encoding="utf-8").splitlines()
        return {case["id"]: case for case in map(json.loads, lines)}


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    (tmp_path / "suite.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in SUITE), encoding="utf-8")
    with LangfuseServer("evaluations") as langfuse:
        (tmp_path / "lookout.toml").write_text(CONFIG.format(langfuse=langfuse.url), encoding="utf-8")
        yield Owner(tmp_path, langfuse)


def test_a_suite_goes_to_langfuse_and_comes_back_with_what_people_did(owner: Owner) -> None:
    """A suite is pushed completely, and a second push writes nothing.

    A pull copies a person's changes into the suite, and stores a person's new case as a draft.
    """
    before = owner.suite()
    done = owner.gold("push", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Lookout wrote 2 cases" in done.stdout
    assert f"{owner.langfuse.url}/project/clangfuse0staging/datasets/cds0" in done.stdout
    assert "Lookout wrote 0 cases" in owner.gold("push", "--yes").stdout
    assert owner.gold("diff").returncode == 0

    (item,) = [one for one in owner.langfuse.items.values() if "12 euros" in json.dumps(one)]
    item["expectedOutput"] = item["expectedOutput"] | {"gold": "14 euros"}
    question = {"question": "Can I return a used lamp?"}
    owner.langfuse.add_item({"datasetName": "shop/gold & more", "input": question, "sourceTraceId": "t1"})
    start, end = "2026-11-23T09:00:00.000Z", "2026-11-23T09:00:03.000Z"
    root = {"id": "root", "parentObservationId": None, "startTime": start, "endTime": end, "type": "SPAN"}
    said = {"input": json.dumps(question), "output": json.dumps({"answer": "Yes, call asha.verma@example.com."})}
    owner.langfuse.observations["t1"] = [root | said]

    pulled = owner.gold("pull", "--yes", "--as", "asha", "--json")
    assert pulled.returncode == 0, pulled.stdout + pulled.stderr
    report = json.loads(pulled.stdout)
    assert (report["changed"], report["added"], report["removed"]) == (1, 0, 0)
    (draft,) = report["drafts"]
    assert (draft["turns"], draft["run_id"]) == (["Can I return a used lamp?"], "t1")
    assert "asha.verma" not in pulled.stdout
    after = owner.suite()
    assert after["returns"] == before["returns"]
    assert after["price"].items() >= (before["price"] | {"gold": "14 euros"}).items()
    assert json.loads(owner.gold("pull", "--yes", "--as", "asha", "--json").stdout)["drafts"] == []


def test_without_the_table_the_message_says_what_to_write(owner: Owner) -> None:
    """For a Langfuse address without its table, the message gives the missing table and key. The exit code is 2."""
    (owner.folder / "lookout.toml").write_text(CONFIG[CONFIG.index("[targets") :], encoding="utf-8")
    done = owner.gold("push", "--yes")
    assert (done.returncode, "[langfuse]" in done.stderr) == (2, True), done.stderr


def test_production_s_keys_are_refused_before_anything_is_written(owner: Owner) -> None:
    """With the keys of the production project, the exit code is 2, and Langfuse was asked only for its project."""
    owner.langfuse.project = "bot"
    done = owner.gold("push", "--yes")
    assert (done.returncode, "'bot'" in done.stderr) == (2, True), done.stderr
    assert owner.langfuse.requests == [("GET", "/api/public/projects")]


@pytest.mark.whole_only
@pytest.mark.parametrize("at_border", ["swapped", "missing"])
def test_pages_without_a_stable_order_end_the_pull_and_change_nothing(owner: Owner, at_border: str) -> None:
    """If pages overlap because their order is not stable, the pull stops and changes nothing.

    Of 230 items, one is returned twice or not at all, so the pull cannot know what to remove or add.
    """
    cases = [
        CASE | {"id": f"plan-{number}", "question": f"Plan {number}?", "gold": "30 days"} for number in range(230)
    ]
    (owner.folder / "suite.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    assert owner.gold("push", "--yes").returncode == 0
    before = owner.suite()
    owner.langfuse.at_border = at_border
    done = owner.gold("pull", "--prune", "--yes")
    assert (done.returncode, "Run the command again" in done.stderr) == (4, True), done.stdout + done.stderr
    assert owner.suite() == before
    owner.langfuse.at_border = ""
    assert owner.gold("pull", "--prune", "--yes").returncode == 0
