"""``lookout gate`` as CI runs it: a process, a staging deploy, GitHub's API, an exit code."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.flows.chat import RIGHT, Chat, watched
from tests.servers.github import BOT, HEAD, PULL, READING_TOKEN, REPOSITORY, WORKFLOW_TOKEN, GitHub

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months.\n::error::owned\n##[error]owned [Source: Gold, clause 4.2]"


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


def in_actions(folder, github, token=WORKFLOW_TOKEN, *, pull=True):
    """A job's variables, as the runner sets them."""
    event = folder / "event.json"
    about = {"pull_request": {"number": PULL, "head": {"sha": HEAD}}} if pull else {"after": HEAD}
    event.write_text(json.dumps(about), encoding="utf-8")
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REF": f"refs/pull/{PULL}/merge" if pull else "refs/heads/main",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "77",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": HEAD,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_TOKEN": token,
        "GITHUB_WORKSPACE": str(folder),
    }


def commands(stderr):
    """What GitHub's runner obeys: lines outside of what was switched off."""
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


def test_a_pull_request_that_breaks_something_fails_everywhere_it_is_read(tmp_path, lookout, github):
    """First the base passes, then the pull request breaks one case: comment, status, page, notes, JUnit, exit code."""
    with Chat(*[RIGHT] * 4, RIGHT, WRONG, RIGHT, RIGHT) as chat:
        watched(tmp_path, chat)
        base = lookout(
            "gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github, pull=False)
        )
        assert base.returncode == 0, base.stderr
        assert "belongs to no pull request" in base.stderr
        assert github.comments == []
        options = ("--min-score", "0.9", "--fail-on-regression", "--github", "--junit", "out/junit.xml")
        done = lookout("gate", "--target", "demo", *options, cwd=tmp_path, **in_actions(tmp_path, github))
    assert done.returncode == 1, done.stderr
    assert "FAIL" in done.stdout
    assert [state for _, state in github.states] == ["pending", "success", "pending", "failure"]
    assert github.statuses[-1]["target_url"] == "https://github.com/acme/helpdesk/actions/runs/77"
    (comment,) = github.by(BOT)
    assert "### ✕ FAIL: demo" in comment.body
    assert "**Newly failing: 1**" in comment.body
    assert "| weighted | 0.750 | 1.000 |" in comment.body
    assert "✕ FAIL: demo" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().find("testsuite").attrib["failures"] == "1"
    (note,) = commands(done.stderr)
    assert note.startswith(
        "::error file=suite.jsonl,line=2,title=demo%3A severity 3%2C wrong fact stated::waiting-1: "
    )
    assert WORKFLOW_TOKEN not in done.stderr + done.stdout

    with Chat() as chat:
        watched(tmp_path, chat)
        mended = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github))
    assert mended.returncode == 0, mended.stderr
    assert github.by(BOT) == [comment]
    assert "### ✓ PASS: demo" in comment.body
    assert commands(mended.stderr) == []


def test_a_fork_s_token_only_reads_which_is_said_and_changes_no_verdict(tmp_path, lookout, github):
    with Chat() as chat:
        watched(tmp_path, chat, cases=1)
        variables = in_actions(tmp_path, github, READING_TOKEN)
        done = lookout("gate", "--target", "demo", "--github", "--json", cwd=tmp_path, **variables)
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "PASS"
    assert "lookout: not on GitHub: could not comment on acme/helpdesk#12 (HTTP 403)" in done.stderr
    assert "pull-requests: write" in done.stderr
    assert "statuses: write" in done.stderr
    assert all(line.startswith("::warning ") for line in commands(done.stderr))
    assert "PASS: demo" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_staging_deploy_that_is_not_reached_is_red_with_its_blame(tmp_path, lookout, github):
    with Chat() as chat:
        watched(tmp_path, chat, cases=2)
    done = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **in_actions(tmp_path, github))
    assert done.returncode == 3, done.stderr
    assert "the app did not serve" in done.stdout
    assert github.states[-1] == ("lookout/demo", "error")
    assert "the app did not serve" in github.statuses[-1]["description"]
    assert "by the application" in github.comments[0].body


def test_a_monitor_that_breaks_leaves_no_pending_status(tmp_path, lookout, github):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1)
        path.write_text(path.read_text(encoding="utf-8").replace('driver = "json"', 'driver = "browser"'))
        variables = in_actions(tmp_path, github) | {"CHROMIUM_PATH": "/nowhere/chromium"}
        done = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **variables)
    assert done.returncode == 4
    assert github.states[-1] == ("lookout/demo", "error")


