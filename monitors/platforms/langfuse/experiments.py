"""Write experiments to Langfuse. Each row becomes a span with the attributes of the experiment, and its scores.

An experiment is not created explicitly. Langfuse groups spans with the same ``langfuse.experiment.id``. The ids of
experiments, traces, spans and scores are computed from the dataset, the experiment, the example and the score key.
A second write has the same ids and replaces the first write. A score without a value is written as the category
`NO_VALUE` with its comment.

An item has one trace in an experiment. If a case is asked several times, the span of the first request is the root
of that trace, and the spans of the other requests are below the root. Each span has its own scores. Spans have the
environment ``lookout``, which separates them from the application's own traffic.
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
    MAX_PAUSE_S,
    MAX_TRIES,
    LangfuseClient,
    LangfuseRecord,
    Sleep,
    classify_failure,
)
from monitors.platforms.platform import Dataset, Experiment, ExperimentRow, Json, Score
from monitors.plural import plural
from monitors.retry import TryAgain, retry_with_pauses

ID_NAMESPACE: Final = uuid.UUID("3f6a3c0e-9a55-5d5b-8f0e-2a9d7c1b64e1")
"""The UUID namespace of all ids written to Langfuse."""
ENVIRONMENT: Final = "lookout"
NO_VALUE: Final = "no value"
MAX_REQUEST_BYTES: Final = 1_000_000
"""Maximum number of bytes of one request, unless a single row is larger. Langfuse accepts 4.5 MB."""
MAX_REQUEST_ROWS: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCOPE: Final[Json] = {"name": "langfuse-sdk lookout"}
"""The name of the scope of the spans. Langfuse would copy the attributes of other scopes into the metadata."""
_HEADERS: Final = {"x-langfuse-ingestion-version": "4"}


class _PartialSuccess(LangfuseRecord):
    rejected_spans: int = 0
    error_message: str = ""


class _SpansReply(LangfuseRecord):
    partial_success: _PartialSuccess | None = None


class _EventError(LangfuseRecord):
    id: str
    status: int
    message: str | None = None
    error: JsonValue = None


class _ScoresReply(LangfuseRecord):
    errors: tuple[_EventError, ...] = ()


class _ExperimentContext(NamedTuple):
    dataset: Dataset
    metadata: Mapping[str, JsonValue]


class LangfuseExperiments:
    """The `Experiments` of a Langfuse project.

    ``now`` returns the time of a score. If several scores have the same id, Langfuse shows the latest score.
    """

    def __init__(self, client: LangfuseClient, now: Callable[[], datetime], sleep: Sleep) -> None:
        self._client, self._now, self._sleep = client, now, sleep
        self._contexts: dict[str, _ExperimentContext] = {}

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """Start an experiment on the dataset. Langfuse shows the experiment only after its first row is written.

        Raises `ConfigError` if the server is older than version 4, which has no experiments of this kind.
        """
        await self._client.require_version_4("an experiment")
        identity = _derive_uuid_from_parts(dataset.id, name)
        self._contexts[identity] = _ExperimentContext(dataset, metadata)
        url = f"{self._client.build_page_url('experiments', 'results')}?baseline={identity}"
        return Experiment(id=identity, name=name, url=url)

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """Store each row as a span in the trace of its item, then store its scores.

        ``experiment`` must come from `start` of this object.
        """
        context = self._contexts[experiment.id]
        for batch in _split_into_batches(rows):
            await self._write_spans(experiment, [_build_span(experiment, context, row) for row in batch])
            await self._write_scores(
                [_build_score(experiment, row, score) for row in batch for score in row.scores]
            )

    async def finish(self, experiment: Experiment) -> None:
        """Do nothing: Langfuse does not record the end of an experiment."""

    async def _write_spans(self, experiment: Experiment, spans: list[Json]) -> None:
        doing = f"writing experiment {experiment.name!r}"
        body: Json = {"resourceSpans": [{"scopeSpans": [{"scope": _SCOPE, "spans": list[JsonValue](spans)}]}]}
        reply = await self._client.request(
            "POST", f"{API}/otel/v1/traces", _SpansReply, doing, json=body, headers=_HEADERS
        )
        partial = reply.partial_success
        if partial is not None and partial.rejected_spans:
            raise self._client.build_unavailable_error(
                doing,
                f"the server refused {partial.rejected_spans} of {plural(len(spans), 'row')}: "
                f"{partial.error_message[:300]}",
            )

    async def _write_scores(self, bodies: list[Json]) -> None:
        """Write scores to Langfuse. Scores that fail with a temporary error are written again."""
        moment = self._now().isoformat()
        pending = {_derive_uuid_from_parts(json.dumps(body, sort_keys=True), moment): body for body in bodies}

        async def write_pending_scores() -> None:
            batch: list[JsonValue] = [
                {"id": identity, "type": "score-create", "timestamp": moment, "body": body}
                for identity, body in pending.items()
            ]
            reply = await self._client.request(
                "POST", f"{API}/ingestion", _ScoresReply, "writing scores", json={"batch": batch}
            )
            failed = {error.id: error for error in reply.errors}
            for identity in [event_id for event_id in pending if event_id not in failed]:
                del pending[identity]
            self._raise_worst_error_if_any(reply.errors, pending)

        if pending:
            await retry_with_pauses(
                write_pending_scores,
                tries=MAX_TRIES,
                first_pause_s=FIRST_PAUSE_S,
                max_pause_s=MAX_PAUSE_S,
                sleep=self._sleep,
            )

    def _raise_worst_error_if_any(self, errors: Sequence[_EventError], pending: Mapping[str, Json]) -> None:
        failures: list[Exception] = []
        for error in errors:
            name = pending[error.id]["name"] if error.id in pending else error.id
            reason = f"HTTP {error.status}: {error.message or ''} {error.error or ''}".strip()
            failures.append(
                classify_failure(
                    self._client.build_unavailable_error(f"writing score {name!r}", reason[:300]), error.status
                )
            )
        final = [failure for failure in failures if not isinstance(failure, TryAgain)]
        for failure in (*final, *failures):
            raise failure


def _derive_uuid_from_parts(*parts: str) -> str:
    return str(uuid.uuid5(ID_NAMESPACE, "\n".join(parts)))


def _make_trace_id(experiment: Experiment, row: ExperimentRow) -> str:
    """Return the id of the trace for an item, as 32 hexadecimal digits."""
    return uuid.uuid5(ID_NAMESPACE, f"{experiment.id}\n{row.example_id}").hex


def _make_span_id(experiment: Experiment, row: ExperimentRow, repeat: int) -> str:
    """Return the id of the span for one request, as 16 hexadecimal digits."""
    return uuid.uuid5(ID_NAMESPACE, f"{experiment.id}\n{row.example_id}\n{repeat}").hex[:16]


def _split_into_batches(rows: Sequence[ExperimentRow]) -> Iterator[list[ExperimentRow]]:
    batch, size = list[ExperimentRow](), 0
    for row in rows:
        row_bytes = len(row.model_dump_json())
        if batch and (len(batch) >= MAX_REQUEST_ROWS or size + row_bytes > MAX_REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row_bytes
    if batch:
        yield batch


def _build_span(experiment: Experiment, context: _ExperimentContext, row: ExperimentRow) -> Json:
    ended_at = max(row.started_at, row.ended_at)
    parent: Json = {"parentSpanId": _make_span_id(experiment, row, 0)} if row.repeat else {}
    return {
        **parent,
        "traceId": _make_trace_id(experiment, row),
        "spanId": _make_span_id(experiment, row, row.repeat),
        "name": f"{row.case_id} ({row.repeat + 1})" if row.repeat else row.case_id,
        "kind": 1,
        "startTimeUnixNano": _format_nanoseconds(row.started_at),
        "endTimeUnixNano": _format_nanoseconds(ended_at),
        "attributes": [
            {"key": name, "value": {"stringValue": text}}
            for name, text in _iterate_span_attributes(experiment, context, row)
        ],
        "status": {"code": 1} if row.error is None else {"code": 2, "message": row.error},
    }


def _iterate_span_attributes(
    experiment: Experiment, context: _ExperimentContext, row: ExperimentRow
) -> Iterator[tuple[str, str]]:
    yield "langfuse.trace.name", row.case_id
    yield "langfuse.environment", ENVIRONMENT
    yield "langfuse.experiment.id", experiment.id
    yield "langfuse.experiment.name", experiment.name
    yield "langfuse.experiment.dataset.id", context.dataset.id
    yield "langfuse.experiment.item.id", row.example_id
    yield "langfuse.experiment.item.root_observation_id", _make_span_id(experiment, row, 0)
    yield "langfuse.observation.type", "span"
    yield "langfuse.observation.input", _to_text(row.inputs)
    if row.outputs is not None:
        yield "langfuse.observation.output", _to_text(row.outputs)
    if row.error is not None:
        yield "langfuse.observation.level", "ERROR"
        yield "langfuse.observation.status_message", row.error
    yield from (
        (f"langfuse.experiment.metadata.{name}", _to_text(value)) for name, value in _drop_nulls(context.metadata)
    )
    yield from (
        (f"langfuse.observation.metadata.{name}", _to_text(value)) for name, value in _drop_nulls(row.metadata)
    )


def _drop_nulls(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    return ((name, value) for name, value in metadata.items() if value is not None)


def _to_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format_nanoseconds(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _build_score(experiment: Experiment, row: ExperimentRow, score: Score) -> Json:
    has_value = score.value is not None
    return {
        "id": _derive_uuid_from_parts(_make_span_id(experiment, row, row.repeat), score.key),
        "traceId": _make_trace_id(experiment, row),
        "observationId": _make_span_id(experiment, row, row.repeat),
        "name": score.key,
        "value": score.value if has_value else NO_VALUE,
        "dataType": "NUMERIC" if has_value else "CATEGORICAL",
        "comment": score.comment or None,
        "environment": ENVIRONMENT,
    }
