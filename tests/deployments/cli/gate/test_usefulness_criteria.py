"""``lookout gate`` on the demo's agent: three usefulness criteria in the judge's reply reach all outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.demo.configuration import AGENT_SUITE, JudgeAddress, find_free_port, write_and_load_config
from monitors.goldset.examples import build_example_from_case
from monitors.goldset.load import load_suite
from monitors.records.comparisons import CriteriaCounts
from monitors.records.grades import Aspect, Criterion, Judged
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.results_json import read_results
from tests.conftest import ROOT
from tests.deployments.cli.gate.jobs import job_variables
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.github import BOT, GitHub
from tests.servers.langsmith_experiments import LangSmithExperimentServer

pytestmark = pytest.mark.prefect

WRONG_CAUSE, WRONG_FILE, UNREADABLE = "berths-1", "berths-7", "berths-9"
UNREADABLE_CAUSE = "price_list() in prices/list.py is cached"
QUOTE = "The table behind berths/booking.py has no index: each request reads all rows."
LANGSMITH_KEY = "lsv2_pt_hush"
LANGSMITH = """
[langsmith]
api_url = "{url}"
production_project = "agent-prod"
production_key_env = "PRODUCTION_KEY"
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[int]:
    """Start the demo's agent with its planted faults, and yield its port."""
    port = find_free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "deployments.demo.agent.service", "--faults", "--pause-s", "0.01"]
    with (tmp_path / "agent.log").open("w") as log:
        process = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, stdout=log, stderr=log)
        try:
            yield port
        finally:
            process.terminate()
            process.wait(30)


def configure(folder: Path, port: int, judge: AnthropicServer, langsmith: LangSmithExperimentServer) -> None:
    """Write the demo's configuration, with a LangSmith experiment on a dataset that contains all its issues."""
    folder.mkdir()
    write_and_load_config(
        folder, port, slack_api_url=None, channel="C0ALERTS", agent=True, judge=JudgeAddress(judge.url)
    )
    path = folder / "lookout.toml"
    text = path.read_text(encoding="utf-8")
    target = '[targets.agent]\nexperiments = "langsmith:issues"'
    text = text.replace("[targets.agent]", target, 1) + LANGSMITH.format(url=langsmith.url)
    path.write_text(text, encoding="utf-8")
    for case in load_suite(AGENT_SUITE).cases:
        example = build_example_from_case(case, "gold")
        langsmith.add("issues", inputs=example.inputs, outputs=example.outputs, metadata=example.metadata)


def get_rated(results: tuple[CaseResult, ...]) -> dict[str, Judged]:
    """Return the judge's grades, keyed by case id."""
    return {
        case_result.case.id: grade
        for case_result in results
        for grade in case_result.assessment.grades
        if isinstance(grade, Judged) and grade.aspect is Aspect.USEFULNESS
    }


def test_three_criteria_go_from_the_judge_s_reply_to_every_place(lookout, tmp_path, agent):
    """The rating and the three criteria in the judge's reply appear in every output.

    If the judge quotes words that a report does not contain, the criteria of this report are unknown. Its rating
    stays.
    """
    folder = tmp_path / "checkout"
    with AnthropicServer() as judge, LangSmithExperimentServer(key=LANGSMITH_KEY) as langsmith, GitHub() as github:
        judge.when = {UNREADABLE_CAUSE: "criterion_false_quote"}
        configure(folder, agent, judge, langsmith)
        keys = {"ANTHROPIC_API_KEY": KEY, "LANGSMITH_API_KEY": LANGSMITH_KEY}
        done = lookout(
            *("gate", "--target", "agent", "--github", "--json"), cwd=folder, **job_variables(folder, github) | keys
        )
        assert done.stdout, done.stderr
        (comment,) = github.by(BOT)
    run = RunReport.model_validate_json(done.stdout)
    met = {Criterion.HELPFULNESS: 7, Criterion.COMPLETENESS: 9, Criterion.ACCURACY: 7}
    assert run.rubric.criteria == CriteriaCounts(rated=10, unrated=1, met=met)

    report, results = read_results(folder / "runs" / run.run_id / "results.json")
    assert report.rubric == run.rubric
    grades = get_rated(results)
    assert {name: [c.score for c in grades[name].criteria] for name in (WRONG_CAUSE, WRONG_FILE, UNREADABLE)} == {
        WRONG_CAUSE: [0, 1, 0],
        WRONG_FILE: [0, 1, 0],
        UNREADABLE: [],
    }
    unread = grades[UNREADABLE]
    assert (unread.rubric, unread.criteria_problem) == (5, "the judge's quote for helpfulness is not in the report")
    assert sum(UNREADABLE_CAUSE in asked.body.decode() for asked in judge.messages) == 1, "no call for the criteria"

    line = "Usefulness: helpful 7/10, complete 9/10, accurate 7/10; criteria not rated for 1 report"
    markdown, page = (
        (folder / "runs" / run.run_id / name).read_text("utf-8") for name in ("results.md", "report.html")
    )
    assert all(line in text for text in (comment.body, markdown, page))
    assert "| `berths-10` | ✕ not a report | ✕ not a report | ✕ not a report |" in markdown
    assert f"| `{WRONG_CAUSE}` | ✕ “The table behind berths/booking.py" in markdown

    scores = {
        experiment_run["extra"]["metadata"]["case"]: langsmith.scores(experiment_run["id"])
        for experiment_run in langsmith.runs.values()
    }
    keys = [f"lookout_usefulness_{name}" for name in Criterion]
    assert [[scores[name].get(key) for key in keys] for name in (WRONG_CAUSE, UNREADABLE)] == [
        [0, 1, 0],
        [None, None, None],
    ]
    comments = [score["comment"] for score in langsmith.feedback.values() if score["key"] == keys[2]]
    assert len([text for text in comments if text.startswith(f"“{QUOTE}")]) == 1

    columns = "case_id, rating, helpfulness, completeness, accuracy, accuracy_quote, accuracy_reason"
    where = f"case_id in ('{WRONG_CAUSE}', '{UNREADABLE}') order by case_id"
    printed = lookout("sql", f"select {columns} from rated_reports where {where}", "--json", cwd=folder)
    rows = [list(json.loads(row).values()) for row in printed.stdout.splitlines()]
    assert rows == [
        [WRONG_CAUSE, 2, 0, 1, 0, QUOTE, "another cause than the reference"],
        [UNREADABLE, 5, None, None, None, None, None],
    ]
