"""`lookout init` for the address of a chat API: the next command works with the detected settings unchanged."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from monitors.probes.inspect.api import MAX_POSTS
from monitors.probes.inspect.findings import HARMLESS
from tests import fork_server
from tests.deployments.cli.test_bare_commands import Installation
from tests.in_process import run_in_process
from tests.servers.event_chat import PATH, EventChat
from tests.servers.threaded_server import ThreadedServer
from tests.stable_text import replace_volatile

TOKEN = "t0ken-of-the-app-1234567890"
GOLD = "36 months"
QUESTION = "How long is the waiting period?"
FILES = ("lookout.toml", "suite.jsonl", "webhooks.md")


class Shapes(ThreadedServer):
    """An application that behaves like a different chat API at each address.

    ``posts`` are the request bodies that each address received.
    """

    def __init__(self) -> None:
        super().__init__()
        self.posts: list[tuple[str, Any]] = []
        self.gets: list[dict[str, str]] = []

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_post("/plain", self._plain)
        made.router.add_post("/v1/chat/completions", self._openai)
        made.router.add_get("/v1/models", self._models)
        made.router.add_post("/sse", self._sse)
        made.router.add_post("/named", self._named)
        made.router.add_post("/lenient", self._lenient)
        made.router.add_post("/keyed", self._keyed)
        made.router.add_post("/german", self._german)
        made.router.add_post("/bearer", self._bearer)
        made.router.add_post("/deaf", self._deaf)
        made.router.add_get("/page", self._page)
        made.router.add_get("/file", self._file)
        return made

    async def _body(self, request: web.Request) -> Any:
        body = await request.json()
        self.posts.append((request.path, body))
        return body

    async def _plain(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if "message" not in body:
            return web.json_response({"error": "Bad Request"}, status=400)
        return web.json_response(
            {
                "id": "a b c d e",
                "reply": said(body["message"]),
                "sources": [{"title": "Policy", "text": "a b c " * 50}],
            }
            | {"model": "llama-4"}
        )

    async def _german(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if "message" not in body:
            return web.json_response({"error": "Bad Request"}, status=400)
        return web.json_response({"reply": f"Dazu kann ich leider nichts sagen ({len(body['message'])})."})

    async def _openai(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if "model" not in body:
            error = {"message": "you must provide a model parameter", "param": None}
            return web.json_response({"error": error}, status=400)
        if not body.get("messages"):
            error = {"message": "Missing required parameter: 'messages'.", "param": "messages"}
            return web.json_response({"error": error}, status=400)
        message = {"role": "assistant", "content": said(body["messages"][-1]["content"])}
        return web.json_response({"id": "x", "model": body["model"], "choices": [{"index": 0, "message": message}]})

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "llama-4-local"}]})

    async def _sse(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        if "query" not in body:
            return web.json_response({"message": "query is required"}, status=400)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        pieces = [f"{word} " for word in said(body["query"]).split()]
        for data in ({"status": "searching the documents now"}, *({"delta": piece} for piece in pieces)):
            await response.write(f"event: part\ndata: {json.dumps(data)}\n\n".encode())
        await response.write(b"event: end\ndata: {}\n\n")
        return response

    async def _named(self, request: web.Request) -> web.Response:
        """Refuse a request as FastAPI does: list each missing field by its location."""
        body = await self._body(request)
        wanted = [("body", "ask", "utterance"), ("body", "session_id")]
        missing = [place for place in wanted if not at(body, place[1:])]
        if missing:
            detail = [{"type": "missing", "loc": place, "msg": "Field required", "input": {}} for place in missing]
            return web.json_response({"detail": detail}, status=422)
        return web.json_response({"data": {"answer": said(body["ask"]["utterance"])}})

    async def _lenient(self, request: web.Request) -> web.Response:
        """Answer any request. Read the question from the field ``input``."""
        return web.json_response({"output": said((await self._body(request)).get("input", ""))})

    async def _keyed(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Api-Key") != TOKEN:
            return web.json_response({"error": "missing header X-Api-Key"}, status=401)
        body = await self._body(request)
        return web.json_response({"answer": said(body["question"])} if "question" in body else {}, status=200)

    async def _bearer(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({}, status=401, headers={"WWW-Authenticate": "Bearer"})
        return await self._keyless(request)

    async def _keyless(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if "question" not in body:
            return web.json_response({}, status=422)
        return web.json_response({"answer": f"{said(body['question'])} {TOKEN}"})

    async def _deaf(self, request: web.Request) -> web.Response:
        await self._body(request)
        return web.json_response({"answer": "I was built to say this and nothing else."})

    async def _page(self, request: web.Request) -> web.Response:
        self.gets.append(dict(request.headers))
        return web.Response(text="<html><textarea></textarea></html>", content_type="text/html")

    async def _file(self, _request: web.Request) -> web.Response:
        return web.Response(body=b"%PDF-1.7", content_type="application/pdf")


def said(question: str) -> str:
    return f"The waiting period is {GOLD}." if question == QUESTION else f"I have no word on {question!r} here."


def at(body: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        body = body.get(step) if isinstance(body, dict) else None
    return body


@pytest.fixture(scope="module")
def shapes():
    with Shapes() as server:
        yield server


@pytest.fixture(scope="module")
def strict():
    with EventChat("Hello.", strict=True) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path):
    (tmp_path / "work").mkdir()
    return Installation(tmp_path / "work")


def run(place: Installation, *arguments: str, **variables: str):
    return run_in_process(*arguments, cwd=place.folder, env=fork_server.bare(COLUMNS="400", **variables))


def init(place: Installation, address: str, *options: str, **variables: str):
    return run(place, "init", "--yes", "--target", address, *options, **variables)


def table(place: Installation) -> dict[str, Any]:
    config = tomllib.loads((place.folder / "lookout.toml").read_text(encoding="utf-8"))
    return config["targets"]["bot"].get("probe", {})


FOUND = {
    "/plain": (
        "json",
        {"message": "{question}"},
        {"text": "reply", "citations": "sources.*", "app_path": "model"},
    ),
    "/v1/chat/completions": (
        "json",
        {"messages": ["{history}", {"role": "user", "content": "{question}"}], "model": "llama-4-local"},
        {"text": "choices.0.message.content", "app_path": "model"},
    ),
    "/sse": ("sse", {"query": "{question}"}, {"text": "delta", "done": "end"}),
    "/named": (
        "json",
        {"ask": {"utterance": "{question}"}, "session_id": "{conversation}"},
        {"text": "data.answer"},
    ),
    "/lenient": ("json", {"input": "{question}"}, {"text": "output"}),
}


@pytest.mark.parametrize("path", FOUND)
def test_the_request_format_of_an_api_is_detected(place, shapes, path):
    """With one harmless question, `lookout init` detects the API's request body and where its answer is."""
    before = len(shapes.posts)
    done = init(place, f"{shapes.url}{path}")
    assert done.returncode == 0, done.stderr
    assert f"{shapes.url}{path}" in done.stderr
    assert HARMLESS in done.stderr
    driver, request, rest = FOUND[path]
    api = table(place)["api"]
    assert table(place)["driver"] == driver
    assert json.loads(api.pop("request")) == request
    assert api == rest
    assert len(shapes.posts) - before <= MAX_POSTS + 1


