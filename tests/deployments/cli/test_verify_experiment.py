"""`lookout verify` with LangSmith, as an owner runs it: the run becomes an experiment in LangSmith.

The experiment's address is in the report, the results, the terminal output and the Slack message. No response from
LangSmith changes the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitors.goldset.examples import build_example_from_case
from monitors.goldset.load import load_suite
from tests import fork_server
from tests.deployments.cli.test_triage import ISSUES, URL, report
from tests.in_process import run_in_process
from tests.servers.langsmith_experiments import LangSmithExperimentServer
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.triage_agent import TriageAgent

KEY = "lsv2_pt_hush"
SEVERE = 3
"""The number of the issue for which the agent gives no report."""
CONFIG = """
data_folder = "data"
[langsmith]
api_url = "{langsmith}"
production_project = "agent-prod"
production_key_env = "PRODUCTION_KEY"
[alerts]
slack_api_url = "{slack}/api/"
slack_channel = "C0ALERTS"
[targets.agent]
url = "{url}/jobs"
suite = "issues.jsonl"
experiments = "langsmith:issues"
[targets.agent.probe]
driver = "job"
attempts = 1
outage_patience_s = 0
[targets.agent.probe.job]
request = '{{"issue_url": "{{question}}"}}'
id = "job_id"
events_url = "{{start}}/{{job}}/stream"
report_url = "/graphql"
report_request = '{{"query": "{{ job(jobId: \\"{{job}}\\") {{severity rootCause recommendedFix relevantFiles}} }}"}}'
text = "data.job"
poll_s = 0.1
[gate]
min_severity_3_cases = 0
"""


class Owner:
    """The surroundings of an owner: a triage agent, a Slack server, a LangSmith server, and a configuration.

    LangSmith's dataset contains all issues except the last.
    """

    def __init__(
        self,
        folder: Path,
        lookout: Any,
        langsmith: LangSmithExperimentServer,
        slack: SlackServer,
        agent: TriageAgent,
    ) -> None:
        self.folder, self.langsmith, self.slack, self._lookout = folder, langsmith, slack, lookout
        lines = [json.dumps(issue | {"severity": 2, "provenance": {"pipeline": "manual"}}) for issue in ISSUES]
        (folder / "issues.jsonl").write_text("\n".join(lines), encoding="utf-8")
        text = CONFIG.format(url=agent.url, langsmith=langsmith.url, slack=slack.url)
        (folder / "lookout.toml").write_text(text, encoding="utf-8")
        self.cases = load_suite(folder / "issues.jsonl").cases
        for case in self.cases[:-1]:
            example = build_example_from_case(case, "gold")
            fields = {"inputs": example.inputs, "outputs": example.outputs, "metadata": example.metadata}
            langsmith.add("issues", **fields)

    def verify(self) -> Any:
        """Run the real command with Slack's token and LangSmith's key in its environment."""
        return self._lookout("verify", "agent", cwd=self.folder, SLACK_BOT_TOKEN=TOKEN, LANGSMITH_API_KEY=KEY)

    def written(self, name: str) -> str:
        """Return the content of the file ``name`` from the newest run's reports."""
        (*_, newest) = sorted((self.folder / "data" / "runs").glob(f"*/{name}"))
        return newest.read_text(encoding="utf-8")


@pytest.fixture
def owner(tmp_path: Path, lookout: Any) -> Iterator[Owner]:
    reports = {URL.format(number): report(number) for number in range(4)}
    reports[URL.format(SEVERE)] = "Please call asha.verma@example.com about it."
    with (
        TriageAgent(reports, graphql_only=True) as agent,
        LangSmithExperimentServer(key=KEY) as langsmith,
        SlackServer() as slack,
    ):
        agent.may_end = lambda: bool(langsmith.projects)  # on a busy machine, the alert could be sent before
        yield Owner(tmp_path, lookout, langsmith, slack, agent)


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_run_is_an_experiment_whose_address_stands_everywhere(owner: Owner) -> None:
    done = owner.verify()
    assert done.returncode == 1, done.stdout + done.stderr
    (project,) = owner.langsmith.projects.values()
    address = f"/datasets/{project['reference_dataset_id']}/compare?selectedSessions={project['id']}"
    assert address in done.stdout.replace("\n", "")
    assert "no example in langsmith:issues" in done.stdout
    for name in ("results.md", "results.json", "report.html"):
        assert address in owner.written(name).replace("&amp;", "&"), name
    assert "no example in langsmith:issues" in owner.written("results.md")
    assert any(address in json.dumps(message.blocks) for message in owner.slack.messages)
    assert "leaked" not in done.stderr, "DuckDB reports objects that still exist when Python ends"
    assert project["end_time"]
    metadata = project["extra"]["metadata"]
    assert (metadata["verdict"], metadata["target"], metadata["suite_sha256"]) == (
        "FAIL",
        "agent",
        load_suite(owner.folder / "issues.jsonl").sha256,
    )
    runs = list(owner.langsmith.runs.values())
    assert {run["extra"]["metadata"]["case"] for run in runs} == {case.id for case in owner.cases[:-1]}
    assert {run["reference_example_id"] for run in runs} == set(owner.langsmith.examples("issues"))
    for run in runs:
        scores = owner.langsmith.scores(run["id"])
        assert {"lookout_correct", "lookout_severity", "lookout_earned", "lookout_weight"} <= scores.keys()
    assert "asha.verma" not in json.dumps([runs, list(owner.langsmith.feedback.values())])
    assert owner.langsmith.extended == []


@pytest.mark.prefect
@pytest.mark.parametrize(("path", "status"), [("/sessions", 403), ("/feedback", 400)])
@pytest.mark.whole_only
def test_an_error_of_langsmith_is_a_warning_and_changes_no_verdict(owner: Owner, path: str, status: int) -> None:
    owner.langsmith.faults = [(path, status, {})] * 50
    done = owner.verify()
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"HTTP {status}" in done.stdout
    assert KEY not in done.stdout + done.stderr + owner.written("results.json")
    experiment = json.loads(owner.written("results.json"))["report"]["experiment"]
    assert f"HTTP {status}" in experiment["problem"]
    assert (experiment["url"] is None) is (path == "/sessions")
    assert len(owner.slack.messages) >= 1


def test_production_s_key_is_refused_before_anything_is_asked(owner: Owner) -> None:
    def verify(**keys: str) -> Any:
        environment = fork_server.bare(SLACK_BOT_TOKEN=TOKEN, **keys)
        return run_in_process("verify", "agent", cwd=owner.folder, env=environment)

    done = verify(LANGSMITH_API_KEY=KEY, PRODUCTION_KEY=KEY)
    assert (done.returncode, "same value as PRODUCTION_KEY" in done.stderr) == (2, True), done.stderr
    missing = verify()
    assert (missing.returncode, "LANGSMITH_API_KEY is missing" in missing.stderr) == (2, True)
    assert (owner.langsmith.requests, owner.slack.messages) == ([], [])
    assert KEY not in done.stdout + done.stderr
