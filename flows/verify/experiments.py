"""Writes a run as an experiment to a platform such as LangSmith.

The experiment is opened while the run asks, so that alerts and reports can link to it. The rows are written after
the alerts are sent, so that verdict and alerts do not wait for the platform. Errors of the platform become a
warning of the run. A resumed run writes no row twice, because all ids depend on run, case and repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from importlib.metadata import version
from typing import Final, NamedTuple

from pydantic import JsonValue

from flows.runtime.run import open_experiment_platform
from flows.verify.experiment_rows import CaseWeights, build_experiment_rows, split_into_batches
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import redact
from monitors.errors import ConfigError, MonitorError, SourceUnavailable
from monitors.goldset.examples import find_case_id
from monitors.platforms.platform import Dataset, Datasets, Platform
from monitors.platforms.settings import DatasetAddress, parse_dataset_address
from monitors.records.runs import RunExperiment, RunReport

OPEN_TIMEOUT_S: Final = 120.0
"""Timeout for loading the dataset and opening the experiment, in seconds from the start of the run."""
WRITE_TIMEOUT_S: Final = 600.0
"""Timeout for writing all rows, in seconds. It is long, because 500 rows with 5 scores need 3,000 requests."""
ROWS_PER_BATCH: Final = 50
"""The number of rows that are written together."""


class _PlatformExperiment(NamedTuple):
    platform: Platform
    dataset: Dataset
    examples: Mapping[str, str]
    described: RunExperiment


class ExperimentWriter:
    """Writes the experiment of one run. Errors of the platform are not raised; see `RunExperiment.problem`."""

    def __init__(self, run: LiveRun, address: DatasetAddress, opening: asyncio.Task[_PlatformExperiment]) -> None:
        self._run, self._address, self._opening = run, address, opening

    def describe(self) -> RunExperiment | None:
        """Return the description of the experiment. Return ``None`` if the platform has not answered yet."""
        if not self._opening.done() or self._opening.cancelled():
            return None
        error = self._opening.exception()
        return self._opening.result().described if error is None else self._describe_failure(error)

    async def write(self, report: RunReport) -> RunExperiment:
        """Write all rows with their scores.

        Return the description of the experiment. If writing failed, the description contains the problem.
        """
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                opened = await asyncio.shield(self._opening)
                await self._write_all_rows(opened, report)
        except Exception as error:  # noqa: BLE001 - an error of the platform does not change a finished run
            experiment = self.describe()
            return self._describe_failure(error, experiment.url if experiment else None)
        return opened.described

    async def _write_all_rows(self, opened: _PlatformExperiment, report: RunReport) -> None:
        experiments, context = opened.platform.experiments, self._run.context
        metadata = _build_metadata(self._run, report)
        experiment = await experiments.start(opened.dataset, context.run_id, metadata)
        patterns = context.configured.graders.account_patterns
        weights = CaseWeights(
            report, (result.assessment for result in self._run.results), context.config.gate.weights
        )
        rows = build_experiment_rows(
            self._run.results, opened.examples, weights, lambda text: redact(text, account_patterns=patterns)
        )
        for batch in split_into_batches(rows, ROWS_PER_BATCH):
            await experiments.write(experiment, batch)
        await experiments.finish(experiment)

    def _describe_failure(self, error: BaseException, url: str | None = None) -> RunExperiment:
        cause = str(error) if isinstance(error, MonitorError) else type(error).__name__
        problem = f"not written within {WRITE_TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else cause
        return RunExperiment(dataset=str(self._address), url=url, problem=problem)


@asynccontextmanager
async def open_experiment(run: LiveRun) -> AsyncGenerator[ExperimentWriter | None]:
    """Open the run's experiment in the background. Yield ``None`` if the target has no dataset."""
    written = run.context.configured.experiments
    if written is None:
        yield None
        return
    address = parse_dataset_address(written)
    async with AsyncExitStack() as stack:
        opening = asyncio.create_task(_open_before_timeout(run, address, stack))
        try:
            yield ExperimentWriter(run, address, opening)
        finally:
            opening.cancel()
            # This block cancelled the task; the writer reports a failed opening.
            with suppress(asyncio.CancelledError, Exception):
                await opening


async def _open_before_timeout(run: LiveRun, address: DatasetAddress, stack: AsyncExitStack) -> _PlatformExperiment:
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            return await _open_on_platform(run, address, stack)
    except TimeoutError:
        raise SourceUnavailable(f"the dataset was not read within {OPEN_TIMEOUT_S:g} s") from None


async def _open_on_platform(run: LiveRun, address: DatasetAddress, stack: AsyncExitStack) -> _PlatformExperiment:
    context = run.context
    platform = await stack.enter_async_context(
        open_experiment_platform(context.config, address.scheme, context.environment)
    )
    dataset = await platform.datasets.find(address.dataset)
    if dataset is None:
        raise ConfigError(
            f"{platform.name} has no dataset {address.dataset!r}; to create it, run `lookout gold push`"
        )
    cases = frozenset(case.id for case in context.suite.cases)
    examples = await _load_example_ids(platform.datasets, dataset, cases)
    experiment = await platform.experiments.start(dataset, context.run_id, _build_metadata(run, None))
    unlinked = len(cases - examples.keys())
    described = RunExperiment(dataset=str(address), url=experiment.url, unlinked=unlinked)
    return _PlatformExperiment(platform, dataset, examples, described)


async def _load_example_ids(datasets: Datasets, dataset: Dataset, cases: frozenset[str]) -> Mapping[str, str]:
    """Load the example ids of ``cases``, by case id."""
    examples: dict[str, str] = {}
    async with aclosing(datasets.pull(dataset)) as entries:
        async for entry in entries:
            case_id = find_case_id(entry)
            if case_id is not None and case_id in cases:
                examples.setdefault(case_id, entry.id)
            if len(examples) == len(cases):
                break
    return examples


def _build_metadata(run: LiveRun, report: RunReport | None) -> dict[str, JsonValue]:
    """Build the metadata that the platform uses to filter and compare experiments.

    ``report`` is ``None`` until the run has ended.
    """
    context = run.context
    metadata: dict[str, JsonValue] = {
        "run_id": context.run_id,
        "target": context.target.name,
        "environment": context.target.environment.value,
        "commit": run.commit,
        "suite": context.suite.name,
        "suite_sha256": context.suite.sha256,
        "judge": list(context.judge.models),
        "lookout": version("lookout-monitor"),
    }
    if report is not None:
        metadata |= {
            "verdict": report.verdict.value,
            "weighted": report.scores.weighted.value,
            "flat": report.scores.flat.value,
        }
    return metadata
