"""``lookout gate`` as CI runs it: a staging deploy, GitHub's API, an exit code."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.reports.results_json import format_results_json
from tests import fork_server
from tests.builders import gold_case
from tests.deployments.cli.gate.jobs import job_variables, push_event
from tests.flows.chat import RIGHT, Chat, watched
from tests.in_process import run_in_process
from tests.monitors.gate.runs import WRONG as WRONG_FACT
from tests.monitors.gate.runs import asked, report
from tests.servers.github import BOT, HEAD, READING_TOKEN, REPOSITORY, WORKFLOW_TOKEN, GitHub
from tests.stable_text import replace_volatile

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months.\n::error::owned\n##[error]owned [Source: Gold, clause 4.2]"


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


def in_actions(folder, github, token=WORKFLOW_TOKEN, *, pull=True):
    """Return the variables of a GitHub Actions job, as the runner sets them.

    If ``pull`` is true, the job belongs to a pull request. Otherwise, it belongs to a push to main.
    """
    if pull:
        return job_variables(folder, github, token=token)
    return job_variables(folder, github, push_event(HEAD), ref="refs/heads/main", token=token)


def commands(stderr):
    """Return the workflow commands that GitHub's runner executes: lines outside of disabled sections."""
    obeyed, word = [], None
    for line in map(str.strip, stderr.splitlines()):
        if word is None and line.startswith("::stop-commands::"):
            word = line.removeprefix("::stop-commands::")
        elif word is not None and line == f"::{word}::":
            word = None
        elif word is None and (line.startswith("::") or "##[" in line):
            obeyed.append(line)
    assert word is None, "commands stayed off"
    return obeyed


@pytest.mark.whole_only
def test_a_pull_request_that_breaks_something_fails_everywhere_it_is_read(tmp_path, lookout, github):
    """If a pull request breaks one case, every output of the gate reports the failure.

    The outputs are the comment, commit status, job summary, annotation, JUnit file and exit code. Before, the base
    branch passes. At the end, a fix in the pull request passes too.
    """
    with Chat(*[RIGHT] * 4, RIGHT, WRONG, RIGHT, RIGHT) as chat:
        watched(tmp_path, chat)
        base = lookout(
            "gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github, pull=False)
        )
        assert base.returncode == 0, base.stderr
        assert github.comments == []
        options = ("--min-score", "0.9", "--fail-on-regression", "--github", "--junit", "out/junit.xml")
        done = lookout("gate", "--target", "demo", *options, cwd=tmp_path, **in_actions(tmp_path, github))
    assert done.returncode == 1, done.stderr
    assert "FAIL" in done.stdout
    assert [state for _, state in github.states] == ["pending", "success", "pending", "failure"]
    assert github.statuses[-1]["target_url"].startswith("https://github.com/acme/helpdesk/actions/runs/77#")
    (comment,) = github.by(BOT)
    assert "### ✕ FAIL: demo" in comment.body
    assert "**Newly failing: 1**" in comment.body
    assert "0.750 | 1.000" in comment.body
    assert "✕ FAIL: demo" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().find("testsuite").attrib["failures"] == "1"
    (note,) = commands(done.stderr)
    level, _, text = note.removeprefix("::").partition("::")
    assert level.startswith("error file=suite.jsonl,line=2,")
    assert text.startswith("waiting-1: ")
    assert WORKFLOW_TOKEN not in done.stderr + done.stdout

    with Chat() as chat:
        watched(tmp_path, chat)
        fixed = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github))
    assert fixed.returncode == 0, fixed.stderr
    assert github.by(BOT) == [comment]
    assert "### ✓ PASS: demo" in comment.body
    assert commands(fixed.stderr) == []


def test_a_pass_prints_no_error_about_a_case_that_failed(tmp_path, lookout, github):
    """A failed case that the gate's settings accept is a warning in the job's annotations, not an error."""
    accepts = "min_weighted_score = 0.5\n[gate.targets]\nfactual_accuracy = 0.5\n"
    with Chat(*[RIGHT] * 3, WRONG) as chat:
        watched(tmp_path, chat, more=accepts)
        suite = tmp_path / "suite.jsonl"
        suite.write_text(
            suite.read_text(encoding="utf-8").replace('"severity": 3', '"severity": 1'), encoding="utf-8"
        )
        done = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github))
    assert done.returncode == 0, done.stdout + done.stderr
    (note,) = commands(done.stderr)
    assert note.startswith("::warning file=suite.jsonl,line=4,")


