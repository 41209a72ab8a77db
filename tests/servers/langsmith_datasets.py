"""A local server with LangSmith's dataset API as its SDK (0.15) calls it, with the faults that occur in practice.

It serves ``/datasets`` (409 for an existing name), versions and tags, and ``/examples`` in pages of at most 100 or
by ids. Examples are written as multipart (``/v1/platform/datasets/{id}/examples``) or, like on an older server,
with ``/examples/bulk``. Each received example is validated with the SDK's own model.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from langsmith import schemas

from tests.servers.langfuse import order_at_border
from tests.servers.threaded_server import ThreadedServer

TENANT = "11111111-2222-4333-8444-555555555555"
PROJECT_NAME = "bot"
"""The name of the only project that the key can see."""
PAGE = 100
START = datetime(2026, 3, 1, tzinfo=UTC)


class LangSmithDatasetServer(ThreadedServer):
    """A server with ``datasets`` by id. ``requests`` contains the method and path of each request.

    ``faults`` contains planned error responses: the beginning of a path, the status and the headers. Other faults
    are planned by the number of the request, counted from 0: requests in ``refused``, and all from ``dead_from``
    on, are not executed, and the connection is closed. Requests in ``lost`` are executed before the connection is
    closed, and requests in ``held`` are executed and never answered. Requests in ``limited`` get HTTP 429. A
    written example is omitted from the next ``late`` listings. If ``multipart`` is false, the server behaves like
    an older version. ``at_border`` is the fault of `order_at_border`, after the first page.
    """

    def __init__(self, *, key: str, port: int = 0) -> None:
        super().__init__(port)
        self.key = key
        self.datasets: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[tuple[str, int, dict[str, str]]] = []
        self.lost: set[int] = set()
        self.refused: set[int] = set()
        self.limited: set[int] = set()
        self.held: set[int] = set()
        self.holding = threading.Event()
        self.dead_from: int | None = None
        self.traces: dict[str, dict[str, Any]] = {}
        self.late = 0
        self.multipart = True
        self.at_border = ""
        self._clock = START

    def application(self) -> web.Application:
        """Return the routes of the API."""
        application = web.Application(middlewares=[self._watched], client_max_size=30_000_000)
        route = application.router
        route.add_get("/info", self._info)
        route.add_get("/sessions", self._sessions)
        route.add_post("/api/v2/runs/query", self._runs)
        route.add_get("/datasets", self._list_datasets)
        route.add_post("/datasets", self._create_dataset)
        route.add_get("/datasets/{id}/version", self._version)
        route.add_put("/datasets/{id}/tags", self._tag)
        route.add_get("/examples", self._list)
        route.add_delete("/examples", self._delete)
        route.add_post("/examples/bulk", self._create_bulk)
        route.add_patch("/examples/bulk", self._update_bulk)
        route.add_post("/v1/platform/datasets/{id}/examples", self._create)
        route.add_patch("/v1/platform/datasets/{id}/examples", self._update)
        return application

    def restart(self, *, late: int = 0, multipart: bool = True) -> None:
        """Remove all data and faults."""
        self.datasets.clear()
        self.requests.clear()
        self.late, self.multipart = late, multipart
        self.calm()

    def calm(self) -> None:
        """Remove the planned faults of requests, and list all examples that exist."""
        self.faults, self.lost, self.refused, self.limited, self.dead_from = [], set(), set(), set(), None
        for dataset in self.datasets.values():
            dataset["hidden"].clear()

    def dataset(self, name: str) -> dict[str, Any]:
        """Return the dataset ``name`` as it is stored."""
        (dataset,) = [candidate for candidate in self.datasets.values() if candidate["name"] == name]
        return dataset

    def examples(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the examples of a dataset as they are stored, keyed by id."""
        return self.dataset(name)["examples"]

    def hide(self, name: str, example_id: str, *, listings: int) -> None:
        """Omit the example with the id ``example_id`` from the next ``listings`` listings."""
        self.dataset(name)["hidden"][example_id] = listings

    def add(self, name: str, **fields: Any) -> str:
        """Add an example to the dataset ``name``, as a user does in LangSmith, and return its id."""
        if not any(candidate["name"] == name for candidate in self.datasets.values()):
            self._made({"name": name})
        dataset = self.dataset(name)
        example_id = str(uuid.uuid5(uuid.UUID(TENANT), f"{name}/{len(dataset['examples'])}"))
        self._store(dataset, example_id, fields)
        return example_id

    def edit(self, name: str, example_id: str, **fields: Any) -> None:
        """Edit an example of the dataset ``name``, as a user does in LangSmith."""
        self.examples(name)[example_id] |= fields | {"modified_at": self._tick()}

    @property
    def _watched(self) -> Any:
        @web.middleware
        async def watched(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            number = len(self.requests)
            self.requests.append((request.method, request.path))
            if request.headers.get("x-api-key") != self.key:
                return web.json_response({"detail": "Invalid token"}, status=401)
            dead = self.dead_from is not None and number >= self.dead_from
            if dead or number in self.refused:
                return self._hang_up(request)
            if number in self.limited:
                return web.json_response({"detail": "Rate limit exceeded"}, status=429)
            fault = next((planned for planned in self.faults if request.path.startswith(planned[0])), None)
            if fault is not None:
                self.faults.remove(fault)
                return web.json_response({"detail": "planned fault"}, status=fault[1], headers=fault[2])
            answer = await handler(request)
            if number in self.held:
                self.holding.set()
                await self.closing.wait()
            return self._hang_up(request) if number in self.lost else answer

        return watched

    def _hang_up(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def _tick(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat()

    async def _info(self, _request: web.Request) -> web.Response:
        flags = {"dataset_examples_multipart_enabled": self.multipart}
        return web.json_response({"version": "0.16.20", "instance_flags": flags})

    async def _sessions(self, _request: web.Request) -> web.Response:
        project = {"id": TENANT, "name": PROJECT_NAME, "tenant_id": TENANT, "reference_dataset_id": None}
        return web.json_response([project])

    async def _runs(self, request: web.Request) -> web.Response:
        asked = await request.json()
        trace = self.traces.get(asked.get("trace_id", ""))
        when = {"start_time": START.isoformat(), "end_time": START.isoformat()}
        root = {
            "id": asked.get("trace_id"),
            "name": "bot",
            "run_type": "chain",
            "is_root": True,
            "project_id": TENANT,
        }
        items = [root | when | trace] if trace and asked["project_ids"] == [TENANT] else []
        names = {name.lower() for name in asked["selects"]}
        shown = [{key: value for key, value in item.items() if key in names} for item in items]
        return web.json_response({"items": shown, "next_cursor": None})

    async def _list_datasets(self, request: web.Request) -> web.Response:
        named = [candidate for candidate in self.datasets.values() if candidate["name"] == request.query["name"]]
        return web.json_response([_shown(candidate) for candidate in named])

    async def _create_dataset(self, request: web.Request) -> web.Response:
        given = await request.json()
        if any(candidate["name"] == given["name"] for candidate in self.datasets.values()):
            return web.json_response({"detail": "Dataset with this name already exists."}, status=409)
        made = self._made(given)
        schemas.Dataset(**_shown(made))
        return web.json_response(_shown(made))

    def _made(self, given: dict[str, Any]) -> dict[str, Any]:
        made = {
            "id": str(uuid.uuid5(uuid.UUID(TENANT), given["name"])),
            "name": given["name"],
            "description": given.get("description"),
            "data_type": given.get("data_type", "kv"),
            "metadata": given.get("extra", {}).get("metadata"),
            "created_at": self._tick(),
            "examples": {},
            "hidden": {},
            "version": None,
            "tags": {},
        }
        self.datasets[made["id"]] = made
        return made

    async def _version(self, request: web.Request) -> web.Response:
        dataset = self.datasets[request.match_info["id"]]
        as_of = (
            dataset["version"] if request.query["tag"] == "latest" else dataset["tags"].get(request.query["tag"])
        )
        if as_of is None:
            return web.json_response({"detail": "Dataset version not found"}, status=404)
        return web.json_response({"tags": ["latest"], "as_of": as_of})

    async def _tag(self, request: web.Request) -> web.Response:
        dataset, given = self.datasets[request.match_info["id"]], await request.json()
        if given["as_of"] != dataset["version"]:
            return web.json_response({"detail": "no such version"}, status=404)
        dataset["tags"][given["tag"]] = given["as_of"]
        return web.json_response({})

    async def _list(self, request: web.Request) -> web.Response:
        limit, offset = int(request.query["limit"]), int(request.query.get("offset", 0))
        if limit > PAGE:
            return web.json_response({"detail": "limit must be at most 100"}, status=400)
        dataset = self.datasets[request.query["dataset"]]
        wanted = request.query.getall("id", [])
        stored = dataset["examples"]
        newest_first = list(reversed(stored.values()))
        chosen = [stored[one] for one in wanted if one in stored] if wanted else newest_first
        as_of = request.query.get("as_of")
        if as_of is not None:
            until = datetime.fromisoformat(as_of)
            chosen = [one for one in chosen if datetime.fromisoformat(one["created_at"]) <= until]
        chosen = [one for one in chosen if not self._is_hidden(dataset, one["id"])] if dataset["hidden"] else chosen
        chosen = order_at_border(chosen, limit, self.at_border) if offset else chosen
        page = chosen[offset : offset + limit]
        for example in page:
            schemas.Example(**example)
        return web.json_response(page)

    def _is_hidden(self, dataset: dict[str, Any], example_id: str) -> bool:
        left = dataset["hidden"].get(example_id, 0)
        if left:
            dataset["hidden"][example_id] = left - 1
        return left > 0

    async def _create(self, request: web.Request) -> web.Response:
        dataset = self.datasets[request.match_info["id"]]
        given = await _parts(request)
        for example_id, fields in given.items():
            schemas.ExampleCreate(**_as_the_sdk_has_it(example_id, fields))
        return self._create_all(dataset, given)

    async def _create_bulk(self, request: web.Request) -> web.Response:
        given = await request.json()
        for fields in given:
            schemas.ExampleCreate(**_as_the_sdk_has_it(fields["id"], fields))
        dataset = self.datasets[given[0]["dataset_id"]]
        answer = self._create_all(dataset, {example["id"]: example for example in given})
        return (
            answer
            if answer.status != web.HTTPOk.status_code
            else web.json_response([{"id": example["id"]} for example in given])
        )

    def _create_all(self, dataset: dict[str, Any], given: dict[str, dict[str, Any]]) -> web.Response:
        """Create all given examples, or none if one is invalid."""
        if len(given) > PAGE:
            return web.json_response({"detail": "too many examples"}, status=400)
        if any(new_id in dataset["examples"] for new_id in given):
            return web.json_response({"detail": "Example with this id already exists"}, status=409)
        for example_id, fields in given.items():
            self._store(dataset, example_id, fields)
            dataset["hidden"][example_id] = self.late
        return web.json_response({"count": len(given), "example_ids": list(given), "as_of": dataset["version"]})

    def _store(self, dataset: dict[str, Any], example_id: str, fields: dict[str, Any]) -> None:
        now = self._tick()
        example = dataset["examples"].get(
            example_id, {"id": example_id, "dataset_id": dataset["id"], "created_at": now}
        )
        metadata = dict(fields.get("metadata") or {})
        splits = fields.get("split") or example.get("metadata", {}).get("dataset_split") or ["base"]
        metadata["dataset_split"] = [splits] if isinstance(splits, str) else splits
        stored = {key: fields[key] for key in ("inputs", "outputs", "source_run_id") if key in fields}
        dataset["examples"][example_id] = example | stored | {"metadata": metadata, "modified_at": now}
        dataset["version"] = now

    async def _update(self, request: web.Request) -> web.Response:
        return self._update_all(self.datasets[request.match_info["id"]], await _parts(request))

    async def _update_bulk(self, request: web.Request) -> web.Response:
        given = {one["id"]: one for one in await request.json()}
        datasets = [one for one in self.datasets.values() if one["examples"].keys() & given.keys()]
        if not datasets:
            return web.json_response({"detail": "Example not found"}, status=404)
        return self._update_all(datasets[0], given)

    def _update_all(self, dataset: dict[str, Any], given: dict[str, dict[str, Any]]) -> web.Response:
        """Update all given examples, or none if one is invalid."""
        for example_id, fields in given.items():
            schemas.ExampleUpdate(id=example_id, **{key: fields[key] for key in _UPDATED if key in fields})
        if any(updated_id not in dataset["examples"] for updated_id in given):
            return web.json_response({"detail": "Example not found"}, status=404)
        for example_id, fields in given.items():
            self._store(dataset, example_id, fields)
        return web.json_response({"count": len(given), "example_ids": list(given)})

    async def _delete(self, request: web.Request) -> web.Response:
        ids = request.query.getall("example_ids")
        for dataset in self.datasets.values():
            gone = [example_id for example_id in ids if example_id in dataset["examples"]]
            if gone and len(gone) < len(ids):
                break
            for example_id in gone:
                del dataset["examples"][example_id]
                dataset["version"] = self._tick()
            if gone:
                return web.json_response({})
        return web.json_response({"detail": "Example not found"}, status=404)


_UPDATED = ("inputs", "outputs", "metadata", "split")


def _shown(dataset: dict[str, Any]) -> dict[str, Any]:
    inner = ("examples", "hidden", "version", "tags")
    count = len(dataset["examples"].keys() - {name for name, left in dataset["hidden"].items() if left})
    shown = {key: value for key, value in dataset.items() if key not in inner}
    return shown | {"tenant_id": TENANT, "example_count": count}


def _as_the_sdk_has_it(example_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    example = {key: fields[key] for key in ("inputs", "metadata", "split", "source_run_id") if key in fields}
    return {"id": example_id, "reference_outputs": fields.get("outputs"), **example}


async def _parts(request: web.Request) -> dict[str, dict[str, Any]]:
    """Return the examples in a multipart body. An example, its inputs and its outputs are separate parts."""
    examples: dict[str, dict[str, Any]] = {}
    async for part in await request.multipart():
        name = part.name or ""
        example_id, _, key = name.partition(".")
        value = json.loads(await part.read())
        if key:
            examples[example_id][key] = value
        else:
            examples[example_id] = value
    return examples
