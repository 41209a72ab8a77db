"""GitHub's deliveries: their HMAC is verified, a deploy that they report is parsed, and others are ignored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deployments.triggers.delivery import DeliveryRejected, Deploys, IgnoreReason, NotForUs, RejectionReason
from deployments.triggers.github import GitHubParser
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy
from tests.deployments.triggers.senders import (
    COMMIT,
    NOW,
    REPOSITORY,
    by_github,
    delivery,
    deployed,
    github,
    github_headers,
    pushed,
    raw,
    trigger,
    workflow,
)

DATA = Path(__file__).parents[4] / "shared" / "data" / "webhooks"


def deploy_in(parser, arrived):
    (deploy,) = parser.verify_and_parse(arrived).deploys
    return deploy


def test_a_successful_deployment_is_a_deploy_of_the_configured_target():
    assert deploy_in(github(), by_github(deployed())) == ReportedDeploy(
        event=DeployEvent(
            target="bot",
            commit=COMMIT,
            occurred_at=datetime(2026, 3, 1, 11, 59, 30, tzinfo=UTC),
            reported_by="github",
        ),
        environment="production",
    )


@pytest.mark.parametrize("state", ["pending", "queued", "in_progress", "failure", "error", "inactive"])
def test_a_deployment_that_is_not_done_or_failed_starts_nothing(state):
    assert github().verify_and_parse(by_github(deployed(state=state))) == NotForUs(IgnoreReason.STATE)


@pytest.mark.parametrize(
    ("row", "payload", "event", "why"),
    [
        ({}, deployed(repository="acme/other"), "deployment_status", IgnoreReason.REPOSITORY),
        ({"event": "push"}, deployed(), "deployment_status", IgnoreReason.EVENT),
        ({"branch": "main"}, deployed(ref="topic"), "deployment_status", IgnoreReason.BRANCH),
        (
            {"environment": "production"},
            deployed(environment="preview"),
            "deployment_status",
            IgnoreReason.ENVIRONMENT,
        ),
        ({"event": "push"}, pushed(ref="refs/heads/topic"), "push", IgnoreReason.BRANCH),
        ({"event": "push"}, pushed(ref="refs/tags/main"), "push", IgnoreReason.BRANCH),
        ({"event": "push"}, pushed(after="0" * 40), "push", IgnoreReason.BRANCH),
        ({"event": "workflow_run"}, workflow(branch="topic"), "workflow_run", IgnoreReason.BRANCH),
        ({"event": "workflow_run"}, workflow(conclusion="failure"), "workflow_run", IgnoreReason.STATE),
        ({"event": "workflow_run"}, workflow(conclusion=None), "workflow_run", IgnoreReason.STATE),
        ({"event": "workflow_run"}, workflow(action="requested"), "workflow_run", IgnoreReason.STATE),
        ({"event": "workflow_run"}, workflow(fork="mallory/helpdesk"), "workflow_run", IgnoreReason.FORK),
        (
            {"event": "workflow_run", "workflow": "Deploy"},
            workflow(name="Lint"),
            "workflow_run",
            IgnoreReason.WORKFLOW,
        ),
        ({}, {"zen": "Keep it logically awesome."}, "ping", IgnoreReason.PING),
        ({}, {"action": "opened"}, "issues", IgnoreReason.EVENT),
    ],
)
def test_f39_another_repository_branch_environment_or_event_is_left_alone(row, payload, event, why):
    assert github(trigger(**row)).verify_and_parse(by_github(payload, event)) == NotForUs(why)


@pytest.mark.parametrize(
    ("row", "payload", "event"),
    [
        ({"event": "push"}, pushed(), "push"),
        ({"event": "push", "branch": "release/2.x"}, pushed(ref="refs/heads/release/2.x"), "push"),
        ({"event": "push", "branch": "*"}, pushed(ref="refs/heads/any"), "push"),
        ({"event": "workflow_run", "workflow": "Deploy"}, workflow(), "workflow_run"),
        ({"environment": "production", "branch": "main"}, deployed(ref="refs/heads/main"), "deployment_status"),
        ({"repository": "ACME/HelpDesk"}, deployed(), "deployment_status"),
        ({"environment": "Production"}, deployed(), "deployment_status"),
        ({}, deployed(sha=COMMIT.upper()), "deployment_status"),
    ],
)
def test_deploys_named_by_the_trigger_are_accepted(row, payload, event):
    assert deploy_in(github(trigger(**row)), by_github(payload, event)).event.commit == COMMIT


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        (deployed(ref="refs/pull/12/merge"), "deployment_status"),
        (deployed(workflow_run={"pull_requests": [{"number": 12}, {"number": 13}]}), "deployment_status"),
        (workflow(branch="topic", pull_requests=[{"number": 12}]), "workflow_run"),
    ],
)
def test_the_pull_request_is_stored_where_the_payload_names_one(payload, event):
    parser = github(trigger(event=event, branch="*"))
    assert deploy_in(parser, by_github(payload, event)).pull_request == PullRequest(
        repository=REPOSITORY, number=12
    )


def test_one_repository_can_feed_several_targets_each_once():
    rows = [trigger(), trigger(target="staging"), trigger(target="bot", environment="production")]
    found = github(*rows).verify_and_parse(by_github(deployed())).deploys
    assert [one.event.target for one in found] == ["bot", "staging"]


def test_a_deploy_is_never_later_than_the_word_of_it():
    for created in ("2031-01-01T00:00:00Z", "soon", None):
        assert deploy_in(github(), by_github(deployed(created_at=created))).event.occurred_at == NOW


MALFORMED = {
    "no commit": deployed(sha="main"),
    "a commit that leads elsewhere": deployed(sha="../../etc/passwd"),
    "a short commit": deployed(sha=COMMIT[:12]),
    "a number for a text": deployed(ref=12),
    "a list": [],
    "null": None,
    "a text": "deployed",
    "no repository": {"deployment_status": {"state": "success"}, "deployment": {}},
    "an environment with a line end": deployed(environment="production\nX-Evil: 1"),
    "a pull request below one": deployed(workflow_run={"pull_requests": [{"number": 0}]}),
    "a push under this name": pushed(),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_f29_a_signed_payload_of_no_sense_is_refused(name):
    with pytest.raises(DeliveryRejected) as refused:
        github().verify_and_parse(by_github(MALFORMED[name]))
    assert refused.value.reason is RejectionReason.MALFORMED


BODY = raw(deployed())


@pytest.mark.parametrize(
    "value",
    [
        "",
        "sha256=",
        "sha1=" + "0" * 40,
        "0" * 64,
        "sha256=" + "0" * 63,
        "sha256=" + "G" * 64,
        "sha256=é",
        "sha256=" + "0" * 2_000,
    ],
)
def test_f29_a_malformed_signature_is_refused(value):
    with pytest.raises(DeliveryRejected) as refused:
        github().verify_and_parse(delivery(BODY, github_headers(BODY) | {"x-hub-signature-256": value}))
    assert refused.value.reason is RejectionReason.UNSIGNED


def test_f25_a_signature_by_another_secret_or_of_another_body_is_refused():
    for arrived in (
        delivery(BODY, github_headers(BODY, secret="another-users-secret")),
        delivery(BODY + b" ", github_headers(BODY)),
    ):
        with pytest.raises(DeliveryRejected) as refused:
            github().verify_and_parse(arrived)
        assert refused.value.reason is RejectionReason.WRONG_SIGNATURE


def test_f30_old_and_new_secret_are_valid_at_once_and_a_third_is_not():
    parser = github(secrets=("the-new-secret-of-tests", "the-old-secret-of-tests"))
    for secret in ("the-new-secret-of-tests", "the-old-secret-of-tests"):
        assert isinstance(parser.verify_and_parse(delivery(BODY, github_headers(BODY, secret=secret))), Deploys)
    with pytest.raises(DeliveryRejected):
        parser.verify_and_parse(delivery(BODY, github_headers(BODY, secret="a-third-secret-of-tests")))


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the project")
def test_githubs_own_example_of_a_signature_is_accepted():
    """The signature in GitHub's own example is accepted.

    The example is still refused, because its body is not JSON.
    """
    vector = json.loads((DATA / "github_signature.json").read_text(encoding="utf-8"))
    name, _, value = vector["header"].partition(": ")
    headers = github_headers(b"") | {name.lower(): value}
    with pytest.raises(DeliveryRejected) as refused:
        GitHubParser((vector["secret"],), (trigger(),)).verify_and_parse(
            delivery(vector["payload"].encode(), headers)
        )
    assert refused.value.reason is RejectionReason.MALFORMED


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the project")
def test_githubs_real_payloads_are_read_as_they_are():
    rows = [json.loads(line) for line in (DATA / "github.jsonl").read_text(encoding="utf-8").splitlines()]
    triggers = [
        trigger(repository="Codertocat/Hello-World"),
        trigger(repository="Codertocat/Hello-World", event="push", branch="master"),
        trigger(repository="octo-org/octo-repo", event="workflow_run", branch="*"),
    ]
    came = {row["id"]: github(*triggers).verify_and_parse(by_github(row["payload"], row["event"])) for row in rows}
    taken = {name for name, parsed in came.items() if isinstance(parsed, Deploys)}
    assert taken == {
        "deployment_status/payload.json",
        "deployment_status/with-installation",
        "push/with-new-branch",
        "push/with-no-username-committer",
        "workflow_run/completed.with-pull-requests",
    }
    assert came["ping/payload.json"] == came["ping/with-organization"] == NotForUs(IgnoreReason.PING)
    assert came["push/payload.json"] == NotForUs(IgnoreReason.BRANCH)
    (run,) = came["workflow_run/completed.with-pull-requests"].deploys
    assert run.pull_request is not None


def test_the_id_of_a_deployment_tells_a_redeploy_from_a_redelivery():
    found = [deploy_in(github(), by_github(deployed(id=number))).deployment for number in (7, 8, 7, None)]
    assert found == ["7", "8", "7", None]


@pytest.mark.parametrize(
    ("event", "first", "redelivered", "again", "ids"),
    [
        ("workflow_run", workflow(id=7), workflow(id=7), workflow(id=7, attempt=2), ("run-31-7-1", "run-31-7-2")),
        (
            "push",
            pushed(before="1" * 40),
            pushed(before="1" * 40),
            pushed(before="2" * 40),
            (f"push-{'1' * 40}", f"push-{'2' * 40}"),
        ),
    ],
    ids=["workflow_run", "push"],
)
def test_runs_and_pushes_have_an_id_that_only_a_redelivery_repeats(event, first, redelivered, again, ids):
    parser = github(trigger(event=event))
    deploys = [deploy_in(parser, by_github(payload, event)).deployment for payload in (first, redelivered, again)]
    assert deploys == [ids[0], ids[0], ids[1]]


def test_a_push_without_a_known_commit_before_has_no_id():
    assert deploy_in(github(trigger(event="push")), by_github(pushed(before="?"), "push")).deployment is None
