"""The server of the demo: a chat page (Gradio's ChatInterface) and an endpoint that returns the version."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import gradio as gr
import uvicorn
from fastapi import FastAPI
from gradio.themes import Soft

from deployments.demo.bot import Bot, TurnLog
from deployments.demo.faults import NoFaults, PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary
from flows.terminal import flush_output, print_text

CONCURRENT_ANSWERS = 16
"""Maximum number of answers at the same time.

A probe on a large machine opens eight sessions, which is half of this number.
"""
QUEUE_PAUSE_S = 0.05

_CSS = """
.gradio-container { max-width: 860px !important; margin: 0 auto !important; }
footer { display: none !important; }
"""
_DESCRIPTION = "Ask about waiting periods, limits, exclusions or claims of a policy, in English, हिन्दी or Hinglish."
_EXAMPLES = [
    "What is the waiting period for pre-existing diseases under Suraksha Gold?",
    "Suraksha Silver mein room rent ki limit kitni hai?",
    "सुरक्षा फैमिली शील्ड में ग्रेस पीरियड कितना है?",
]


@dataclass(frozen=True)
class PageOptions:
    """The options of the Space. An answer takes ``delay_s`` seconds. Half of this time is before its first word."""

    faults: bool = False
    log_folder: Path | None = None
    delay_s: float = 0.2
    commit: str = "demo"


def _get_message_text(content: object) -> str:
    """Return the text of ``content``, a message in Gradio's history. ``content`` is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


class Assistant:
    """Streams the bot's replies and logs them."""

    def __init__(
        self, bot: Bot, options: PageOptions, now: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        self._bot = bot
        self._options = options
        self._now = now
        self._monotonic = monotonic
        self._log = TurnLog(options.log_folder) if options.log_folder else None

    async def answer(
        self, message: str, history: list[dict[str, object]], request: gr.Request
    ) -> AsyncIterator[str]:
        """Yield the reply as it grows, in the form that ChatInterface expects."""
        began = self._monotonic()
        reply = self._bot.reply(
            message,
            [_get_message_text(message.get("content")) for message in history if message.get("role") == "user"],
        )
        half_s = self._options.delay_s / 2
        # The demo's page takes as long as a real page.
        await asyncio.sleep(half_s + reply.pause_s)
        shown = ""
        for chunk in reply.chunks:
            shown += chunk
            yield shown
            # The second half of the pause is spread over the pieces of text.
            await asyncio.sleep(half_s / len(reply.chunks))
        if self._log is not None:
            latency_ms = (self._monotonic() - began) * 1000
            self._log.write(
                at=self._now(),
                session_id=request.session_hash or "",
                question=message,
                reply=reply,
                latency_ms=latency_ms,
            )


def _build_chat(assistant: Assistant) -> gr.ChatInterface:
    return gr.ChatInterface(
        assistant.answer,
        api_name="chat",
        title="Suraksha Health assistant",
        description=_DESCRIPTION,
        examples=[[example] for example in _EXAMPLES],
        cache_examples=False,
        textbox=gr.Textbox(
            label="Message",
            placeholder="Ask about a policy…",
            container=False,
            submit_btn=True,
            stop_btn=True,
            autofocus=True,
        ),
        chatbot=gr.Chatbot(show_label=False, height="62vh", buttons=["copy"], feedback_options=None),
        concurrency_limit=CONCURRENT_ANSWERS,
        analytics_enabled=False,
        flagging_mode="never",
    )


def build_app(options: PageOptions, *, now: Callable[[], datetime], monotonic: Callable[[], float]) -> FastAPI:
    """Build the page at ``/``, and ``GET /version`` with the commit and the start time."""
    app = FastAPI(openapi_url=None)
    started_at = now().isoformat(timespec="seconds").replace("+00:00", "Z")

    @app.get("/version")
    def version() -> dict[str, str]:
        return {"sha": options.commit, "started_at": started_at}

    bot = Bot(load_policies(), load_vocabulary(), PlantedFaults() if options.faults else NoFaults())
    chat = _build_chat(Assistant(bot, options, now, monotonic))
    # An idle queue polls a thousand times a second (5 % of a core). On Windows, Gradio itself uses this pause.
    chat._queue.sleep_when_free = chat._queue.progress_update_sleep_when_free = QUEUE_PAUSE_S  # noqa: SLF001
    plain = ["system-ui", "Segoe UI", "Noto Sans Devanagari", "sans-serif"]
    return gr.mount_gradio_app(
        app,
        chat,
        path="/",
        theme=Soft(primary_hue="teal", font=plain, font_mono=["ui-monospace", "monospace"]),
        css=_CSS,
        ssr_mode=False,
        run_history=False,
    )


class _AnnouncingServer(uvicorn.Server):
    """A server that prints one line when it accepts connections."""

    def __init__(self, config: uvicorn.Config, line: str) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            print_text(self._line)
            flush_output()


def serve(
    listener: socket.socket, options: PageOptions, *, now: Callable[[], datetime], monotonic: Callable[[], float]
) -> None:
    """Serve on a bound socket until interrupted."""
    host, port = listener.getsockname()
    app = build_app(options, now=now, monotonic=monotonic)
    line = f"Suraksha Health assistant is serving on http://{host}:{port}" + (
        " with planted faults" if options.faults else ""
    )
    server = _AnnouncingServer(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2), line)
    server.run(sockets=[listener])
