"""Two installations on one Prefect server, separated by `prefect.prefix`, with the same target and file path."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from http import HTTPStatus

import httpx
import pytest

from deployments.demo.configuration import find_free_port
from flows.server.schedule_state import load_schedule_states
from monitors.config.file import parse_config
from monitors.errors import ConfigError
from tests.conftest import ROOT
from tests.flows.few_cases import few_cases
from tests.polling import wait_until
from tests.servers.slack import SlackServer

PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")
INSTALLED_AT = "/etc/lookout/lookout.toml"
TARGET = {"url": "http://127.0.0.1:9", "suite": "few.jsonl"}


@pytest.mark.parametrize(
    "prefix", ["Team A", "team_a", "-a", "a--b", "a-", "1a", "a/b", "a" * 31], ids=lambda prefix: prefix[:8]
)
def test_a_wrong_prefix_is_an_error_that_names_the_key(prefix):
    with pytest.raises(ConfigError, match=r"lookout\.toml: prefect\.prefix"):
        parse_config({"targets": {"bot": TARGET}, "prefect": {"prefix": prefix}}, "lookout.toml")


def test_a_deployment_of_deploys_begins_with_the_prefix():
    values = {"targets": {"bot": TARGET}, "prefect": {"prefix": "team-a"}}
    with pytest.raises(ConfigError, match="verify-deploy/team-a-nightly, or remove the key"):
        parse_config({**values, "deploys": {"deployment": "verify-deploy/nightly"}}, "lookout.toml")
    parse_config({**values, "deploys": {"deployment": "own/nightly"}}, "lookout.toml")


@pytest.fixture
def api(prefect_environment):
    fresh = httpx.Limits(max_keepalive_connections=0)  # the server ends idle connections after seconds
    address = prefect_environment["PREFECT_API_URL"] + "/"
    with httpx.Client(base_url=address, timeout=60, trust_env=False, limits=fresh) as client:
        yield client


def request(api, method, path, **body):
    """Send a request, and return the server's response.

    Repeat the request if SQLite is busy (HTTP 503), as Prefect's own client does.
    """
    answers = []

    def is_answered():
        answers.append(api.request(method, path, json=body or None))
        return answers[-1].status_code != HTTPStatus.SERVICE_UNAVAILABLE

    wait_until(is_answered, timeout_s=120, what=f"{path} is answered", every_s=1)
    assert answers[-1].is_success, answers[-1].text
    return answers[-1].json()


@pytest.fixture
def prefixes(api):
    """Yield two prefixes, and remove everything that was registered with them."""
    prefixes = [f"team-{letter}{uuid.uuid4().hex[:6]}" for letter in "ab"]
    yield prefixes
    for prefix in prefixes:
        tags = {"tags": {"all_": [f"lookout-{prefix}"]}}
        for row in request(api, "POST", "deployments/filter", deployments=tags):
            api.delete(f"deployments/{row['id']}")
        api.delete(f"work_pools/lookout-{prefix}")
    for row in request(api, "POST", "automations/filter", limit=200):
        if row["name"].startswith(tuple(f"lookout-{prefix}: " for prefix in prefixes)):
            api.delete(f"automations/{row['id']}")


@pytest.mark.whole_only
@pytest.mark.prefect
def test_installations_neither_remove_nor_run_nor_report_what_is_the_other_s(
    prefect_environment, lookout, tmp_path, api, prefixes
):
    folders = [tmp_path / prefix for prefix in prefixes]

    def configure(number, *targets):
        tables = "".join(f'[targets.{name}]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n' for name in targets)
        text = f'data_folder = "data"\n[prefect]\nprefix = "{prefixes[number]}"\n{tables}'
        (folders[number] / "lookout.toml").write_text(text, encoding="utf-8")

    def deploy(number):
        done = lookout("prefect-yaml", "--at", INSTALLED_AT, "--deploy", cwd=folders[number])
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if "no longer in the configuration" in line]

    def list_deployments(number):
        tags = {"tags": {"all_": [f"lookout-{prefixes[number]}"]}}
        return {row["name"]: row for row in request(api, "POST", "deployments/filter", deployments=tags)}

    for number, folder in enumerate(folders):
        folder.mkdir()
        few_cases(folder, severe=1, others=1)
        configure(number, "bot", "old")
        pool = ("work-pool", "create", f"lookout-{prefixes[number]}", "--type", "process")
        subprocess.run([*PREFECT, *pool], env=prefect_environment, check=True, capture_output=True)
        assert deploy(number) == []
    assert all(name.startswith(prefixes[0]) for name in list_deployments(0))

    configure(0, "bot")
    assert len(deploy(0)) == 2
    assert len(list_deployments(1)) == len(list_deployments(0)) + 2
    states = load_schedule_states(prefect_environment["PREFECT_API_URL"], f"lookout-{prefixes[0]}")
    assert {state.name for state in states or ()} == set(list_deployments(0))

    with SlackServer() as first, SlackServer() as second:
        automations = [
            json.loads(lookout("automations", "--json", cwd=folder, SLACK_WEBHOOK_URL=slack.webhook_url).stdout)
            for folder, slack in zip(folders, (first, second), strict=True)
        ]
        assert automations[0].keys().isdisjoint(automations[1])
        assert {*automations[0].values(), *automations[1].values()} == {"created"}

        neighbour = list_deployments(1)[f"{prefixes[1]}-load-warehouse"]["id"]
        crashed = request(api, "POST", f"deployments/{neighbour}/create_flow_run", name="crashed")["id"]
        state = {"type": "CRASHED", "name": "Crashed", "message": "killed"}
        request(api, "POST", f"flow_runs/{crashed}/set_state", state=state, force=True)
        wait_until(lambda: second.messages, timeout_s=120, what="its own installation reports the crash")

        # A runner of the first installation, as `lookout up` starts it, with a run of each that is due.
        variables = prefect_environment | {"PYTHONPATH": str(ROOT)}
        port = str(find_free_port("127.0.0.1", 0))
        command = [
            sys.executable,
            "-m",
            "deployments.up.service",
            str(folders[0] / "lookout.toml"),
            "127.0.0.1",
            port,
        ]
        with (folders[0] / "serve.log").open("wb") as log:
            runner = subprocess.Popen(command, cwd=folders[0], env=variables, stdout=log, stderr=log)
            try:
                path = str(folders[0] / "lookout.toml")
                wait_until(
                    lambda: path == list_deployments(0)[f"{prefixes[0]}-digest"]["parameters"]["config_path"],
                    timeout_s=240,
                    what="the runner has registered its deployments",
                )
                ids = [list_deployments(n)[f"{prefix}-load-warehouse"]["id"] for n, prefix in enumerate(prefixes)]
                due = [request(api, "POST", f"deployments/{key}/create_flow_run", name="due")["id"] for key in ids]
                wait_until(
                    lambda: request(api, "GET", f"flow_runs/{due[0]}")["state_type"] == "COMPLETED",
                    timeout_s=240,
                    what="the first installation's run is done",
                )
            finally:
                runner.terminate()
                runner.wait(60)
        assert request(api, "GET", f"flow_runs/{due[1]}")["state_type"] == "SCHEDULED"
        assert len(list_deployments(1)) == len(list_deployments(0)) + 2
        assert first.messages == []