def test_ungraded_aspects_of_a_bot_in_another_language_are_named(place, shapes, snapshot):
    """For a bot in a language whose words are not read, `lookout init` names the aspects that cannot be graded."""
    done = init(place, f"{shapes.url}/german")
    assert done.returncode == 0, done.stderr
    assert replace_volatile(done.stderr, place.folder) == snapshot
    assert "another language" not in init(place, f"{shapes.url}/plain", "--force").stderr


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/sse"])
def test_a_verification_is_right_with_what_was_written(place, shapes, prefect_environment, path):
    """A verification with the written settings gives correct results.

    If the API accepts messages, the earlier messages of a two-turn case are sent as one flat list.
    """
    assert place.run("init", "--yes", "--target", f"{shapes.url}{path}").returncode == 0
    config = (place.folder / "lookout.toml").read_text(encoding="utf-8")
    (place.folder / "lookout.toml").write_text(f"{config}\n[gate]\nmin_severity_3_cases = 0\n", encoding="utf-8")
    case = {"id": "wait", "turns": ["I paid 4 dollars.", QUESTION], "gold": GOLD, "severity": 2, "language": "en"}
    line = json.dumps(case | {"type": "limits", "provenance": {"pipeline": "template"}})
    (place.folder / "suite.jsonl").write_text(f"{line}\n", encoding="utf-8")
    verified = place.run("verify", "bot", "--json", PREFECT_API_URL=prefect_environment["PREFECT_API_URL"])
    assert verified.returncode == 0, verified.stdout + verified.stderr
    coverage = json.loads(verified.stdout)["coverage"]
    assert coverage["graded"] == coverage["asked"] == 1
    if "messages" in (last := shapes.posts[-1][1]):
        assert [message["role"] for message in last["messages"]] == ["user", "assistant", "user"]


