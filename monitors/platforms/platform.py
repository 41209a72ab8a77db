"""Define the interface of platforms that store traces and evaluations: LangSmith and Langfuse.

A platform stores traces of an app, datasets of questions with expected answers, and experiments, which are runs
over a dataset with scores. Lookout copies suites to datasets and back, and stores its runs as experiments. Traces
that people select become drafts of cases.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Protocol

from pydantic import Field, JsonValue

from monitors.errors import SourceUnavailable
from monitors.plural import plural
from monitors.records.base import Identifier, Record, UtcTime

Json = dict[str, JsonValue]


class Score(Record):
    """A score that the platform shows for a conversation or a run."""

    key: Identifier
    """The name of the score, such as ``lookout_factual``."""
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """The score from 0 (worst) to 1 (best), or ``None`` if there is only a comment."""
    comment: str = ""


class Example(Record):
    """One entry of a dataset on the platform."""

    id: str
    """The id of the example on the platform.

    The id is computed from the dataset and the case, so a second write replaces the entry.
    """
    inputs: Json
    outputs: Json | None = None
    """The expected answer."""
    metadata: Json = Field(default_factory=dict)
    splits: tuple[str, ...] = ()
    """The parts of the dataset to which the example belongs, such as ``train`` and ``test``."""
    source_trace: str | None = None
    """The id of the trace from which a person made the example."""
    modified_at: UtcTime | None = None


class Dataset(Record):
    """A dataset on a platform."""

    id: str
    name: str
    url: str
    """The web address of the dataset."""
    entries_url: str = ""
    """The beginning of the web address of each example. The address ends with the id of the example."""
    metadata: Json = Field(default_factory=dict)
    size: int | None = None
    """The number of examples that the platform reports, or ``None`` if the number is unknown."""


class ReadingCheck:
    """Checks that no example is missing or repeated when a dataset is read in pages.

    A server without a stable order may return one example on two pages, and another example on no page.
    """

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        self._ids: set[str] = set()

    def add(self, example_id: str) -> None:
        """Store the id of an example that was read. Raises `SourceUnavailable` if the same id was read before."""
        if example_id in self._ids:
            raise SourceUnavailable(
                f"reading dataset {self._dataset!r}: example {example_id} occurs twice, so another example may be "
                "missing. Run the command again"
            )
        self._ids.add(example_id)

    def raise_if_examples_missing(self, total: int | None) -> None:
        """Raise `SourceUnavailable` if fewer than ``total`` examples were read.

        ``total`` is the number of examples that the platform reports, or ``None`` if it reports no number.
        """
        if total is not None and len(self._ids) < total:
            raise SourceUnavailable(
                f"reading dataset {self._dataset!r}: only {len(self._ids)} of {plural(total, 'example')} arrived. "
                "Run the command again"
            )


class ExperimentRow(Record):
    """One case of a run: the answer of the app with its scores."""

    example_id: str
    """The id of the example in the dataset."""
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    """The number of the repeat, starting at 0. If a case is asked several times, each repeat has its own row."""
    inputs: Json
    outputs: Json | None = None
    """The answer, or ``None`` if there is no answer."""
    error: str | None = None
    """The reason why there is no answer."""
    started_at: UtcTime
    ended_at: UtcTime
    scores: tuple[Score, ...] = ()
    metadata: Json = Field(default_factory=dict)


class Experiment(Record):
    """A run of Lookout, stored as an experiment on the platform, where people can compare it with other runs."""

    id: str
    name: str
    url: str
    """The web address of the page that compares the experiment with other runs."""


class Trace(Record):
    """The steps of an app for one request.

    On all platforms, each of the ``runs`` is JSON with the keys that LangSmith uses: ``id``, ``is_root``,
    ``run_type``, ``name``, ``start_time``, ``end_time``, ``inputs``, ``outputs``, ``metadata``.
    """

    id: str
    url: str
    runs: tuple[Json, ...]
    complete: bool
    """Whether the trace is complete: two readings in a row agreed, and the root of the trace has ended."""


class Datasets(Protocol):
    """The datasets of a platform.

    A second write of the same data changes nothing. All methods may raise `SourceUnavailable`. The error contains
    no API keys.
    """

    async def find(self, name: str) -> Dataset | None:
        """Return the dataset with this name, or ``None`` if there is no such dataset."""
        ...

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """Create a dataset, or return the existing dataset with this name."""
        ...

    def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """Yield all examples of a dataset. The examples are read in pages, which limits the use of memory."""
        ...

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """Create the examples. An example whose id exists is replaced."""
        ...

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """Remove examples. Ids that do not exist are ignored."""
        ...

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """Tag the current version of a dataset with ``tag``. An experiment can refer to this tag."""
        ...


class Experiments(Protocol):
    """The experiments of a platform. Each experiment belongs to one dataset.

    A second write of the same data changes nothing.
    """

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """Start an experiment, or return the existing experiment with this name."""
        ...

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """Store rows with their scores. A score that exists already is replaced."""
        ...

    async def finish(self, experiment: Experiment) -> None:
        """Mark an experiment as finished."""
        ...


class Traces(Protocol):
    """The traces in a project of a platform."""

    async def read(self, trace_id: str) -> Trace | None:
        """Return a trace, or ``None`` if the trace does not exist yet."""
        ...


class Platform(Protocol):
    """An open project of a platform."""

    @property
    def name(self) -> str:
        """Return the name of the platform and its project for messages, such as ``LangSmith project 'NAME'``."""
        ...

    @property
    def datasets(self) -> Datasets:
        """Return the datasets of the platform."""
        ...

    @property
    def experiments(self) -> Experiments:
        """Return the experiments of the platform."""
        ...

    @property
    def traces(self) -> Traces:
        """Return the traces in the project."""
        ...


OpenPlatform = AbstractAsyncContextManager[Platform]
"""A context manager that opens a platform and closes it at the end of the block."""
