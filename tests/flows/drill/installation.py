"""A complete installation whose parts a test can break one at a time."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

from aiohttp import web

from deployments.demo.configuration import SUITE
from tests import fork_server
from tests.deployments.triggers.senders import GITHUB_SECRET
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.threaded_server import ThreadedServer
from tests.servers.watchdog import Watchdog

OURS = ("LOOKOUT_", "PREFECT_", "SLACK_", "ANTHROPIC_", "AWS_", "CHROMIUM_")
TOML = """\
data_folder = "data"

[targets.bot]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"
model_family = "rules"
{log}
[alerts]
slack_channel = "C0ALERTS"
slack_monitor_channel = "C0MONITOR"
slack_fallback_channel = "C0SECOND"
slack_api_url = "{slack}"

[judge.families]
rules = ["rules"]

[[judge.models]]
model = "claude-sonnet-5-5"
base_url = "{judge}"
{more}"""
LOG = '[targets.bot.hallucination_log]\nat = "log.jsonl"\n'
TRIGGER = '[[deploys.triggers]]\nprovider = "github"\nrepository = "acme/helpdesk"\ntarget = "bot"\n'


class DatedSlack(SlackServer):
    """A Slack server whose clock is ahead of this machine's clock by ``off``."""

    off = timedelta(0)

    def application(self) -> web.Application:
        app = super().application()

        async def dated(_request: web.Request, answer: web.StreamResponse) -> None:
            answer.headers["Date"] = format_datetime(datetime.now(UTC) + self.off, usegmt=True)

        app.on_response_prepare.append(dated)
        return app


class Refuser(ThreadedServer):
    """A server that refuses every request, for example in place of a proxy."""

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._refuse)
        return app

    async def _refuse(self, _request: web.Request) -> web.Response:
        return web.Response(status=403, text="<html>not from here</html>", content_type="text/html")


class Installation:
    """A folder with a ``lookout.toml``, and the services that this file configures."""

    def __init__(self, folder: Path, slack: DatedSlack, check: Watchdog, judge: AnthropicServer) -> None:
        self.folder, self.slack, self.check, self.judge = folder, slack, check, judge
        self.other: SlackServer = slack
        self.variables = {
            "SLACK_BOT_TOKEN": TOKEN,
            "LOOKOUT_HEARTBEAT_URL": f"{check.url}/ping/{{target}}",
            "LOOKOUT_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET,
            "ANTHROPIC_API_KEY": KEY,
        }
        self.slack_url = slack.api_url
        (folder / "suite.jsonl").write_bytes(SUITE.read_bytes())
        (folder / "log.jsonl").touch()
        self.configure()

    def configure(self, more: str = "", log: str = LOG) -> None:
        """Write the configuration, with ``more`` as further lines and ``log`` as the table of the log."""
        text = TOML.format(slack=self.slack_url, judge=self.judge.url, log=log, more=more)
        (self.folder / "lookout.toml").write_text(text, encoding="utf-8")

    def drill(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run ``lookout drill`` as a user does."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        browser = {name: os.environ[name] for name in ("CHROMIUM_PATH",) if name in os.environ}
        environment = inherited | browser | fork_server.WARM | self.variables
        return fork_server.run("drill", *options, cwd=self.folder, env=environment, timeout_s=400)
