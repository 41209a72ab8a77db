"""The experiments of a Langfuse project: for each row a span with the experiment's attributes, and its scores.

An experiment is not opened: Langfuse puts together what carries the same ``langfuse.experiment.id``. That id, and
those of traces, spans and scores, are made of dataset, experiment, example and score key, so that whatever is
written again replaces itself. A score without a value is written as the category `NO_VALUE` with its comment.

An item has one trace in an experiment. So where a case is asked several times, the first asking is the root of that
trace and the others are spans below it, each with its own scores. Spans lie in the environment ``lookout``, apart
from the application's own traffic.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pydantic import JsonValue

from monitors.platforms.langfuse.client import (
    API,
    FIRST_PAUSE_S,
    MOST_PAUSE_S,
    TRIES,
    FromLangfuse,
    LangfuseClient,
    Sleep,
    again_or,
)
from monitors.platforms.platform import Dataset, Experiment, ExperimentRow, Json, Score
from monitors.retry import TryAgain, retried

IDS: Final = uuid.UUID("3f6a3c0e-9a55-5d5b-8f0e-2a9d7c1b64e1")
"""The namespace of all ids that are written into Langfuse."""
ENVIRONMENT: Final = "lookout"
NO_VALUE: Final = "no value"
MOST_BYTES: Final = 1_000_000
"""Of one request, unless one row alone is larger. Langfuse takes 4.5 MB."""
MOST_ROWS: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCOPE: Final[Json] = {"name": "langfuse-sdk lookout"}
"""Of a scope of another name, Langfuse copies each attribute into the metadata."""
_HEADERS: Final = {"x-langfuse-ingestion-version": "4"}


class _PartialSuccess(FromLangfuse):
    rejected_spans: int = 0
    error_message: str = ""


class _Exported(FromLangfuse):
    partial_success: _PartialSuccess | None = None


class _EventError(FromLangfuse):
    id: str
    status: int
    message: str | None = None
    error: JsonValue = None


class _Ingested(FromLangfuse):
    errors: tuple[_EventError, ...] = ()


class _OpenExperiment(NamedTuple):
    dataset: Dataset
    metadata: Mapping[str, JsonValue]


class LangfuseExperiments:
    """`Experiments` of a Langfuse project. ``now`` dates scores: of two with one id Langfuse shows the later."""

    def __init__(self, client: LangfuseClient, now: Callable[[], datetime], sleep: Sleep) -> None:
        self._client, self._now, self._sleep = client, now, sleep
        self._opened: dict[str, _OpenExperiment] = {}

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """The experiment of that name on the dataset. It shows in Langfuse with its first row.

        `ConfigError` where the server is older than version 4, which has no experiments of this kind.
        """
        await self._client.needs_version_4("an experiment")
        identity = _id(dataset.id, name)
        self._opened[identity] = _OpenExperiment(dataset, metadata)
        url = f"{self._client.page_url('experiments', 'results')}?baseline={identity}"
        return Experiment(id=identity, name=name, url=url)

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """Store each row as a span of its item's trace, then its scores, in one that `start` gave here."""
        opened = self._opened[experiment.id]
        for few in _in_batches(rows):
            await self._export(experiment, [_span(experiment, opened, row) for row in few])
            await self._score([_score_event(experiment, row, score) for row in few for score in row.scores])

    async def finish(self, experiment: Experiment) -> None:
        """Nothing to say: an experiment of Langfuse has no end."""

    async def _export(self, experiment: Experiment, spans: list[Json]) -> None:
        doing = f"writing experiment {experiment.name!r}"
        body: Json = {"resourceSpans": [{"scopeSpans": [{"scope": _SCOPE, "spans": list[JsonValue](spans)}]}]}
        reply = await self._client.needed(
            "POST", f"{API}/otel/v1/traces", _Exported, doing, json=body, headers=_HEADERS
        )
        partial = reply.partial_success
        if partial is not None and partial.rejected_spans:
            raise self._client.unavailable(
                doing, f"{partial.rejected_spans} of {len(spans)} rows were refused: {partial.error_message[:300]}"
            )

    async def _score(self, bodies: list[Json]) -> None:
        """Write scores; those alone again that failed in a way that may pass."""
        moment = self._now().isoformat()
        left = {_id(json.dumps(body, sort_keys=True), moment): body for body in bodies}

        async def once() -> None:
            batch = [_event(identity, moment, body) for identity, body in left.items()]
            reply = await self._client.needed(
                "POST", f"{API}/ingestion", _Ingested, "writing scores", json={"batch": list[JsonValue](batch)}
            )
            failed = {error.id: error for error in reply.errors}
            for identity in [one for one in left if one not in failed]:
                del left[identity]
            self._raise_worst(reply.errors, left)

        if left:
            await retried(
                once, tries=TRIES, first_pause_s=FIRST_PAUSE_S, most_pause_s=MOST_PAUSE_S, sleep=self._sleep
            )

    def _raise_worst(self, errors: Sequence[_EventError], left: Mapping[str, Json]) -> None:
        failures: list[Exception] = []
        for error in errors:
            name = left[error.id]["name"] if error.id in left else error.id
            why = f"HTTP {error.status}: {error.message or ''} {error.error or ''}".strip()
            failures.append(again_or(self._client.unavailable(f"writing score {name!r}", why[:300]), error.status))
        final = [failure for failure in failures if not isinstance(failure, TryAgain)]
        for failure in (*final, *failures):
            raise failure


