"""``lookout gate --min-score 4.0`` over an agent that triages issues: jobs, a judge that rates, a baseline, a verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.flows.judged_run import KEY_VARIABLE
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.triage_agent import TriageAgent

pytestmark = pytest.mark.prefect

REPOSITORIES, EACH = 12, 4
MARKS = {3: "Rests on a guess.", 4: "One detail is open.", 5: "Verified by a failing test."}
"""What a report says and the judge rates so."""
CONFIG = """
data_folder = "data"
[targets.agent]
url = "{agent}/jobs"
suite = "issues.jsonl"
model_family = "gpt"
[targets.agent.probe]
driver = "job"
attempts = 1
concurrency = 8
[targets.agent.probe.job]
request = '{{"issue_url": "{{question}}"}}'
id = "job_id"
poll_s = 0.05
[judge]
tries = 2
[[judge.models]]
provider = "anthropic"
model = "claude-sonnet-5-5"
base_url = "{judge}"
key_variable = "{key}"
[gate]
min_severity_3_cases = 0
"""


def url(number: int) -> str:
    return f"https://github.com/acme/r{number // EACH}/issues/{number}"


def issue(number: int) -> str:
    row = {
        "issue_url": url(number),
        "issue_title": f"Something hangs, number {number}",
        "issue_body": "It worked last week.",
        "severity": 2,
        "reference": {
            "root_cause": f"the lock of part {number} is taken before the export and never released",
            "relevant_files": [f"jobs/part_{number}.py"],
        },
    }
    return json.dumps(row)


def reports(ratings: Sequence[int]) -> dict[str, object]:
    """One report an issue, each with the right file, that the judge rates so."""
    return {
        url(number): {
            "severity": "high",
            "root_cause": "The lock is taken before the export and never released when the export raises an error.",
            "relevant_files": [f"jobs/part_{number}.py"],
            "recommended_fix": f"Use a context manager. {MARKS[rating]}",
        }
        for number, rating in enumerate(ratings)
    }


def spread(fives: int, threes: int = 0) -> list[int]:
    """So many reports rated 5, the first issues of the repositories before the second, and from the other end 3."""
    size = REPOSITORIES * EACH
    order = sorted(range(size), key=lambda number: (number % EACH, number // EACH))
    rating = dict.fromkeys(order[:fives], 5) | dict.fromkeys(order[size - threes :], 3)
    return [rating.get(number, 4) for number in range(size)]


@pytest.fixture
def judge():
    with AnthropicServer() as server:
        server.judge.ratings = {phrase: rating for rating, phrase in MARKS.items()}
        yield server


@pytest.fixture
def agent():
    with TriageAgent({}) as server:
        yield server


@pytest.fixture
def gate(tmp_path: Path, lookout, agent, judge):
    """Run the gate over reports that are rated so; the exit code and what was printed."""
    text = CONFIG.format(agent=agent.url, judge=judge.url, key=KEY_VARIABLE)
    (tmp_path / "lookout.toml").write_text(text, encoding="utf-8")

    def run(ratings: Sequence[int], *options: str) -> tuple[int, str]:
        suite = tmp_path / "issues.jsonl"
        suite.write_text("\n".join(map(issue, range(len(ratings)))) + "\n", encoding="utf-8")
        agent.reports = reports(ratings)
        agent.jobs.clear()  # within a day it would give the jobs of the run before
        flags = ("--target", "agent", "--suite", str(suite), "--min-score", "4.0", "--fail-on-regression", *options)
        done = lookout("gate", *flags, cwd=tmp_path, **{KEY_VARIABLE: KEY})
        return done.returncode, done.stdout + done.stderr

    return run


def test_4_1_passes_and_a_drop_of_0_31_against_what_was_accepted_fails(gate):
    """48 reports of 12 repositories: 4.10, then 4.42, of which 15 reports fall by one."""
    code, printed = gate(spread(5))
    assert code == 0, printed
    assert (
        "Ratings   average 4.10 [3.95, 4.26] of 5, 48 reports of 12 clusters; a drop of 0.22 would show" in printed
    )
    code, printed = gate(spread(20))
    assert code == 0, printed
    code, printed = gate(spread(5))
    assert code == 1, printed
    assert (
        "average rating 4.42 before and 4.10 now, on the 48 reports of both runs: -0.31 (95 % CI -0.47 to -0.15); "
        "a drop above 0.3 fails" in printed
    )
    assert "15 reports fell, most of all acme:r" in printed


def test_3_9_fails(gate):
    code, printed = gate(spread(0, threes=5))
    assert code == 1, printed
    assert "average rating 3.90 (95 % CI 3.74 to 4.05) of 48 reports is below 4 of 5" in printed


def test_ten_reports_are_too_few_to_tell_and_people_rate_them_too(gate, lookout, tmp_path):
    """Their rating, one lower than the judge's, comes before they see his; the figures say by how much he is off."""
    code, printed = gate([5, 4, 4, 5, 4, 4, 4, 5, 4, 4])
    assert code == 3, printed
    assert (
        "10 rated reports, of 3 clusters, cannot show a drop of 0.3 in their average rating, only one of" in printed
    )
    listed = lookout("review", "--share", "1", "--by", "asha", "--json", cwd=tmp_path).stdout.splitlines()
    given = [5 if MARKS[5] in json.loads(line)["answer"] else 4 for line in listed]
    keys = "".join(f"r\n{rating - 1}\n" for rating in given)
    shown = lookout("review", "--share", "1", "--by", "asha", cwd=tmp_path, stdin=keys).stdout
    assert "10 reviewed, 0 left for asha" in shown
    assert shown.index("How useful is the report?") < shown.index(" of 5: ")
    figures = " ".join(lookout("review", "--figures", cwd=tmp_path).stdout.split())
    assert "10 reports rated, 4.30 of 5 on average" in figures
    assert "people gave the same rating 0 of 10 times, to 10 reports" in figures
    assert "rates higher than people by 1.00 [" in figures


def test_reports_that_nobody_rated_are_no_pass(gate, judge):
    """The judge rates everything well, its known wrong reports too, so that no rating of it is believed."""
    judge.judge.passes_all = True
    code, printed = gate([5] * 10)
    assert code == 3, printed
    assert "no report was rated, so nobody knows whether their average reaches 4" in printed
