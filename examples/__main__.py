"""``python -m examples NAME``: start an example's bot, run its command, and end the bot.

Everything is written into ``.lookout-examples/NAME`` of the current folder; the example itself stays as it is.
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
"""Gradio and Streamlit take 5 s to be imported on an idle machine, and much longer on a busy one."""

SCRIPT = ("{python}", "{bot}", "--port", "{port}")
STREAMLIT = (
    *("{python}", "-m", "streamlit", "run", "{bot}", "--server.port", "{port}", "--server.address", HOST),
    *("--server.headless", "true", "--browser.gatherUsageStats", "false"),
)
MEMBER = {"BOT_USER": "reader", "BOT_PASSWORD": "an example's password"}
NIGHT = ("nightly", "bot", "--until", "2026-11-24")


@dataclass(frozen=True)
class ExampleRun:
    """What is run. ``variables`` are set for bot and command where they are not; ``needs`` are a person's own."""

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
    "traffic_files": ExampleRun("a bakery's log files, a night of them", command=NIGHT, bot=()),
    "traffic_export": ExampleRun(
        "a hotel's conversations out of an HTTP export",
        command=NIGHT,
        variables={"EXPORT_TOKEN": "an example's token"},
    ),
    "traffic_langsmith": ExampleRun(
        "a project's runs out of LangSmith", command=("nightly", "bot"), bot=(), needs=("LANGSMITH_API_KEY",)
    ),
}


@contextmanager
def served(name: str, folder: Path, environment: Mapping[str, str]) -> Generator[Path]:
    """The example in ``folder``, its bot serving; its configuration there, with a port that was free."""
    example = EXAMPLES[name]
    shutil.copytree(ROOT / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    config = folder / "lookout.toml"
    text = config.read_text(encoding="utf-8")
    if not example.bot:
        yield config
        return
    wanted = int(next(iter(re.findall(rf"http://{re.escape(HOST)}:(\d+)", text))))
    port = find_free_port(HOST, wanted)
    config.write_text(text.replace(f"{HOST}:{wanted}", f"{HOST}:{port}"), encoding="utf-8")
    given = {"python": sys.executable, "bot": str(folder / "bot.py"), "port": port}
    command = [part.format_map(given) for part in example.bot]
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
            said = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            sys.exit(f"The bot ended with code {process.returncode}: {said}")
        try:
            httpx.get(f"http://{HOST}:{port}/", timeout=2, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    sys.exit(f"The bot did not answer within {START_S:g} s; its log: {log}")


def main() -> int:
    """The exit code of the command; 2 where something is missing."""
    options = argparse.ArgumentParser(prog="python -m examples", description=__doc__)
    listed = "; ".join(f"{name}: {example.about}" for name, example in EXAMPLES.items())
    options.add_argument("name", choices=list(EXAMPLES), metavar="NAME", help=listed)
    name = options.parse_args().name
    example = EXAMPLES[name]
    missing = [variable for variable in example.needs if variable not in os.environ]
    if missing:
        print(f"{name} needs {', '.join(missing)} to be set; see examples/{name}/README.md", file=sys.stderr)
        return 2
    environment = {**example.variables, **os.environ}
    with served(name, FOLDER / name, environment) as config:
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
