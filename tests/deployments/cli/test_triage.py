"""An agent that triages issues, from the import of issues to the verdict, as an owner runs it."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tests.servers.triage_agent import TriageAgent

URL = "https://github.com/acme/jobs/issues/{}"
FILES = ["jobs/export.py", "jobs/lock.py", "jobs/retry.py", "jobs/dates.py"]
ISSUES = [
    {
        "issue_url": URL.format(number),
        "issue_title": f"Something hangs, number {number}",
        "issue_body": "It worked last week.",
        "reference": {
            "severity": "high",
            "root_cause": f"cause {number}",
            "relevant_files": [file],
            "shortest_path": 2,
        },
    }
    for number, file in enumerate(FILES)
]
CONFIG = """
data_folder = "data"
[targets.agent]
url = "{url}/jobs"
suite = "issues.jsonl"
[targets.agent.probe]
driver = "job"
attempts = 1
[targets.agent.probe.job]
request = '{{"issue_url": "{{question}}"}}'
id = "job_id"
steps = "steps.*"
poll_s = 0.1
[gate]
min_severity_3_cases = 0
"""


def report(number: int, **changes: object) -> dict[str, object]:
    cause = "The lock is taken before the export and never released when the export raises an error."
    files = {"relevant_files": [f"./{FILES[number]}:12"]}
    return (
        {"severity": "critical", "root_cause": cause, "recommended_fix": "Use a context manager."} | files | changes
    )


@pytest.mark.prefect
def test_issues_are_imported_asked_and_graded(tmp_path: Path, lookout, snapshot):
    """Issues are imported and sent to the agent, and the agent's reports are graded.

    A good run is accepted, and the next run is compared with it. In the next run, three of four issues fail, each
    for another reason.
    """
    (tmp_path / "theirs.json").write_text(json.dumps(ISSUES), encoding="utf-8")
    done = lookout("gold", "import", "theirs.json", "--out", "issues.jsonl", "--severity", "triage=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = verified(tmp_path, lookout, {URL.format(n): report(n) for n in range(4)}, {URL.format(3): ["search"]})
    assert done.returncode == 0, done.stdout + done.stderr
    reports = {
        URL.format(0): report(0),
        URL.format(1): report(1, relevant_files=FILES + [f"jobs/m{n}.py" for n in range(20)]),
        URL.format(2): report(2, root_cause="TBD", recommended_fix="N/A"),
        URL.format(3): report(3),
    }
    done = verified(tmp_path, lookout, reports, {URL.format(3): ["search"] * 5})
    assert done.returncode == 1, done.stdout + done.stderr
    results = max((tmp_path / "data" / "runs").glob("*/results.json"))
    found = {
        one["case"]["id"]: one["assessment"] for one in json.loads(results.read_text(encoding="utf-8"))["cases"]
    }
    kinds = {case_id.rpartition(":")[2]: one["failure_kinds"] for case_id, one in found.items()}
    assert kinds == {"0": [], "1": ["poor_triage"], "2": ["format"], "3": ["inefficient"]}
    page = results.with_name("report.html").read_text(encoding="utf-8")
    failed = [grade for one in found.values() for grade in one["grades"] if grade.get("failure_kind")]
    assert all(html.escape(grade["reason"]) in page for grade in failed)
    summary = results.with_name("results.md").read_text(encoding="utf-8")
    shown = "100.0 % → 25.0 %"
    assert shown in page
    assert [line for line in summary.splitlines() if shown in line] == snapshot


def verified(folder: Path, lookout, reports: dict[str, object], steps: dict[str, list[str]]):
    """Run `lookout verify` once against an agent with these reports and steps. Return the finished process."""
    with TriageAgent(reports, steps) as agent:
        (folder / "lookout.toml").write_text(CONFIG.format(url=agent.url), encoding="utf-8")
        done = lookout("verify", "agent", "--json", cwd=folder)
        assert sorted(agent.started) == [URL.format(number) for number in range(4)]
    return done
