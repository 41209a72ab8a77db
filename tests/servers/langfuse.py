"""A local server with the part of Langfuse 4's public API that Lookout uses. It is as strict as the real one.

It serves the health check, the project of a key pair, datasets with items, OpenTelemetry spans as JSON, the
ingestion of scores, and the observations of a trace. Like Langfuse, it stores whole numbers as doubles, rejects the
character U+0000, and does not change a field that is null or missing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, repeat
from typing import Any, Final

from aiohttp import web

from tests.servers.response_faults import Handler, fated
from tests.servers.threaded_server import ThreadedServer

PROJECT_ID: Final = "clangfuse0staging"
PUBLIC, SECRET = "pk-lf-1111", "sk-lf-hush-hush"
_HEX: Final = {"traceId": re.compile(r"[0-9a-f]{32}"), "spanId": re.compile(r"[0-9a-f]{16}")}
_GROUPS: Final = {"core", "basic", "time", "io", "metadata", "model", "usage", "prompt", "metrics", "trace_context"}
_ITEM_FIELDS: Final = ("input", "expectedOutput", "metadata", "sourceTraceId", "status")


class Refusal(Exception):
    """Raised to reject a request with an HTTP status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class LangfuseServer(ThreadedServer):
    """A Langfuse server that stores the data it receives.

    ``late`` contains, for each of the next requests for observations, how many observations are visible. Later
    requests get all of them. ``at_border`` is a fault after the first page, where one page ends and the next
    begins: ``swapped`` returns one of the two items there twice and omits the other, ``missing`` omits one.
    ``fates`` are the outcomes of requests with valid keys (see `fated`). ``score_fates`` maps the name of a score
    to the statuses of its ingestion.
    """

    def __init__(self, project: str = "staging", *, version: str = "4.51.0") -> None:
        super().__init__()
        self.project, self.version = project, version
        self.fates: Iterator[str] = repeat("ok")
        self.requests: list[tuple[str, str]] = []
        self.pages: list[int] = []
        self.datasets: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.spans: dict[tuple[str, str], dict[str, Any]] = {}
        self.scores: dict[str, dict[str, Any]] = {}
        self.score_fates: dict[str, list[int]] = {}
        self.observations: dict[str, list[dict[str, Any]]] = {}
        self.late: list[int] = []
        self.leads_to = ""
        self.at_border = ""
        self._ticks = count()

    def application(self) -> web.Application:
        made = web.Application(middlewares=[self._door], client_max_size=4_500_000)
        made.router.add_get("/api/public/health", self._health)
        made.router.add_get("/api/public/projects", self._projects)
        made.router.add_post("/api/public/v2/datasets", self._put_dataset)
        made.router.add_get("/api/public/v2/datasets/{name}", self._dataset)
        made.router.add_get("/api/public/dataset-items", self._page)
        made.router.add_post("/api/public/dataset-items", self._put_item)
        made.router.add_get("/api/public/dataset-items/{id}", self._item)
        made.router.add_post("/api/public/otel/v1/traces", self._export)
        made.router.add_post("/api/public/ingestion", self._ingest)
        made.router.add_get("/api/public/v2/observations", self._observations)
        return made

    def active(self) -> dict[str, dict[str, Any]]:
        """Return the dataset items that are not archived."""
        return {name: item for name, item in self.items.items() if item["status"] == "ACTIVE"}

    def attributes(self) -> list[dict[str, str]]:
        """Return the attributes of each stored OpenTelemetry span."""
        return [
            {attribute["key"]: attribute["value"]["stringValue"] for attribute in span["attributes"]}
            for span in self.spans.values()
        ]

    @property
    def _door(self) -> Any:
        @web.middleware
        async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self.leads_to:
                return web.Response(status=308, headers={"Location": self.leads_to})
            if request.path != "/api/public/health" and request.headers.get("Authorization") != _basic():
                return web.json_response({"message": "Invalid credentials. Confirm the host."}, status=401)
            self.requests.append((request.method, request.rel_url.raw_path_qs))
            error = f"not now, {PUBLIC}:{SECRET}"  # what is in the message of a proxy, say
            return await fated(next(self.fates), request, _answered(handler), closing=self.closing, text=error)

        return door

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "OK", "version": self.version})

    async def _projects(self, _request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": PROJECT_ID, "name": self.project, "metadata": {}}]})

    async def _put_dataset(self, request: web.Request) -> web.Response:
        return web.json_response(self.add_dataset(**await _body(request, "name")))

    def add_dataset(self, name: str, **given: Any) -> dict[str, Any]:
        """Create the dataset ``name``, or update it if it exists."""
        moment = self._moment()
        stored = self.datasets.setdefault(
            name,
            {"id": f"cds{len(self.datasets)}", "name": name, "projectId": PROJECT_ID, "createdAt": moment}
            | {"description": None, "metadata": None},
        )
        changes = {key: given[key] for key in ("description", "metadata") if given.get(key) is not None}
        stored.update(changes | {"updatedAt": moment})
        return stored

    async def _dataset(self, request: web.Request) -> web.Response:
        return web.json_response(self._known(request.match_info["name"]))

    def _known(self, name: str) -> dict[str, Any]:
        if name not in self.datasets:
            raise Refusal(404, "Dataset not found")
        return self.datasets[name]

    async def _page(self, request: web.Request) -> web.Response:
        page, limit = int(request.query.get("page", "1")), int(request.query.get("limit", "50"))
        if limit > 100 or page < 1:
            raise Refusal(400, "Invalid request data: limit must be at most 100")
        name = self._known(request.query["datasetName"])["name"]
        page_items = [item for item in reversed(self.items.values()) if item["datasetName"] == name]
        self.pages.append(page)
        items = order_at_border(page_items, limit, self.at_border) if page > 1 else page_items
        meta = {
            "page": page,
            "limit": limit,
            "totalItems": len(page_items),
            "totalPages": -(-len(page_items) // limit),
        }
        return web.json_response({"data": items[(page - 1) * limit : page * limit], "meta": meta})

    async def _item(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self.items:
            raise Refusal(404, "Dataset item not found")
        return web.json_response(self.items[request.match_info["id"]])

    async def _put_item(self, request: web.Request) -> web.Response:
        return web.json_response(self.add_item(await _body(request, "datasetName")))

    def add_item(self, given: dict[str, Any]) -> dict[str, Any]:
        """Create the item ``given``, or update it if it exists. A field that is null or missing stays unchanged."""
        dataset, identity = self._known(given["datasetName"]), given.get("id") or f"citem{next(self._ticks)}"
        if self.items.get(identity, {}).get("datasetName", dataset["name"]) != dataset["name"]:
            raise Refusal(404, f"The dataset item with id {identity} already exists in a dataset other than this")
        moment = self._moment()
        new = {"id": identity, "datasetId": dataset["id"], "datasetName": dataset["name"], "createdAt": moment}
        stored = self.items.setdefault(identity, new | dict.fromkeys(_ITEM_FIELDS) | {"status": "ACTIVE"})
        changes = {key: _as_stored(given[key]) for key in _ITEM_FIELDS if given.get(key) is not None}
        stored.update(changes | {"updatedAt": moment})
        return stored

    async def _export(self, request: web.Request) -> web.Response:
        if request.headers.get("x-langfuse-ingestion-version") != "4":
            raise Refusal(400, "only ingestion version 4 is shown at once")
        given = await _body(request, "resourceSpans")
        spans = [s for r in given["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
        for span in spans:
            _check_span(span)
            self.spans[span["traceId"], span["spanId"]] = span
        return web.json_response({})

    async def _ingest(self, request: web.Request) -> web.Response:
        given = await _body(request, "batch")
        outcomes = [(event["id"], self._ingested(event)) for event in given["batch"]]
        errors = [{"id": name, "status": status, "message": "no"} for name, status in outcomes if status != 201]
        successes = [{"id": name, "status": 201} for name, status in outcomes if status == 201]
        return web.json_response({"successes": successes, "errors": errors}, status=207)

    def _ingested(self, event: dict[str, Any]) -> int:
        body = event["body"]
        fates = self.score_fates.get(body["name"])
        if fates:
            return fates.pop(0)
        number = isinstance(body["value"], int | float)
        if event["type"] != "score-create" or number != (body["dataType"] == "NUMERIC") or "traceId" not in body:
            return 400
        former = self.scores.get(body["id"], {})
        if former.get("timestamp", "") <= event["timestamp"]:
            self.scores[body["id"]] = body | {"timestamp": event["timestamp"]}
        return 201

    async def _observations(self, request: web.Request) -> web.Response:
        limit, fields = int(request.query.get("limit", "50")), set(request.query["fields"].split(","))
        if limit > 1000 or not fields <= _GROUPS:
            raise Refusal(400, "Invalid request data")
        start = int(request.query.get("cursor", "0"))
        observations = self.observations.get(request.query["traceId"], [])
        visible = observations[: self.late[0]] if self.late else observations
        if self.late and start + limit >= len(visible):
            self.late.pop(0)
        latest = sorted(visible, key=lambda observation: observation["startTime"], reverse=True)
        meta = {"cursor": str(start + limit)} if start + limit < len(latest) else {}
        return web.json_response({"data": latest[start : start + limit], "meta": meta})

    def _moment(self) -> str:
        moment = datetime(2026, 11, 23, 9, tzinfo=UTC) + timedelta(milliseconds=next(self._ticks))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def order_at_border(items: list[Any], border: int, at_border: str) -> list[Any]:
    """Return ``items`` as a server with the fault ``at_border`` lists them.

    Item number ``border`` is the last of a page. ``swapped`` exchanges this item with the next one, and ``missing``
    omits the next item.
    """
    last, first = items[border - 1 : border], items[border : border + 1]
    between = {"swapped": first + last, "missing": last}.get(at_border, last + first)
    return items[: border - 1] + between + items[border + 1 :]


def _basic() -> str:
    return f"Basic {base64.b64encode(f'{PUBLIC}:{SECRET}'.encode()).decode()}"


def _answered(handler: Handler) -> Handler:
    async def answered(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return web.json_response({"message": refusal.message}, status=refusal.status)

    return answered


async def _body(request: web.Request, needed: str) -> dict[str, Any]:
    if "json" not in request.headers.get("Content-Type", ""):
        raise Refusal(400, "Invalid content type")
    given = json.loads(await request.text(), parse_int=_double)
    if not isinstance(given.get(needed), str | list):
        raise Refusal(400, f"Invalid request data: {needed} is required")
    return given


def _double(digits: str) -> int:
    """Convert the digits of a whole number with the precision of a double, as Langfuse does."""
    return int(float(digits))


def _as_stored(value: Any) -> Any:
    """Return ``value``, or raise `Refusal` if it contains U+0000, which PostgreSQL cannot store."""
    if "\\u0000" in json.dumps(value).replace("\\\\", ""):
        raise Refusal(500, "unsupported Unicode escape sequence")
    return value


def _check_span(span: dict[str, Any]) -> None:
    for key, form in _HEX.items():
        if not form.fullmatch(span[key]):
            raise Refusal(400, f"{key} is not hexadecimal")
    if not span["startTimeUnixNano"].isdecimal() or int(span["endTimeUnixNano"]) < int(span["startTimeUnixNano"]):
        raise Refusal(400, "times are nanoseconds as text, the end not before the start")
    given = {attribute["key"]: attribute["value"]["stringValue"] for attribute in span["attributes"]}
    needed = ("id", "name", "dataset.id", "item.id", "item.root_observation_id")
    if not all(given.get(f"langfuse.experiment.{key}") for key in needed):
        raise Refusal(400, "attributes of the experiment are missing")
    if given["langfuse.experiment.item.root_observation_id"] != span.get("parentSpanId", span["spanId"]):
        raise Refusal(400, "the root observation is this span, or the one above it")
