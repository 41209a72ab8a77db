"""`lookout bisect` as a user runs it, with a Git repository.

The builds are demo builds behind real pages and a real API.
"""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from monitors.records.grades import FailureKind
from monitors.records.runs import Verdict
from monitors.records.targets import Target
from tests import fork_server
from tests.flows.explain.demo_builds import CASE, DemoBuild, demo_builds, written_target
from tests.in_process import run_in_process
from tests.servers.threaded_server import ThreadedServer
from tests.stable_text import replace_volatile
from tests.warehouse.sample_rows import NOON, assessment, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, RunRow

COMMITS = [f"{number}f2a91c" for number in range(8)]


def bisect(folder: Path, *arguments: str, code: int = 0, runner=run_in_process):
    """Run `lookout bisect` to its end, check its exit code, and return its standard output and error output."""
    done = runner("bisect", "demo", *arguments, cwd=folder, env=fork_server.bare())
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def listed(folder: Path, builds: list[DemoBuild]) -> str:
    """Write a file of commits, oldest first, each with the address of its build. Return the path of the file."""
    path = folder / "builds.txt"
    path.write_text("".join(f"{build.commit} {build.url}\n" for build in builds), encoding="utf-8")
    return str(path)


@pytest.mark.whole_only
def test_the_first_bad_of_eight_builds_is_found_on_their_pages_and_asked_again_nothing(tmp_path):
    """The first of eight builds with a planted fault is found in a real browser, with at most ten questions.

    If the command is run again, it sends no question.
    """
    with demo_builds(COMMITS, first_bad=5) as builds:
        written_target(tmp_path, builds[-1].url)
        arguments = (
            "--commits",
            listed(tmp_path, builds),
            "--good",
            COMMITS[0],
            "--bad",
            COMMITS[-1],
            "--case",
            CASE,
        )
        said, steps = bisect(tmp_path, *arguments, runner=fork_server.run)
        assert f"{COMMITS[5]} (9" in said
        assert f"{CASE}: from this build on" in said
        asked = sum(len(build.asked) for build in builds)
        assert asked <= 10
        assert steps.count(CASE) == asked
        bisect(tmp_path, *arguments, runner=fork_server.run)
        assert sum(len(build.asked) for build in builds) == asked


