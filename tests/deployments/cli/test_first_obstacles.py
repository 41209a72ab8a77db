"""What somebody meets first with a bot of their own: nothing listens, a wrong key, an API, a bot without small talk."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from aiohttp import web

from tests import fork_server
from tests.servers.keyed import Keyed
from tests.servers.threaded import ThreadedServer

QUESTIONS = 9
END_S = 240
FALLBACK_PAGE = """<!doctype html><title>Gym</title><main><div role="log" id="log"></div>
<form id="ask"><textarea aria-label="Your message" id="box"></textarea><button type="submit">Send</button></form></main>
<script>
const log = document.getElementById("log"), box = document.getElementById("box");
function add(who, text) {
  const line = document.createElement("div");
  line.className = "message " + who; line.dataset.role = who; line.textContent = text; log.append(line);
}
document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = box.value; box.value = ""; add("user", text);
  setTimeout(() => add("assistant", "I can only tell you about the prices and hours of our gym."), 200);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); document.getElementById("ask").requestSubmit(); }
});
</script>"""


class FallbackBot(ThreadedServer):
    """A page whose bot says the same to every question that it does not know."""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/", self._page)
        return made

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text=FALLBACK_PAGE, content_type="text/html")


def written(folder: Path, url: str, probe: str = "") -> None:
    """One target with a suite of a few questions."""
    cases = [
        {"id": f"q-{number}", "question": f"What is {number} and {number}?", "gold": str(number * 2), "severity": 2}
        for number in range(1, QUESTIONS + 1)
    ]
    (folder / "suite.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.bot]\nurl = "{url}"\nsuite = "suite.jsonl"\n'
        f"graders = {{ citation_required = false }}\n[targets.bot.probe]\n{probe}",
        encoding="utf-8",
    )


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def run(folder: Path, *arguments: str, **variables: str):
    """The command in an environment that knows nothing but these."""
    return fork_server.run(*arguments, cwd=folder, env=fork_server.bare(**variables), timeout_s=END_S)


def test_where_nothing_listens_it_is_said_before_a_server_is_started(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    written(tmp_path, url)
    done = run(tmp_path, "verify", "bot")
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    assert f"{QUESTIONS} questions not asked: connection refused at {url}. Start the app" in said
    assert "Prefect" not in said
    assert not (tmp_path / "data" / "prefect").exists()


@pytest.mark.prefect
def test_one_cause_is_one_line_with_how_many_questions_it_cost(
    tmp_path: Path, prefect_environment: dict[str, str]
) -> None:
    """Where a server runs, the run is made, so that it is stored and people hear of it."""
    written(tmp_path, f"http://127.0.0.1:{closed_port()}", 'driver = "json"\nretry_pause_s = 0\nattempts = 1\n')
    done = run(tmp_path, "verify", "bot", PREFECT_API_URL=prefect_environment["PREFECT_API_URL"])
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = [line for line in _joined(done.stderr) if line.startswith("∅")]
    assert line.startswith(f"∅ {QUESTIONS} questions without an answer: unreachable: "), line
    assert re.search(r"; \d of them not asked after the first", line), line
    assert "circuit_open" not in done.stderr


@pytest.mark.prefect
def test_a_wrong_key_is_one_line_and_the_next_step_names_its_variable(
    tmp_path: Path, prefect_environment: dict[str, str]
) -> None:
    with Keyed("X-Api-Key", "the-right-key-1234") as server:
        written(
            tmp_path,
            f"{server.url}/json",
            'driver = "json"\nheaders = { "X-Api-Key" = { env = "BOT_KEY" } }\n'
            'api.request = \'{"question": "{question}"}\'\napi.text = "answer"\n',
        )
        done = run(
            tmp_path,
            *("verify", "bot"),
            PREFECT_API_URL=prefect_environment["PREFECT_API_URL"],
            BOT_KEY="a-wrong-key-12345",
        )
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = [line for line in _joined(done.stderr) if line.startswith("∅")]
    assert line.startswith(f"∅ {QUESTIONS} questions without an answer: access_denied: "), line
    assert "it does not accept X-Api-Key from BOT_KEY" in line
    said = " ".join(done.stdout.split())
    assert "Next set BOT_KEY, then `lookout doctor bot`" in said
    assert "login" not in said


def _joined(text: str) -> list[str]:
    """The lines, each with those that it was wrapped onto."""
    return [" ".join(part.split()) for part in re.split(r"\n(?! {3})", text)]


def test_the_doctor_says_of_an_api_that_it_is_none_of_its_pages_and_which_key_it_wants(tmp_path: Path) -> None:
    with Keyed("Authorization", "Bearer 1234567890abcdef") as server:
        done = run(tmp_path, "doctor", f"{server.url}/json")
        blind = run(tmp_path, "doctor", f"{server.url}/json", "--no-ask")
        asked = [path for path, _ in server.seen]
    said = " ".join(done.stdout.split())
    assert done.returncode == 3, done.stderr
    assert "This address answers JSON, not a page (HTTP 401, application/json)." in said
    assert "`export LOOKOUT_API_TOKEN=…`, then `lookout init --target" in said
    assert "selectors" not in said
    assert "finds out how it is asked" in " ".join(blind.stdout.split())
    assert len(asked) == 3, "two looks and one question"


@pytest.mark.browser
def test_a_bot_without_small_talk_is_no_fault_of_the_page(tmp_path: Path) -> None:
    with FallbackBot() as server:
        done = run(tmp_path, "doctor", server.url)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The page was read right. Your bot gave the same answer to all three questions" in said
    assert "cannot be relied on" not in said
    assert "[targets.bot.probe.selectors]" in said, "as `lookout init` will name it"
    assert (tmp_path / ".lookout").stat().st_mode & 0o777 == 0o700
