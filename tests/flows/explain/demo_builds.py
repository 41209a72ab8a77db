"""Serve builds of the demo's bot, each on a local server that reports its commit, and configure a target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aiohttp import web

from deployments.demo.bot import Bot
from deployments.demo.configuration import SUITE
from deployments.demo.faults import NoFaults, PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary
from tests.monitors.explain.changed_demo import DemoApi, Variant

CASE = "suraksha-family-shield::cataract::en"
"""The case for which the planted faults give ₹80,000 instead of ₹40,000."""


class DemoBuild(DemoApi):
    """One build of the demo's bot, with or without the planted faults, behind a small page."""

    def __init__(self, commit: str, *, faults: bool) -> None:
        super().__init__(Variant(delay_ms=1), seed=0)
        self.commit = commit
        self.asked: list[str] = []
        self._bot = Bot(load_policies(), load_vocabulary(), PlantedFaults() if faults else NoFaults())

    def application(self) -> web.Application:
        """Return the application: the page at `/`, its chat endpoint, and the commit at `/version`."""
        app = super().application()
        app.router.add_get("/version", self._version)
        return app

    def says(self, question: str) -> str:
        """Return the bot's answer to ``question``."""
        return self._bot.reply(question).text

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"sha": self.commit})

    async def _chat(self, request: web.Request) -> web.Response:
        self.asked.append(json.loads(await request.read())["question"])
        return await super()._chat(request)


@contextmanager
def demo_builds(commits: Sequence[str], first_bad: int) -> Iterator[list[DemoBuild]]:
    """Start one build for each commit. Builds from index ``first_bad`` on have the planted faults."""
    with ExitStack() as stack:
        yield [stack.enter_context(DemoBuild(commit, faults=at >= first_bad)) for at, commit in enumerate(commits)]


def written_target(folder: Path, url: str, *, driver: str = "browser") -> Path:
    """Write a ``lookout.toml`` with the demo's suite and the target ``demo`` at ``url``, the address of a build."""
    path = folder / "lookout.toml"
    api = f'[targets.demo.probe.api]\nurl = "{url}/chat"\n' if driver == "json" else ""
    path.write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{url}"\nenvironment = "staging"\n'
        f'suite = {json.dumps(str(SUITE))}\n[targets.demo.probe]\ndriver = "{driver}"\n{api}'
        f'[targets.demo.probe.readiness]\nversion_url = "{url}/version"\n',
        encoding="utf-8",
    )
    return path