class BuildsByPath(ThreadedServer):
    """A server with one build at each path ``/COMMIT``. For a commit without a build, the response says so."""

    def __init__(self, builds: list[DemoBuild]) -> None:
        super().__init__()
        self._builds = builds

    def application(self) -> web.Application:
        """Return the web application that serves all builds."""
        app = web.Application(middlewares=[web.normalize_path_middleware(append_slash=True)])
        for build in self._builds:
            app.add_subapp(f"/{build.commit}", build.application())
        return app


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Return a Git repository of six commits.

    A seventh commit is on a branch that was merged before the sixth commit.
    """
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(5):
        git(folder, "commit", "--quiet", "--allow-empty", "--message", f"build {number}")
    git(folder, "checkout", "--quiet", "-b", "side", "HEAD~2")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "beside")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "build 5", "side")
    return folder


def with_runs(folder: Path, good: str, bad: str) -> None:
    """Store two runs of the target: the case passed in the older run and failed in the newer one."""
    (folder / "data").mkdir()
    store = store_in(folder / "data")
    target = Target(name="demo", url="http://127.0.0.1:1")
    for hours, (run_id, verdict, commit, kind) in enumerate(
        (("older", Verdict.PASS, good, None), ("newer", Verdict.FAIL, bad, FailureKind.WRONG_FACT))
    ):
        finished = {"finished_at": NOON + timedelta(hours=hours), "target": target}
        report = run_report(run_id).model_copy(update={"verdict": verdict, "commit": commit, **finished})
        rows = [AssessmentRow(row=assessment(run_id, CASE, failed=kind)), RunRow(row=report)]
        store.journal.append(rows, run_id=run_id)
    store.load_pending(1)


def test_commits_come_from_the_repository_and_cases_from_the_last_failed_run(tmp_path, repository):
    """Without --good, --bad and --case, the commits and cases come from the last PASS and the last FAIL.

    Commits of merged branches are not separate builds. A build that does not answer is skipped and reported, and
    the result lists the builds that cannot be distinguished.
    """
    commits = git(repository, "rev-list", "--first-parent", "--reverse", "HEAD").split()
    gone = commits[3]
    with (
        demo_builds(commits, first_bad=3) as builds,
        BuildsByPath([build for build in builds if build.commit != gone]) as server,
    ):
        written_target(tmp_path, f"{server.url}/{commits[-1]}", driver="json")
        with_runs(tmp_path, commits[0], commits[-1])
        arguments = ("--repo", str(repository), "--url-of", f"{server.url}/{{commit}}", "--json")
        report = json.loads(bisect(tmp_path, *arguments)[0])
    assert (report["good"], report["bad"], report["builds"]) == (commits[0], commits[-1], 6)
    best = report["candidates"][0]
    assert (best["claim"], best["commits"]) == ("first_bad", commits[3:5])
    assert best["probability"] >= 0.95
    assert [commit for commit, _ in report["left_out"]] == [gone]
    assert [case["case_id"] for case in report["cases"]] == [CASE]


@pytest.mark.parametrize("first_bad", [0, 8], ids=["good build fails", "bad build passes"])
def test_ends_that_are_not_as_they_were_said_to_be_are_the_claim(tmp_path, first_bad, snapshot):
    """If the build given as good fails, or the build given as bad passes, this is reported.

    No build between them is blamed.
    """
    with demo_builds(COMMITS, first_bad) as builds:
        written_target(tmp_path, builds[-1].url, driver="json")
        arguments = (
            "--commits",
            listed(tmp_path, builds),
            "--good",
            COMMITS[0],
            "--bad",
            COMMITS[-1],
            "--case",
            CASE,
        )
        printed, _ = bisect(tmp_path, *arguments)
    assert replace_volatile(printed, tmp_path) == snapshot


def test_builds_that_nobody_can_reach_name_nothing(tmp_path, snapshot):
    """If no build answers, the exit code is 3, every tried build is listed, and no build is blamed."""
    with demo_builds(COMMITS[:3], first_bad=1) as builds:
        written_target(tmp_path, builds[-1].url, driver="json")
        path = listed(tmp_path, builds)
    arguments = ("--commits", path, "--good", COMMITS[0], "--bad", COMMITS[2], "--case", CASE)
    printed, _ = bisect(tmp_path, *arguments, code=3)
    assert all(commit in printed for commit in COMMITS[:3])
    assert replace_volatile(printed, tmp_path) == snapshot


def test_a_build_that_serves_another_commit_is_skipped(tmp_path):
    """A build is skipped if it reports another commit than the list of builds states for its address."""
    with demo_builds(COMMITS[:3], first_bad=2) as builds:
        written_target(tmp_path, builds[-1].url, driver="json")
        path = listed(tmp_path, builds)
        builds[1].commit = "7777777"
        arguments = ("--commits", path, "--good", COMMITS[0], "--bad", COMMITS[2], "--case", CASE)
        report = json.loads(bisect(tmp_path, *arguments, "--json")[0])
    best = report["candidates"][0]
    assert (best["claim"], best["commits"]) == ("first_bad", COMMITS[1:3])
    assert [commit for commit, _ in report["left_out"]] == [COMMITS[1]]


CASE_OF = ("--case", CASE)
TWO = ("--commit", "aaa", "--commit", "bbb")
WRONG_USE = {
    "no builds": ("--good", "0f2a91c", "--bad", "7f2a91c", *CASE_OF),
    "no such file": ("--commits", "none.txt", "--good", "a", "--bad", "b", *CASE_OF),
    "wrong order": (*TWO, "--good", "bbb", "--bad", "aaa", *CASE_OF),
    "unknown build": (*TWO, "--good", "aaa", "--bad", "ccc", *CASE_OF),
    "no addresses": (*TWO, "--good", "aaa", "--bad", "bbb", *CASE_OF),
    "an address without its commit": (*TWO, "--good", "aaa", "--bad", "bbb", *CASE_OF, "--url-of", "http://x/"),
    "unknown case": (
        *TWO,
        "--good",
        "aaa",
        "--bad",
        "bbb",
        "--case",
        "no",
        "--url-of",
        "http://127.0.0.1:1/{commit}",
    ),
    "no repository": ("--repo", ".", "--good", "a", "--bad", "b", *CASE_OF),
}


@pytest.mark.parametrize("arguments", WRONG_USE.values(), ids=WRONG_USE)
def test_wrong_use_is_one_line_and_asks_nothing(tmp_path, arguments, snapshot):
    """For a usage error, the message states what is wrong and what is accepted, and the exit code is 2."""
    written_target(tmp_path, "http://127.0.0.1:1", driver="json")
    _, error = bisect(tmp_path, *arguments, code=2)
    assert replace_volatile(error, tmp_path) == snapshot


def test_production_is_refused_as_by_a_run(tmp_path):
    """If a target is only for staging, a build on the host of a production target is refused.

    No build is asked.
    """
    with demo_builds(COMMITS[:2], first_bad=1) as builds:
        path = written_target(tmp_path, builds[0].url, driver="json")
        more = (
            f'[targets.live]\nurl = "{builds[1].url}"\nenvironment = "production"\nsuite = "{tmp_path}/s.jsonl"\n'
            '[targets.demo.langsmith]\nproject = "staging"\nkey_env = "PATH"\n'
        )
        path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
        arguments = (
            "--commits",
            listed(tmp_path, builds),
            "--good",
            COMMITS[0],
            "--bad",
            COMMITS[1],
            "--case",
            CASE,
        )
        _, error = bisect(tmp_path, *arguments, code=2)
        assert "production" in error
        assert not builds[0].asked + builds[1].asked
