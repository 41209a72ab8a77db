"""Test that LangSmith's SDK writes experiments completely, for their dataset, and without duplicates."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from monitors.errors import SourceUnavailable
from monitors.platforms.langsmith.experiments import make_run_id
from monitors.platforms.langsmith.project import open_langsmith
from monitors.platforms.platform import Dataset, Experiment, ExperimentRow, Score
from monitors.platforms.settings import LangSmithSettings
from tests.servers.langsmith_datasets import TENANT
from tests.servers.langsmith_experiments import LangSmithExperimentServer
from tests.soak.soak_experiments import live_through

KEY = "lsv2_pt_hush"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOLD = Dataset(id="cccccccc-2222-4333-8444-555555555555", name="gold", url="")
OTHER = GOLD.model_copy(update={"id": "dddddddd-2222-4333-8444-555555555555", "name": "other"})
ABOUT = {"commit": "a1b2c3d", "judge": ["claude"], "suite_sha256": "f" * 64}


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "API_KEY", "WORKSPACE_ID", "PROFILE", "CONFIG_FILE"):
        monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[LangSmithExperimentServer]:
    with LangSmithExperimentServer(key=KEY) as started:
        yield started


def row(number: int, *, repeat: int = 0, value: float = 1.0, error: str | None = None) -> ExperimentRow:
    """Return one result of a case, with two scores."""
    start = NOON + timedelta(seconds=number)
    return ExperimentRow(
        example_id=f"eeeeeeee-2222-4333-8444-{number:012}",
        case_id=f"case-{number}",
        repeat=repeat,
        inputs={"question": "How long?"},
        outputs=None if error else {"answer": "24 months"},
        error=error,
        started_at=start,
        ended_at=start + timedelta(seconds=2),
        scores=(Score(key="lookout_correct", value=value), Score(key="lookout_factual", value=value, comment="c")),
    )


class Waits:
    """A sleep that returns at once and records its durations."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked_s.append(seconds)


async def write(
    server: LangSmithExperimentServer,
    rows: Sequence[ExperimentRow],
    *,
    dataset: Dataset = GOLD,
    sleep: Waits | None = None,
) -> Experiment:
    """Open LangSmith again and write a whole experiment, as a new process does."""
    settings = LangSmithSettings(api_url=server.url)
    async with open_langsmith(settings, KEY, sleep or Waits()) as platform:
        experiment = await platform.experiments.start(dataset, "run-1", ABOUT)
        await platform.experiments.write(experiment, rows)
        await platform.experiments.finish(experiment)
    return experiment


async def test_an_experiment_is_a_project_on_its_dataset_with_a_root_run_for_each_row(
    server: LangSmithExperimentServer,
) -> None:
    experiment = await write(server, [row(1), row(2, error="unreachable: nobody answers")])
    project = server.projects[experiment.id]
    assert (project["reference_dataset_id"], project["name"]) == (GOLD.id, "run-1")
    assert project["extra"] == {"metadata": ABOUT}
    assert datetime.fromisoformat(project["end_time"]) == NOON + timedelta(seconds=4)
    place = f"http://localhost/o/{TENANT}/datasets/{GOLD.id}/compare"
    assert experiment.url == f"{place}?selectedSessions={experiment.id}"
    right, silent = (server.runs[make_run_id(experiment.id, f"case-{number}", 0)] for number in (1, 2))
    assert right["reference_example_id"] == row(1).example_id
    assert (right["outputs"], right["error"]) == ({"answer": "24 months"}, None)
    assert right["trace_id"] == right["id"]
    assert "parent_run_id" not in right
    assert datetime.fromisoformat(right["end_time"]) - datetime.fromisoformat(right["start_time"]) == timedelta(
        seconds=2
    )
    assert (silent["outputs"], silent["error"]) == (None, "unreachable: nobody answers")
    assert server.scores(right["id"]) == {"lookout_correct": 1, "lookout_factual": 1}
    assert server.extended == []


async def test_written_again_nothing_is_there_twice_and_what_changed_replaces(
    server: LangSmithExperimentServer,
) -> None:
    """A second write of an experiment creates no duplicates and replaces changed rows.

    A run that is resumed asks the questions without an answer again, so their rows change.
    """
    first = await write(server, [row(1), row(2, error="timeout"), row(1, repeat=1)])
    second = await write(server, [row(1), row(2, value=0.0), row(1, repeat=1)])
    assert (first, len(server.projects), len(server.runs), len(server.feedback)) == (second, 1, 3, 6)
    answered = server.runs[make_run_id(first.id, "case-2", 0)]
    assert (answered["outputs"], answered["error"]) == ({"answer": "24 months"}, None)
    assert server.scores(answered["id"]) == {"lookout_correct": 0, "lookout_factual": 0}


async def test_a_project_of_that_name_that_is_no_experiment_on_the_dataset_is_left_alone(
    server: LangSmithExperimentServer,
) -> None:
    await write(server, [row(1)], dataset=OTHER)
    with pytest.raises(
        SourceUnavailable, match="a project 'run-1' already exists, but it is not an experiment on 'gold'"
    ):
        await write(server, [row(1)])
    assert len(server.runs) == 1


LIMITS = [
    ({}, [1.0], ""),
    ({"Retry-After": "7"}, [7.0], ""),
    ({"Retry-After": "3600"}, [], "HTTP 429. The server requests a wait of 3600 s"),
]


@pytest.mark.parametrize(("headers", "waits", "problem"), LIMITS)
@pytest.mark.parametrize("path", ["/sessions", "/runs", "/feedback"])
async def test_a_limit_is_waited_for_as_long_as_it_asks_and_never_without_end(
    server: LangSmithExperimentServer, path: str, headers: dict[str, str], waits: list[float], problem: str
) -> None:
    server.faults = [(path, 429, headers)]
    sleep = Waits()
    if problem:
        with pytest.raises(SourceUnavailable, match=problem):
            await write(server, [row(1)], sleep=sleep)
    else:
        await write(server, [row(1)], sleep=sleep)
        assert (len(server.runs), len(server.feedback)) == (1, 2)
    assert sleep.asked_s == waits


async def test_an_unsupported_server_feature_is_reported_at_once(server: LangSmithExperimentServer) -> None:
    server.faults = [("/runs", 501, {})]
    sleep = Waits()
    with pytest.raises(SourceUnavailable, match="writing case case-1: HTTP 501"):
        await write(server, [row(1)], sleep=sleep)
    assert sleep.asked_s == []


async def test_no_thread_and_no_unsent_item_is_left(server: LangSmithExperimentServer) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    await write(server, [row(number) for number in range(20)])
    await write(server, [row(number, value=0.5) for number in range(20)])
    left = [one.name for one in threading.enumerate() if one.ident not in before]
    assert all(name.startswith("asyncio_") for name in left), left  # the event loop's own pool
    assert (len(server.runs), len(server.feedback)) == (20, 40)
    assert {one["score"] for one in server.feedback.values()} == {0.5}


@pytest.mark.whole_only
async def test_f05_writers_that_are_killed_anywhere_leave_nothing_twice_and_lose_nothing(
    server: LangSmithExperimentServer,
) -> None:
    """If writers are killed at any point, the experiment has no duplicates and nothing is lost.

    The test runs some of the thousand random schedules of ``make soak``.
    """
    killed = [await live_through(server, seed) for seed in range(40)]
    assert sum(killed) > 20
