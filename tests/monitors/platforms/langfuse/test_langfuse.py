"""Tests that apply only to Langfuse: its keys, human-made items, invalid scores, late traces, older servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from monitors.errors import ConfigError, SourceUnavailable
from monitors.facts.agent_trace import read_trace
from monitors.platforms.langfuse.client import load_langfuse_keys
from monitors.platforms.langfuse.items import DatasetItem, build_example_from_item, build_item_from_example
from monitors.platforms.langfuse.platform import open_langfuse
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.platform import Dataset, Example, Platform
from tests.monitors.platforms.backends import LangfuseBackend, no_pause
from tests.monitors.platforms.test_contract import NAME, ROWS, an_experiment, case, id_of, pulled, row
from tests.servers.langfuse import PROJECT_ID, PUBLIC, SECRET, LangfuseServer

KEYS = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}


@pytest.fixture
def langfuse() -> Iterator[LangfuseBackend]:
    made = LangfuseBackend()
    with made.server:
        yield made


@pytest.fixture
def server(langfuse: LangfuseBackend) -> LangfuseServer:
    return langfuse.server


WRONG_KEYS = [
    ({"production_project": "staging", "project": "eval"}, KEYS, "belong to the production project 'staging'"),
    ({"production_project": PROJECT_ID}, KEYS, "langfuse.production_project: the keys in LANGFUSE_PUBLIC_KEY"),
    ({"project": "eval"}, KEYS, "belong to 'staging' (clangfuse0staging), not to 'eval'. Lookout wrote nothing"),
    ({}, {}, "langfuse.public_key_env: the environment variable LANGFUSE_PUBLIC_KEY is missing or empty"),
    (
        {"secret_key_env": "MY_KEY"},
        KEYS,
        "langfuse.secret_key_env: the environment variable MY_KEY is missing or empty",
    ),
    (
        {},
        KEYS | {"LANGFUSE_SECRET_KEY": "sk-lf-old"},
        "HTTP 401: Invalid credentials. Confirm the host.. Check that the k",
    ),
]


@pytest.mark.parametrize(("changes", "environment", "said"), WRONG_KEYS)
async def test_keys_that_are_not_the_projects_own_are_refused_first(
    langfuse: LangfuseBackend, changes: dict[str, Any], environment: dict[str, str], said: str
) -> None:
    """The keys are checked before any other request.

    Keys of production, keys of another project, invalid keys and missing keys are rejected.
    """

    async def opened() -> None:
        settings = langfuse.settings(**changes)
        async with open_langfuse(settings, load_langfuse_keys(settings, environment), langfuse.now, no_pause):
            raise AssertionError("opened")

    with pytest.raises(ConfigError) as caught:
        await opened()
    assert said in str(caught.value)
    assert "sk-lf" not in str(caught.value)
    assert {path for _method, path in langfuse.server.requests} <= {"/api/public/projects"}


def test_one_project_cannot_be_both() -> None:
    """Settings that name one project for both production and evaluations raise `ValueError`."""
    with pytest.raises(ValueError, match="the project for evaluations"):
        LangfuseSettings(project="live", production_project="live")


async def test_keys_are_not_sent_where_an_address_leads(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """If the server redirects to another host, the error names this host, and no key is sent to it."""
    server.leads_to = "https://eu.example.com/api/public/projects"
    with pytest.raises(ConfigError, match=r"redirects to eu\.example\.com\. Lookout does not send keys"):
        async with langfuse.connect():
            raise AssertionError("opened")


async def test_a_server_that_hangs_is_given_up(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """If the server repeatedly does not respond before the deadline, the error states the deadline."""
    async with langfuse.connect(request_deadline_s=0.05) as platform:
        server.fates = repeat("hang")
        with pytest.raises(SourceUnavailable, match=r"no answer within 0\.05 s"):
            await platform.datasets.find("golden")


PEOPLE = [
    ({"input": "Is it covered?"}, {"inputs": {"input": "Is it covered?"}, "outputs": None}),
    ({"input": ["a"], "expectedOutput": "yes"}, {"inputs": {"input": ["a"]}, "outputs": {"output": "yes"}}),
    ({"metadata": 3, "sourceTraceId": "t1"}, {"metadata": {"metadata": 3}, "source_trace": "t1"}),
    ({"metadata": {"_lookout": "mine"}, "expectedOutput": {}}, {"metadata": {}, "outputs": {}}),
]


@pytest.mark.parametrize(("written", "read"), PEOPLE)
def test_added_examples_of_any_shape_are_read(written: dict[str, Any], read: dict[str, Any]) -> None:
    """An item that a person created in Langfuse's web interface is read, even if its input is not an object.

    The link to its trace is read as well.
    """
    item = DatasetItem.model_validate({"id": "1", "datasetName": "golden"} | written)
    assert build_example_from_item(item).model_dump(include=set(read)) == read


def test_a_persons_change_counts_more_than_the_exact_copy() -> None:
    """If a person edited a field that Langfuse cannot store exactly, the edited value is read.

    The other fields are still read from the exact copy in the item's metadata.
    """
    body = build_item_from_example("golden", case(1, inputs={"a": "x\x00y", "n": 2**60}, metadata={"k": "\x01"}))
    body["input"] = {"a": "by hand"}
    example = build_example_from_item(DatasetItem.model_validate(body))
    assert example.inputs == {"a": "by hand"}
    assert example.metadata == {"k": "\x01"}


async def test_an_item_that_a_person_archived_is_not_read(
    langfuse: LangfuseBackend, server: LangfuseServer
) -> None:
    """An item that a person archived in Langfuse's web interface is not part of the suite."""
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.datasets.push(dataset, [case(1), case(2)])
        server.items[id_of("case-2")]["status"] = "ARCHIVED"
        assert set(await pulled(platform, dataset)) == {id_of("case-1")}