def test_a_bearer_token_is_named_where_it_is_missing_and_used_where_it_is_set(place, shapes, snapshot):
    address = f"{shapes.url}/bearer"
    refused = init(place, address)
    assert refused.returncode == 0, refused.stderr
    assert replace_volatile(refused.stderr + refused.stdout, place.folder) == snapshot
    assert table(place) == {"driver": "json"}
    done = init(place, address, "--force", LOOKOUT_API_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert table(place)["api"]["text"] == "answer"
    asked = run(place, "doctor", "bot", "--json", LOOKOUT_API_TOKEN=TOKEN)
    assert "no word on" in asked.stdout, asked.stdout + asked.stderr
    everything = done.stdout + done.stderr + (place.folder / "lookout.toml").read_text(encoding="utf-8")
    assert TOKEN not in everything


def test_a_header_that_the_api_names_is_written_with_its_variable(place, shapes, snapshot):
    address = f"{shapes.url}/keyed"
    refused = init(place, address)
    assert refused.returncode == 0, refused.stderr
    assert replace_volatile(refused.stderr, place.folder) == snapshot
    assert table(place) == {"driver": "json", "headers": {"X-Api-Key": {"env": "BOT_KEY"}}}
    done = init(place, address, "--force", BOT_KEY=TOKEN)
    assert done.returncode == 0, done.stderr
    assert table(place)["headers"] == {"X-Api-Key": {"env": "BOT_KEY"}}
    assert json.loads(table(place)["api"]["request"]) == {"question": "{question}"}


def test_a_page_still_goes_the_browsers_way_and_gets_no_secret(place, shapes):
    done = init(place, f"{shapes.url}/page", LOOKOUT_API_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert table(place) == {}
    assert "with a picture" in done.stdout
    assert [headers.get("Authorization") for headers in shapes.gets] == [None]


@pytest.mark.parametrize(
    ("path", "options"), [("/file", ()), ("/page", ("--driver", "json")), ("/plain", ("--driver", "telnet"))]
)
def test_for_an_unknown_api_the_attempts_are_listed_and_nothing_is_written(place, shapes, path, options, snapshot):
    done = init(place, f"{shapes.url}{path}", *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert replace_volatile(done.stderr, place.folder) == snapshot
    assert [name for name in FILES if (place.folder / name).exists()] == []


@pytest.mark.parametrize("path", ["/deaf", PATH])
def test_for_an_unknown_request_body_a_table_to_fill_in_is_written(place, shapes, strict, path, snapshot):
    """For an API with an unknown request body, `lookout init` writes a table for the user to complete.

    The output lists each body that was tried, with its response.
    """
    address = f"{shapes.url if path == '/deaf' else strict.url}{path}"
    done = init(place, address, "--driver", "sse")
    assert done.returncode == 0, done.stdout + done.stderr
    assert address in done.stderr
    assert "[IP address]" not in done.stdout + done.stderr
    assert replace_volatile(done.stderr + done.stdout, place.folder) == snapshot
    assert table(place) == {"driver": "sse"}
    written = (place.folder / "lookout.toml").read_text(encoding="utf-8")
    for line in ("# api.request = ", "# api.text = ", "# api.done = "):
        assert line in written


def test_an_address_that_gives_a_get_nothing_is_an_api_and_no_page(place, strict, snapshot):
    """An address that answers a GET request with an empty response is treated as an API, not as a page.

    The doctor detects the empty response before it starts a browser, and suggests the command for an API.
    """
    done = run(place, "doctor", f"{strict.url}{PATH}", "--no-ask")
    assert done.returncode == 3, done.stdout + done.stderr
    assert replace_volatile(done.stdout, place.folder) == snapshot


def test_the_address_that_was_typed_stays_readable_in_an_error(place, shapes):
    done = init(place, f"{shapes.url}/file")
    assert done.returncode == 2
    assert f" {shapes.url}/file " in done.stderr


def test_doctor_says_which_setting_of_an_api_is_wrong_and_exits_as_a_wrong_configuration(place, strict, snapshot):
    """The doctor reports which setting of an API is wrong.

    A path that the API does not have is a configuration error with exit code 2.
    """
    assert init(place, f"{strict.url}/v2/dialog/tern", "--driver", "sse", "--no-ask").returncode == 0
    done = run(place, "doctor", "bot")
    assert done.returncode == 2, done.stdout + done.stderr
    assert replace_volatile(done.stdout, place.folder) == snapshot


def test_init_asks_no_forbidden_address(place, shapes):
    before = len(shapes.posts)
    assert init(place, f"{shapes.url}/plain", "--no-ask").returncode == 0
    assert table(place) == {"driver": "json"}
    production = init(place, f"{shapes.url}/plain", "--environment", "production", "--force", CI="true")
    assert production.returncode == 0, production.stderr
    assert len(shapes.posts) == before
