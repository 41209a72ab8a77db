"""Standard Webhooks: the specification's test vectors are accepted or rejected as the specification requires."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deployments.triggers.delivery import DeliveryRejected, Deploys, IgnoreReason, NotForUs, RejectionReason
from deployments.triggers.standard_webhooks import StandardParser, decode_webhook_secret
from monitors.errors import ConfigError
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy
from tests.deployments.triggers.senders import (
    COMMIT,
    NOW,
    REPOSITORY,
    STANDARD_SECRET,
    announced,
    by_standard,
    delivery,
    raw,
    standard,
    standard_headers,
    standard_signature,
    standard_trigger,
)

DATA = Path(__file__).parents[4] / "shared" / "data" / "webhooks" / "standard_webhooks.json"
BODY = raw(announced())
STAMP = int(NOW.timestamp())


def with_header(name, value, body=BODY):
    return delivery(body, standard_headers(body) | {name: value})


def refusal_of(arrived, parser=None):
    with pytest.raises(DeliveryRejected) as refused:
        (parser or standard()).verify_and_parse(arrived)
    return refused.value.reason


def test_a_message_of_a_deploy_is_read_whole():
    data = {"environment": "staging", "branch": "refs/heads/main", "pull_request": 12}
    assert standard().verify_and_parse(by_standard(announced(data=data))) == Deploys(
        (
            ReportedDeploy(
                event=DeployEvent(
                    target="bot",
                    commit=COMMIT,
                    occurred_at=datetime(2026, 3, 1, 11, 59, 30, tzinfo=UTC),
                    reported_by="standard",
                ),
                environment="staging",
                pull_request=PullRequest(repository=REPOSITORY, number=12),
                deployment="message-116b88f173007be5",
            ),
        )
    )


def test_the_id_of_a_message_distinguishes_a_redeploy_from_a_redelivery():
    ids = [
        standard().verify_and_parse(by_standard(announced(), msg_id=msg_id)).deploys[0].deployment
        for msg_id in ("msg_1", "msg_1", "msg_2")
    ]
    assert ids[0] == ids[1] != ids[2]


def test_a_version_is_a_commit_too_and_hexadecimal_is_the_same_in_capitals():
    for commit, stored_commit in (("v1.2.3", "v1.2.3"), (COMMIT.upper(), COMMIT), ("Release-7", "Release-7")):
        (found,) = standard().verify_and_parse(by_standard(announced(data={"commit": commit}))).deploys
        assert found.event.commit == stored_commit


@pytest.mark.parametrize(
    ("row", "payload", "why"),
    [
        ({}, announced(type="deploy.failed"), IgnoreReason.EVENT),
        ({"event": "build.done"}, announced(), IgnoreReason.EVENT),
        ({}, {"test": 2432232314}, IgnoreReason.EVENT),
        ({}, announced(data={"repository": "acme/other"}), IgnoreReason.REPOSITORY),
        ({"branch": "main"}, announced(data={"branch": "topic"}), IgnoreReason.BRANCH),
        ({"branch": "main"}, announced(), IgnoreReason.BRANCH),
        ({"environment": "production"}, announced(data={"environment": "staging"}), IgnoreReason.ENVIRONMENT),
    ],
)
def test_f39_another_type_repository_branch_or_environment_is_left_alone(row, payload, why):
    assert standard(standard_trigger(**row)).verify_and_parse(by_standard(payload)) == NotForUs(why)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_f26_a_missing_header_is_refused(missing):
    headers = {name: value for name, value in standard_headers(BODY).items() if name != missing}
    assert refusal_of(delivery(BODY, headers)) is RejectionReason.UNSIGNED


@pytest.mark.parametrize(("off_s", "taken"), [(-301, False), (-300, True), (0, True), (300, True), (301, False)])
def test_f27_five_minutes_either_way(off_s, taken):
    arrived = delivery(BODY, standard_headers(BODY, NOW + timedelta(seconds=off_s)))
    if taken:
        assert isinstance(standard().verify_and_parse(arrived), Deploys)
    else:
        assert refusal_of(arrived) is RejectionReason.STALE


GOOD = standard_signature(BODY, STAMP)
WRONG = "v1," + base64.b64encode(b"x" * 32).decode()


@pytest.mark.parametrize(
    "value",
    [WRONG, GOOD.removeprefix("v1,"), "v1", "v1,", ",", "v1,,", GOOD + ",", "v1," + GOOD, GOOD.rstrip("="), GOOD + "=",
     "v1,é", "v1,\udcff", "v2," + GOOD[3:], "v1a" + GOOD[2:], GOOD.replace(",", ", "), "v1,!!!!", f"{WRONG} {WRONG}",
     " ".join([WRONG] * 20 + [GOOD])],
)  # fmt: skip
def test_f29_malformed_and_wrong_signatures_are_refused(value):
    assert refusal_of(with_header("webhook-signature", value)) is RejectionReason.WRONG_SIGNATURE


@pytest.mark.parametrize("value", ["", "hello", "-1", "1e9", "1.5", "٣", "9" * 40, " 1", f"{STAMP}\n"])
def test_f29_a_malformed_time_is_refused(value):
    assert refusal_of(with_header("webhook-timestamp", value)) is RejectionReason.UNSIGNED


@pytest.mark.parametrize("value", ["", "a b", "é", "x" * 257, "a\n"])
def test_f29_a_malformed_id_is_refused(value):
    assert refusal_of(with_header("webhook-id", value)) is RejectionReason.UNSIGNED


def test_of_several_signatures_one_right_one_is_enough():
    listed = f"{WRONG} v2,abc {GOOD} {WRONG}"
    assert isinstance(standard().verify_and_parse(with_header("webhook-signature", listed)), Deploys)


@pytest.mark.parametrize(
    "payload",
    [[], None, "x", announced(data={"commit": "../x"}), announced(data={"commit": ""}), announced(data={"commit": None}),
     announced(data={"pull_request": "12"}), announced(data={"pull_request": 0}), {"type": "deploy.succeeded"},
     announced(data={"environment": "a\x00b"})],
)  # fmt: skip
def test_f29_a_payload_of_no_sense_is_refused(payload):
    assert refusal_of(by_standard(payload)) is RejectionReason.MALFORMED


def test_f25_another_secret_is_refused_and_f30_two_are_valid_at_once():
    other = "whsec_" + base64.b64encode(b"another-secret-for-tests-0002").decode()
    assert refusal_of(delivery(BODY, standard_headers(BODY, secret=other))) is RejectionReason.WRONG_SIGNATURE
    both = standard(secrets=(other, STANDARD_SECRET))
    for secret in (other, STANDARD_SECRET):
        assert isinstance(both.verify_and_parse(delivery(BODY, standard_headers(BODY, secret=secret))), Deploys)


@pytest.mark.parametrize("bad", ["", "whsec_", "whsec_====", "not base64!", "whsec_é", "whsec_a"])
def test_f31_an_invalid_secret_is_refused(bad):
    with pytest.raises(ConfigError, match="Standard Webhooks secret"):
        StandardParser((bad,), (standard_trigger(),))


@pytest.mark.parametrize("length", [30, 31, 32])
def test_a_secret_is_the_same_with_and_without_prefix_and_padding(length):
    key = bytes(range(length))
    text = base64.b64encode(key).decode()
    for written in (text, text.rstrip("="), f"whsec_{text}", f"whsec_{text}".rstrip("=")):
        assert decode_webhook_secret(written) == key


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the project")
def test_the_vector_of_the_specification_is_accepted_and_a_changed_one_is_not():
    vectors = json.loads(DATA.read_text(encoding="utf-8"))
    sign = vectors["sign"]
    body, at = sign["payload"].encode(), datetime.fromtimestamp(sign["timestamp"], UTC)
    headers = standard_headers(body, sign["timestamp"], secret=sign["key"], msg_id=sign["msg_id"])
    assert headers["webhook-signature"] == sign["expected"]
    for key in (sign["key"], sign["key"].removeprefix("whsec_")):
        parser = StandardParser((key,), (standard_trigger(),))
        assert parser.verify_and_parse(delivery(body, headers, at=at)) == NotForUs(IgnoreReason.EVENT)
    wrong = headers | {"webhook-signature": vectors["negative_signature_same_key"]}
    parser = StandardParser((sign["key"],), (standard_trigger(),))
    assert refusal_of(delivery(body, wrong, at=at), parser) is RejectionReason.WRONG_SIGNATURE
    for off_s in (-301, 301):
        late = delivery(body, headers, at=at + timedelta(seconds=off_s))
        assert refusal_of(late, parser) is RejectionReason.STALE
