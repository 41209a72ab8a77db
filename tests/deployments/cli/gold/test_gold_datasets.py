"""`lookout gold push`, `pull` and `diff` with a LangSmith dataset, as a user runs them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite
from monitors.records.base import Severity
from monitors.records.cases import GoldCase, Pipeline
from tests import fork_server
from tests.builders import gold_case
from tests.in_process import run_in_process
from tests.servers.langsmith_datasets import PROJECT_NAME, LangSmithDatasetServer
from tests.stable_text import replace_volatile

KEY = "lsv2_pt_hush"
ADDRESS = "langsmith:waiting periods"
NAME = "waiting periods"
TRACE = "aaaaaaaa-2222-4333-8444-555555555555"


@pytest.fixture
def server() -> Iterator[LangSmithDatasetServer]:
    with LangSmithDatasetServer(key=KEY) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, server: LangSmithDatasetServer) -> Path:
    """Return the working folder of a suite's owner: it contains lookout.toml and a suite of three cases."""
    (tmp_path / "lookout.toml").write_text(
        f"""
[langsmith]
project = "{PROJECT_NAME}"
api_url = "{server.url}"
request_deadline_s = 5

[targets.demo]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"
""",
        encoding="utf-8",
    )
    write_suite(tmp_path, *three())
    return tmp_path


def three() -> list[GoldCase]:
    return [gold_case(f"plan-{number}", turns=(f"How long, plan {number}?",)) for number in range(3)]


def write_suite(folder: Path, *cases: GoldCase) -> None:
    (folder / "suite.jsonl").write_text("".join(f"{format_case_line(case)}\n" for case in cases), encoding="utf-8")


def cases_of(folder: Path) -> dict[str, GoldCase]:
    return {case.id: case for case in load_suite(folder / "suite.jsonl").cases}


def lookout(folder: Path, *arguments: str, code: int = 0, given: str = "", run=run_in_process) -> str:
    """Run ``lookout gold …``, check that the exit code is ``code``, and return the output."""
    environment = fork_server.bare(LANGSMITH_API_KEY=KEY)
    done = run("gold", *arguments, cwd=folder, env=environment, given=given)
    assert done.returncode == code, done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    errors = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("lookout: ")]
    return done.stdout + "".join(errors)  # without the progress bar, which appears on a slow machine


def edit(server: LangSmithDatasetServer, case_id: str, gold: str) -> None:
    """Change the gold of an example in the dataset, as a person does on LangSmith's web page."""
    found = [
        one for one in server.examples(NAME).values() if one["metadata"].get("lookout", {}).get("id") == case_id
    ]
    server.edit(NAME, found[0]["id"], outputs=found[0]["outputs"] | {"gold": gold})


def push(folder: Path, *options: str) -> tuple[int, int]:
    """Push the suite. Return the numbers of written and deleted examples."""
    pushed = json.loads(lookout(folder, "push", ADDRESS, *options, "--json"))
    return pushed["written"], pushed["deleted"]


def pull(folder: Path, *options: str, run=run_in_process) -> tuple[int, int, int]:
    """Pull the dataset. Return the numbers of changed, added and removed cases."""
    pulled = json.loads(lookout(folder, "pull", ADDRESS, *options, "--json", run=run))
    return pulled["changed"], pulled["added"], pulled["removed"]


def same(printed: str) -> int:
    """Return how many cases are the same in suite and dataset. ``printed`` is the output of ``--json``."""
    return json.loads(printed)["same"]


def shown(printed: str, folder: Path, server: LangSmithDatasetServer) -> str:
    """Return the output without the parts that differ from run to run."""
    return replace_volatile(printed, folder, server=server.url)


