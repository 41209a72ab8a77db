"""The doctor's checks of the Hugging Face Hub: the token, each Space's stage and commit, and the advice."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from deployments.cli.doctor.services import DoctorContext, Health, check_hub
from monitors.config.file import parse_config
from tests.servers.hub import Hub

COMMIT = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
TOKEN = "hf_a-token-for-tests"


@contextmanager
def hub_with(*runtimes):
    server = Hub(*runtimes)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def checked(address, *, token=None, **readiness):
    """Return the doctor's checks of one Space, keyed by name."""
    target = {
        "space": "acme/bot",
        "url": f"{address}/page",
        "suite": "suite.jsonl",
        "probe": {"readiness": {"hub_url": address, "request_deadline_s": 5, **readiness}},
    }
    config = parse_config({"targets": {"bot": target}}, "lookout.toml")
    environment = {"HF_TOKEN": token} if token else {}
    around = DoctorContext(config_path=None, config=config, environment=environment, now=datetime.now(UTC))
    return {check.name: check for check in check_hub(around)}


def test_a_space_that_runs_is_named_with_its_commit_and_the_token_with_whose_it_is():
    with hub_with({"stage": "RUNNING", "sha": COMMIT}) as server:
        server.accounts[TOKEN] = "acme-bot"
        found = checked(server.address, token=TOKEN)
        assert server.tokens == [f"Bearer {TOKEN}"]
    assert found["Space of bot"].found == f"acme/bot: RUNNING, commit {COMMIT[:12]}"
    assert "acme-bot" in found[f"HF_TOKEN at {server.address}"].found
    assert {check.health for check in found.values()} == {Health.GOOD}


def test_a_token_that_the_hub_does_not_take_is_broken_and_never_shown():
    with hub_with({"stage": "RUNNING", "sha": COMMIT}) as server:
        found = checked(server.address, token=TOKEN)
    broken = found[f"HF_TOKEN at {server.address}"]
    assert (broken.health, "HTTP 401" in broken.found) == (Health.BROKEN, True)
    assert "huggingface.co/settings/tokens" in broken.to_do
    assert TOKEN not in json.dumps([check.model_dump() for check in found.values()])


def test_without_a_token_nobody_is_asked_whose_it_is():
    with hub_with({"stage": "RUNNING", "sha": COMMIT}) as server:
        assert list(checked(server.address)) == ["Space of bot"]


@pytest.mark.parametrize(
    ("runtime", "health", "words", "to_do"),
    [
        ({"stage": "SLEEPING"}, Health.GOOD, "SLEEPING", ""),
        ({"stage": "BUILDING", "sha": COMMIT}, Health.DOUBTFUL, "BUILDING", "wait until the Space runs"),
        (
            {"stage": "BUILD_ERROR", "errorMessage": "no pip"},
            Health.DOUBTFUL,
            "BUILD_ERROR (no pip)",
            "the Space's log",
        ),
        ({"stage": "PAUSED"}, Health.DOUBTFUL, "PAUSED", "the Space's log"),
        ({"stage": "RUNNING"}, Health.DOUBTFUL, "RUNNING", "targets.bot.probe.readiness.version_url"),
        (404, Health.BROKEN, "HTTP 404 for acme/bot", "targets.bot.space"),
        (500, Health.BROKEN, "the Hub answered HTTP 500", "whether the Hub is down"),
        (429, Health.BROKEN, "HTTP 429", "HF_TOKEN"),
    ],
)
def test_every_state_of_a_space_says_what_to_do(runtime, health, words, to_do):
    with hub_with(runtime) as server:
        check = checked(server.address)["Space of bot"]
        assert server.visits == 0  # the check does not wake the Space
    assert (check.health, words in check.found, to_do in check.to_do) == (health, True, True), check


def test_a_hub_that_cannot_be_reached_is_an_error_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    found = checked(address, token=TOKEN)
    assert {check.health for check in found.values()} == {Health.BROKEN, Health.DOUBTFUL}
    assert all("this machine can reach" in check.to_do for check in found.values())


def test_pages_that_are_no_spaces_need_no_hub():
    config = parse_config({"targets": {"bot": {"url": "http://x/", "suite": "suite.jsonl"}}}, "lookout.toml")
    around = DoctorContext(config_path=None, config=config, environment={}, now=datetime.now(UTC))
    assert check_hub(around) == []
