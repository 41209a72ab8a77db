"""``lookout gate --min-score 4.0`` on an agent that triages issues.

The tests use GitHub jobs, a judge that rates reports, a baseline and a verdict.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from monitors.records.runs import ReasonKind, RunReport, Verdict
from monitors.records.snapshots import OURS, ChangeKind
from tests import fork_server
from tests.flows.judged_run import KEY_VARIABLE
from tests.in_process import run_in_process
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.triage_agent import TriageAgent
from tests.stable_text import replace_volatile

pytestmark = pytest.mark.prefect

REPOSITORIES, EACH = 12, 4
MARKS = {
    1: "Nothing was looked at.",
    3: "Rests on a guess.",
    4: "One detail is open.",
    5: "Verified by a failing test.",
}
"""For each rating, the text of a report to which the judge gives this rating."""
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
    """Build one report for each issue, with the right file and the given rating by the judge."""
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
    """Return a rating for each report: the first ``fives`` are 5, the last ``threes`` are 3, and all others are 4.

    Reports are ordered by the number of the issue within its repository: all first issues, then all second issues.
    """
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
    """Run the gate with the given ratings. Return the exit code and the run's report."""
    text = CONFIG.format(agent=agent.url, judge=judge.url, key=KEY_VARIABLE)
    (tmp_path / "lookout.toml").write_text(text, encoding="utf-8")

    def run(ratings: Sequence[int], min_score: str = "4.0") -> tuple[int, RunReport]:
        suite = tmp_path / "issues.jsonl"
        suite.write_text("\n".join(map(issue, range(len(ratings)))) + "\n", encoding="utf-8")
        agent.reports = reports(ratings)
        agent.jobs.clear()  # otherwise it would return the jobs of the previous run, as it does within a day
        flags = (
            "--target",
            "agent",
            "--suite",
            str(suite),
            "--min-score",
            min_score,
            "--fail-on-regression",
            "--json",
        )
        done = lookout("gate", *flags, cwd=tmp_path, **{KEY_VARIABLE: KEY})
        assert done.stdout, done.stderr
        return done.returncode, RunReport.model_validate_json(done.stdout)

    return run


def evaluate_again(folder: Path, run: RunReport, *options: str) -> tuple[int, str]:
    """Run ``lookout gate`` on the stored results of ``run``. Return the exit code and the output."""
    results = folder / "data" / "runs" / run.run_id / "results.json"
    environment = fork_server.bare(COLUMNS="400")
    done = run_in_process("gate", str(results), *options, cwd=folder, env=environment)
    return done.returncode, done.stdout


def decisive(run: RunReport) -> list[ReasonKind]:
    return [reason.kind for reason in run.reasons if reason.decisive]


@pytest.mark.whole_only
def test_4_1_passes_and_a_drop_of_0_31_against_what_was_accepted_fails(gate, tmp_path, snapshot):
    """A mean rating of 4.10 passes a minimum of 4.0, but fails if the accepted run has a mean of 4.42.

    The runs have the same 48 reports of 12 repositories. In the second run, 15 of the ratings are lower by one.
    """
    code, before = gate(spread(20))
    assert (code, before.verdict) == (0, Verdict.PASS)
    assert before.rubric.mean == pytest.approx(4.42, abs=0.01)
    code, now = gate(spread(5))
    assert (code, decisive(now)) == (1, [ReasonKind.RUBRIC])
    change = now.comparison.rubric
    assert (change.shared, len(change.fell)) == (48, 15)
    assert change.change == pytest.approx(-0.31, abs=0.01)

    baseline = str(tmp_path / "data" / "runs" / before.run_id / "results.json")
    code, printed = evaluate_again(tmp_path, now, "--baseline", baseline, "--min-score", "4.0")
    assert code == 1
    assert replace_volatile(printed, tmp_path, run=now.run_id, baseline=before.run_id) == snapshot(name="a drop")
    code, printed = evaluate_again(tmp_path, now, "--baseline", "none", "--min-score", "4.0")
    assert code == 0
    assert replace_volatile(printed, tmp_path, run=now.run_id) == snapshot(name="4.10 passes")
    code, printed = evaluate_again(tmp_path, now, "--baseline", "none", "--min-score", "4.2")
    assert code == 1
    assert replace_volatile(printed, tmp_path, run=now.run_id) == snapshot(name="4.10 is below 4.2")