def _id(*parts: str) -> str:
    return str(uuid.uuid5(IDS, "\n".join(parts)))


def _trace_of(experiment: Experiment, row: ExperimentRow) -> str:
    """The trace of an item: 32 hexadecimal digits."""
    return uuid.uuid5(IDS, f"{experiment.id}\n{row.example_id}").hex


def _span_of(experiment: Experiment, row: ExperimentRow, repeat: int) -> str:
    """The span of one asking: 16 hexadecimal digits."""
    return uuid.uuid5(IDS, f"{experiment.id}\n{row.example_id}\n{repeat}").hex[:16]


def _in_batches(rows: Sequence[ExperimentRow]) -> Iterator[list[ExperimentRow]]:
    few, size = list[ExperimentRow](), 0
    for row in rows:
        bytes_of_row = len(row.model_dump_json())
        if few and (len(few) >= MOST_ROWS or size + bytes_of_row > MOST_BYTES):
            yield few
            few, size = [], 0
        few.append(row)
        size += bytes_of_row
    if few:
        yield few


def _span(experiment: Experiment, opened: _OpenExperiment, row: ExperimentRow) -> Json:
    ended_at = max(row.started_at, row.ended_at)
    below: Json = {"parentSpanId": _span_of(experiment, row, 0)} if row.repeat else {}
    return {
        **below,
        "traceId": _trace_of(experiment, row),
        "spanId": _span_of(experiment, row, row.repeat),
        "name": f"{row.case_id} ({row.repeat + 1})" if row.repeat else row.case_id,
        "kind": 1,
        "startTimeUnixNano": _nanoseconds(row.started_at),
        "endTimeUnixNano": _nanoseconds(ended_at),
        "attributes": [
            {"key": name, "value": {"stringValue": text}} for name, text in _attributes(experiment, opened, row)
        ],
        "status": {"code": 1} if row.error is None else {"code": 2, "message": row.error},
    }


def _attributes(experiment: Experiment, opened: _OpenExperiment, row: ExperimentRow) -> Iterator[tuple[str, str]]:
    yield "langfuse.trace.name", row.case_id
    yield "langfuse.environment", ENVIRONMENT
    yield "langfuse.experiment.id", experiment.id
    yield "langfuse.experiment.name", experiment.name
    yield "langfuse.experiment.dataset.id", opened.dataset.id
    yield "langfuse.experiment.item.id", row.example_id
    yield "langfuse.experiment.item.root_observation_id", _span_of(experiment, row, 0)
    yield "langfuse.observation.type", "span"
    yield "langfuse.observation.input", _text(row.inputs)
    if row.outputs is not None:
        yield "langfuse.observation.output", _text(row.outputs)
    if row.error is not None:
        yield "langfuse.observation.level", "ERROR"
        yield "langfuse.observation.status_message", row.error
    yield from ((f"langfuse.experiment.metadata.{name}", _text(value)) for name, value in _said(opened.metadata))
    yield from ((f"langfuse.observation.metadata.{name}", _text(value)) for name, value in _said(row.metadata))


def _said(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    return ((name, value) for name, value in metadata.items() if value is not None)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _nanoseconds(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _score_event(experiment: Experiment, row: ExperimentRow, score: Score) -> Json:
    valued = score.value is not None
    return {
        "id": _id(_span_of(experiment, row, row.repeat), score.key),
        "traceId": _trace_of(experiment, row),
        "observationId": _span_of(experiment, row, row.repeat),
        "name": score.key,
        "value": score.value if valued else NO_VALUE,
        "dataType": "NUMERIC" if valued else "CATEGORICAL",
        "comment": score.comment or None,
        "environment": ENVIRONMENT,
    }


def _event(identity: str, moment: str, body: Json) -> Json:
    return {"id": identity, "type": "score-create", "timestamp": moment, "body": body}