def test_results_are_weighed_again_beside_a_baseline_that_is_a_file(tmp_path, lookout):
    """What a base branch kept as an artifact is all that a pull request's job needs; nothing is asked."""
    with Chat(*[RIGHT] * 4, WRONG, RIGHT, RIGHT, RIGHT) as chat:
        watched(tmp_path, chat)
        for code in (0, 1):
            assert lookout("verify", "demo", cwd=tmp_path).returncode == code
    base, broken = sorted(tmp_path.glob("data/runs/*/results.json"))
    asked = ("gate", str(broken), "--baseline", str(base), "--json")
    report = json.loads(lookout(*asked, cwd=tmp_path).stdout)
    assert report["comparison"]["severities"][0]["newly_failing"] == ["waiting-0"]
    assert lookout("gate", str(base), "--baseline", "none", cwd=tmp_path).returncode == 0
    unrated = lookout("gate", str(base), "--min-score", "4.0", cwd=tmp_path)
    assert unrated.returncode == 3, "an average rating that nobody gave is no pass"
    assert "no report was rated" in unrated.stdout
    other = lookout("gate", str(base), "--baseline", str(broken), "--json", cwd=tmp_path)
    assert "only an accepted run" in json.loads(other.stdout)["comparison"]["refused"][0]
    mended = lookout("gate", str(base), "--baseline", str(broken), "--fail-on-regression", cwd=tmp_path)
    assert mended.returncode == 0
    printed = " ".join(mended.stdout.split())
    assert "of 4 cases that both runs graded, 1 right now, not right then: waiting-0" in printed
    assert "of 4 cases that both runs graded, 0 not right now, right then" in printed
    assert "--fail-on-regression does not apply: run " in mended.stderr
    assert "its verdict is FAIL, and only an accepted run, PASS, is a baseline" in mended.stderr
    few = lookout("gate", str(broken), "--baseline", str(base), "--fail-on-regression", cwd=tmp_path)
    assert "--fail-on-regression does not apply: only 4 cases of this run" in few.stderr
    alone = lookout("gate", str(base), "--baseline", "none", "--fail-on-regression", cwd=tmp_path)
    assert "--fail-on-regression does not apply: no accepted run of demo was found or asked for" in alone.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {}, "give --target"),
        (["results.json", "--target", "demo"], {}, "give --target"),
        (["--target", "dmeo"], {}, "did you mean 'demo'"),
        (["--target", "http://127.0.0.1:9"], {}, "--suite"),
        (["--target", "demo", "--min-score", "98"], {}, "0 to 1 for the weighted score"),
        (["--target", "demo", "--min-score", "4.0"], {}, "has no [judge]"),
        (["--target", "demo", "--baseline", "nowhere.json"], {}, "--baseline nowhere.json"),
        (["--target", "demo", "--github"], {}, "GITHUB_REPOSITORY"),
        (["--target", "demo", "--github"], {"GITHUB_REPOSITORY": REPOSITORY}, "github.token"),
        (["--target", "demo", "--junit", "suite.jsonl/x.xml"], {}, "suite.jsonl/x.xml"),
        (["--target", "live"], {"CI": "true"}, 'targets.live.environment is "production"'),
        (
            ["--target", "demo"],
            {"CI": "1", "LOOKOUT_HEARTBEAT_URL": "http://127.0.0.1:9/x"},
            "LOOKOUT_HEARTBEAT_URL",
        ),
        (["--target", "live", "--allow-production", "why"], {}, "give the reason"),
    ],
)
def test_what_cannot_be_is_told_in_a_second_and_nothing_is_asked(tmp_path, lookout, arguments, variables, said):
    with Chat() as chat:
        live = f'[targets.live]\nurl = "{chat.url}/live"\nenvironment = "production"\nsuite = "suite.jsonl"\n'
        path = watched(tmp_path, chat, more=live)
        if said != 'targets.live.environment is "production"' and "live" not in arguments:
            path.write_text(path.read_text(encoding="utf-8").replace(live, ""), encoding="utf-8")
        done = lookout("gate", *arguments, cwd=tmp_path, **variables)
        assert done.returncode == 2, done.stdout + done.stderr
        assert said in done.stderr
        assert chat.asked == 0
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "runs").exists()


def test_verify_stops_before_production_in_ci_too(tmp_path, lookout):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1)
        text = path.read_text(encoding="utf-8").replace(
            "[targets.demo]\n", '[targets.demo]\nenvironment = "production"\n'
        )
        path.write_text(text, encoding="utf-8")
        refused = lookout("verify", "demo", cwd=tmp_path, CI="true")
        assert (refused.returncode, chat.asked) == (2, 0)
        let = lookout(
            "verify", "demo", "--allow-production", "OPS-12: agreed with its owner", cwd=tmp_path, CI="true"
        )
    assert let.returncode == 0, let.stderr
    assert "Going on against production, because: OPS-12" in let.stderr
