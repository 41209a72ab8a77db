"""Test the deploy queue: each deploy of a target is queued once, and stays in the queue until it is resolved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.deploys.queue import DeployOutcome, DeployQueue
from monitors.errors import WarehouseUnwritable
from tests.deployments.triggers.senders import COMMIT, NOW, OTHER_COMMIT
from tests.flows.deploys.sample_deploys import queued

DONE = DeployOutcome(run_id="run-1", at=NOW)


def test_a_deploy_is_queued_once_and_waits_until_it_is_resolved(tmp_path):
    deploys = DeployQueue(tmp_path)
    assert deploys.save_if_new(queued())
    assert not deploys.save_if_new(queued(by="poll"))
    assert deploys.list_waiting_deploys() == (queued(),)
    deploys.store_outcome(queued().deploy, DONE)
    assert deploys.list_waiting_deploys() == ()
    (outcome,) = tmp_path.rglob("*.run")
    assert DeployOutcome.model_validate_json(outcome.read_bytes()) == DONE
    assert not DeployQueue(tmp_path).save_if_new(queued()), "for good, and for every process"


def test_the_same_commit_of_another_target_is_another_deploy(tmp_path):
    deploys = DeployQueue(tmp_path)
    assert deploys.save_if_new(queued())
    assert deploys.save_if_new(queued(target="staging"))
    assert deploys.find_newest_reported_commit("bot") == COMMIT
    assert deploys.find_newest_reported_commit("other") is None
    assert len(deploys.list_waiting_deploys()) == 2


def test_a_rollback_and_a_redeploy_of_a_known_commit_are_new_and_a_redelivery_is_not(tmp_path):
    """A rollback or a redeploy of a known commit is a new deploy, but a repeated webhook delivery is not.

    GitHub's deployment id distinguishes them: only a repeated delivery has the same id as before.
    """
    deploys = DeployQueue(tmp_path)
    assert deploys.save_if_new(queued(deployment="7"))
    assert deploys.save_if_new(queued(OTHER_COMMIT, deployment="8"))
    assert deploys.save_if_new(queued(deployment="9")), "a rollback"
    assert deploys.save_if_new(queued(deployment="10")), "a redeploy"
    assert not any(deploys.save_if_new(queued(deployment=number)) for number in ("7", "9", "10"))
    waiting = [(row.deploy.event.commit, row.deploy.deployment) for row in deploys.list_waiting_deploys()]
    assert sorted(waiting) == sorted([(COMMIT, "7"), (OTHER_COMMIT, "8"), (COMMIT, "9"), (COMMIT, "10")])
    deploys.store_outcome(queued(deployment="9").deploy, DONE)
    assert (COMMIT, "9") not in [
        (row.deploy.event.commit, row.deploy.deployment) for row in deploys.list_waiting_deploys()
    ]


@pytest.mark.parametrize("first", ["push", "deployment"])
def test_a_push_and_the_deployment_of_it_are_one_deploy(tmp_path, first):
    deploys = DeployQueue(tmp_path)
    reports = [queued(), queued(deployment="7")]
    assert [deploys.save_if_new(row) for row in (reports if first == "push" else reports[::-1])] == [True, False]
    assert not deploys.save_if_new(queued(deployment="7"))
    assert deploys.save_if_new(queued(deployment="8"))
    later = queued(OTHER_COMMIT).model_copy(update={"stored_at": NOW - timedelta(days=2)})
    assert [deploys.save_if_new(later), deploys.save_if_new(queued(OTHER_COMMIT, deployment="9"))] == [True, True]


@pytest.mark.parametrize("second", ["push-" + "1" * 40, "run-31-8-1", "message-0a1b", "7"])
def test_two_senders_of_one_deploy_are_one_and_each_can_report_a_redeploy(tmp_path, second):
    """A commit that two senders report is one deploy, and each sender can later report a redeploy.

    The senders are a deploy workflow and GitHub's deployments.
    """
    deploys, first = DeployQueue(tmp_path), "run-30-2-1"
    assert [deploys.save_if_new(queued(deployment=deployment)) for deployment in (first, second)] == [True, False]
    assert [row.deploy.deployment for row in deploys.list_waiting_deploys()] == [first]
    assert not any(deploys.save_if_new(queued(deployment=deployment)) for deployment in (first, second)), (
        "redelivered"
    )
    assert deploys.save_if_new(queued(deployment="run-30-2-2")), "the workflow ran again"


def test_f28_of_many_who_come_at_once_one_keeps_it(tmp_path):
    deploys = DeployQueue(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(deploys.save_if_new, [queued()] * 64)) == 1
    assert len(deploys.list_waiting_deploys()) == 1
    assert [path.name for path in (tmp_path / "deploys" / "bot").iterdir()] == [f"{COMMIT}.json"]


def test_the_one_that_waits_longest_comes_first(tmp_path):
    deploys = DeployQueue(tmp_path)
    for minutes, commit in ((3, "c"), (1, "a"), (2, "b")):
        deploys.save_if_new(queued(commit).model_copy(update={"stored_at": NOW + timedelta(minutes=minutes)}))
    assert [one.deploy.event.commit for one in deploys.list_waiting_deploys()] == ["a", "b", "c"]


def test_one_that_cannot_be_read_keeps_no_other_waiting(tmp_path, caplog):
    deploys = DeployQueue(tmp_path)
    deploys.save_if_new(queued())
    (tmp_path / "deploys" / "bot" / "torn.json").write_text('{"deploy"', encoding="utf-8")
    (tmp_path / "deploys" / "bot" / ".half.json.1-2.tmp").write_text("", encoding="utf-8")
    assert deploys.list_waiting_deploys() == (queued(),)
    assert "check or delete the file" in caplog.text


def test_a_first_look_is_noted_for_each_target(tmp_path):
    deploys = DeployQueue(tmp_path)
    assert not deploys.has_polled("bot")
    deploys.mark_target_as_polled("bot")
    deploys.mark_target_as_polled("bot")
    assert deploys.has_polled("bot")
    assert not deploys.has_polled("staging")
    assert deploys.list_waiting_deploys() == ()


def test_f22_an_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "deploys").write_text("", encoding="utf-8")
    deploys = DeployQueue(tmp_path)
    for deed in (
        lambda: deploys.save_if_new(queued()),
        deploys.require_writable,
        lambda: deploys.mark_target_as_polled("bot"),
    ):
        with pytest.raises(WarehouseUnwritable, match="deploys"):
            deed()


NAMES = st.sampled_from(["a", "a.json", "a.run", "A", "first-poll", "a:b", "v1.2.3"])


@given(sent=st.lists(st.tuples(NAMES, NAMES, st.booleans()), max_size=20))
def test_the_queue_agrees_with_a_dictionary(tmp_path_factory, sent):
    deploys, wanted = DeployQueue(tmp_path_factory.mktemp("deploys")), {}
    for target, commit, settles in sent:
        one = queued(commit, target=target)
        assert deploys.save_if_new(one) is ((target, commit) not in wanted)
        wanted[target, commit] = wanted.get((target, commit), False) or settles
        if settles:
            deploys.store_outcome(one.deploy, DONE)
    waiting = {(one.deploy.event.target, one.deploy.event.commit) for one in deploys.list_waiting_deploys()}
    assert waiting == {name for name, done in wanted.items() if not done}
    assert deploys.has_waiting_deploys() is bool(waiting)


def test_the_newest_report_is_the_one_that_came_last(tmp_path):
    deploys = DeployQueue(tmp_path)
    assert deploys.find_newest_reported_commit("bot") is None
    for commit, number in ((COMMIT, "7"), (OTHER_COMMIT, "8"), (COMMIT, "9")):
        deploys.save_if_new(queued(commit, deployment=number))
        assert deploys.find_newest_reported_commit("bot") == commit
