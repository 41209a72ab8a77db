"""The Hub's deliveries: verified by their secret. Only a push to a branch of a Space is a deploy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployments.triggers.delivery import DeliveryRejected, Deploys, IgnoreReason, NotForUs, RejectionReason
from monitors.records.targets import DeployEvent, ReportedDeploy
from tests.deployments.triggers.senders import (
    COMMIT,
    NOW,
    OTHER_COMMIT,
    by_hub,
    delivery,
    hub,
    hub_headers,
    raw,
    space_pushed,
    space_trigger,
)

DATA = Path(__file__).parents[4] / "shared" / "data" / "webhooks"
MAIN = "refs/heads/main"
BODY = raw(space_pushed())


def test_a_push_to_main_is_a_deploy_of_its_new_commit_not_of_the_head():
    expected = DeployEvent(target="bot", commit=COMMIT, occurred_at=NOW, reported_by="huggingface")
    assert hub().verify_and_parse(by_hub(space_pushed())) == Deploys((ReportedDeploy(event=expected),))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (space_pushed(name="acme/other"), IgnoreReason.REPOSITORY),
        (space_pushed(type="model"), IgnoreReason.REPOSITORY),
        (space_pushed(scope="repo.config"), IgnoreReason.EVENT),
        (space_pushed(scope="discussion", action="create"), IgnoreReason.EVENT),
        (space_pushed(("refs/heads/dev", COMMIT)), IgnoreReason.BRANCH),
        (space_pushed(("refs/pr/5", COMMIT)), IgnoreReason.BRANCH),
        (space_pushed(("refs/tags/main", COMMIT)), IgnoreReason.BRANCH),
        (space_pushed((MAIN, None)), IgnoreReason.BRANCH),
        (space_pushed((MAIN, "0" * 40)), IgnoreReason.BRANCH),
        ({**space_pushed(), "updatedRefs": None}, IgnoreReason.BRANCH),
    ],
)
def test_f39_another_space_branch_or_event_is_left_alone(payload, why):
    assert hub().verify_and_parse(by_hub(payload)) == NotForUs(why)


def test_of_several_refs_those_that_a_trigger_names_are_taken():
    refs = [("refs/pr/5", OTHER_COMMIT), ("refs/heads/dev", OTHER_COMMIT), (MAIN, COMMIT)]
    (found,) = hub().verify_and_parse(by_hub(space_pushed(*refs))).deploys
    assert found.event.commit == COMMIT
    rows = [space_trigger(), space_trigger(branch="dev", target="staging")]
    both = hub(*rows).verify_and_parse(by_hub(space_pushed(*refs))).deploys
    assert {(one.event.target, one.event.commit) for one in both} == {("bot", COMMIT), ("staging", OTHER_COMMIT)}


@pytest.mark.parametrize(
    "payload",
    [
        [],
        None,
        {},
        space_pushed((MAIN, "main")),
        space_pushed((MAIN, "../x")),
        {**space_pushed(), "repo": "acme/helpdesk-space"},
    ],
)
def test_f29_a_payload_of_no_sense_is_refused(payload):
    with pytest.raises(DeliveryRejected) as refused:
        hub().verify_and_parse(by_hub(payload))
    assert refused.value.reason is RejectionReason.MALFORMED


@pytest.mark.parametrize(
    "secret", ["another-users-secret", "hub-secret-for-tests-000", "hub-secret-for-tests-0001 ", "é", "密"]
)
def test_f25_another_secret_is_refused_before_the_body_is_read(secret):
    with pytest.raises(DeliveryRejected) as refused:
        hub().check_headers(delivery(b"", hub_headers(secret=secret)).headers)
    assert refused.value.reason is RejectionReason.WRONG_SIGNATURE


def test_f26_without_its_secret_or_with_two_a_delivery_is_refused():
    headers = delivery(BODY, hub_headers()).headers
    missing = {name: values for name, values in headers.items() if name != "x-webhook-secret"}
    for given in (missing, {**headers, "x-webhook-secret": headers["x-webhook-secret"] * 2}):
        with pytest.raises(DeliveryRejected) as refused:
            hub().check_headers(given)
        assert refused.value.reason is RejectionReason.UNSIGNED


def test_f30_old_and_new_secret_are_valid_at_once():
    parser = hub(secrets=("the-new-secret-of-tests", "the-old-secret-of-tests"))
    for secret in ("the-new-secret-of-tests", "the-old-secret-of-tests"):
        assert isinstance(parser.verify_and_parse(delivery(BODY, hub_headers(secret=secret))), Deploys)


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the project")
def test_the_hubs_real_payloads_are_read_as_they_are():
    rows = [json.loads(line) for line in (DATA / "huggingface.jsonl").read_text(encoding="utf-8").splitlines()]
    parser = hub(space_trigger(repository="Wauplin/gradio-user-history"))
    came = {row["id"]: parser.verify_and_parse(by_hub(row["payload"])) for row in rows}
    assert came == {
        "create_discussion": NotForUs(IgnoreReason.EVENT),
        "update_discussion": NotForUs(IgnoreReason.EVENT),
        "with_updated_refs": NotForUs(IgnoreReason.BRANCH),  # a pull request's ref
    }
    merged = next(row["payload"] for row in rows if row["id"] == "with_updated_refs")
    merged["updatedRefs"][0]["ref"] = MAIN
    (found,) = parser.verify_and_parse(by_hub(merged)).deploys
    assert found.event.commit == "227c78346870a85e5de4fff8a585db68df975406"
