"""Test that the results of a staging deploy are published exactly once on its pull request, also after failures."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.deploys.pull_requests import NotForPosting, list_repositories_for_results, load_github_token
from flows.deploys.queue import DeployQueue
from monitors.config.file import parse_config
from monitors.github.api import GitHubSettings
from monitors.records.targets import PullRequest
from tests import fork_server
from tests.conftest import ROOT
from tests.flows.chat import Chat, watched
from tests.flows.deploys.sample_deploys import queued
from tests.servers.github import BOT, HEAD, PULL, READING_TOKEN, REPOSITORY, WORKFLOW_TOKEN, GitHub

pytestmark = pytest.mark.prefect

HERE = PullRequest(repository=REPOSITORY, number=PULL)
TRIGGER = f'[[deploys.triggers]]\nprovider = "github"\nrepository = "{REPOSITORY}"\ntarget = "demo"\n'
PENDING, SUCCESS, FAILURE, ERROR = (
    ("lookout/demo/suite", state) for state in ("pending", "success", "failure", "error")
)


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


def request(path, *, pull: PullRequest | None = HERE, commit: str | None = HEAD) -> str:
    asked = {"target": "demo", "config_path": str(path), "commit": commit}
    return json.dumps({**asked, "pull_request": pull.model_dump()} if pull else asked)


def started(asked, environment, github, token=WORKFLOW_TOKEN, **variables):
    own = {"GITHUB_API_URL": github.url, "GITHUB_TOKEN": token} if token else {"GITHUB_API_URL": github.url}
    return fork_server.start(
        asked,
        module="tests.flows.deploys.verify_request",
        cwd=ROOT,
        env=environment | fork_server.WARM | own | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def verified(asked, environment, github, token=WORKFLOW_TOKEN, **variables):
    """Run the verification flow. Return the name of its final state, and its error output."""
    process = started(asked, environment, github, token, **variables)
    out, err = process.communicate(timeout=240)
    return out.strip(), err


def test_a_staging_run_says_that_it_is_pending_and_then_its_verdict(tmp_path, prefect_environment, github):
    personal = "Dear Ms Calderwood-Finch, ring our hotline +49 30 5557 0190."
    with Chat(f"The waiting period is 36 months. {personal} [Source: Gold, clause 4.2]") as chat:
        path = watched(tmp_path, chat, cases=2, more=TRIGGER)
        name, _ = verified(request(path), prefect_environment, github)
    assert name == "Fail"
    assert github.states == [PENDING, FAILURE]
    assert {one["sha"] for one in github.statuses} == {HEAD}
    (comment,) = github.by(BOT)
    assert "### ✕ FAIL: demo" in comment.body
    assert "`waiting-0`" in comment.body
    assert "Dear Ms [name], ring our hotline [phone]." in comment.body.replace("\\", "")
    assert "Calderwood" not in comment.body

    with Chat() as chat:
        path = watched(tmp_path, chat, cases=2, more=TRIGGER)
        name, _ = verified(request(path), prefect_environment, github)
    assert name == "Pass"
    assert github.states[2:] == [PENDING, SUCCESS]
    assert github.by(BOT) == [comment]
    assert "### ✓ PASS: demo" in comment.body


@pytest.mark.whole_only
def test_the_comment_says_whether_it_is_still_so(tmp_path, prefect_environment, github):
    """The comment first contains the verdict, and is edited later to add the result of the recheck."""
    with Chat("The waiting period is 36 months. [Source: Gold, clause 4.2]") as chat:
        path = watched(tmp_path, chat, cases=1, more=f"{TRIGGER}[recheck]\ntimes = 2\nmax_s = 600\n")
        verified(request(path), prefect_environment, github)
    (comment,) = github.by(BOT)
    assert "2 of 2" in comment.body
    assert set(github.states[1:]) == {FAILURE}


@pytest.mark.whole_only
def test_production_and_runs_of_no_pull_request_post_nothing(tmp_path, prefect_environment, github):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1, more=TRIGGER)
        verified(request(path, pull=None), prefect_environment, github)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("[targets.demo]\n", '[targets.demo]\nenvironment = "production"\n'))
        name, _ = verified(request(path), prefect_environment, github)
    assert name == "Pass"
    assert github.asked == []


@pytest.mark.parametrize(
    ("more", "said"),
    [("", "Add acme/helpdesk to"), (TRIGGER, "pull-requests: write")],
    ids=["a repository of nobody's", "can only read"],
)
@pytest.mark.whole_only
def test_a_failed_post_is_reported_and_the_verdict_stands(tmp_path, prefect_environment, github, more, said):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1, more=more)
        name, err = verified(request(path), prefect_environment, github, READING_TOKEN)
    assert name == "Pass"
    assert "acme/helpdesk#12" in err.replace("\n", "")
    assert said in err.replace("\n", "")
    assert github.comments == []
    assert READING_TOKEN not in err


@pytest.mark.parametrize("block", [None, "no-such-block"])
async def test_without_a_token_it_is_said_where_one_comes_from(prefect_environment, block):
    with temporary_settings({PREFECT_API_URL: prefect_environment["PREFECT_API_URL"]}):
        with pytest.raises(NotForPosting, match=f"github.token_block.*{block or 'pull-requests: write'}"):
            await load_github_token(GitHubSettings(token_block=block), {})
        assert await load_github_token(GitHubSettings(token_block=block), {"GITHUB_TOKEN": "ghs_1"}) == "ghs_1"


def test_only_repositories_that_a_trigger_of_the_target_names_get_results():
    rows = [
        ("github", "Acme/Helpdesk", "demo"),
        ("huggingface", "acme/space", "demo"),
        ("github", "acme/x", "other"),
    ]
    triggers = [{"provider": p, "repository": r, "target": t} for p, r, t in rows]
    config = parse_config(
        {"targets": {"demo": {"url": "http://x", "suite": "s"}}, "deploys": {"triggers": triggers}}, "here"
    )
    assert list_repositories_for_results(config, "demo") == {"acme/helpdesk"}


@pytest.mark.whole_only
def test_the_token_may_come_from_a_prefect_block(tmp_path, prefect_environment, github):
    _save_block("github-comments", WORKFLOW_TOKEN, prefect_environment)
    more = TRIGGER + '[github]\ntoken_block = "github-comments"\n'
    with Chat() as chat:
        verified(request(watched(tmp_path, chat, cases=1, more=more)), prefect_environment, github, None)
    assert len(github.by(BOT)) == 1
    assert github.tokens == {WORKFLOW_TOKEN}


@pytest.mark.whole_only
def test_killed_while_it_posts_the_next_run_posts_once_though_it_knows_of_no_pull_request(
    tmp_path, prefect_environment, github
):
    """If a run is killed after GitHub stored its comment, the next run updates that comment.

    The killed run did not get GitHub's response, and the next run was started without a pull request.
    """
    posting = threading.Event()

    def hang(asked):
        if asked.method == "POST" and asked.path.endswith("/comments"):
            posting.set()

    with Chat() as chat:
        path = watched(tmp_path, chat, cases=2, more=TRIGGER)
        github.wrong.before_answering = hang
        github.wrong.is_slow_after_taking = True
        process = started(request(path), prefect_environment, github)
        assert posting.wait(120)
        process.kill()
        process.communicate()
        github.wrong.is_slow_after_taking = False
        asked = chat.asked
        name, _ = verified(request(path, pull=None), prefect_environment, github)
        assert chat.asked == asked
    assert name == "Pass"
    (comment,) = github.by(BOT)
    assert "### ✓ PASS: demo" in comment.body
    assert github.states[-1] == SUCCESS


@pytest.mark.whole_only
def test_a_pull_request_that_a_later_report_names_gets_its_results_too(tmp_path, prefect_environment, github):
    """A pull request gets the results even if its number becomes known only during the run.

    The poll reports the deploy first, without a pull request, and the webhook with the pull request's number
    arrives later.
    """
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1, more=TRIGGER)
        deploys = DeployQueue(tmp_path / "data")
        assert deploys.save_if_new(queued(HEAD, target="demo", by="poll"))
        assert not deploys.save_if_new(queued(HEAD, target="demo", pull_request=HERE))
        verified(request(path, pull=None), prefect_environment, github)
    assert len(github.by(BOT)) == 1


@pytest.mark.whole_only
def test_a_run_that_breaks_leaves_no_pending_status(tmp_path, prefect_environment, github):
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=1, more=TRIGGER)
        text = path.read_text(encoding="utf-8").replace('driver = "json"', 'driver = "browser"')
        path.write_text(text, encoding="utf-8")
        name, _ = verified(request(path), prefect_environment, github, CHROMIUM_PATH="/nowhere/chromium")
    assert name == "Failed"
    assert github.states == [PENDING, ERROR]


def _save_block(name, token, environment):
    """Save a Prefect block, as a user does on Prefect's page or with Prefect's client."""
    script = f"from prefect.blocks.system import Secret; Secret(value={token!r}).save({name!r}, overwrite=True)"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