def test_a_forks_token_only_reads_which_is_a_warning_and_changes_no_verdict(tmp_path, lookout, github):
    with Chat() as chat:
        watched(tmp_path, chat, cases=1)
        variables = in_actions(tmp_path, github, READING_TOKEN)
        done = lookout("gate", "--target", "demo", "--github", "--json", cwd=tmp_path, **variables)
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "PASS"
    assert "acme/helpdesk#12 (HTTP 403)" in done.stderr
    assert "pull-requests: write" in done.stderr
    assert "statuses: write" in done.stderr
    assert all(line.startswith("::warning ") for line in commands(done.stderr))
    assert "PASS: demo" in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.whole_only
def test_a_staging_deploy_that_is_not_reached_is_red_with_its_blame(tmp_path, lookout, github, snapshot):
    with Chat() as chat:
        watched(tmp_path, chat, cases=2)
    done = lookout("gate", "--target", "demo", "--github", "--json", cwd=tmp_path, **in_actions(tmp_path, github))
    assert done.returncode == 3, done.stderr
    reasons = json.loads(done.stdout)["reasons"]
    assert {reason["kind"] for reason in reasons if reason["decisive"]} == {"deploy", "coverage"}
    assert github.states[-1] == ("lookout/demo/suite", "error")
    assert replace_volatile(github.statuses[-1]["description"]) == snapshot
    assert "by the application" in github.comments[0].body


@pytest.mark.whole_only
def test_a_monitor_that_breaks_leaves_no_pending_status(tmp_path, lookout, github):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1)
        path.write_text(path.read_text(encoding="utf-8").replace('driver = "json"', 'driver = "browser"'))
        variables = in_actions(tmp_path, github) | {"CHROMIUM_PATH": "/nowhere/chromium"}
        done = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **variables)
    assert done.returncode == 4
    assert github.states[-1] == ("lookout/demo/suite", "error")


