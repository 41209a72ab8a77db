"""Detect whether an address is a chat API, and find the settings with which Lookout can ask the API.

`identify_endpoint` sends no question. `discover_api` sends a harmless question with different request bodies until
the API answers. Then it asks once more with the settings that it found.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, Self, cast

import httpx

from monitors.errors import PageNotUnderstood, ProbeError
from monitors.json_path import collect_values, join_text_parts
from monitors.probes.api.driver import (
    REFUSED_STATUSES,
    TOO_MANY_REQUESTS,
    WALL_STATUSES,
    ApiDriver,
    Event,
    HttpClientPool,
    fill_request_template,
    parse_server_sent_events,
    split_lines,
)
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.inspect.findings import (
    HARMLESS,
    build_wire_rule,
    keep_letters_and_digits,
    list_limited_text_paths,
    read_text_at,
)
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.probes.target_guard import build_address_guard
from monitors.records.base import Record
from monitors.request_headers import NO_HEADERS, RequestHeaders

INSPECTION_TIMEOUT_S: Final = 10.0
"""Maximum seconds for the requests without a question."""
MAX_POSTS: Final = 12
MAX_EVENTS: Final = 5000
MAX_SHOWN_CHARACTERS: Final = 120
_MIN_ERROR_STATUS: Final = 400
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_MIN_SERVER_ERROR: Final = 500
_NO_POST_STATUSES: Final = (404, 405, 406, 415)
_TURN: Final = "{question}"
_MESSAGES: Final = ["{history}", {"role": "user", "content": _TURN}]
_TEXTS: Final = ("question", "message", "input", "query", "prompt", "text")
BODIES: Final[tuple[dict[str, Any], ...]] = (
    {"question": _TURN},
    {"message": _TURN},
    {"messages": _MESSAGES},
    *({name: _TURN} for name in _TEXTS[2:]),
)
"""Request bodies that chat APIs usually accept, the most common first."""
_CONVERSATION: Final = re.compile(r"(session|conversation|thread|chat|user|request)_?(id)?$", re.IGNORECASE)
_ANSWERS: Final = (
    *("answer", "reply", "response", "output_text", "completion", "generated_text", "assistant", "bot", "output"),
    *("result", "content", "text", "delta", "token", "message", "msg", "data", "chunk"),
)
"""Names of fields that may contain the answer, the likeliest name first."""
_NO_ANSWER: Final = re.compile(
    r"(^|[._])(citations?|sources?|references?|documents?|contexts?|chunks|passages|metadata|usage|reasoning|"
    r"thinking|steps|history|prompt|question|query|errors?|detail|title|suggestions|id|model|role|object|type|"
    r"status)([._]|$)",
    re.IGNORECASE,
)
_KEY_HEADER: Final = re.compile(r"\b(?:x-)?(?:[a-z0-9]+-)*(?:api-?key|auth-token|token|key)\b", re.IGNORECASE)
_QUOTED_NAME: Final = re.compile(r"""["'`]([A-Za-z_]\w{0,39})["'`]""")
_MISSING_FIELD_WORDS: Final = re.compile(r"missing|required|must|need|expected|provide", re.IGNORECASE)


class EndpointKind(StrEnum):
    """The kind of an address: a web page, an API or something else."""

    PAGE = "page"
    API = "api"
    NEITHER = "neither"
    UNKNOWN = "unknown"
    """The address is not reachable or does not respond."""


class AddressResponse(Record):
    """The kind of an address, and its reply to a GET, for example ``HTTP 405, application/json``."""

    kind: EndpointKind
    said: str

    def as_api_with_methods(self, allowed: str) -> Self:
        """Return a copy in which the address is an API.

        ``allowed`` contains the HTTP methods that the address reported in reply to an OPTIONS request.
        """
        return self.model_copy(update={"kind": EndpointKind.API, "said": f"{self.said}, Allow: {allowed}"})


class ApiDiscovery(Record):
    """The settings for asking an API.

    If ``probe`` is ``None``, no settings were found, and ``problem`` is the reason. ``tried`` contains the tried
    request bodies with their results. If the API refused the requests, ``refused`` is the status 401 or 403, and
    ``header`` is the header that the API requires. ``answer`` is the last answer of the API.
    """

    probe: ProbeSettings | None = None
    answer: str = ""
    tried: tuple[str, ...] = ()
    problem: str = ""
    refused: int | None = None
    header: str | None = None
    asks_for_other_body: bool = False
    """Whether the address accepts requests, but rejected all request bodies that were tried."""

    def with_tried_bodies(self, tried: Iterable[str]) -> Self:
        """Return the discovery with the request bodies that were tried."""
        return self.model_copy(update={"tried": tuple(tried)})

    def with_answer(self, answer: str) -> Self:
        """Return the discovery with the last answer of the API."""
        return self.model_copy(update={"answer": answer})


class _Reply(Record):
    status: int
    kind: str
    body: str = ""
    events: tuple[Event, ...] = ()
    wanted: str = ""

    def format_status_and_redacted_excerpt(self, headers: RequestHeaders) -> str:
        text = headers.hide_secrets(self.body or " ".join(event.data for event in self.events))
        return f"HTTP {self.status}: {replace_surrogates(text)[:MAX_SHOWN_CHARACTERS]}".rstrip(": ")

    def has_no_error_status(self) -> bool:
        return self.status < _MIN_ERROR_STATUS

    def parse_documents(self) -> list[Any]:
        texts = [event.data for event in self.events] or [self.body]
        return [document for document in map(_parse_json_or_none, texts) if document is not None]


async def identify_endpoint(address: str, settings: ProbeSettings) -> AddressResponse:
    """Return the kind of an address, from its reply to a GET.

    If the reply is HTTP 404, an OPTIONS request is sent too, because an API may accept only POST. No question
    and no configured header is sent.
    """
    clients = HttpClientPool(settings, NO_HEADERS, address, build_address_guard(address, settings))
    try:
        async with asyncio.timeout(INSPECTION_TIMEOUT_S), clients.lend_client() as client:
            async with client.stream("GET", address) as response:
                response_summary = await _classify_as_page_or_api(response)
            if (
                response_summary.kind in {EndpointKind.PAGE, EndpointKind.NEITHER}
                and response.status_code == _NOT_FOUND
            ):
                allowed = (await client.request("OPTIONS", address)).headers.get("allow", "").upper()
                if "POST" in allowed and "GET" not in allowed:
                    return response_summary.as_api_with_methods(allowed)
            return response_summary
    except (TimeoutError, httpx.HTTPError, ProbeError) as error:
        return AddressResponse(kind=EndpointKind.UNKNOWN, said=str(error) or type(error).__name__)
    finally:
        await clients.aclose()


async def _classify_as_page_or_api(response: httpx.Response) -> AddressResponse:
    status, content_type = response.status_code, response.headers.get("content-type", "").partition(";")[0].strip()
    kind = _classify_status(status, content_type, response.headers.get("www-authenticate", ""))
    summary = f"HTTP {status}, {content_type or 'no content type'}"
    if status < _MIN_ERROR_STATUS and kind in {EndpointKind.PAGE, EndpointKind.NEITHER}:
        first_piece = b""
        async for piece in response.aiter_bytes():
            if first_piece := piece.lstrip():
                break
        if not first_piece:  # a browser would show a blank page
            return AddressResponse(kind=EndpointKind.API, said=f"HTTP {status} with an empty body")
        if not content_type and first_piece.startswith(b"<"):  # a browser treats it as HTML
            kind = EndpointKind.PAGE
        elif content_type == "text/plain":
            kind = EndpointKind.API
    return AddressResponse(kind=kind, said=summary)


def _classify_status(status: int, content_type: str, scheme: str) -> EndpointKind:
    is_html = "html" in content_type
    if status == _NOT_ALLOWED or "json" in content_type or "event-stream" in content_type:
        return EndpointKind.API
    if status in REFUSED_STATUSES:
        return EndpointKind.API if not is_html or scheme.lower().startswith("bearer") else EndpointKind.PAGE
    if is_html:
        return EndpointKind.PAGE
    if status >= _MIN_SERVER_ERROR:
        return EndpointKind.UNKNOWN
    return EndpointKind.API if status >= _MIN_ERROR_STATUS and status != _NOT_FOUND else EndpointKind.NEITHER


async def discover_api(address: str, settings: ProbeSettings, headers: RequestHeaders) -> ApiDiscovery:
    """Ask an API with different request bodies until it answers. Ask once more, and return the settings.

    At most `MAX_POSTS` bodies are tried. The deadlines in ``settings`` apply.
    """
    clients = HttpClientPool(settings, headers, address, build_address_guard(address, settings))
    search = _RequestBodySearch(address, settings, headers)
    try:
        async with clients.lend_client() as client:
            discovery = await search.run(client)
    except (TimeoutError, httpx.HTTPError, ProbeError) as error:
        discovery = ApiDiscovery(problem=f"the server does not answer: {error or type(error).__name__}")
    finally:
        await clients.aclose()
    discovery = discovery.with_tried_bodies(search.tried)
    return await _confirm_discovery(discovery, address, headers) if discovery.probe else discovery


async def _confirm_discovery(discovery: ApiDiscovery, address: str, headers: RequestHeaders) -> ApiDiscovery:
    """Ask the API one more question with the settings that were found, and add its answer to the discovery.

    If this question fails, return a discovery without settings.
    """
    assert discovery.probe is not None
    try:
        async with ApiDriver(address, discovery.probe, headers=headers) as driver:
            answer = await driver.ask((HARMLESS,))
    except ProbeError as error:
        problem = (
            f"a first question with the body {discovery.probe.api.request} got an answer, but a second question "
            f"failed: {error}"
        )
        return ApiDiscovery(tried=discovery.tried, problem=headers.hide_secrets(problem), asks_for_other_body=True)
    return discovery.with_answer(headers.hide_secrets(answer.visible_text))


class _RequestBodySearch:
    """Tries request bodies one after the other.

    The first body is empty, because the error in the reply may name the fields that are missing.
    """

    def __init__(self, address: str, settings: ProbeSettings, headers: RequestHeaders) -> None:
        self._address, self._settings, self._headers = address, settings, headers
        self.tried: list[str] = []
        self._queue: list[dict[str, Any]] = [{}, *BODIES]
        self._done: list[dict[str, Any]] = []
        self._answer_to_empty_body: str | None = None
        """The text that the API answered to an empty request body, or ``None`` if the API gave no answer."""

    async def run(self, client: httpx.AsyncClient) -> ApiDiscovery:
        while self._queue and len(self._done) < MAX_POSTS:
            body = self._queue.pop(0)
            if body in self._done:
                continue
            self._done.append(body)
            try:
                reply = await _post_body(
                    client, self._address, fill_request_template(body, HARMLESS, [], "lookout-init")
                )
            except (httpx.RemoteProtocolError, httpx.ReadError) as error:
                self.tried.append(f"{json.dumps(body)}: {str(error) or 'the server closed the connection'}")
                continue
            self.tried.append(f"{json.dumps(body)}: {reply.format_status_and_redacted_excerpt(self._headers)}")
            if (final_error := _build_result_for_final_error(reply, is_first=not body)) is not None:
                return final_error
            if (
                reply.has_no_error_status()
                and (discovery := self._build_discovery_if_answered(body, reply)) is not None
            ):
                return discovery
            await self._queue_completed_body(body, reply, client)
        note = ". The API gave an answer even to an empty request" if self._answer_to_empty_body else ""
        problem = f"no common request body got an answer to the question{note}"
        return ApiDiscovery(problem=problem, asks_for_other_body=True)

    def _build_discovery_if_answered(self, body: dict[str, Any], reply: _Reply) -> ApiDiscovery | None:
        try:
            api, text = _infer_settings_and_answer(body, reply, self._address)
        except PageNotUnderstood as error:
            self.tried[-1] = f"{json.dumps(body)}: {self._headers.hide_secrets(str(error))}"
            return None
        if not body:
            self._answer_to_empty_body = text
        if not body or text == self._answer_to_empty_body:
            return None
        return ApiDiscovery(probe=self._settings.with_api("sse" if reply.events else "json", api))

    async def _queue_completed_body(self, body: dict[str, Any], reply: _Reply, client: httpx.AsyncClient) -> None:
        """If ``reply`` reports missing fields, add them to ``body`` and try this body next."""
        missing = list(_iterate_missing_fields(reply))
        completed = cast("dict[str, Any]", json.loads(json.dumps(body)))
        if any(_can_hold_question(path[-1]) and path[0] not in body for path in missing):
            completed = {name: value for name, value in completed.items() if value not in (_TURN, _MESSAGES)}
        for path in missing:
            _add_field_with_value(completed, path)
        if "messages" in completed and not reply.has_no_error_status() and re.search(r"\bmodel\b", reply.body):
            completed |= await _fetch_first_model_field(client, self._address)
        if completed != body and _TURN in json.dumps(completed):
            self._queue.insert(0, completed)


async def _fetch_first_model_field(client: httpx.AsyncClient, address: str) -> dict[str, str]:
    """Return the field ``model`` with the first model of an OpenAI-compatible API.

    The result is empty if the API lists no model.
    """
    models_url = re.sub(r"/chat/completions/?$", "/models", address)
    if models_url == address:
        return {}
    names = collect_values(_parse_json_or_none((await client.get(models_url)).text), "data.*.id")
    return {"model": str(names[0])} if names else {}


def _build_result_for_final_error(reply: _Reply, *, is_first: bool) -> ApiDiscovery | None:
    """Return the result for an error that would occur with any other request body too.

    Return ``None`` if another body may succeed. ``is_first`` is True for the reply to the first body.
    """
    if reply.status in REFUSED_STATUSES:
        match = _KEY_HEADER.search(f"{reply.wanted} {reply.body}")
        header = match.group() if match and "-" in match.group() else None
        return ApiDiscovery(problem=f"HTTP {reply.status}", refused=reply.status, header=header)
    if reply.status in (*WALL_STATUSES, TOO_MANY_REQUESTS):
        is_wall = reply.status in WALL_STATUSES
        why = "the API requires a login or a higher quota" if is_wall else "too many requests; try again later"
        return ApiDiscovery(problem=f"HTTP {reply.status}: {why}")
    if reply.status in _NO_POST_STATUSES and is_first:
        return ApiDiscovery(problem=f"HTTP {reply.status}: the server does not accept a POST request with JSON")
    return None


async def _post_body(client: httpx.AsyncClient, address: str, body: Any) -> _Reply:
    events: list[Event] = []
    text = ""
    try:
        async with asyncio.timeout(client.timeout.read), client.stream("POST", address, json=body) as response:
            kind = response.headers.get("content-type", "")
            if "event-stream" in kind:
                async for event in parse_server_sent_events(split_lines(response.aiter_text())):
                    events.append(event)
                    if event.data == "[DONE]" or len(events) >= MAX_EVENTS:
                        break
            else:
                text = (await response.aread()).decode("utf-8", "replace")
    except TimeoutError:
        if not events:
            raise TimeoutError("the answer took longer than the deadline") from None
        return _Reply(status=200, kind="text/event-stream", events=tuple(events))
    wanted = response.headers.get("www-authenticate", "")
    return _Reply(status=response.status_code, kind=kind, body=text, events=tuple(events), wanted=wanted)


def _infer_settings_and_answer(body: dict[str, Any], reply: _Reply, address: str) -> tuple[ApiSettings, str]:
    """Return the settings that fit the reply, and the text of the answer.

    Raises `PageNotUnderstood` if the reply has no answer.
    """
    documents = reply.parse_documents()
    if not documents:
        raise PageNotUnderstood(f"HTTP {reply.status}, {reply.kind or 'no content type'}: the reply is not JSON")
    if any(value for document in documents for value in collect_values(document, "error")):
        raise PageNotUnderstood(
            f"HTTP {reply.status} with an error: "
            f"{replace_surrogates(json.dumps(documents[-1]))[:MAX_SHOWN_CHARACTERS]}"
        )
    path = _find_likeliest_answer_path(documents)
    if path is None:
        raise PageNotUnderstood(
            f"Lookout found no answer in {replace_surrogates(json.dumps(documents[-1]))[:MAX_SHOWN_CHARACTERS]}"
        )
    joins_pieces = _is_text_in_pieces(documents, path)
    rule = build_wire_rule(address, path, joins_pieces=joins_pieces, documents=documents)
    api = ApiSettings(
        request=json.dumps(body, ensure_ascii=False),
        text=rule.text,
        citations=rule.citations,
        app_path=rule.app_path,
        latency_ms=rule.latency_ms,
        joins=joins_pieces,
    )
    if reply.events:
        api = api.with_end_mark(_find_end_mark(reply.events, path))
    return api, read_text_at(path, documents, joins_pieces=joins_pieces) or ""


def _find_likeliest_answer_path(documents: list[Any]) -> str | None:
    ranked_paths = [
        (_compute_path_rank(path, text), path)
        for path in list_limited_text_paths(documents)
        if not _NO_ANSWER.search(path)
        and (text := read_text_at(path, documents, joins_pieces=_is_text_in_pieces(documents, path)))
        if keep_letters_and_digits(text) not in {"", keep_letters_and_digits(HARMLESS)}
        # one or two words are a name or a title, unless the field is one for answers
        and (_compute_field_name_rank(path) < len(_ANSWERS) or len(text.split()) > 2)  # noqa: PLR2004
    ]
    return min(ranked_paths)[1] if ranked_paths else None


def _compute_path_rank(path: str, text: str) -> tuple[bool, int, int, bool, int]:
    """Return a sort key for a path to a text. The likeliest path to an answer has the smallest key."""
    inner = any(step.isdecimal() and step != "0" for step in path.split("."))
    return len(text.split()) < 2, _compute_field_name_rank(path), path.count("*"), inner, path.count(".")  # noqa: PLR2004 - a word


def _compute_field_name_rank(path: str) -> int:
    names = [step.lower() for step in path.split(".") if not step.lstrip("-").isdecimal() and step != "*"]
    return _ANSWERS.index(names[-1]) if names and names[-1] in _ANSWERS else len(_ANSWERS)


def _is_text_in_pieces(documents: list[Any], path: str) -> bool:
    """Return whether the pieces must be joined to get the complete answer.

    If the result is False, the last piece already contains the complete answer. ``path`` leads to the pieces.
    """
    values = (value for document in documents for value in collect_values(document, path) if value is not None)
    pieces = [piece for piece in map(join_text_parts, values) if piece]
    grows = all(later.startswith(earlier) for earlier, later in pairwise(pieces))
    return len(pieces) < 2 or not (grows or pieces[-1] == "".join(pieces[:-1]))  # noqa: PLR2004 - nothing to join


def _find_end_mark(events: tuple[Event, ...], path: str) -> str:
    """Return the mark that ends a stream.

    Raises `PageNotUnderstood` if the stream has no end mark, or if its events are not JSON.
    """
    *before, last = events
    if any(_parse_json_or_none(event.data) is None for event in before):
        raise PageNotUnderstood("Lookout cannot read the stream: its events are not JSON")
    document = _parse_json_or_none(last.data)
    if document is None:
        return last.data
    if all(event.name != last.name for event in before) and last.name != "message":
        return last.name
    if any(collect_values(document, path)):
        raise PageNotUnderstood(
            "no event marks the end of the stream, so Lookout cannot detect an incomplete answer"
        )
    return last.data


def _iterate_missing_fields(reply: _Reply) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field that an error reports as missing.

    The fields are in ``loc`` (pydantic), in ``param`` (OpenAI), or in the text of the error.
    """
    if reply.has_no_error_status():
        return
    document = _parse_json_or_none(reply.body)
    paths = [
        tuple(step for step in cast("list[Any]", loc)[1:] if isinstance(step, str))
        for loc, kind in zip(
            collect_values(document, "detail.*.loc"), collect_values(document, "detail.*.type"), strict=False
        )
        if isinstance(loc, list) and "missing" in str(kind)
    ]
    if paths:
        yield from filter(None, paths)
    elif names := [str(name) for name in collect_values(document, "error.param") if name]:
        yield from ((name,) for name in names)
    elif _MISSING_FIELD_WORDS.search(reply.body) or len(reply.body) <= MAX_SHOWN_CHARACTERS:
        error_text = reply.body
        if document is not None:  # the text of the error, without the names of its own fields
            texts = (
                read_text_at(path, [document], joins_pieces=True) or ""
                for path in list_limited_text_paths([document])
            )
            error_text = "\n".join(texts)
        words = _QUOTED_NAME.findall(error_text)
        mentioned = [name for name in (*_TEXTS, "messages") if re.search(rf"\b{name}\b", error_text)]
        yield from ((name,) for name in dict.fromkeys(words or mentioned[:1]))


def _can_hold_question(name: str) -> bool:
    return name != "model" and not name.endswith("history") and _CONVERSATION.fullmatch(name) is None


def _add_field_with_value(body: dict[str, Any], path: tuple[str, ...]) -> None:
    """Add a field to the body, with a value that fits its name. Existing fields are not changed."""
    *outer, name = path
    for step in outer:
        inner = body.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        body = cast("dict[str, Any]", inner)
    if name == "messages":
        body.setdefault(name, _MESSAGES)
    elif name.endswith("history"):
        body.setdefault(name, "{history}")
    elif _CONVERSATION.fullmatch(name):
        body.setdefault(name, "{conversation}")
    elif name == "model":
        return
    elif name in _TEXTS or not any(value in (_TURN, _MESSAGES) for value in body.values()):
        body.setdefault(name, _TURN)


def _parse_json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # deeply nested JSON exceeds the recursion limit
        return None
