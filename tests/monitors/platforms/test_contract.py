"""Test that on every platform nothing is lost or duplicated, and no error message contains a key."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, count, repeat

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from monitors.errors import MonitorError, SourceUnavailable
from monitors.platforms.platform import Dataset, Example, ExperimentRow, Json, Platform, Score
from tests.monitors.platforms.backends import BACKENDS, Backend, Killed, no_pause
from tests.tiers import scale_examples

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
NAME = "health/golden cases & more"


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Yield each platform in turn with its running server."""
    made = request.param()
    with made.server:
        yield made


@pytest.fixture
def fresh(backend: Backend) -> Iterator[Backend]:
    """Yield a platform without stored data."""
    made = type(backend)()
    with made.server:
        yield made


def id_of(name: str) -> str:
    """Return a UUID for ``name``, the format of ids on the platforms."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
objects = st.dictionaries(texts | st.just("_lookout"), values, max_size=4)
numbers = st.integers(min_value=0, max_value=10**9)
examples = st.builds(
    Example,
    id=numbers.map(str),
    inputs=objects,
    outputs=st.none() | objects,
    metadata=objects,
    splits=st.lists(texts, min_size=1, max_size=2).map(tuple),  # LangSmith puts one without a split into "base"
    source_trace=st.none() | numbers.map(lambda number: id_of(f"trace-{number}")),
)
NAMES = (f"suite-{number}" for number in count())
suites = st.lists(examples, max_size=5, unique_by=lambda example: example.id)


@settings(max_examples=scale_examples(40), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(first=suites, second=suites)
@pytest.mark.whole_only
def test_pushed_cases_come_back_whole(backend: Backend, first: list[Example], second: list[Example]) -> None:
    """Examples with any text or number are read as they were written.

    If two examples have the same id, the later one is read.
    """
    name = next(NAMES)

    async def round_trip() -> dict[str, Example]:
        async with backend.connect() as platform:
            dataset = await platform.datasets.create(name, "", {"suite": "golden"})
            await platform.datasets.push(dataset, mine(first))
            await platform.datasets.push(dataset, mine(second))
            return await pulled(platform, dataset)

    def mine(suite: list[Example]) -> list[Example]:
        return [example.model_copy(update={"id": id_of(f"{name}-{example.id}")}) for example in suite]

    expected = {example.id: example for example in chain(mine(first), mine(second))}
    assert asyncio.run(round_trip()) == expected


async def pulled(platform: Platform, dataset: Dataset) -> dict[str, Example]:
    """Return all examples by id, without ``modified_at``, which the platform sets."""
    stored = [example async for example in platform.datasets.pull(dataset)]
    assert len({example.id for example in stored}) == len(stored)
    return {example.id: example.model_copy(update={"modified_at": None}) for example in stored}


def case(number: int, **changes: object) -> Example:
    """Return a small example."""
    given: Json = {"question": f"Is claim {number} covered?"}
    values = {"id": id_of(f"case-{number}"), "inputs": given, "outputs": {"gold": "yes"}, "splits": ("train",)}
    return Example.model_validate(values | changes)


async def test_a_dataset_is_found_once_it_is_made_and_made_once(fresh: Backend) -> None:
    """A dataset is found by its name, also if the name contains slashes.

    Creating it again returns the existing one.
    """
    async with fresh.connect() as platform:
        assert await platform.datasets.find(NAME) is None
        made = await platform.datasets.create(NAME, "golden cases", {"suite": "golden"})
        assert await platform.datasets.create(NAME, "other", {}) == made
        tagged = await platform.datasets.find(NAME)
        assert tagged is not None
        assert tagged == made.model_copy(update={"size": tagged.size})
    assert made.metadata["suite"] == "golden"
    assert made.url.startswith("http")


async def test_a_removed_example_is_gone_and_can_come_back(fresh: Backend) -> None:
    """A removed example is not read, and can be pushed again. Removing a missing example is not an error."""
    async with fresh.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.datasets.push(dataset, [case(1), case(2)])
        for _ in range(2):
            await platform.datasets.delete(dataset, [id_of("case-1"), id_of("case-9")])
        assert set(await pulled(platform, dataset)) == {id_of("case-2")}
        await platform.datasets.push(dataset, [case(1)])
        assert set(await pulled(platform, dataset)) == {id_of("case-1"), id_of("case-2")}


async def test_a_tag_leaves_dataset_and_examples_as_they_are(fresh: Backend) -> None:
    """A tag changes neither metadata nor examples, and can be set again."""
    async with fresh.connect() as platform:
        made = await platform.datasets.create(NAME, "golden cases", {"suite": "golden"})
        await platform.datasets.push(made, [case(1)])
        for tag in ("suite-aaaa", "suite-bbbb", "suite-aaaa"):
            await platform.datasets.tag(made, tag)
        tagged = await platform.datasets.find(NAME)
        assert tagged is not None
        assert tagged == made.model_copy(update={"size": tagged.size})
        assert await pulled(platform, made) == {id_of("case-1"): case(1)}


async def test_many_pages_are_read_to_the_end(fresh: Backend) -> None:
    """A dataset of more than twenty pages is read completely, each example once."""
    suite = [case(number) for number in range(2_350)]
    async with fresh.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.datasets.push(dataset, suite)
        assert await pulled(platform, dataset) == {example.id: example for example in suite}


def row(number: int, score: float = 1.0) -> ExperimentRow:
    """Return the experiment row of case ``number``. Every third row has an error instead of a reply."""
    failed = number % 3 == 2
    return ExperimentRow(
        example_id=id_of(f"case-{number}"),
        case_id=f"case-{number}",
        inputs={"question": f"Is claim {number} covered?"},
        outputs=None if failed else {"answer": "yes"},
        error="no answer within 30 s" if failed else None,
        started_at=NOON + timedelta(seconds=number),
        ended_at=NOON + timedelta(seconds=number + 1),
        scores=() if failed else (Score(key="factual", value=score), Score(key="note", comment="short")),
        metadata={"severity": 2},
    )


ROWS = 7
SCORES = 2 * sum(number % 3 != 2 for number in range(ROWS))


async def an_experiment(platform: Platform, score: float) -> str:
    """Create a dataset, write one complete experiment over seven cases, and return the experiment's URL."""
    dataset = await platform.datasets.create(NAME, "", {})
    await platform.datasets.push(dataset, [case(number) for number in range(ROWS)])
    experiment = await platform.experiments.start(dataset, "run-1", {"commit": "abc"})
    await platform.experiments.write(experiment, [row(number, score) for number in range(ROWS)])
    await platform.experiments.finish(experiment)
    return experiment.url


