"""Read and write the datasets of a Langfuse project.

Langfuse has no splits and no version tags, but can return a dataset as it was at a past time. Splits are therefore
stored with each item (see `items`). A tag is a time on Langfuse's own clock. The tags are stored in the dataset's
metadata under ``_lookout.tags``. ``GET /api/public/dataset-items?version=MOMENT`` returns the items of a tag.

Removed examples are archived, because deleting an item would delete its results in past experiments. Archived items
are not read. Writing an item with the same id restores it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from pydantic import JsonValue

from monitors.platforms.langfuse.client import API, LangfuseClient, LangfuseRecord
from monitors.platforms.langfuse.items import (
    LOOKOUT_KEY,
    DatasetItem,
    build_example_from_item,
    build_item_from_example,
    wrap_as_json_object,
)
from monitors.platforms.platform import Dataset, Example, Json, ReadingCheck

PAGE_SIZE: Final = 100
"""Maximum number of items that Langfuse returns on one page."""
MAX_CONCURRENT: Final = 4
MAX_TAGS: Final = 100
"""Maximum number of tags of a dataset. If there are more tags, the oldest tags are dropped."""
_DATASETS: Final = f"{API}/v2/datasets"
_ITEMS: Final = f"{API}/dataset-items"


class _StoredDataset(LangfuseRecord):
    id: str
    name: str
    description: str | None = None
    metadata: JsonValue = None
    updated_at: datetime


class _PageInfo(LangfuseRecord):
    total_items: int
    total_pages: int


class _ItemPage(LangfuseRecord):
    data: tuple[DatasetItem, ...]
    meta: _PageInfo


class LangfuseDatasets:
    """The `Datasets` of a Langfuse project."""

    def __init__(self, client: LangfuseClient) -> None:
        self._client = client

    async def find(self, name: str) -> Dataset | None:
        """Return the dataset with this name, or ``None`` if there is no such dataset."""
        stored = await self._fetch_stored_dataset(name)
        return None if stored is None else self._build_dataset(stored)

    async def create(self, name: str, description: str, metadata: Mapping[str, JsonValue]) -> Dataset:
        """Create a dataset, or return the existing dataset with this name unchanged."""
        existing = await self.find(name)
        return existing or self._build_dataset(await self._write_dataset(name, description, dict(metadata)))

    async def pull(self, dataset: Dataset) -> AsyncGenerator[Example]:
        """Yield all active items, page by page.

        Raises `SourceUnavailable` if items are missing or repeated, for example because the dataset was changed
        during reading.
        """
        number, pages, total = 1, 1, None
        check = ReadingCheck(dataset.name)
        while number <= pages:
            page = await self._read_page(dataset, number)
            if total not in (None, page.meta.total_items):
                raise self._client.build_unavailable_error(
                    f"reading dataset {dataset.name!r}",
                    "the dataset changed while Lookout read it. Run the command again",
                )
            number, pages, total = number + 1, page.meta.total_pages, page.meta.total_items
            for item in page.data:
                check.add(item.id)
                if item.status == "ACTIVE":
                    yield build_example_from_item(item)
        check.raise_if_examples_missing(total)

    async def push(self, dataset: Dataset, examples: Sequence[Example]) -> None:
        """Create the items. Replace items whose id exists. Archived items become active again."""
        await _run_in_batches(self._write_item(dataset, example) for example in examples)

    async def delete(self, dataset: Dataset, ids: Sequence[str]) -> None:
        """Archive items. Items that do not exist, or belong to another dataset, are skipped."""
        await _run_in_batches(self._archive_example(dataset, identity) for identity in ids)

    async def tag(self, dataset: Dataset, tag: str) -> None:
        """Tag the current version of the dataset with ``tag``.

        An existing tag of this name moves to this version.
        """
        stored = await self._fetch_stored_dataset(dataset.name)
        if stored is None:
            raise self._client.build_unavailable_error(
                f"tagging dataset {dataset.name!r}", "no dataset has this name"
            )
        metadata, tags = _separate_tags_from_metadata(stored)
        description = stored.description or ""
        # This write changes nothing. It returns the time of Langfuse's clock. Lookout's own clock may be different.
        rewritten = await self._write_dataset(stored.name, description, _add_newest_tags(metadata, tags))
        tags = {name: moment for name, moment in tags.items() if name != tag} | {
            tag: rewritten.updated_at.isoformat()
        }
        await self._write_dataset(stored.name, description, _add_newest_tags(metadata, tags))

    async def _fetch_stored_dataset(self, name: str) -> _StoredDataset | None:
        path = f"{_DATASETS}/{quote(name, safe='')}"
        return await self._client.request_or_none_if_404(
            "GET", path, _StoredDataset, f"looking for dataset {name!r}"
        )

    async def _write_dataset(self, name: str, description: str, metadata: Json) -> _StoredDataset:
        body: Json = {"name": name, "description": description, "metadata": metadata}
        return await self._client.request("POST", _DATASETS, _StoredDataset, f"writing dataset {name!r}", json=body)

    def _build_dataset(self, stored: _StoredDataset) -> Dataset:
        metadata, _tags = _separate_tags_from_metadata(stored)
        url = self._client.build_page_url("datasets", stored.id)
        return Dataset(id=stored.id, name=stored.name, url=url, entries_url=f"{url}/items/", metadata=metadata)

    async def _read_page(self, dataset: Dataset, number: int) -> _ItemPage:
        params = {"datasetName": dataset.name, "page": number, "limit": PAGE_SIZE}
        doing = f"reading dataset {dataset.name!r}, page {number}"
        return await self._client.request("GET", _ITEMS, _ItemPage, doing, params=params)

    async def _write_item(self, dataset: Dataset, example: Example) -> None:
        doing = f"writing example {example.id!r} of dataset {dataset.name!r}"
        await self._client.request(
            "POST", _ITEMS, DatasetItem, doing, json=build_item_from_example(dataset.name, example)
        )

    async def _archive_example(self, dataset: Dataset, identity: str) -> None:
        doing = f"archiving example {identity!r} of dataset {dataset.name!r}"
        path = f"{_ITEMS}/{quote(identity, safe='')}"
        item = await self._client.request_or_none_if_404("GET", path, DatasetItem, doing)
        if item is None or item.dataset_name != dataset.name or item.status == "ARCHIVED":
            return
        body: Json = {"datasetName": dataset.name, "id": identity, "status": "ARCHIVED"}
        await self._client.request_or_none_if_404("POST", _ITEMS, DatasetItem, doing, json=body)


def _separate_tags_from_metadata(stored: _StoredDataset) -> tuple[Json, dict[str, str]]:
    """Split the stored metadata of a dataset into the metadata without tags, and the tags with their times."""
    metadata = wrap_as_json_object(stored.metadata, "metadata")
    own = metadata.pop(LOOKOUT_KEY, None)
    tags = own.get("tags") if isinstance(own, dict) else None
    moments = tags.items() if isinstance(tags, dict) else ()
    return metadata, {name: moment for name, moment in moments if isinstance(moment, str)}


def _add_newest_tags(metadata: Json, tags: Mapping[str, str]) -> Json:
    newest = sorted(tags.items(), key=lambda pair: pair[1])[-MAX_TAGS:]
    return {**metadata, LOOKOUT_KEY: {"tags": dict[str, JsonValue](newest)}}


async def _run_in_batches(tasks: Iterable[Awaitable[Any]]) -> None:
    """Run tasks in batches. If a task fails, its error is raised after the other tasks of the batch have ended."""
    pending = iter(tasks)
    while batch := list(islice(pending, MAX_CONCURRENT)):
        for outcome in await asyncio.gather(*batch, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