async def test_an_item_of_another_dataset_is_left_alone(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """An item of another dataset is not deleted, and writing an item with its id is an error.

    In Langfuse, an id is unique in the whole project.
    """
    async with langfuse.connect() as platform:
        first, second = [await platform.datasets.create(name, "", {}) for name in ("first", "second")]
        await platform.datasets.push(first, [case(1)])
        await platform.datasets.delete(second, [id_of("case-1")])
        assert (set(server.active()), server.requests[-1][0]) == ({id_of("case-1")}, "GET")
        with pytest.raises(SourceUnavailable, match=r"HTTP 404: The dataset item with id .* already exists in a"):
            await platform.datasets.push(second, [case(1)])


async def test_a_dataset_that_changes_while_it_is_read_is_an_error(langfuse: LangfuseBackend) -> None:
    """If a dataset changes while its pages are read, the result is an error, not an incomplete dataset."""
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.datasets.push(dataset, [case(number) for number in range(150)])
        with pytest.raises(
            SourceUnavailable, match=r"the dataset changed while Lookout read it\. Run the command again"
        ):
            await read_while_it_grows(platform, dataset)


async def read_while_it_grows(platform: Platform, dataset: Dataset) -> None:
    read = 0
    async for _example in platform.datasets.pull(dataset):
        read += 1
        if read == 1:
            await platform.datasets.push(dataset, [case(9_999)])


async def test_a_tag_is_the_moment_of_the_state_it_names(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """A tag is stored as a time on Langfuse's clock, between the last change of the dataset and the next one."""
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {"suite": "golden"})
        await platform.datasets.push(dataset, [case(1)])
        await platform.datasets.tag(dataset, "suite-aaaa")
        await platform.datasets.push(dataset, [case(2)])
    (moment,) = server.datasets[NAME]["metadata"]["_lookout"]["tags"].values()
    before, after = (server.items[id_of(name)]["updatedAt"] for name in ("case-1", "case-2"))
    assert before.rstrip("Z") < moment < after.rstrip("Z")


async def test_a_row_carries_what_langfuse_makes_an_experiment_of(
    langfuse: LangfuseBackend, server: LangfuseServer
) -> None:
    """Each row of an experiment is one span, which is stored separately from production traffic.

    The span states the experiment, the dataset, the item, the metadata and the failure.
    """
    async with langfuse.connect() as platform:
        url = await an_experiment(platform, 0.5)
    spans = server.attributes()
    identity = url.rpartition("=")[2]
    assert url == f"{server.url}/project/{PROJECT_ID}/experiments/results?baseline={identity}"
    assert {span["langfuse.experiment.id"] for span in spans} == {identity}
    assert {span["langfuse.experiment.item.id"] for span in spans} == set(server.items)
    assert {span["langfuse.experiment.dataset.id"] for span in spans} == {server.datasets[NAME]["id"]}
    assert {span["langfuse.experiment.metadata.commit"] for span in spans} == {"abc"}
    assert {span["langfuse.environment"] for span in spans} == {"lookout"}
    failed = [span for span in spans if span.get("langfuse.observation.level") == "ERROR"]
    assert [span["langfuse.observation.status_message"] for span in failed] == [row(2).error] * 2
    assert sorted(span["status"]["code"] for span in server.spans.values()) == [1] * 5 + [2] * 2
    roots = {span["langfuse.experiment.item.root_observation_id"] for span in spans}
    assert {score["observationId"] for score in server.scores.values()} <= roots


async def test_a_case_asked_again_is_in_the_same_trace(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """In an experiment, an item has one trace. Repeats are child spans of the first span, with their own scores."""
    rows = [row(0).model_copy(update={"repeat": repeat}) for repeat in range(3)]
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.experiments.write(await platform.experiments.start(dataset, "run-1", {"commit": None}), rows)
    spans = list(server.spans.values())
    assert [span["name"] for span in spans] == ["case-0", "case-0 (2)", "case-0 (3)"]
    assert len({span["traceId"] for span in spans}) == 1
    assert [span.get("parentSpanId") for span in spans] == [None, spans[0]["spanId"], spans[0]["spanId"]]
    assert len(langfuse.scores()) == 2 * len({score["observationId"] for score in server.scores.values()}) == 6
    assert not [name for span in server.attributes() for name in span if name.endswith("commit")]


async def test_scores_that_fail_alone_are_written_again_alone(
    langfuse: LangfuseBackend, server: LangfuseServer
) -> None:
    """If Langfuse could not store some scores of a batch, only these are sent again until all are stored."""
    server.score_fates["factual"] = [503, 201, 429, 500]
    async with langfuse.connect() as platform:
        await an_experiment(platform, 0.5)
    assert len(server.scores) == len(langfuse.scores()) > ROWS
    assert len([path for _method, path in server.requests if path.endswith("/ingestion")]) > 1


async def test_a_score_that_langfuse_refuses_is_named(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """A score that Langfuse rejects is an error with its name, even if the response to the batch was 207."""
    server.score_fates["note"] = [400]
    async with langfuse.connect() as platform:
        with pytest.raises(SourceUnavailable, match="writing score 'note': HTTP 400"):
            await an_experiment(platform, 0.5)


async def test_large_rows_are_sent_in_several_requests(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """No request is larger than Langfuse's limit: rows of half a megabyte are sent two at a time."""
    rows = [row(number).model_copy(update={"inputs": {"text": "x" * 450_000}}) for number in range(9)]
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.experiments.write(await platform.experiments.start(dataset, "run-1", {}), rows)
    assert len([path for _method, path in server.requests if path.endswith("/traces")]) == 5
    assert langfuse.rows() == 9


async def test_an_older_langfuse_has_datasets_and_no_experiments(
    langfuse: LangfuseBackend, server: LangfuseServer
) -> None:
    """With Langfuse version 3, datasets work. Experiments and traces raise an error and write nothing.

    The error names the version that they need.
    """
    server.version = "3.172.1"
    async with langfuse.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.datasets.push(dataset, [case(1)])
        with pytest.raises(ConfigError, match=r"version 3\.172\.1; an experiment needs version 4"):
            await platform.experiments.start(dataset, "run-1", {})
        with pytest.raises(ConfigError, match="reading a trace needs version 4"):
            await platform.traces.read("t1")
    assert langfuse.rows() == 0


def observations(parts: int, *, ended: bool = True) -> list[dict[str, Any]]:
    """Return the observations of a trace: a root and ``parts`` children.

    If ``ended`` is false, the root has no end time.
    """
    start, end = "2026-11-23T09:00:00.000Z", "2026-11-23T09:00:03.000Z"
    root = {"id": "root", "parentObservationId": None, "startTime": start, "endTime": end if ended else None}
    return [root] + [
        {"id": f"part-{number}", "parentObservationId": "root", "startTime": start, "endTime": end}
        for number in range(parts)
    ]


READINGS = {
    "whole": (observations(2), [], (3, True)),
    "three pages": (observations(250), [], (251, True)),
    "in parts": (observations(2), [1, 2], (3, True)),
    "late": (observations(2), [0, 1], (3, True)),
    "its root has not ended": (observations(2, ended=False), [], (3, False)),
}


@pytest.mark.parametrize(("stored", "late", "read"), READINGS.values(), ids=READINGS)
async def test_a_trace_is_read_until_two_readings_agree(
    langfuse: LangfuseBackend, stored: list[dict[str, Any]], late: list[int], read: tuple[int, bool]
) -> None:
    """An incomplete trace is read again until two readings agree. A trace that never becomes complete is marked."""
    langfuse.server.observations["t1"], langfuse.server.late = stored, list(late)
    async with langfuse.connect() as platform:
        trace = await platform.traces.read("t1")
    assert trace is not None
    assert (len(trace.runs), trace.complete) == read
    assert trace.url == f"{langfuse.server.url}/project/{PROJECT_ID}/traces/t1"


async def test_the_steps_and_the_reply_of_a_trace_are_read(langfuse: LangfuseBackend) -> None:
    """A Langfuse trace is read like a LangSmith trace: tool calls are steps, the root has question and reply."""
    root, part = observations(1)
    question, reply = {"messages": [{"role": "user", "content": "Is it covered?"}]}, {"answer": "24"}
    root |= {"type": "AGENT", "name": "bot", "input": json.dumps(question), "output": json.dumps(reply)}
    part |= {"type": "TOOL", "name": "search", "input": "24", "output": None, "usageDetails": {"total": 7}}
    langfuse.server.observations["t1"] = [root, part]
    async with langfuse.connect() as platform:
        trace = await platform.traces.read("t1")
    assert trace is not None
    path = read_trace(trace.runs)
    assert path is not None
    assert [(step.name, step.tokens) for step in path.steps] == [("search", 7)]
    by_root = {run["is_root"]: run for run in trace.runs}
    assert (by_root[True]["inputs"], by_root[True]["outputs"]) == (question, reply)
    assert by_root[False]["inputs"] == {"input": "24"}


async def test_a_trace_that_is_not_there_is_none(langfuse: LangfuseBackend) -> None:
    """Reading the id of a trace that does not exist returns ``None``."""
    async with langfuse.connect() as platform:
        assert await platform.traces.read("t9") is None


async def test_a_pause_is_as_long_as_langfuse_asks(langfuse: LangfuseBackend, server: LangfuseServer) -> None:
    """After a rate limit, Lookout waits as long as the Retry-After header states. Without a header, pauses grow."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with langfuse.connect(pause) as platform:
        server.fates = chain(["429 after 41", "429", "503"], repeat("ok"))
        assert await platform.datasets.find("golden") is None
    assert pauses == [41, 2, 4]


def test_an_example_needs_no_extra_where_langfuse_holds_it_as_it_is() -> None:
    """The metadata of an item gets one additional key, ``_lookout``.

    The key contains only what Langfuse has no field for.
    """
    metadata = build_item_from_example("golden", case(1, metadata={"severity": 3}))["metadata"]
    assert metadata == {"severity": 3, "_lookout": {"splits": '["train"]', "no_trace": True}}
    assert build_item_from_example("golden", Example(id="a", inputs={}))["status"] == "ACTIVE"
