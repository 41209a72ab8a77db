"""Test that a judge's prompt, a Slack message and a ping go to the configured address and follow no redirect."""

from __future__ import annotations

import pytest
from aiohttp import web

from monitors.alerts.liveness import Beat, Heartbeat
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.errors import JudgeMisconfigured, NotifyRejected
from monitors.judge.anthropic_client import AnthropicJudge
from monitors.judge.model import JudgePrompt
from monitors.judge.openai_client import OpenAIJudge
from monitors.judge.verdict import SCHEMA
from monitors.retry import RetryPolicy
from tests.monitors.alerts.sample_observations import NIGHT, alert
from tests.servers.threaded_server import ThreadedServer

PATIENCE = RetryPolicy(deadline_s=20, try_s=10, tries=2, most_pause_s=0.1)


class Inside(ThreadedServer):
    """A server that counts its requests. If ``sends_to`` is set, it redirects every request to that URL."""

    def __init__(self, sends_to: str | None = None) -> None:
        super().__init__()
        self.sends_to, self.visits = sends_to, 0

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        self.visits += 1
        if self.sends_to:
            return web.Response(status=307, headers={"Location": f"{self.sends_to}{request.path}"})
        return web.json_response({"ok": True})


@pytest.fixture
def inside():
    with Inside() as server:
        yield server


@pytest.fixture
def redirecting(inside):
    with Inside(sends_to=inside.url) as server:
        yield server


@pytest.mark.parametrize("judge_class", [AnthropicJudge, OpenAIJudge])
async def test_f97_a_prompt_follows_no_redirect(redirecting, inside, judge_class):
    prompt = JudgePrompt(id="p", instructions="Grade.", material="An answer.", reply_schema=SCHEMA, max_tokens=100)
    async with judge_class("a-model", api_key="k", base_url=redirecting.url, retry_policy=PATIENCE) as judge:
        with pytest.raises(JudgeMisconfigured, match=r"HTTP 307.*redirects"):
            await judge.request_reply(prompt)
    assert (redirecting.visits, inside.visits) == (1, 0)


@pytest.mark.parametrize("kind", ["bot", "webhook"])
async def test_f97_a_message_for_slack_follows_no_redirect(redirecting, inside, kind):
    settings = AlertSettings(slack_channel="C0ALERTS", slack_api_url=f"{redirecting.url}/api/", send_timeout_s=10.0)
    sender = (
        SlackBot(settings, token="xoxb-t", now=lambda: NIGHT)
        if kind == "bot"
        else SlackWebhook(settings, url=f"{redirecting.url}/services/T/B/x", now=lambda: NIGHT)
    )
    with pytest.raises(NotifyRejected, match="redirects"):
        await sender.send(alert())
    assert (redirecting.visits, inside.visits) == (1, 0)


async def test_f97_a_ping_follows_no_redirect_and_has_not_arrived(redirecting, inside):
    assert not await Heartbeat(redirecting.url).ping(Beat.PROVED, run_id="run-1")
    assert (redirecting.visits, inside.visits) == (1, 0)
