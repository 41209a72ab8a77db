"""A run that would use the production project or its keys is refused with exit code 2 before its first request."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from flows.verify.run_folder import VerifyRequest
from tests import fork_server
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.servers.anthropic import AnthropicServer
from tests.servers.langsmith import LangSmithServer

KEYS = {"LANGSMITH_API_KEY": "lsv2_own_hush", "PROD_LANGSMITH": "lsv2_prod_hush"}
MODEL_KEYS = {"EVALUATION_KEY": "sk-own-hush", "PROD_MODEL_KEY": "sk-prod-hush"}
LANGSMITH = """
[langsmith]
api_url = "{langsmith}"
project = "agent-staging"
production_project = "agent-prod"
production_key_env = "PROD_LANGSMITH"
"""
JUDGE = """
[judge]
production_key_variables = ["PROD_MODEL_KEY"]
[[judge.models]]
model = "claude-sonnet-5-5"
base_url = "{judge}"
key_variable = "EVALUATION_KEY"
"""
SHARED = {
    "the project": (LANGSMITH.replace("agent-staging", "agent-prod"), KEYS),
    "a key": (LANGSMITH, KEYS | {"PROD_LANGSMITH": KEYS["LANGSMITH_API_KEY"]}),
    "a key's variable": (LANGSMITH.replace("PROD_LANGSMITH", "LANGSMITH_API_KEY"), KEYS),
    "a model's key": (JUDGE, MODEL_KEYS | {"PROD_MODEL_KEY": MODEL_KEYS["EVALUATION_KEY"]}),
    "a model's key variable": (JUDGE.replace("PROD_MODEL_KEY", "EVALUATION_KEY"), MODEL_KEYS),
}


class Servers:
    """The application, LangSmith and the judge as local servers, and a configuration with all three."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.chat = stack.enter_context(Chat())
        self.langsmith = stack.enter_context(LangSmithServer([], key=KEYS["LANGSMITH_API_KEY"]))
        self.judge = stack.enter_context(AnthropicServer())

    def configure(self, tables: str) -> Path:
        more = tables.replace("{langsmith}", self.langsmith.url).replace("{judge}", self.judge.url)
        path = watched(self.folder, self.chat, more=more)
        text = path.read_text("utf-8").replace("[targets.demo]\n", '[targets.demo]\nmodel_family = "gpt"\n')
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def servers(tmp_path: Path):
    with contextlib.ExitStack() as stack:
        yield Servers(tmp_path, stack)


@pytest.mark.parametrize("name", SHARED)
def test_every_command_refuses_what_is_shared_with_production(servers: Servers, name: str, snapshot):
    tables, keys = SHARED[name]
    servers.configure(tables)
    environment = fork_server.bare(**keys)
    commands = (("verify", "demo"), ("gate", "--target", "demo"), ("doctor", "demo"))
    refused = [run_in_process(*command, cwd=servers.folder, env=environment) for command in commands]
    assert [done.returncode for done in refused] == [2, 2, 2]
    assert {done.stderr for done in refused} == {refused[0].stderr}
    assert refused[0].stderr == snapshot
    assert "hush" not in refused[0].stderr
    assert (servers.chat.asked, servers.langsmith.queries, servers.judge.messages) == (0, [], [])


@pytest.mark.prefect
def test_the_scheduled_flow_refuses_it_too(servers: Servers, prefect_environment):
    tables, keys = SHARED["a model's key"]
    request = VerifyRequest(target="demo", config_path=servers.configure(tables))
    done = fork_server.run(
        request.model_dump_json(),
        module="tests.flows.deploys.verify_request",
        cwd=Path.cwd(),
        env=prefect_environment | fork_server.WARM | keys,
    )
    assert done.stdout.strip() == "Failed"
    assert (servers.chat.asked, servers.judge.messages) == (0, [])
