"""LangSmith's datasets by its SDK: pages of a fixed version out, examples in by their ids, versions tagged.

A request may be lost on its way there or on its way back, and what was written may be listed late. So nothing here
rests on what a list says: an example that is said to be there already is replaced, one that is said to be missing
is made, and the same again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from pydantic import JsonValue

from monitors.errors import SourceUnavailable
from monitors.platforms.langsmith.client import LangSmithClient, status_of
from monitors.platforms.platform import Dataset, Example, Json

PAGE: Final = 100
"""The most that LangSmith lists or takes at once; a longer page is refused."""
MOST_BYTES: Final = 4_000_000
"""Of a batch, as JSON: requests above about 20 MB are refused."""
_CONFLICT: Final = 409
_MISSING: Final = 404
_SPLITS: Final = "dataset_split"
"""The key of the metadata in which LangSmith stores the splits of an example."""


class LangSmithDatasets:
    """The datasets of the workspace that a key belongs to. See `Datasets`."""

    def __init__(self, client: LangSmithClient) -> None:
        self._client = client

    async def find(self, name: str) -> Dataset | None:
        """See `Datasets.find`."""
        return await self._client.tried(partial(self._found, name), f"finding the dataset {name!r}")

    async def _found(self, name: str) -> Dataset | None:
        try:
            return _dataset(await self._client.by_plain_client(lambda sdk: sdk.read_dataset(dataset_name=name)))
        except Exception as error:  # the SDK's errors share no type; the status tells them apart
            if status_of(error) == _MISSING:
                return None
            raise

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """See `Datasets.create`."""

        async def create_or_find() -> Dataset:
            about = {"description": description, "metadata": dict(metadata)}
            try:
                return _dataset(await self._client.by_plain_client(lambda sdk: sdk.create_dataset(name, **about)))
            except Exception as error:  # as in _found
                there = await self._found(name) if status_of(error) == _CONFLICT else None
                if there is None:
                    raise
                return there

        return await self._client.tried(create_or_find, f"making the dataset {name!r}")

    async def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """See `Datasets.pull`. All pages are of the version that was the latest when it began."""
        version = await self._version(dataset)
        offset = 0
        while True:
            ask = partial(self._page, dataset, offset, version)
            page = await self._client.tried(ask, f"reading the dataset {dataset.name!r}")
            for example in page:
                yield example
            if len(page) < PAGE:
                return
            offset += PAGE

    async def _page(self, dataset: Dataset, offset: int, version: datetime | None) -> list[Example]:
        """So many examples from ``offset``. The SDK would go on to further pages, without ours to try again."""
        as_of = {"as_of": version.isoformat()} if version else {}
        listing = self._client.sdk.list_examples(dataset_id=dataset.id, limit=PAGE, offset=offset, **as_of)
        page = list[Example]()
        async for example in listing:
            page.append(_example(example))
            if len(page) == PAGE:
                break
        await listing.aclose()
        return page

    async def _version(self, dataset: Dataset) -> datetime | None:
        """The latest version; ``None`` for a dataset that never had an example."""

        async def latest() -> datetime | None:
            def read(sdk: Any) -> datetime:
                return sdk.read_dataset_version(dataset_id=dataset.id, tag="latest").as_of

            try:
                return await self._client.by_plain_client(read)
            except Exception as error:  # as in _found
                if status_of(error) == _MISSING:
                    return None
                raise

        return await self._client.tried(latest, f"asking for the version of the dataset {dataset.name!r}")

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """See `Datasets.push`. Those with a time of change are known to be there, so they are replaced first."""
        for known in (True, False):
            chosen = [one for one in examples if (one.modified_at is not None) is known]
            for batch in _batches(chosen):
                write = partial(self._replace if known else self._create, dataset, batch)
                await self._client.tried(write, f"writing to the dataset {dataset.name!r}")

    async def _create(self, dataset: Dataset, batch: Sequence[Example]) -> None:
        """Make the examples. Where some are there already, those are replaced: as listed, else found by halving."""
        made = [*map(_to_create, batch)]
        if await self._done(lambda sdk: sdk.create_examples(dataset_id=dataset.id, examples=made), but=_CONFLICT):
            return
        if len(batch) == 1:
            await self._write_over(dataset, batch[0])
            return
        listed = await self._listed(dataset, [one.id for one in batch])
        known = [one for one in batch if one.id in listed]
        if known:
            await self._replace(dataset, known)
            parts = [[one for one in batch if one.id not in listed]]
        else:
            parts = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        for part in parts:
            if part:
                await self._create(dataset, part)

    async def _listed(self, dataset: Dataset, ids: Sequence[str]) -> set[str]:
        """Those that are listed already: others may be there too."""
        listing = self._client.sdk.list_examples(dataset_id=dataset.id, id=list(ids), limit=PAGE, select=["id"])
        return {str(example.id) async for example in listing}

    async def _write_over(self, dataset: Dataset, example: Example) -> None:
        """Replace one that cannot be made since it is there."""
        count = await self._updated(dataset, [example])
        if count == 0:
            raise SourceUnavailable(
                f"dataset {dataset.name!r}: the example {example.id} can neither be made nor replaced: LangSmith "
                "says that it exists and that it does not; was it deleted, or is it of another dataset?"
            )

    async def _replace(self, dataset: Dataset, batch: Sequence[Example]) -> None:
        """Replace the examples. Where one is missing, each is written alone, and made if it is gone."""
        if await self._updated(dataset, batch) == len(batch):
            return
        for example in batch:
            if await self._updated(dataset, [example]) == 0:
                await self._create(dataset, [example])

    async def _updated(self, dataset: Dataset, batch: Sequence[Example]) -> int:
        """How many were there to be replaced; 0 where LangSmith says that one is missing."""
        changed = [*map(_to_update, batch)]
        answer = await self._done(
            lambda sdk: sdk.update_examples(dataset_id=dataset.id, updates=changed), but=_MISSING
        )
        return int(cast("dict[str, Any]", answer).get("count", len(batch))) if isinstance(answer, dict) else 0

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """See `Datasets.delete`."""
        doing = f"deleting from the dataset {dataset.name!r}"
        for start in range(0, len(ids), PAGE):
            batch = ids[start : start + PAGE]
            await self._client.tried(partial(self._delete, batch), doing)

    async def _delete(self, batch: Sequence[str]) -> None:
        if await self._done(lambda sdk: sdk.delete_examples(list(batch)), but=_MISSING) or len(batch) == 1:
            return
        for one in batch:
            await self._delete([one])

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """See `Datasets.tag`. A tag that stands on an older version is moved."""
        version = await self._version(dataset)
        if version is None:
            return
        doing = f"tagging the dataset {dataset.name!r}"

        def move(sdk: Any) -> None:
            sdk.update_dataset_tag(dataset_id=dataset.id, as_of=version, tag=tag)

        await self._client.tried(partial(self._client.by_plain_client, move), doing)

    async def _done(self, call: Callable[[Any], Any], *, but: int) -> Any:
        """What a call of the plain client returns, True for nothing; False where its status is ``but``."""
        try:
            answer = await self._client.by_plain_client(call)
        except Exception as error:  # as in _found
            if status_of(error) == but:
                return False
            raise
        return True if answer is None else answer


def _batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Batches of a page at most, and of so many bytes unless one example alone has more."""
    batch, size = list[Example](), 0
    for example in examples:
        more = len(json.dumps([example.inputs, example.outputs, example.metadata], ensure_ascii=False).encode())
        if batch and (len(batch) == PAGE or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(example)
        size += more
    if batch:
        yield batch


def _to_create(example: Example) -> dict[str, Any]:
    source = {"source_run_id": example.source_trace} if example.source_trace else {}
    return {"reference_outputs": example.outputs, **_written(example), **source}


def _to_update(example: Example) -> dict[str, Any]:
    return {"outputs": example.outputs, **_written(example)}


def _written(example: Example) -> dict[str, Any]:
    splits = {"split": list(example.splits)} if example.splits else {}
    return {"id": example.id, "inputs": example.inputs, "metadata": example.metadata, **splits}


def _example(found: Any) -> Example:
    metadata = cast("Json", dict(found.metadata or {}))
    splits = metadata.pop(_SPLITS, None)
    named = splits if isinstance(splits, list) else [splits]
    return Example(
        id=str(found.id),
        inputs=found.inputs or {},
        outputs=found.outputs,
        metadata=metadata,
        splits=tuple(split for split in named if isinstance(split, str)),
        source_trace=str(found.source_run_id) if found.source_run_id else None,
        modified_at=_in_utc(found.modified_at or found.created_at),
    )


def _in_utc(time: datetime) -> datetime:
    """LangSmith leaves the zone out now and then."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _dataset(found: Any) -> Dataset:
    url = str(found.url or "")
    return Dataset(
        id=str(found.id), name=found.name, url=url, entries_url=f"{url}/e/", metadata=found.metadata or {}
    )
