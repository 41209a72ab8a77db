"""The target of a drill: a plain chat page on loopback that uses the demo's bot, with the bot's faults.

Run it with ``python -m deployments.demo.drill_page --chance 7``. Its first output line is JSON with the page's
address and the case that triggers a planted fault. The page does not need optional packages.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from deployments.demo.bot import Bot
from deployments.demo.configuration import SUITE
from deployments.demo.faults import PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary
from deployments.demo.space import HOST, listen_or_exit
from flows.terminal import flush_output, print_text

FAULT_OF_CASE: Final = {
    "suraksha-family-shield::cataract::en": "a limit from an outdated index, twice the right amount",
    "gold-claim-summary": "an answer followed by another customer's record",
    "type-car": "an answer to a question that the bot must refuse",
    "cmp-copay-three": "an error message of the model provider instead of an answer",
    "suraksha-gold::ayush::en": "an answer without its source",
}
"""Some cases of the demo's suite, by id, with the planted fault that each case triggers."""
RIGHT_CASE: Final = "suraksha-gold::ped-waiting::en"
"""A case without a fault. It shows that the graders do not fail every answer."""

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Lookout drill</title></head><body>
<h1>Lookout drill</h1><p>This page has no users. It plants a wrong answer to test that Lookout reports it.</p>
<div role="log" aria-live="polite" id="log"></div>
<form id="form"><textarea id="text" placeholder="Message" aria-label="Message"></textarea>
<button type="submit">Send</button></form>
<script>
const log = document.getElementById("log"), text = document.getElementById("text");
function say(who, what) {
  const item = document.createElement("div");
  item.className = "message " + who; item.dataset.role = who; item.textContent = what; log.append(item);
}
async function send() {
  const asked = text.value; if (!asked.trim()) return;
  text.value = ""; say("user", asked); text.disabled = true;
  const reply = await fetch("/reply", {method: "POST", body: JSON.stringify({text: asked}),
                                       headers: {"content-type": "application/json"}});
  say("assistant", (await reply.json()).text); text.disabled = false;
}
document.getElementById("form").addEventListener("submit", event => { event.preventDefault(); send(); });
text.addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
});
</script></body></html>"""


def build_application() -> Starlette:
    """Build the page and its bot."""
    bot = Bot(load_policies(), load_vocabulary(), PlantedFaults())

    async def page(_request: Request) -> Response:
        return HTMLResponse(_PAGE)

    async def reply(request: Request) -> Response:
        asked = await request.json()
        return JSONResponse({"text": bot.reply(str(asked["text"])).text})

    return Starlette(routes=[Route("/", page), Route("/reply", reply, methods=["POST"])])


def format_announcement(listener: socket.socket, chance: int) -> str:
    """Format the page's address, and the case and fault that ``chance`` selects, as one line of JSON."""
    case_id = sorted(FAULT_OF_CASE)[chance % len(FAULT_OF_CASE)]
    place = f"http://{HOST}:{listener.getsockname()[1]}"
    facts = {
        "url": place,
        "suite": str(SUITE),
        "wrong": case_id,
        "right": RIGHT_CASE,
        "fault": FAULT_OF_CASE[case_id],
    }
    return json.dumps(facts)


def main(argv: list[str] | None = None) -> int:
    """Serve until the process is stopped. The exit code is 0."""
    parser = argparse.ArgumentParser(prog="python -m deployments.demo.drill_page", description=__doc__)
    parser.add_argument("--chance", type=int, default=0, help="any number; it selects the planted fault")
    arguments = parser.parse_args(argv)
    listener = listen_or_exit(0)
    print_text(format_announcement(listener, arguments.chance))
    flush_output()
    uvicorn.Server(uvicorn.Config(build_application(), log_level="warning", timeout_graceful_shutdown=1)).run(
        [listener]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
