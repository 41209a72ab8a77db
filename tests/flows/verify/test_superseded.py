"""Test that only the newest deploy is verified if a page is deployed twice before its verification.

If a page reports its commit, this rule does not apply.
"""

from __future__ import annotations

import pytest

from flows.deploys.queue import DeployQueue
from flows.verify.flow import find_newer_commit
from flows.verify.run_folder import VerifyRequest
from monitors.config.file import parse_config
from tests.deployments.triggers.senders import COMMIT, OTHER_COMMIT
from tests.flows.deploys.sample_deploys import queued

BUILD = {"readiness": {"version_url": "http://127.0.0.1:9/version"}}


def config_in(folder, probe):
    target = {"url": "http://127.0.0.1:9", "suite": "suite.jsonl", "probe": probe}
    return parse_config({"data_folder": str(folder), "targets": {"bot": target}}, "the test")


@pytest.mark.parametrize(
    ("probe", "newer"), [({}, OTHER_COMMIT), (BUILD, None)], ids=["unknown build", "named build"]
)
def test_a_deploy_that_another_one_followed_is_not_asked(tmp_path, monkeypatch, probe, newer):
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "a deployment")
    config = config_in(tmp_path, probe)
    for commit in (COMMIT, OTHER_COMMIT):
        DeployQueue(tmp_path).save_if_new(queued(commit))
    first, second, scheduled = (
        VerifyRequest(target="bot", config=config, commit=commit) for commit in (COMMIT, OTHER_COMMIT, None)
    )
    assert [find_newer_commit(config, request) for request in (first, second, scheduled)] == [newer, None, None]
    monkeypatch.delenv("PREFECT__RUNTIME__DEPLOYMENT__ID")
    assert find_newer_commit(config, first) is None, "a person asks for this commit"
