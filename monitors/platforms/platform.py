"""What Lookout asks of a platform: datasets, experiments, traces. LangSmith and Langfuse are the two that it knows.

A platform keeps what teams know of their LLM application: traces of what it did, datasets of questions with their
references, experiments (one run over a dataset, with scores). Suites of Lookout go there and come back, runs appear
there, and what people pick there becomes a draft here. Whoever uses this module never learns which platform it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Protocol

from pydantic import Field, JsonValue

from monitors.records.base import Identifier, Record, UtcTime

Json = dict[str, JsonValue]


class Score(Record):
    """What a conversation or a run was found to be worth, to be shown beside it where it is stored."""

    key: Identifier
    """What was scored, such as ``lookout_factual``."""
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """From 0 to 1, 1 is best; absent where only the comment says something."""
    comment: str = ""


class Example(Record):
    """One entry of a dataset, as the platform keeps it."""

    id: str
    """The platform's name for it. Ours come of dataset and case, so that a retry writes the same one."""
    inputs: Json
    outputs: Json | None = None
    """The reference: what is expected."""
    metadata: Json = Field(default_factory=dict)
    splits: tuple[str, ...] = ()
    """Which parts of the dataset it belongs to, such as ``train`` and ``test``."""
    source_trace: str | None = None
    """The trace that a person made it of, as the platform names it."""
    modified_at: UtcTime | None = None


class Dataset(Record):
    """A dataset of a platform."""

    id: str
    name: str
    url: str
    """Where a person looks at it."""
    entries_url: str = ""
    """The same for one example: this address with the example's id behind it."""
    metadata: Json = Field(default_factory=dict)


class ExperimentRow(Record):
    """One case of a run: what the application answered, and what that was worth."""

    example_id: str
    """The reference example of the dataset."""
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    """Which asking of the case: severe ones are asked several times, each a row of its own."""
    inputs: Json
    outputs: Json | None = None
    """What came back; absent where nothing did."""
    error: str | None = None
    """Why nothing came back."""
    started_at: UtcTime
    ended_at: UtcTime
    scores: tuple[Score, ...] = ()
    metadata: Json = Field(default_factory=dict)


class Experiment(Record):
    """A run of Lookout as the platform shows it, beside others on the same dataset."""

    id: str
    name: str
    url: str
    """Where a person compares it."""


class Trace(Record):
    """What an application did for one request.

    ``runs`` are plain JSON with LangSmith's keys, whatever the platform: ``id``, ``is_root``, ``run_type``,
    ``name``, ``start_time``, ``end_time``, ``inputs``, ``outputs``, ``metadata``.
    """

    id: str
    url: str
    runs: tuple[Json, ...]
    complete: bool
    """Whether two readings agreed and its root had ended; else nothing may be counted in it."""


class Datasets(Protocol):
    """The datasets of a platform. Writing twice is once; a failure is a `SourceUnavailable` that names no key."""

    async def find(self, name: str) -> Dataset | None:
        """The dataset of that name; ``None`` where there is none."""
        ...

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """A new one; the one of that name where a retry finds it made already."""
        ...

    def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """All its examples, page by page, in bounded memory."""
        ...

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """Create or replace examples by their ids, whatever of them is there already."""
        ...

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """Remove examples; one that is gone already is gone."""
        ...

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """Name the dataset's present state, so that an experiment can say which one it used."""
        ...


class Experiments(Protocol):
    """The experiments of a platform, each on one dataset. Writing twice is once."""

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """Open an experiment; the one of that name where a retry finds it open already."""
        ...

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """Store runs with their scores: a retry changes nothing, another score replaces."""
        ...

    async def finish(self, experiment: Experiment) -> None:
        """Say that no row follows."""
        ...


class Traces(Protocol):
    """The traces of a platform's project."""

    async def read(self, trace_id: str) -> Trace | None:
        """A trace; ``None`` while it is not there."""
        ...


class Platform(Protocol):
    """One project of one platform, while it is open."""

    @property
    def name(self) -> str:
        """For messages: ``LangSmith`` or ``Langfuse``, with the project; no secrets."""
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
"""A platform while a ``with`` block lasts."""
