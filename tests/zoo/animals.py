"""The applications of the zoo, with which Lookout is tested: how each is started, and what it answers."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.zoo import bot, frontends, server, streams
from tests.zoo.questions import conversations

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".cache" / "zoo"
START_S = 120
QUIET = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false",
}


@dataclass(frozen=True)
class Application:
    """An application that uses a real framework.

    `environment` is the framework's folder under `ENVIRONMENTS`. ``None`` means the environment of the tests.
    """

    name: str
    command: tuple[str, ...]
    environment: str | None = None

    @property
    def python(self) -> Path:
        """Return the Python interpreter of the framework's environment."""
        return ENVIRONMENTS / self.environment / "bin/python" if self.environment else Path(sys.executable)

    @property
    def installed(self) -> bool:
        """Return whether the framework is installed. `make zoo` creates its environment."""
        return self.python.exists()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Start the application, and yield its address when it is ready."""
        port = str(_free_port())
        command = [str(self.python), "-m", *(port if word == "PORT" else word for word in self.command)]
        # Its own output is of no interest, and a pipe that nobody reads would stop it.
        with subprocess.Popen(
            command, cwd=ROOT, env=_surroundings(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield _answering(f"http://127.0.0.1:{port}", process)
            finally:
                process.kill()


def _surroundings() -> dict[str, str]:
    """Return the environment variables without those of pytest. NiceGUI behaves differently under pytest."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | dict(QUIET)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _answering(address: str, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return address
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # another process starts; there is nothing else to wait on
    raise AssertionError(f"{process.args} did not come up; exit code {process.poll()}")


GRADIO = ("tests.zoo.gradio_echo", "--port", "PORT")
STREAMLIT_FLAGS = (
    "--server.port", "PORT", "--server.address", "127.0.0.1", "--server.headless", "true",
    "--server.fileWatcherType", "none",
)  # fmt: skip

APPLICATIONS = (
    Application("gradio 6 ChatInterface", GRADIO),
    Application("gradio 6 Blocks", (*GRADIO, "--blocks")),
    Application("gradio 6 Interface", (*GRADIO, "--interface")),
    Application("gradio 5 ChatInterface", GRADIO, "gradio5"),
    Application("gradio 5 Blocks", (*GRADIO, "--blocks"), "gradio5"),
    Application("gradio 4 ChatInterface", GRADIO, "gradio4"),
    Application("streamlit", ("streamlit", "run", "tests/zoo/streamlit_echo.py", *STREAMLIT_FLAGS)),
    Application("nicegui", ("tests.zoo.nicegui_echo", "--port", "PORT"), "nicegui"),
    Application("panel", ("tests.zoo.panel_echo", "--port", "PORT"), "panel"),
)


@dataclass(frozen=True)
class Page:
    """A page of `tests.zoo.server`, of `tests/zoo/html` or of a front end.

    `reply` returns the text that a person reads as the answer to a question.
    """

    name: str
    reply: Callable[[str], str] = server.reply
    build_conversations: Callable[[int, int], list[tuple[str, ...]]] = conversations
    uses_doctor: bool = False
    """Whether the application is asked with the settings that `lookout doctor` proposes for it."""

    @property
    def title(self) -> str:
        """Return the name of the page in the results table."""
        return f"{self.name}, by doctor" if self.uses_doctor else self.name

    @property
    def is_installed(self) -> bool:
        """Return whether the page can be served: a front end needs the script that `make frontends` builds."""
        folder, _, script = self.name.partition("?")[0].rpartition("/")
        return not folder or (frontends.BUILT / f"{script}.js").is_file()


def _two_bubbles(question: str) -> str:
    letters = len(question.encode("utf-16-le")) // 2  # as JavaScript counts
    return f"{server.reply(question)}\nIs there anything else about {letters} letters?"


def _quoting(question: str) -> str:
    return f"{question}\n{server.reply(question)}"


def _quoted_twice(question: str) -> str:
    return f"{question}\n{question} So you asked. {server.reply(question)}"


def _cited(question: str) -> str:
    """Return the reply without its sources.

    The page shows the cited policies below the reply, as a separate part.
    """
    return re.sub(r"\s*\[Source:[^\]]*\]", "", server.reply(question))


def _show_table(question: str) -> str:
    return f"Item Limit Wait\nRoom ₹4,000 2 years\n{question} 12 10:30"


def _show_grid(question: str) -> str:
    """Return the reply, with a table inserted between its text and its source."""
    text, bracket, source = server.reply(question).partition(" [")
    return f"{text}\n{_show_table(question)}\n{bracket.strip()}{source}"


