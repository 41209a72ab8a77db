"""Test that `lookout doctor` finds out whether a "new chat" button starts a new chat, and proposes a setting."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Iterator

import pytest
from aiohttp import web
from rich.console import Console

from deployments.cli.doctor.format import print_inspection
from monitors.config.file import parse_config
from monitors.graders.base import GraderSettings
from monitors.probes.inspect.findings import NewChat, PageElement, PageInspection
from monitors.probes.inspect.page import ask_trial_questions
from monitors.probes.settings import Isolation, ProbeSettings
from tests.monitors.probes.conftest import ONE_BROWSER
from tests.servers.threaded_server import ThreadedServer
from tests.stable_text import replace_volatile

pytestmark = ONE_BROWSER

PAGE = """<!doctype html><title>Bots</title><h1>Help</h1>
<section class="log" role="log"></section><textarea placeholder="Ask a question"></textarea><button id="send">Send</button>
<div id="new-chat"></div>
<script>
  const [log, box] = [document.querySelector("section"), document.querySelector("textarea")];
  const recalls = %(recalls)s, forgets = %(forgets)s;
  let known = [];
  function add(side, text) {
    const line = document.createElement("p");
    line.className = side; line.textContent = text; log.append(line);
  }
  document.querySelector("#send").onclick = () => {
    const said = box.value;
    box.value = ""; add("mine", said);
    const answer = /word did I/.test(said) && recalls && known.length
      ? "You told me before: " + known.join(" and ") + "." : "Here is what I can say about it: " + said.length + " letters.";
    known.push(said);
    setTimeout(() => {
      add("theirs", answer);
      if (!document.querySelector("#new-chat button")) {
        const newChat = document.createElement("button");
        newChat.textContent = "New chat";
        newChat.onclick = () => { log.replaceChildren(); if (forgets) known = []; };
        document.querySelector("#new-chat").append(newChat);
      }
    }, 50);
  };
</script>"""


KINDS = {
    "starts_over": {"recalls": "true", "forgets": "true"},
    "keeps": {"recalls": "true", "forgets": "false"},
    "recalls_nothing": {"recalls": "false", "forgets": "true"},
}
"""The kinds of bots: whether the bot remembers earlier messages, and whether its button clears them.

The button appears with the first answer.
"""


class Bots(ThreadedServer):
    """A server with a page for each kind of bot."""

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/{kind}", self._page)
        return application

    async def _page(self, request: web.Request) -> web.Response:
        kind = KINDS.get(request.match_info["kind"])
        return web.Response(text=PAGE % kind, content_type="text/html") if kind else web.Response(status=404)


@pytest.fixture(scope="module")
def bots() -> Iterator[str]:
    with Bots() as server:
        yield server.url


@pytest.mark.parametrize(
    ("bot", "forgotten"),
    [("starts_over", True), ("keeps", False), ("recalls_nothing", None)],
)
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
async def test_a_bot_s_memory_shows_what_the_button_does(
    bots: str, settings: ProbeSettings, bot: str, forgotten: bool | None
) -> None:
    tried = await ask_trial_questions(f"{bots}/{bot}", settings, questions=["Hello?"])
    assert all(trial.problem is None for trial in tried.trials)
    assert tried.new_chat is not None
    assert tried.new_chat.recalled == (forgotten is not None)
    assert tried.new_chat.forgotten == forgotten


@pytest.mark.whole_only
async def test_with_isolation_configured_nothing_is_tried(bots: str, settings: ProbeSettings) -> None:
    isolated = settings.model_copy(update={"isolation": Isolation.NEW_CHAT})
    assert (await ask_trial_questions(f"{bots}/starts_over", isolated, questions=["Hello?"])).new_chat is None


def printed(found: NewChat | None) -> str:
    """Return what `lookout doctor` prints for a page with this button."""
    out = io.StringIO()
    box = PageElement(role="textbox", name="", selector="#box", how_sure="sure")
    inspection = PageInspection(address="http://127.0.0.1:1", box=box, new_chat=found)
    print_inspection(Console(file=out, width=80), inspection, "bot", ProbeSettings(), GraderSettings())
    return out.getvalue()


async def test_only_a_button_that_starts_a_new_chat_is_proposed(snapshot):
    proof = printed(NewChat(recalled=True, forgotten=True, button_s=0.2, fresh_s=1.4))
    assert replace_volatile(proof) == snapshot
    lines = "\n".join(proof.splitlines()[(at := proof.splitlines().index("[targets.bot.probe]")) : at + 2])
    config = parse_config(
        tomllib.loads(f'[targets.bot]\nurl = "http://127.0.0.1:1"\nsuite = "s.jsonl"\n{lines}'), "x"
    )
    assert config.require_target("bot").probe.isolation is Isolation.NEW_CHAT
    for found in (NewChat(recalled=False), NewChat(recalled=True, forgotten=False)):
        assert "opens a new page" in printed(found)
        assert "isolation" not in printed(found)
    assert "new chat" not in printed(None)
