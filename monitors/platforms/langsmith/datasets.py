"""Read and write LangSmith's datasets with its SDK. Reading uses one fixed version of the dataset.

Writing identifies an example by its id.

A request or its response may be lost, and LangSmith may list a new example late. Writing therefore does not rely on
what LangSmith lists: an example that exists is replaced, a missing example is created, and a repeated write changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from pydantic import JsonValue

from monitors.errors import SourceUnavailable
from monitors.platforms.langsmith.client import LangSmithClient, find_http_status
from monitors.platforms.platform import Dataset, Example, Json, ReadingCheck

PAGE_SIZE: Final = 100
"""Maximum number of examples that LangSmith lists or accepts at once."""
MAX_BATCH_BYTES: Final = 4_000_000
"""Maximum size in bytes of a batch as JSON. LangSmith refuses requests of more than about 20 MB."""
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_SPLITS: Final = "dataset_split"
"""The key of the metadata in which LangSmith stores the splits of an example."""


class LangSmithDatasets:
    """The datasets in the workspace of a key. See `Datasets`."""

    def __init__(self, client: LangSmithClient) -> None:
        self._client = client

    async def find(self, name: str) -> Dataset | None:
        """See `Datasets.find`."""
        return await self._client.call_with_retries(
            partial(self._read_dataset, name), f"finding the dataset {name!r}"
        )

    async def _read_dataset(self, name: str) -> Dataset | None:
        try:
            return _build_dataset(
                await self._client.call_sync_client_in_thread(lambda sdk: sdk.read_dataset(dataset_name=name))
            )
        except Exception as error:  # the SDK's errors have no common type, only the status tells them apart
            if find_http_status(error) == _NOT_FOUND:
                return None
            raise

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """See `Datasets.create`."""

        async def create_or_find() -> Dataset:
            fields = {"description": description, "metadata": dict(metadata)}
            try:
                return _build_dataset(
                    await self._client.call_sync_client_in_thread(lambda sdk: sdk.create_dataset(name, **fields))
                )
            except Exception as error:  # as in _read_dataset
                existing = await self._read_dataset(name) if find_http_status(error) == _CONFLICT else None
                if existing is None:
                    raise
                return existing

        return await self._client.call_with_retries(create_or_find, f"creating the dataset {name!r}")

    async def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """See `Datasets.pull`. All pages are read from the version that was the latest when reading started."""
        version = await self._find_latest_version_time(dataset)
        check = ReadingCheck(dataset.name)
        offset = 0
        while True:
            read_page = partial(self._read_page, dataset, offset, version)
            page = await self._client.call_with_retries(read_page, f"reading the dataset {dataset.name!r}")
            for example in page:
                check.add(example.id)
                yield example
            if len(page) < PAGE_SIZE:
                check.raise_if_examples_missing(dataset.size)
                return
            offset += PAGE_SIZE

    async def _read_page(self, dataset: Dataset, offset: int, version: datetime | None) -> list[Example]:
        """Return the page of examples after the first ``offset`` examples."""
        as_of = {"as_of": version.isoformat()} if version else {}
        listing = self._client.sdk.list_examples(dataset_id=dataset.id, limit=PAGE_SIZE, offset=offset, **as_of)
        page = list[Example]()
        async for example in listing:
            page.append(_build_example(example))
            if len(page) == PAGE_SIZE:
                break
        await listing.aclose()
        return page

    async def _find_latest_version_time(self, dataset: Dataset) -> datetime | None:
        """Return the time of the latest version, or ``None`` if the dataset never had an example."""

        async def read_latest_version_time() -> datetime | None:
            def read_latest_time_with_sdk(sdk: Any) -> datetime:
                return sdk.read_dataset_version(dataset_id=dataset.id, tag="latest").as_of

            try:
                return await self._client.call_sync_client_in_thread(read_latest_time_with_sdk)
            except Exception as error:  # as in _read_dataset
                if find_http_status(error) == _NOT_FOUND:
                    return None
                raise

        return await self._client.call_with_retries(
            read_latest_version_time, f"asking for the version of the dataset {dataset.name!r}"
        )

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """See `Datasets.push`.

        Examples that are known to exist are replaced first. The other examples are then created.
        """
        for exists in (True, False):
            chosen = [example for example in examples if (example.modified_at is not None) is exists]
            for batch in _split_into_batches(chosen):
                write = partial(self._replace_or_create if exists else self._create_or_replace, dataset, batch)
                await self._client.call_with_retries(write, f"writing to the dataset {dataset.name!r}")

    async def _create_or_replace(self, dataset: Dataset, batch: Sequence[Example]) -> None:
        """Create the examples, and replace the examples that exist.

        If LangSmith refuses a batch because an example exists, this method searches LangSmith's list for the
        existing examples, and replaces them. If the list does not contain these examples yet, the batch is halved,
        and each half is written.
        """
        new_examples = [*map(_build_create_fields, batch)]
        if await self._get_result_or_false_on_status(
            lambda sdk: sdk.create_examples(dataset_id=dataset.id, examples=new_examples), ignored_status=_CONFLICT
        ):
            return
        if len(batch) == 1:
            await self._replace_example_or_raise(dataset, batch[0])
            return
        listed_ids = await self._list_existing_ids(dataset, [example.id for example in batch])
        existing = [example for example in batch if example.id in listed_ids]
        if existing:
            await self._replace_or_create(dataset, existing)
            smaller_batches = [[example for example in batch if example.id not in listed_ids]]
        else:
            smaller_batches = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        for smaller_batch in smaller_batches:
            if smaller_batch:
                await self._create_or_replace(dataset, smaller_batch)

    async def _list_existing_ids(self, dataset: Dataset, ids: Sequence[str]) -> set[str]:
        """Return the ids that LangSmith lists. New examples may be missing from the list."""
        listing = self._client.sdk.list_examples(
            dataset_id=dataset.id, id=list(ids), limit=PAGE_SIZE, select=["id"]
        )
        return {str(example.id) async for example in listing}

    async def _replace_example_or_raise(self, dataset: Dataset, example: Example) -> None:
        """Replace an example that cannot be created, because its id already exists."""
        count = await self._update_and_count_examples(dataset, [example])
        if count == 0:
            raise SourceUnavailable(
                f"dataset {dataset.name!r}: Lookout cannot create the example {example.id}, because it already "
                "exists, and cannot replace it, because LangSmith does not find it. The example may be deleted, or "
                "belong to another dataset"
            )

    async def _replace_or_create(self, dataset: Dataset, batch: Sequence[Example]) -> None:
        """Replace the examples.

        If an example does not exist yet, write each example separately and create the missing examples.
        """
        if await self._update_and_count_examples(dataset, batch) == len(batch):
            return
        for example in batch:
            if await self._update_and_count_examples(dataset, [example]) == 0:
                await self._create_or_replace(dataset, [example])

    async def _update_and_count_examples(self, dataset: Dataset, batch: Sequence[Example]) -> int:
        """Replace the examples and return their number. Return 0 if one of them does not exist."""
        changed = [*map(_build_update_fields, batch)]
        reply = await self._get_result_or_false_on_status(
            lambda sdk: sdk.update_examples(dataset_id=dataset.id, updates=changed), ignored_status=_NOT_FOUND
        )
        return int(cast("dict[str, Any]", reply).get("count", len(batch))) if isinstance(reply, dict) else 0

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """See `Datasets.delete`."""
        doing = f"deleting from the dataset {dataset.name!r}"
        for start in range(0, len(ids), PAGE_SIZE):
            batch = ids[start : start + PAGE_SIZE]
            await self._client.call_with_retries(partial(self._delete_examples_if_present, batch), doing)

    async def _delete_examples_if_present(self, batch: Sequence[str]) -> None:
        if (
            await self._get_result_or_false_on_status(
                lambda sdk: sdk.delete_examples(list(batch)), ignored_status=_NOT_FOUND
            )
            or len(batch) == 1
        ):
            return
        for example_id in batch:
            await self._delete_examples_if_present([example_id])

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """See `Datasets.tag`. An existing tag is moved from an older version to the current one."""
        version = await self._find_latest_version_time(dataset)
        if version is None:
            return
        doing = f"tagging the dataset {dataset.name!r}"

        def move_tag(sdk: Any) -> None:
            sdk.update_dataset_tag(dataset_id=dataset.id, as_of=version, tag=tag)

        await self._client.call_with_retries(partial(self._client.call_sync_client_in_thread, move_tag), doing)

    async def _get_result_or_false_on_status(self, call: Callable[[Any], Any], *, ignored_status: int) -> Any:
        """Return the result of a call.

        Return True instead of ``None``, and False for the HTTP status ``ignored_status``.
        """
        try:
            reply = await self._client.call_sync_client_in_thread(call)
        except Exception as error:  # as in _read_dataset
            if find_http_status(error) == ignored_status:
                return False
            raise
        return True if reply is None else reply


def _split_into_batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield batches of at most `PAGE_SIZE` examples and `MAX_BATCH_BYTES` bytes.

    An example with more bytes becomes a batch of its own.
    """
    batch, size = list[Example](), 0
    for example in examples:
        example_bytes = len(
            json.dumps([example.inputs, example.outputs, example.metadata], ensure_ascii=False).encode()
        )
        if batch and (len(batch) == PAGE_SIZE or size + example_bytes > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(example)
        size += example_bytes
    if batch:
        yield batch


def _build_create_fields(example: Example) -> dict[str, Any]:
    source = {"source_run_id": example.source_trace} if example.source_trace else {}
    return {"reference_outputs": example.outputs, **_build_common_fields(example), **source}


def _build_update_fields(example: Example) -> dict[str, Any]:
    return {"outputs": example.outputs, **_build_common_fields(example)}


def _build_common_fields(example: Example) -> dict[str, Any]:
    splits = {"split": list(example.splits)} if example.splits else {}
    return {"id": example.id, "inputs": example.inputs, "metadata": example.metadata, **splits}


def _build_example(stored: Any) -> Example:
    metadata = cast("Json", dict(stored.metadata or {}))
    splits = metadata.pop(_SPLITS, None)
    named = splits if isinstance(splits, list) else [splits]
    return Example(
        id=str(stored.id),
        inputs=stored.inputs or {},
        outputs=stored.outputs,
        metadata=metadata,
        splits=tuple(split for split in named if isinstance(split, str)),
        source_trace=str(stored.source_run_id) if stored.source_run_id else None,
        modified_at=_add_utc_if_zone_missing(stored.modified_at or stored.created_at),
    )


def _add_utc_if_zone_missing(time: datetime) -> datetime:
    """Return the time with a time zone. LangSmith sometimes omits the time zone, which is UTC in this case."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _build_dataset(stored: Any) -> Dataset:
    url = str(stored.url or "")
    return Dataset(
        id=str(stored.id),
        name=stored.name,
        url=url,
        entries_url=f"{url}/e/",
        metadata=stored.metadata or {},
        size=stored.example_count,
    )