def test_a_suite_goes_there_and_comes_back_as_it_was(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    """After a push, the suite and the dataset do not differ, and a second push writes nothing.

    A pull into an empty folder restores the suite.
    """
    process = {"run": fork_server.run}
    assert shown(lookout(folder, "push", ADDRESS, "--yes", **process), folder, server) == snapshot(
        name="first push"
    )
    assert shown(lookout(folder, "diff", ADDRESS), folder, server) == snapshot(name="no difference")
    assert push(folder) == (0, 0)
    before = (folder / "suite.jsonl").read_bytes()
    (folder / "suite.jsonl").unlink()
    assert pull(folder, "--yes", **process) == (0, 3, 0)
    assert sorted((folder / "suite.jsonl").read_bytes().splitlines()) == sorted(before.splitlines())


def test_nothing_is_written_where_nobody_can_be_asked(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    assert shown(lookout(folder, "push", ADDRESS, code=2), folder, server) == snapshot
    assert not server.datasets


@pytest.mark.parametrize(("key", "count"), [(b"n", 0), (b"y", 3)])
def test_a_person_at_a_terminal_is_asked(
    folder: Path, server: LangSmithDatasetServer, key: bytes, count: int
) -> None:
    driver, terminal = pty.openpty()
    try:
        process = fork_server.start(
            *("gold", "push", ADDRESS),
            cwd=folder,
            env=fork_server.bare(LANGSMITH_API_KEY=KEY),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        os.write(driver, key)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert "[y]es" in said
    finally:
        os.close(driver)
        os.close(terminal)
    assert len(server.examples(NAME) if server.datasets else ()) == count


def test_changed_examples_are_pulled_and_other_lines_stay(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    """A pull changes only the lines of changed cases. Order, spacing and empty lines of the suite file stay."""
    suite = folder / "suite.jsonl"
    first, second, third = suite.read_text().splitlines()
    loose = json.dumps(json.loads(first), indent=None, separators=(" ,", " : "))
    suite.write_text(f"{loose}\n\n{second}\n{third}\n")
    lookout(folder, "push", ADDRESS, "--yes")
    edit(server, "plan-1", "36 months")
    assert shown(lookout(folder, "diff", ADDRESS), folder, server) == snapshot
    assert pull(folder, "--yes") == (1, 0, 0)
    changed = second.replace("24 months", "36 months")
    assert suite.read_text() == f"{loose}\n\n{changed}\n{third}\n"
    assert push(folder, "--yes") == (1, 0)


def test_a_push_does_not_overwrite_what_people_changed(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    lookout(folder, "push", ADDRESS, "--yes")
    edit(server, "plan-1", "36 months")
    write_suite(folder, *three()[:2], three()[2].model_copy(update={"severity": Severity.CRITICAL}))
    assert shown(lookout(folder, "push", ADDRESS, "--yes", code=1), folder, server) == snapshot
    lookout(folder, "push", ADDRESS, "--yes", "--overwrite")
    assert same(lookout(folder, "diff", "suite.jsonl", ADDRESS, "--json")) == 3
    assert cases_of(folder)["plan-2"].severity is Severity.CRITICAL


def test_a_conflict_is_shown_and_the_suite_stays_unless_it_is_to_be_overwritten(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    lookout(folder, "push", ADDRESS, "--yes")
    edit(server, "plan-1", "36 months")
    write_suite(folder, three()[0], three()[1].model_copy(update={"gold": "12 months"}), three()[2])
    assert shown(lookout(folder, "pull", ADDRESS, "--yes", code=1), folder, server) == snapshot
    assert cases_of(folder)["plan-1"].gold == "12 months"
    lookout(folder, "pull", ADDRESS, "--yes", "--overwrite")
    assert cases_of(folder)["plan-1"].gold == "36 months"


def test_cases_are_deleted_only_when_that_is_asked_for(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    lookout(folder, "push", ADDRESS, "--yes")
    write_suite(folder, *three()[:1])
    assert shown(lookout(folder, "push", ADDRESS, "--yes"), folder, server) == snapshot
    assert len(server.examples(NAME)) == 3
    assert push(folder, "--yes", "--prune")[1] == 2
    assert len(server.examples(NAME)) == 1


def test_a_case_added_in_langsmith_catches_the_bad_reply(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    """An example that a person creates from a trace in LangSmith becomes a draft, and then a case.

    The draft is redacted and contains the id and the bad reply of the trace. The draft becomes a case only if the
    bad reply fails against the entered gold.
    """
    lookout(folder, "push", ADDRESS, "--yes")
    server.traces[TRACE] = {
        "inputs": {"question": "How long is the waiting period? I am asha@acme.in"},
        "outputs": {"answer": "36 months"},
    }
    asked = {"question": "How long is the waiting period? I am asha@acme.in"}
    server.add(NAME, inputs=asked, outputs={"answer": "24 months"}, source_run_id=TRACE)
    assert shown(lookout(folder, "push", ADDRESS, "--yes"), folder, server) == snapshot
    said = json.loads(lookout(folder, "pull", ADDRESS, "--yes", "--as", "asha", "--json"))
    (draft,) = said["drafts"]
    assert (draft["gold"], draft["bad_reply"], draft["run_id"]) == ("24 months", "36 months", TRACE)
    assert draft["turns"] == ["How long is the waiting period? I am [e-mail]"]
    assert draft["suggested_severity"] == 2
    assert TRACE in draft["finding"]
    grow = ("grow", "--suite", "suite.jsonl", "--as", "asha")
    lookout(folder, *grow, given="g\n\n36 months\n\nq\n")
    assert not [case for case in cases_of(folder).values() if case.provenance.pipeline is Pipeline.GROWTH]
    lookout(folder, *grow, given="g\n\n\n\n")
    (grown,) = [case for case in cases_of(folder).values() if case.provenance.pipeline is Pipeline.GROWTH]
    assert (grown.gold, grown.provenance.reviewed_by) == ("24 months", "asha")
    lookout(folder, "push", ADDRESS, "--yes")
    linked = [one for one in server.examples(NAME).values() if one.get("source_run_id") == TRACE]
    assert len(linked) == 2
    assert json.loads(lookout(folder, "pull", ADDRESS, "--yes", "--json"))["drafts"] == []


def test_a_leak_in_what_people_added_is_masked_and_proposed_as_severity_3(
    folder: Path, server: LangSmithDatasetServer
) -> None:
    lookout(folder, "push", ADDRESS, "--yes")
    server.add(
        NAME, inputs={"question": "Who is the customer?"}, outputs={"answer": "asha.rao@acme.in, 98201 23456"}
    )
    (draft,) = json.loads(lookout(folder, "pull", ADDRESS, "--yes", "--as", "asha", "--json"))["drafts"]
    assert "asha.rao" not in json.dumps(draft)
    assert draft["suggested_severity"] == 3


def test_a_case_that_an_edit_broke_is_named_and_lost_nowhere(
    folder: Path, server: LangSmithDatasetServer, snapshot: SnapshotAssertion
) -> None:
    lookout(folder, "push", ADDRESS, "--yes")
    server.edit(NAME, next(iter(server.examples(NAME))), outputs={})
    before = (folder / "suite.jsonl").read_bytes()
    assert shown(lookout(folder, "pull", ADDRESS, "--yes", code=1), folder, server) == snapshot
    assert (folder / "suite.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("push", "langsmth:x"),
        ("pull", "langsmith:nothing"),
        ("diff", "langsmith:nothing"),
        ("diff", "suite.jsonl"),
        ("push", "langsmith:x", "--target", "nobody"),
    ],
)
def test_a_wrong_call_says_what_is_accepted(
    folder: Path, arguments: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    assert lookout(folder, *arguments, code=2) == snapshot


def test_without_a_key_the_variable_is_named(folder: Path, server: LangSmithDatasetServer) -> None:
    (folder / "lookout.toml").write_text(
        (folder / "lookout.toml").read_text().replace("[langsmith]", '[langsmith]\nkey_env = "NO_SUCH_KEY"')
    )
    assert "NO_SUCH_KEY" in lookout(folder, "push", ADDRESS, "--yes", code=2)
    assert not server.requests


@pytest.mark.parametrize("request_number", [4, 6])
def test_a_process_that_is_killed_in_a_push_leaves_what_the_next_makes_whole(
    folder: Path, server: LangSmithDatasetServer, request_number: int
) -> None:
    """If SIGKILL ends a push, the next push completes the dataset.

    The process is killed after the server has handled a request and before its response arrives.
    """
    write_suite(folder, *(gold_case(f"plan-{number}") for number in range(150)))
    server.held.add(request_number)
    process = fork_server.start(
        *("gold", "push", ADDRESS, "--yes"), cwd=folder, env=fork_server.bare(LANGSMITH_API_KEY=KEY)
    )
    assert server.holding.wait(120)
    process.kill()
    process.wait()
    server.held.clear()
    lookout(folder, "push", ADDRESS, "--yes")
    assert same(lookout(folder, "diff", ADDRESS, "--json")) == 150
    assert len(server.examples(NAME)) == 150


@pytest.mark.parametrize("at_border", ["swapped", "missing"])
def test_pages_without_a_stable_order_end_the_pull_and_change_nothing(
    folder: Path, server: LangSmithDatasetServer, at_border: str
) -> None:
    """If pages overlap because their order is not stable, the pull stops and changes nothing.

    Of 230 examples, one is returned twice or not at all, so the pull cannot know what to remove or add.
    """
    write_suite(
        folder, *(gold_case(f"plan-{number}", turns=(f"How long, plan {number}?",)) for number in range(230))
    )
    assert push(folder, "--yes") == (230, 0)
    before = (folder / "suite.jsonl").read_bytes()
    server.at_border = at_border
    assert "Run the command again" in lookout(folder, "pull", ADDRESS, "--prune", "--yes", code=4)
    assert (folder / "suite.jsonl").read_bytes() == before
    server.at_border = ""
    assert pull(folder, "--prune", "--yes") == (0, 0, 0)
