"""If a page hides its sources, `lookout doctor` proposes settings.

Pasted as printed, they lead to a correct run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.deployments.cli.test_bare_commands import Installation
from tests.zoo.server import Zoo

pytestmark = [pytest.mark.browser, pytest.mark.prefect]

QUESTIONS = 6
FEWER = 3
"""The number of questions for a page that differs from another tested page only in the format of its requests."""


@pytest.fixture
def zoo() -> Iterator[str]:
    with Zoo() as server:
        yield server.address
        server.shutdown()


def configured(folder: Path, page: str, questions: int) -> Installation:
    """Write a new owner's configuration: a page's address, a suite, and that answers must cite a source."""
    cases = [
        {
            "id": f"plan-{number}",
            "question": f"What is the waiting period of plan {number}?",
            "gold": "24 months",
            "severity": 2,
            "language": "en",
            "type": "limits",
            "provenance": {"pipeline": "template"},
        }
        for number in range(questions)
    ]
    (folder / "suite.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[gate]\nmin_severity_3_cases = 0\n\n[targets.advisor]\nurl = "{page}"\n'
        'suite = "suite.jsonl"\ngraders = { citation_required = true }\n',
        encoding="utf-8",
    )
    return Installation(folder)


def conclusion(output: str) -> str:
    """Return the doctor's output after the line with the path of the screenshot.

    This part says what the answers prove, and what to add to lookout.toml.
    """
    return output.partition(".png\n")[2]


def printed_tables(output: str, wanted: str) -> str:
    """Return the printed lines of the tables whose heading contains ``wanted``."""
    lines, inside = [], False
    for line in output.splitlines():
        inside = wanted in line if line.startswith("[targets.") else inside and "=" in line
        lines += [line] if inside else []
    return "\n".join(lines)


@pytest.mark.parametrize("page", ["advisor.html", "advisor.html?json"])
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
def test_the_proposal_pasted_as_it_is_printed_gives_a_right_run(
    tmp_path: Path, zoo: str, prefect_environment: dict[str, str], page: str, snapshot: SnapshotAssertion
) -> None:
    """If the proposed settings are pasted as printed, the run is right, and the doctor proposes nothing more.

    Without them, all answers fail because their sources are hidden.
    """
    questions = FEWER if page.endswith("?json") else QUESTIONS
    installation = configured(tmp_path, f"{zoo}/{page}", questions)
    looked = installation.run("doctor", "advisor")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert conclusion(looked.stdout) == snapshot
    proposal = printed_tables(looked.stdout, ".probe.wire]")
    with (tmp_path / "lookout.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{proposal}\n")
    done = installation.run("verify", "advisor", "--json", PREFECT_API_URL=prefect_environment["PREFECT_API_URL"])
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "data" / "runs").iterdir()
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    outcomes = [case["assessment"]["outcome"] for case in results["cases"]]
    assert outcomes == ["correct"] * questions
    looked = installation.run("doctor", "advisor")
    assert conclusion(looked.stdout) == snapshot
