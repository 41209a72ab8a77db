"""The protocol of a platform: datasets, experiments, traces. LangSmith and Langfuse implement it.

A platform stores traces of an LLM application, datasets of questions with references, and experiments (one run over
a dataset, with scores). Suites are pushed and pulled, runs are shown as experiments, and traces that people select
become drafts. Callers do not depend on the platform.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Protocol

from pydantic import Field, JsonValue

from monitors.errors import SourceUnavailable
from monitors.records.base import Identifier, Record, UtcTime

Json = dict[str, JsonValue]


class Score(Record):
    """A score of a conversation or a run, shown beside it on the platform."""

    key: Identifier
    """The name of the score, such as ``lookout_factual``."""
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """From 0 to 1, 1 is best; absent if the score is only a comment."""
    comment: str = ""


class Example(Record):
    """One entry of a dataset, in the platform's form."""

    id: str
    """The platform's id. Lookout derives it from dataset and case, so that a retry replaces the entry."""
    inputs: Json
    outputs: Json | None = None
    """The reference: the expected answer."""
    metadata: Json = Field(default_factory=dict)
    splits: tuple[str, ...] = ()
    """The parts of the dataset that the example belongs to, such as ``train`` and ``test``."""
    source_trace: str | None = None
    """The id of the trace that a person made the example from."""
    modified_at: UtcTime | None = None


class Dataset(Record):
    """A dataset of a platform."""

    id: str
    name: str
    url: str
    """Its web address."""
    entries_url: str = ""
    """The web address of an example without its id, which is appended."""
    metadata: Json = Field(default_factory=dict)
    size: int | None = None
    """The platform's count of its examples; ``None`` if unknown."""


class ReadingCheck:
    """Check the ids of a dataset that is read in pages.

    A server without a stable order, for example with equal times, can have an example on two pages and another on
    none.
    """

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        self._ids: set[str] = set()

    def add(self, identity: str) -> None:
        """Note an example's id. Raises `SourceUnavailable` if it came before."""
        if identity in self._ids:
            raise SourceUnavailable(
                f"reading dataset {self._dataset!r}: example {identity} occurs twice, so another example may be "
                "missing; run the command again"
            )
        self._ids.add(identity)

    def check_total(self, total: int | None) -> None:
        """Raises `SourceUnavailable` if fewer examples came than the platform counts."""
        if total is not None and len(self._ids) < total:
            raise SourceUnavailable(
                f"reading dataset {self._dataset!r}: {len(self._ids)} of {total} examples arrived; run the "
                "command again"
            )


class ExperimentRow(Record):
    """One case of a run: the application's answer with its scores."""

    example_id: str
    """The reference example of the dataset."""
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    """The number of the repeat: severe cases are asked several times, each a row of its own."""
    inputs: Json
    outputs: Json | None = None
    """The answer; absent without one."""
    error: str | None = None
    """Why the answer is missing."""
    started_at: UtcTime
    ended_at: UtcTime
    scores: tuple[Score, ...] = ()
    metadata: Json = Field(default_factory=dict)


class Experiment(Record):
    """A run of Lookout on the platform, beside others on the same dataset."""

    id: str
    name: str
    url: str
    """The web address of its comparison."""


class Trace(Record):
    """The steps of an application for one request.

    ``runs`` are plain JSON with LangSmith's keys, for every platform: ``id``, ``is_root``, ``run_type``,
    ``name``, ``start_time``, ``end_time``, ``inputs``, ``outputs``, ``metadata``.
    """

    id: str
    url: str
    runs: tuple[Json, ...]
    complete: bool
    """Whether two readings agreed and its root had ended; otherwise counts in it are invalid."""


class Datasets(Protocol):
    """The datasets of a platform. Writing is idempotent; a failure is a `SourceUnavailable` without keys."""

    async def find(self, name: str) -> Dataset | None:
        """Return the dataset of that name; ``None`` without one."""
        ...

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """Create a dataset, or return the existing one of that name."""
        ...

    def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """Yield all its examples, page by page, in bounded memory."""
        ...

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """Create or replace examples by their ids."""
        ...

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """Remove examples; missing ones are ignored."""
        ...

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """Name the dataset's present state, so that an experiment can name the state it used."""
        ...


class Experiments(Protocol):
    """The experiments of a platform, each on one dataset. Writing is idempotent."""

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """Start an experiment, or return the existing one of that name."""
        ...

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """Store runs with their scores; a new score replaces the old one."""
        ...

    async def finish(self, experiment: Experiment) -> None:
        """Mark the experiment as finished."""
        ...


class Traces(Protocol):
    """The traces of a platform's project."""

    async def read(self, trace_id: str) -> Trace | None:
        """Return a trace; ``None`` while it does not exist."""
        ...


class Platform(Protocol):
    """An open project of a platform."""

    @property
    def name(self) -> str:
        """The name for messages: ``LangSmith`` or ``Langfuse`` with the project, without secrets."""
        ...

    @property
    def datasets(self) -> Datasets:
        """Its datasets."""
        ...

    @property
    def experiments(self) -> Experiments:
        """Its experiments."""
        ...

    @property
    def traces(self) -> Traces:
        """Its traces."""
        ...


OpenPlatform = AbstractAsyncContextManager[Platform]
"""A context manager that opens a platform."""