def test_an_address_that_is_an_api_is_asked_as_one_from_a_suite_alone(tmp_path, lookout):
    """With only a suite and an address, the gate detects whether the address is a page or an API.

    It detects this in the same way as ``lookout init``.
    """
    with Chat() as chat:
        watched(tmp_path, chat, cases=2).unlink()
        done = lookout("gate", "--target", f"{chat.url}/chat", "--suite", "suite.jsonl", "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert (report["coverage"]["graded"], report["snapshot"]["browser"]) == (2, None), done.stderr


def write_results(folder, run_id, *, failing):
    """Write the ``results.json`` of a run of four severity-3 cases.

    The cases in ``failing`` are answered wrong.
    """
    cases = [gold_case(f"waiting-{number}", severity=Severity.CRITICAL) for number in range(4)]
    results = [asked(case, *([WRONG_FACT] if number in failing else [])) for number, case in enumerate(cases)]
    path = folder / "data" / "runs" / run_id / "results.json"
    path.parent.mkdir(parents=True)
    text = "".join(format_results_json(report(results, GateSettings(min_severity_3_cases=0)), results))
    path.write_text(text.replace("run-1", run_id), encoding="utf-8")
    return path


def test_results_are_evaluated_again_beside_a_baseline_that_is_a_file(tmp_path, snapshot):
    """Stored results are evaluated again with a baseline from a file, without sending a question.

    So a pull request's job needs only the artifact that the job of the base branch stored.
    """
    base = write_results(tmp_path, "run-base", failing=())
    broken = write_results(tmp_path, "run-broken", failing=(0,))

    def gate(results, *options):
        environment = fork_server.bare(COLUMNS="400")
        return run_in_process("gate", str(results), *options, cwd=tmp_path, env=environment)

    compared = json.loads(gate(broken, "--baseline", str(base), "--json").stdout)["comparison"]
    assert compared["severities"][0]["newly_failing"] == ["waiting-0"]
    assert gate(base, "--baseline", "none").returncode == 0
    unrated = gate(base, "--min-score", "4.0", "--json")
    assert unrated.returncode == 3, "an average rating that nobody gave is no pass"
    assert [reason["kind"] for reason in json.loads(unrated.stdout)["reasons"] if reason["decisive"]] == ["rubric"]
    fixed = json.loads(gate(base, "--baseline", str(broken), "--json").stdout)["comparison"]
    assert len(fixed["refused"]) == 1, "only an accepted run is a baseline"
    assert (fixed["shared"], fixed["severities"][0]["newly_fixed"]) == (4, ["waiting-0"])
    not_accepted = gate(base, "--baseline", str(broken), "--fail-on-regression")
    assert not_accepted.returncode == 0
    assert not_accepted.stdout + not_accepted.stderr == snapshot(name="not accepted")
    few = gate(broken, "--baseline", str(base), "--fail-on-regression")
    assert few.stdout + few.stderr == snapshot(name="few cases")
    no_baseline = gate(base, "--baseline", "none", "--fail-on-regression")
    assert no_baseline.stdout + no_baseline.stderr == snapshot(name="no baseline")


PRODUCTION = '[targets.live]\nurl = "http://127.0.0.1:9/live"\nenvironment = "production"\nsuite = "suite.jsonl"\n'


USAGE_ERRORS = {
    "neither": ([], {}, ""),
    "both": (["results.json", "--target", "demo"], {}, ""),
    "unknown target": (["--target", "dmeo"], {}, ""),
    "address without suite": (["--target", "http://127.0.0.1:9"], {}, ""),
    "score out of range": (["--target", "demo", "--min-score", "98"], {}, ""),
    "rating without judge": (["--target", "demo", "--min-score", "4.0"], {}, ""),
    "unknown baseline": (["--target", "demo", "--baseline", "nowhere.json"], {}, ""),
    "no repository": (["--target", "demo", "--github"], {}, ""),
    "no token": (["--target", "demo", "--github"], {"GITHUB_REPOSITORY": REPOSITORY}, ""),
    "JUnit below a file": (["--target", "demo", "--junit", "suite.jsonl/x.xml"], {}, ""),
    "production in CI": (["--target", "live"], {"CI": "true"}, PRODUCTION),
    "heartbeat in CI": (["--target", "demo"], {"CI": "1", "LOOKOUT_HEARTBEAT_URL": "http://127.0.0.1:9/x"}, ""),
    "no reason": (["--target", "live", "--allow-production", "why"], {}, PRODUCTION),
}


@pytest.mark.parametrize(("arguments", "variables", "more"), USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_usage_error_comes_before_anything_is_asked(tmp_path, arguments, variables, more, snapshot):
    with Chat() as chat:
        watched(tmp_path, chat, more=more)
        done = run_in_process("gate", *arguments, cwd=tmp_path, env=fork_server.bare(**variables))
        assert done.returncode == 2, done.stdout + done.stderr
        assert chat.asked == 0
    assert replace_volatile(done.stderr, tmp_path) == snapshot
    assert not (tmp_path / "data" / "runs").exists()


def test_verify_stops_before_production_in_ci_too(tmp_path):
    """In CI, `lookout verify` refuses to run against production before it sends a question.

    If ``--allow-production`` gives a reason, the run continues. In this test, it then finds the application
    unreachable.
    """
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1)
        text = path.read_text(encoding="utf-8")
        production = text.replace("[targets.demo]\n", '[targets.demo]\nenvironment = "production"\n')
        path.write_text(production, encoding="utf-8")
        refused = run_in_process("verify", "demo", cwd=tmp_path, env=fork_server.bare(CI="true"))
        assert (refused.returncode, chat.asked) == (2, 0)
    allowed = ("--allow-production", "OPS-12: agreed with its owner")
    done = run_in_process("verify", "demo", *allowed, cwd=tmp_path, env=fork_server.bare(CI="true"))
    assert done.returncode == 3, done.stderr
    assert allowed[1] in done.stderr
