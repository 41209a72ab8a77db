"""Test that the commands in docs/langsmith.md work from top to bottom, against local servers."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from aiohttp import web
from syrupy.assertion import SnapshotAssertion

from monitors.goldset.lines import format_case_line
from tests import fork_server
from tests.builders import gold_case
from tests.servers.langsmith_datasets import LangSmithDatasetServer
from tests.servers.langsmith_experiments import LangSmithExperimentServer
from tests.servers.threaded_server import ThreadedServer
from tests.stable_text import replace_volatile

PAGE = (Path(__file__).parent.parent / "docs" / "langsmith.md").read_text(encoding="utf-8")
KEY = "lsv2_pt_hush"


def block(kind: str, section: str) -> str:
    """Return the first code block of the language ``kind`` after the heading ``section`` on the page."""
    found = re.search(rf"^```{kind}\n(.*?)^```", PAGE[PAGE.index(section) :], re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.whole_only
def test_the_commands_about_datasets_work_in_their_order(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    with LangSmithDatasetServer(key=KEY) as server:
        config = block("toml", "# LangSmith").replace("[langsmith]", f'[langsmith]\napi_url = "{server.url}"')
        (tmp_path / "lookout.toml").write_text(config, encoding="utf-8")
        (tmp_path / "suite.jsonl").write_text(f"{format_case_line(gold_case())}\n", encoding="utf-8")
        environment = os.environ | fork_server.WARM | {"LANGSMITH_API_KEY": KEY}
        shown = []
        for line in block("console", "## Datasets").splitlines():
            if "gold pull" in line:
                server.add("support bot", inputs={"question": "A wig?"}, outputs={"answer": "Yes, up to 100 EUR."})
            words = shlex.split(line.removeprefix("$ lookout "))
            done = fork_server.run(*words, cwd=tmp_path, env=environment, given="q\n", timeout_s=120)
            assert done.returncode == 0, done.stdout + done.stderr
            shown.append(done.stdout)
    assert [replace_volatile(text, tmp_path) for text in shown] == snapshot


ANSWERS = {
    "How long is the guarantee?": "The guarantee lasts 24 months.",
    "What does delivery cost?": "Delivery costs 4.90 EUR.",
    "Can I return a lamp?": "Yes, within 30 days.",
}
ACCEPTED = "g\n\n\n\ny\n"
"""The input that accepts the proposed answer, question and type, skips the known bad reply, and adds the case."""


class LampShop(ThreadedServer):
    """The chat API of a lamp shop, which answers the questions in `ANSWERS` and introduces itself otherwise."""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_post("/chat", self._answer)
        return made

    async def _answer(self, request: web.Request) -> web.Response:
        asked = (await request.json()).get("message")
        if asked is None:
            return web.json_response({"error": "message is missing"}, status=400)
        return web.json_response(
            {"reply": ANSWERS.get(asked, "I can help with lamps: delivery, guarantee, returns.")}
        )


def ten_commands() -> list[str]:
    """Return the commands between the headings "From a project" and "Datasets", without `lookout` and comments."""
    section = PAGE[PAGE.index("## From a project") : PAGE.index("## Datasets")]
    return [line.partition(" # ")[0].strip() for line in re.findall(r"^\$ lookout (.*)$", section, re.MULTILINE)]


@pytest.mark.whole_only
@pytest.mark.prefect
def test_ten_commands_lead_from_a_project_to_a_gate(tmp_path: Path, prefect_environment: dict[str, str]) -> None:
    with LangSmithExperimentServer(key=KEY) as server, LampShop() as shop:
        for question, answer in ANSWERS.items():
            server.add("support bot", inputs={"question": question}, outputs={"answer": answer})
        environment = prefect_environment | fork_server.WARM | {"LANGSMITH_API_KEY": KEY}
        shown: dict[str, str] = {}
        for command in ten_commands():
            words = shlex.split(command.replace("https://staging.example.com", shop.url))
            given = ACCEPTED * len(ANSWERS) if words[:2] == ["gold", "grow"] else ""
            done = fork_server.run(*words, cwd=tmp_path, env=environment, given=given, timeout_s=240)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            shown[" ".join(words[:2])] = done.stdout
            if words[0] == "init":
                owners_settings(tmp_path, server.url)
        assert len(shown) == 10
        assert {one["name"] for one in server.projects.values()} == {
            run.name for run in (tmp_path / ".lookout" / "runs").iterdir() if run.is_dir()
        }
    for command in ("gold pull", "gold grow", "gold push", "gold diff"):
        assert "3" in re.findall(r"\b\d+\b", shown[command])
    assert len((tmp_path / "suite.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    for command in ("verify bot", "gate --target", "report"):
        assert "PASS" in shown[command]
        assert "selectedSessions=" in shown[command]


def owners_settings(folder: Path, langsmith: str) -> None:
    """Add the page's settings to lookout.toml, with the API address ``langsmith``, and write an empty suite."""
    (folder / "suite.jsonl").write_text("", encoding="utf-8")
    file = folder / "lookout.toml"
    given = block("toml", "## From a project")
    experiments = next(line for line in given.splitlines() if line.startswith("experiments"))
    tables = given[given.index("[langsmith]") :].replace("[langsmith]", f'[langsmith]\napi_url = "{langsmith}"')
    written = file.read_text(encoding="utf-8").replace(
        'suite = "suite.jsonl"', f'{experiments}\nsuite = "suite.jsonl"'
    )
    file.write_text(f"{written}\n{tables}", encoding="utf-8")
