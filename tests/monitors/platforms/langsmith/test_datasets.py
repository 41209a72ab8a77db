"""Test LangSmith's datasets: the SDK reads and writes each entry once, in pages, even if requests are lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from monitors.errors import SourceUnavailable
from monitors.goldset.examples import build_example_from_case, read_case_from_example
from monitors.platforms.platform import Example
from monitors.records.cases import GoldCase
from tests.builders import gold_case
from tests.monitors.goldset.any_cases import any_suite
from tests.monitors.platforms.langsmith.pushes import (
    KEY,
    NAME,
    cases_there,
    entries,
    opened,
    plans,
    push,
    run_schedule,
)
from tests.servers.langsmith_datasets import LangSmithDatasetServer

SLICE = 25
"""The number of random schedules of faults that this test runs. `make soak` runs 1,000."""


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "API_KEY", "WORKSPACE_ID", "PROFILE", "CONFIG_FILE"):
        monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)


@pytest.fixture(scope="module")
def started() -> Iterator[LangSmithDatasetServer]:
    with LangSmithDatasetServer(key=KEY) as server:
        yield server


@pytest.fixture
def server(started: LangSmithDatasetServer) -> LangSmithDatasetServer:
    started.restart()
    return started


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(suite=any_suite())
@pytest.mark.whole_only
async def test_any_suite_comes_back_as_it_was_pushed(server: LangSmithDatasetServer, suite: list[GoldCase]) -> None:
    server.restart()
    await push(server, suite)
    assert await cases_there(server) == {case.id: case for case in suite}


async def test_pushing_again_writes_nothing_and_tags_the_version(server: LangSmithDatasetServer) -> None:
    assert await push(server, plans(3)) == 3
    first = server.dataset(NAME)["tags"]
    assert await push(server, plans(3)) == 0
    assert first == server.dataset(NAME)["tags"] == {next(iter(first)): server.dataset(NAME)["version"]}
    assert next(iter(first)).startswith("lookout-")


@pytest.mark.parametrize("multipart", [True, False], ids=["new server", "old server"])
async def test_a_changed_case_is_replaced_where_it_stands(
    server: LangSmithDatasetServer, *, multipart: bool
) -> None:
    server.multipart = multipart
    await push(server, plans(2))
    server.edit(NAME, next(iter(server.examples(NAME))), metadata=_with_split(server))
    await push(server, [gold_case("plan-0", gold="99 months"), plans(2)[1]])
    found = {read_case_from_example(entry).id: entry for entry in await entries(server)}
    assert found["plan-0"].outputs == {"gold": "99 months", "expected_refusal": False}
    assert len(found) == 2
    assert found["plan-0"].splits == ("hard",)


def _with_split(server: LangSmithDatasetServer) -> dict[str, object]:
    return next(iter(server.examples(NAME).values()))["metadata"] | {"dataset_split": ["hard"]}


async def test_pages_are_of_one_version_whatever_people_add_meanwhile(server: LangSmithDatasetServer) -> None:
    """All pages are read from one version of the dataset, although a person adds an entry meanwhile.

    Otherwise the new entry would shift the pages, and one entry would be read twice.
    """
    await push(server, plans(150))
    async with opened(server) as datasets:
        found = await datasets.find(NAME)
        assert found is not None
        ids = list[str]()
        async for entry in datasets.pull(found):
            ids.append(entry.id)
            if len(ids) == 1:
                server.add(NAME, inputs={"question": "A wig?"}, outputs={"answer": "Yes."})
    assert len(ids) == len(set(ids)) == 150


async def test_no_page_and_no_batch_has_more_than_a_hundred(server: LangSmithDatasetServer) -> None:
    """No page and no batch exceeds one hundred entries, the limit of the server."""
    assert await push(server, plans(250)) == 250
    assert len(await entries(server)) == 250


SERVER_FAULTS = [(429, {}), (429, {"Retry-After": "1"}), (500, {}), (502, {}), (503, {})]


@pytest.mark.whole_only
@pytest.mark.parametrize(("status", "headers"), SERVER_FAULTS)
@pytest.mark.parametrize("path", ["/datasets", "/info", "/examples", "/v1/platform", "/datasets/"])
async def test_temporary_faults_are_retried(
    server: LangSmithDatasetServer, path: str, status: int, headers: dict[str, str]
) -> None:
    server.faults = [(path, status, headers)] * 2
    await push(server, plans(2))
    assert len(await entries(server)) == 2


async def test_a_key_that_is_refused_is_named_and_not_shown(server: LangSmithDatasetServer) -> None:
    server.faults = [("/datasets", 401, {})]
    with pytest.raises(SourceUnavailable, match="Check that the key in LANGSMITH_API_KEY") as refused:
        await push(server, plans(1))
    assert KEY not in str(refused.value)


async def test_missing_items_are_created_again_and_deletions_happen_once(
    server: LangSmithDatasetServer,
) -> None:
    """An entry that was deleted after it was read is created again, and a second deletion is not an error."""
    await push(server, plans(3))
    async with opened(server) as datasets:
        found = await datasets.find(NAME)
        assert found is not None
        held = [entry async for entry in datasets.pull(found)]
        del server.examples(NAME)[held[0].id]
        await datasets.push(found, held)
        assert len(server.examples(NAME)) == 3
        del server.examples(NAME)[held[1].id]
        await datasets.delete(found, [entry.id for entry in held])
    assert not server.examples(NAME)


async def test_an_entry_that_is_there_and_not_listed_yet_is_replaced(server: LangSmithDatasetServer) -> None:
    """If a batch fails because an entry exists but is not listed yet, the batch is halved until the entry is found.

    The entry is then replaced.
    """
    await push(server, plans(5))
    async with opened(server) as datasets:
        found = await datasets.find(NAME)
        assert found is not None
        server.hide(NAME, next(iter(server.examples(NAME))), listings=50)
        changed = [gold_case(f"plan-{number}", gold="1 month") for number in range(9)]
        await datasets.push(found, [build_example_from_case(case, found.id) for case in changed])
    golds = {entry["outputs"]["gold"] for entry in server.examples(NAME).values()}
    assert (len(server.examples(NAME)), golds) == (9, {"1 month"})


async def test_examples_added_by_users_are_neither_changed_nor_deleted(server: LangSmithDatasetServer) -> None:
    await push(server, plans(2))
    added = server.add(NAME, inputs={"question": "A wig?"}, outputs={"answer": "Yes."}, source_run_id=_TRACE)
    await push(server, plans(1), overwrite=True, prune=True)
    (person,) = [entry for entry in await entries(server) if entry.id == added]
    assert (person.inputs, person.source_trace) == ({"question": "A wig?"}, _TRACE)
    assert len(server.examples(NAME)) == 2


_TRACE = "aaaaaaaa-2222-4333-8444-555555555555"


@pytest.mark.whole_only
@pytest.mark.parametrize("seed", range(SLICE))
async def test_a_push_that_is_killed_anywhere_is_made_whole_by_the_next(
    server: LangSmithDatasetServer, seed: int
) -> None:
    await run_schedule(server, seed)


def test_a_case_of_a_person_has_a_source() -> None:
    """A new entry is linked to the trace from which its case was made. An existing entry is not linked."""
    assert build_example_from_case(gold_case(), "d", None, _TRACE).source_trace == _TRACE
    assert build_example_from_case(gold_case(), "d", Example(id="x", inputs={}), _TRACE).source_trace is None
