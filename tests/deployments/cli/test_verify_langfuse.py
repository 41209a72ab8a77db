"""`lookout verify` with Langfuse, as an owner runs it: the run becomes an experiment in Langfuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from monitors.goldset.examples import build_example_from_case
from monitors.goldset.load import load_suite
from monitors.platforms.langfuse.items import build_item_from_example
from tests.deployments.cli.test_triage import ISSUES, URL, report
from tests.servers.langfuse import PUBLIC, SECRET, LangfuseServer
from tests.servers.triage_agent import TriageAgent

CONFIG = """
data_folder = "data"
[langfuse]
host = "{langfuse}"
project = "evaluations"
production_project = "agent"
[targets.agent]
url = "{url}/jobs"
suite = "issues.jsonl"
experiments = "langfuse:issues"
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


class Owner(NamedTuple):
    """The surroundings of an owner: a triage agent, a Langfuse server, and a configuration for both.

    Langfuse's dataset contains all issues except the last.
    """

    folder: Path
    lookout: Any
    langfuse: LangfuseServer

    def verify(self) -> Any:
        """Run the real command with Langfuse's keys in its environment."""
        keys = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}
        return self.lookout("verify", "agent", cwd=self.folder, **keys)


@pytest.fixture
def owner(tmp_path: Path, lookout: Any) -> Iterator[Owner]:
    lines = [json.dumps(issue | {"severity": 2, "provenance": {"pipeline": "manual"}}) for issue in ISSUES]
    (tmp_path / "issues.jsonl").write_text("\n".join(lines), encoding="utf-8")
    reports = {URL.format(number): report(number) for number in range(4)}
    with TriageAgent(reports, graphql_only=True) as agent, LangfuseServer("evaluations") as langfuse:
        (tmp_path / "lookout.toml").write_text(
            CONFIG.format(url=agent.url, langfuse=langfuse.url), encoding="utf-8"
        )
        langfuse.add_dataset("issues")
        for case in load_suite(tmp_path / "issues.jsonl").cases[:-1]:
            langfuse.add_item(build_item_from_example("issues", build_example_from_case(case, "gold")))
        yield Owner(tmp_path, lookout, langfuse)


@pytest.mark.prefect
def test_a_run_is_an_experiment_of_langfuse(owner: Owner) -> None:
    """A run is stored as one experiment in Langfuse. The run's report contains the experiment's address.

    Each case that has a dataset item is a span with its scores.
    """
    done = owner.verify()
    spans = owner.langfuse.attributes()
    assert {span["langfuse.experiment.item.id"] for span in spans} == set(owner.langfuse.items), done.stderr
    (identity,) = {span["langfuse.experiment.id"] for span in spans}
    address = f"{owner.langfuse.url}/project/clangfuse0staging/experiments/results?baseline={identity}"
    (results,) = (owner.folder / "data" / "runs").glob("*/results.json")
    assert address in results.read_text(encoding="utf-8")
    assert {"lookout_correct", "lookout_weight"} <= {score["name"] for score in owner.langfuse.scores.values()}
    assert "no example in langfuse:issues" in done.stdout


@pytest.mark.prefect
@pytest.mark.whole_only
def test_production_s_keys_write_nothing(owner: Owner) -> None:
    """With the keys of the production project, there is no experiment, and the run gives the reason.

    The verdict stays the same.
    """
    owner.langfuse.project = "agent"
    done = owner.verify()
    said = " ".join(done.stdout.split())
    assert "project 'agent'" in said
    assert {path for _method, path in owner.langfuse.requests} == {"/api/public/projects"}
    assert done.returncode in (0, 1)
    assert SECRET not in done.stdout + done.stderr