async def test_an_experiment_written_again_is_the_same_one(fresh: Backend) -> None:
    """If an experiment is written twice, each row and score exists once. A changed score replaces the old one.

    A second experiment name creates another experiment.
    """
    async with fresh.connect() as platform:
        first, again = await an_experiment(platform, 0.25), await an_experiment(platform, 0.75)
        assert (first == again, fresh.rows(), len(fresh.scores())) == (True, ROWS, SCORES)
        assert {value for key, value, _comment in fresh.scores() if key == "factual"} == {0.75}
        assert {said for key, _value, said in fresh.scores() if key == "note"} == {"short"}
        dataset = await platform.datasets.create(NAME, "", {})
        await platform.experiments.write(await platform.experiments.start(dataset, "run-2", {}), [row(0)])
        assert fresh.rows() == ROWS + 1


FATES = ("ok", "ok", "ok", "lost before", "lost after", "503", "429", "429 after 7")
SCHEDULES = 60


@pytest.mark.parametrize("part", range(4))
@pytest.mark.a_slice(4)
@pytest.mark.whole_only
def test_kills_and_retries_leave_each_thing_once(backend: Backend, part: int) -> None:
    """After kills and after lost or refused requests, each example, row and score exists exactly once."""
    for seed in range(part, SCHEDULES, 4):
        chance = random.Random(seed)
        made = type(backend)()
        with made.server:
            deaths = asyncio.run(_until_done(made, chance))
            assert (made.rows(), len(made.scores()), deaths <= 40) == (ROWS, SCORES, True), seed


async def _until_done(backend: Backend, chance: random.Random) -> int:
    """Run an experiment in new processes until one completes, and return the number of failed processes.

    A process may be killed while it waits for a retry, or end with `SourceUnavailable`.
    """

    async def pause(seconds: float) -> None:
        if chance.random() < 0.3:
            raise Killed
        await no_pause(seconds)

    for deaths in range(41):
        steady = deaths == 40
        fates = repeat("ok") if steady else iter(lambda: chance.choice(FATES), None)
        backend.suffer(fates)
        try:
            async with backend.connect(no_pause if steady else pause) as platform:
                await an_experiment(platform, 0.5)
                backend.suffer(repeat("ok"))
                dataset = await platform.datasets.create(NAME, "", {})
                assert await pulled(platform, dataset) == {id_of(f"case-{n}"): case(n) for n in range(ROWS)}
                return deaths
        except (Killed, SourceUnavailable):
            continue
    raise AssertionError("never done")


PROBLEMS = [
    (chain(["500"], repeat("500")), "HTTP 500"),
    (repeat("429 after 4000"), "requests a wait of 4000 s"),
    (repeat("lost after"), "Error"),
    (repeat("400"), "HTTP 400"),
    (repeat("401"), "HTTP 401"),
]


@pytest.mark.parametrize(("fates", "said"), PROBLEMS, ids=[said for _fates, said in PROBLEMS])
async def test_a_failure_says_what_happened_and_no_key(fresh: Backend, fates: Iterator[str], said: str) -> None:
    """A permanent failure is one error that names the platform and the status but contains no key."""
    async with fresh.connect() as platform:
        dataset = await platform.datasets.create(NAME, "", {})
        fresh.suffer(fates)
        with pytest.raises(MonitorError) as caught:
            await platform.datasets.push(dataset, [case(1)])
    message = str(caught.value)
    assert said in message
    assert fresh.name in message.lower()
    assert not [secret for secret in fresh.secrets if secret in message]
