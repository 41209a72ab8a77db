"""``python -m examples NAME``: start an example's bot, run the example's command, and stop the bot.

The command runs in a copy of the example, ``.lookout-examples/NAME`` in the current folder. The example itself does
not change.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from deployments.demo.configuration import find_free_port
from flows.server import prefect_server

HOST = "127.0.0.1"
ROOT = Path(__file__).parent
FOLDER = Path(".lookout-examples")
START_S = 90.0
"""Maximum time until a bot must answer. Importing Gradio or Streamlit takes 5 s on an idle machine."""

SCRIPT = ("{python}", "{bot}", "--port", "{port}")
STREAMLIT = (
    *("{python}", "-m", "streamlit", "run", "{bot}", "--server.port", "{port}", "--server.address", HOST),
    *("--server.headless", "true", "--browser.gatherUsageStats", "false"),
)
MEMBER = {"BOT_USER": "reader", "BOT_PASSWORD": "an example's password"}
NIGHT = ("nightly", "bot", "--until", "2026-11-24")


@dataclass(frozen=True)
class ExampleRun:
    """How to run an example.

    ``bot`` is the command that starts the bot; empty if the example has no bot. ``variables`` are environment
    variables for the bot and the command; a variable that is already set keeps its value. ``needs`` are the names
    of the variables that you must set yourself.
    """

    about: str
    command: tuple[str, ...] = ("verify", "bot")
    bot: tuple[str, ...] = SCRIPT
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    needs: tuple[str, ...] = ()


EXAMPLES: Mapping[str, ExampleRun] = {
    "gradio_page": ExampleRun("a bicycle rental on a Gradio page"),
    "streamlit_page": ExampleRun("a plant shop on a Streamlit page", bot=STREAMLIT),
    "json_api": ExampleRun("a dental practice as a JSON API"),
    "sse_api": ExampleRun("a ferry line as an API that streams its answers"),
    "login_page": ExampleRun("a library on a page behind a login", variables=MEMBER),
    "triage_agent": ExampleRun("an agent that triages issues"),
    "traffic_files": ExampleRun("a night of a bakery's log files", command=NIGHT, bot=()),
    "traffic_export": ExampleRun(
        "a hotel's conversations from an HTTP export",
        command=NIGHT,
        variables={"EXPORT_TOKEN": "an example's token"},
    ),
    "traffic_langsmith": ExampleRun(
        "a project's runs in LangSmith", command=("nightly", "bot"), bot=(), needs=("LANGSMITH_API_KEY",)
    ),
}


@contextmanager
def serve_example(name: str, folder: Path, environment: Mapping[str, str]) -> Generator[Path]:
    """Copy an example to ``folder``, start its bot, and yield the path of the copied configuration.

    If the bot's port is in use, the copy gets a free port. At the end, the bot is stopped.
    """
    example = EXAMPLES[name]
    shutil.copytree(ROOT / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    config = folder / "lookout.toml"
    text = config.read_text(encoding="utf-8")
    if not example.bot:
        yield config
        return
    configured_port = int(next(iter(re.findall(rf"http://{re.escape(HOST)}:(\d+)", text))))
    port = find_free_port(HOST, configured_port)
    config.write_text(text.replace(f"{HOST}:{configured_port}", f"{HOST}:{port}"), encoding="utf-8")
    values = {"python": sys.executable, "bot": str(folder / "bot.py"), "port": port}
    command = [part.format_map(values) for part in example.bot]
    with (folder / "bot.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603 - the example's own bot
    try:
        _wait_until_served(process, port, folder / "bot.log")
        yield config
    finally:
        process.terminate()
        process.wait()


def _wait_until_served(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            log_end = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            sys.exit(f"The bot ended with code {process.returncode}: {log_end}")
        try:
            httpx.get(f"http://{HOST}:{port}/", timeout=2, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    sys.exit(f"The bot did not answer within {START_S:g} s. Its log is {log}")


def main() -> int:
    """Run the example that the command line names. Return its exit code, or 2 if a variable is not set."""
    options = argparse.ArgumentParser(prog="python -m examples", description=__doc__)
    descriptions = "; ".join(f"{name}: {example.about}" for name, example in EXAMPLES.items())
    options.add_argument("name", choices=list(EXAMPLES), metavar="NAME", help=descriptions)
    name = options.parse_args().name
    example = EXAMPLES[name]
    missing = [variable for variable in example.needs if variable not in os.environ]
    if missing:
        print(f"{name}: set {', '.join(missing)}. See examples/{name}/README.md", file=sys.stderr)
        return 2
    environment = {**example.variables, **os.environ}
    with serve_example(name, FOLDER / name, environment) as config:
        command = [*example.command, "--config", str(config)]
        print(f"$ lookout {' '.join(command)}", flush=True)
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                [sys.executable, "-m", "deployments.cli.app", *command], env=environment, check=False
            )
        finally:
            prefect_server.stop_server(config.parent / ".lookout" / "prefect")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