def _show_stream(question: str) -> str:
    """Return the reply with the table, but without the bars between the cells."""
    return streams.reply(question).replace("|", "")


def _speak_of_surgery(question: str) -> str:
    """Return the reply of a page that answers only questions about surgery.

    To all other questions, the page gives the same answer.
    """
    return server.reply(question) if "surgery" in question else "I can only speak about surgery."


def _mention_surgery(seed: int, count: int) -> list[tuple[str, ...]]:
    """Return conversations in which every second question is about surgery."""
    return [
        tuple(f"surgery, {text}" if at % 2 else text for at, text in enumerate(turns, start=number))
        for number, turns in enumerate(conversations(seed, count))
    ]


def _coded(question: str) -> str:
    """Return the reply with its code on separate lines, without markup and without a comma after the code."""
    return "\n".join(
        re.sub(r"^(\*\*|,)", "", part) for part in re.split("(24 months)", server.reply(question), maxsplit=1)
    )


def _linked(question: str) -> str:
    """Return the reply with its sources as links, which have no brackets."""
    return re.sub(r"\[([^\]]*)\]", r"\1", server.reply(question))


def _typeset(question: str) -> str:
    """Return the reply with the typographic quotation marks that Markdown's typographer produces."""
    return re.sub("'([^']*)'", r"‘\1’", re.sub('"([^"]*)"', r"“\1”", bot.reply(question)))


PAGES = (
    Page("form"),
    Page("contenteditable.html"),
    Page("shadow.html"),
    Page("framed.html"),
    Page("newest_first.html"),
    Page("consent.html"),
    Page("clock.html"),
    Page("replaced.html"),
    Page("alarm.html"),
    Page("folded.html"),
    Page("button_only.html"),
    Page("pushed.html"),
    Page("two_bubbles.html", _two_bubbles),
    Page("composer.html"),
    Page("editor.html"),
    Page("socket.html"),
    Page("polling.html"),
    Page("virtual.html"),
    Page("reverse.html"),
    Page("named.html", _linked),
    Page("crowded.html"),
    Page("dialogs.html"),
    Page("hindi.html"),
    Page("rtl.html"),
    Page("quoting.html", _quoting),
    Page("quoted_twice.html", _quoted_twice),
    Page("markdown.html"),
    Page("late.html"),
    Page("nested.html", _two_bubbles),
    Page("typewriter.html"),
    Page("typed_on.html"),
    Page("live.html"),
    Page("terminal.html"),
    Page("patched.html"),
    Page("field.html"),
    Page("slow_start.html"),
    Page("guest.html"),
    Page("redrawn.html"),
    Page("greeting.html"),
    Page("late_dialogs.html"),
    Page("above.html"),
    Page("as_html.html"),
    Page("as_markdown.html"),
    Page("advisor.html", _cited),
    Page("streams.html", _show_stream, streams.build_conversations),
    Page("cards.html", _cited),
    Page("grid.html", _show_grid),
    Page("parts.html"),
    Page("connecting.html"),
    Page("starting.html"),
    Page("panes.html"),
    Page("coded.html", _coded),
    Page("late_welcome.html"),
    Page("banner.html"),
    Page("revealed.html"),
    Page("launcher.html"),
    Page("topics.html"),
    Page("launcher_frame.html"),
    Page("tools.html"),
    Page("roles.html"),
    Page("hindi_launcher.html"),
    Page("tabbed.html"),
    Page("toasts.html"),
    Page("spans.html"),
    Page("windowed.html"),
)

VARIANTS = (
    *(
        Page(f"streams.html?transport={transport}", _show_stream, streams.build_conversations)
        for transport in list(streams.Transport)[1:]
    ),
    Page("cards.html?list", _cited),
    Page("grid.html?table", _show_table),
    Page("starting.html?late"),
    Page("panes.html", uses_doctor=True),
    Page("fallback.html", _speak_of_surgery, _mention_surgery, uses_doctor=True),
)
"""Variants of pages that `make zoo` also asks. Each variant has its own test."""

FRONTENDS = (
    Page("frontends/deep_chat", bot.reply),
    Page("frontends/deep_chat?whole", bot.reply),
    Page("frontends/n8n_chat", bot.reply),
    Page("frontends/n8n_chat?whole", bot.reply),
    Page("frontends/botframework_webchat", _typeset),
    Page("frontends/botframework_webchat?polling", _typeset),
    Page("frontends/assistant_ui", bot.reply),
)
"""Front ends that `make frontends` builds."""

REPLY_OF_APPLICATIONS = bot.reply
