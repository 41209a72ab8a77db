"""Functions that write the demo's lookout.toml into the demo's data folder, and choose a free port for the demo.

Other commands can use this file with ``--config``.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from monitors.config.file import FILE_NAME, Config, load_config
from monitors.errors import WarehouseUnwritable


def find_free_port(host: str, preferred: int) -> int:
    """Return the port ``preferred`` if it is free. Otherwise, return any free port."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port on {host}")


SUITE: Final = Path(__file__).with_name("suraksha.jsonl")
AGENT_SUITE: Final = Path(__file__).parent / "agent" / "issues.jsonl"

CHAT_TEMPLATE: Final = """\
# Written by `lookout demo`. The same commands as for any other target work here:
#   lookout verify demo --config {config}
data_folder = "."

[targets.demo]
url = "http://127.0.0.1:{port}"
environment = "staging"
suite = {suite}
domains = ["health_insurance"]

# Its bot names the clause for each answer; an answer without a clause is wrong.
[targets.demo.graders]
citation_required = true

# A reload starts a new conversation, because a Gradio chat ends with its page. It is cheaper than a new page.
[targets.demo.probe]
isolation = "reload"

[targets.demo.probe.readiness]
version_url = "http://127.0.0.1:{port}/version"

# Lookout asks only the three worst failures again, so that the demo stays short.
[recheck]
max_questions = 15
max_s = 15

[alerts]
slack_channel = {channel}
{slack_api_url}"""

AGENT_TEMPLATE: Final = """\
# Written by `lookout demo --agent`. The same commands as for any other target work here:
#   lookout verify agent --config {config}
data_folder = "."

[targets.agent]
url = "http://127.0.0.1:{port}/jobs"
environment = "staging"
suite = {suite}
model_family = "rules"  # it has no model

[targets.agent.probe]
driver = "job"

[targets.agent.probe.job]
request = '{{"issue_url": "{{question}}"}}'
id = "job_id"
events_url = "{{start}}/{{job}}/stream"
report_url = "{{start}}/{{job}}/report"
text = ""  # the whole report
event_step = "call"
question = "question"
answer_url = "{{start}}/{{job}}/answer"
poll_s = 0.2
deadline_s = 60

[targets.agent.probe.readiness]
version_url = "http://127.0.0.1:{port}/version"

# Twelve issues, none of severity 3.
[gate]
min_severity_3_cases = 0
{judge}
[alerts]
slack_channel = {channel}
{slack_api_url}"""

JUDGE_TEMPLATE: Final = """
[judge.families]
rules = ["rules"]

[[judge.models]]
model = "claude-sonnet-5-5"
{base_url}"""


@dataclass(frozen=True)
class JudgeAddress:
    """The address of the judge that rates the agent's reports: Anthropic's API, or a compatible API."""

    base_url: str | None = None


def write_and_load_config(
    folder: Path,
    port: int,
    *,
    slack_api_url: str | None,
    channel: str,
    agent: bool = False,
    judge: JudgeAddress | None = None,
) -> Config:
    """Write the configuration for a chat page or an agent on ``port``, and load it."""
    path = folder / FILE_NAME
    address = f"slack_api_url = {json.dumps(slack_api_url)}\n" if slack_api_url else ""
    base_url = f"base_url = {json.dumps(judge.base_url)}\n" if judge and judge.base_url else ""
    text = (AGENT_TEMPLATE if agent else CHAT_TEMPLATE).format(
        config=path,
        port=port,
        suite=json.dumps(str(AGENT_SUITE if agent else SUITE)),
        channel=json.dumps(channel),
        slack_api_url=address,
        judge=JUDGE_TEMPLATE.format(base_url=base_url) if judge else "",
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WarehouseUnwritable(
            f"{folder} cannot be written ({error.strerror}). Choose another folder with --data-folder"
        ) from error
    return load_config(path)
