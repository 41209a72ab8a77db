"""The first problems of users with their own bot: no server, a wrong key, an API, a bot without small talk."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from tests import fork_server
from tests.servers.api_key_check import Keyed
from tests.servers.threaded_server import ThreadedServer
from tests.stable_text import replace_volatile

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
    """A page whose bot gives the same answer to every unknown question."""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/", self._page)
        return made

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text=FALLBACK_PAGE, content_type="text/html")


def written(folder: Path, url: str, probe: str = "") -> None:
    """Write a configuration with one target and a suite of a few questions."""
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


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port on which nothing listens. The test keeps it bound, so that no other test can listen there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def run(folder: Path, *arguments: str, **variables: str):
    """Run the command in ``folder``, in an environment that contains only the given variables."""
    return fork_server.run(*arguments, cwd=folder, env=fork_server.bare(**variables), timeout_s=END_S)


def test_a_closed_port_is_reported_before_a_server_is_started(tmp_path: Path, closed_port: int, snapshot) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    written(tmp_path, url)
    done = run(tmp_path, "verify", "bot")
    assert done.returncode == 3, done.stdout + done.stderr
    assert _one_line(done.stderr) == snapshot
    assert not (tmp_path / "data" / "prefect").exists()


@pytest.mark.prefect
@pytest.mark.whole_only
def test_one_cause_is_one_line_with_how_many_questions_it_cost(
    tmp_path: Path, closed_port: int, prefect_environment: dict[str, str]
) -> None:
    """If several questions fail from one cause, one line states the cause and the number of questions.

    If a Prefect server runs, the run is still created, so that its result is stored and people are notified.
    """
    written(tmp_path, f"http://127.0.0.1:{closed_port}", 'driver = "json"\nretry_pause_s = 0\nattempts = 1\n')
    done = run(tmp_path, "verify", "bot", PREFECT_API_URL=prefect_environment["PREFECT_API_URL"])
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = [line for line in _joined(done.stderr) if line.startswith("∅")]
    assert line.startswith(f"∅ {QUESTIONS} "), line
    assert "unreachable: " in line
    assert "circuit_open" not in done.stderr


@pytest.mark.prefect
def test_a_wrong_key_is_one_line_and_the_next_step_names_its_variable(
    tmp_path: Path, prefect_environment: dict[str, str], snapshot
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
    assert line.startswith(f"∅ {QUESTIONS} "), line
    assert "access_denied: " in line
    how_many = re.sub(
        r"did not ask \d+ of them after the first \d+", "did not ask N of them after the first N", line
    )
    assert replace_volatile(how_many) == snapshot(name="cause")
    (step,) = [line for line in _joined(done.stdout) if line.startswith("Next")]
    assert step == snapshot(name="next step")


def _one_line(text: str) -> str:
    """Join a text into one line, because the length of a port number decides where the text wraps."""
    return " ".join(replace_volatile(text).split())


def _joined(text: str) -> list[str]:
    """Return the lines of a text, each joined with its wrapped parts."""
    return [" ".join(part.split()) for part in re.split(r"\n(?! {3})", text)]


def test_the_doctor_says_of_an_api_that_it_is_none_of_its_pages_and_which_key_it_wants(
    tmp_path: Path, snapshot
) -> None:
    with Keyed("Authorization", "Bearer 1234567890abcdef") as server:
        done = run(tmp_path, "doctor", f"{server.url}/json")
        blind = run(tmp_path, "doctor", f"{server.url}/json", "--no-ask")
        asked = [path for path, _ in server.seen]
    assert done.returncode == 3, done.stderr
    assert _one_line(done.stdout) == snapshot(name="asked")
    assert _one_line(blind.stdout) == snapshot(name="not asked")
    assert len(asked) == 3, "two looks and one question"


@pytest.mark.browser
@pytest.mark.whole_only
def test_a_bot_without_small_talk_is_no_fault_of_the_page(tmp_path: Path) -> None:
    with FallbackBot() as server:
        done = run(tmp_path, "doctor", server.url)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all three questions" in said
    assert "are doubtful" not in said
    assert "[targets.bot.probe.selectors]" in said, "as `lookout init` will name it"
    assert (tmp_path / ".lookout").stat().st_mode & 0o777 == 0o700