def test_the_average_of_twenty_issues_decides_and_shows_beside_it_what_they_prove(gate, tmp_path, snapshot):
    """With twenty issues, the average rating decides. The output also shows the lower bound that the ratings prove.

    Twenty ratings of 5, or 19 of 5 and one of 1, pass. Twenty ratings of 4 are exactly at the minimum. The lower
    bounds are 4.44, 4.14 and 3.18.
    """
    runs = {}
    for name, ratings in {"20 x 5": [5] * 20, "19 x 5 and a 1": [5] * 19 + [1]}.items():
        code, run = gate(ratings)
        runs[name] = run
        assert (code, run.verdict, decisive(run)) == (0, Verdict.PASS, [])
    assert [round(run.rubric.bound, 2) for run in runs.values()] == [4.44, 4.14]

    code, run = gate([4] * 20, min_score="3.9")
    assert (code, decisive(run), round(run.comparison.rubric.change, 2)) == (1, [ReasonKind.RUBRIC], -0.8)
    changes = run.what_changed.changes
    assert (changes[0].kind, changes[-1].kind) == (ChangeKind.UNKNOWN, ChangeKind.LIMIT), "the worse agent first"
    assert not run.what_changed.primary_change_kinds & OURS, (
        "a limit on the command line is no change of Lookout's side"
    )
    code, printed = evaluate_again(tmp_path, run, "--min-score", "4.0")
    assert code == 0, "its average is 4.0, without a baseline"
    assert replace_volatile(printed, tmp_path, run=run.run_id) == snapshot(name="20 x 4")

    strict = tmp_path / "strict.toml"
    config = (tmp_path / "lookout.toml").read_text(encoding="utf-8")
    strict.write_text(f"{config}rubric_bound_needed = true\n", encoding="utf-8")
    code, printed = evaluate_again(tmp_path, run, "--min-score", "4.0", "--config", str(strict))
    assert code == 3
    assert replace_volatile(printed, tmp_path, run=run.run_id) == snapshot(name="20 x 4 in general")
    assert evaluate_again(tmp_path, runs["19 x 5 and a 1"], "--min-score", "4.0", "--config", str(strict))[0] == 0


@pytest.mark.whole_only
def test_people_rate_reports_too(gate, tmp_path):
    """People rate each report before they see the judge's rating.

    The figures show the average difference between both ratings. In this test, every human rating is one lower than
    the judge's.
    """
    code, run = gate([5, 4, 4, 5, 4, 4, 4, 5, 4, 4])
    assert (code, len(run.rubric.ratings)) == (0, 10)

    def review(*options: str, keys: str = "") -> str:
        environment = fork_server.bare()
        return run_in_process("review", *options, cwd=tmp_path, env=environment, given=keys).stdout

    listed = review("--share", "1", "--as", "asha", "--json").splitlines()
    given = [5 if MARKS[5] in json.loads(line)["answer"] else 4 for line in listed]
    shown = review("--share", "1", "--as", "asha", keys="".join(f"y\n{rating - 1}\n" for rating in given))
    assert "reviewed 10 answers" in shown
    assert shown.index("How useful") < shown.index(" of 5 (helpful")
    figures = map(json.loads, review("--figures", "--json").splitlines())
    (ratings,) = [each for each in figures if "absolute_difference" in each]
    assert (ratings["reports"], ratings["same"], ratings["difference"]["value"]) == (10, 0, 1.0)


def test_reports_that_nobody_rated_are_no_pass(gate, judge, tmp_path, snapshot):
    """Reports without a valid rating do not pass.

    The judge of this test also rates the known wrong reports well, so its ratings are discarded.
    """
    judge.judge.passes_all = True
    code, run = gate([5] * 10)
    assert (code, decisive(run), run.rubric) == (3, [ReasonKind.RUBRIC], None)
    _, printed = evaluate_again(tmp_path, run, "--baseline", "none", "--min-score", "4.0")
    assert replace_volatile(printed, tmp_path, run=run.run_id) == snapshot
