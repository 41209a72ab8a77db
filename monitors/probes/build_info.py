"""Read the model and the version of the app from the response with an answer, and from its headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from monitors.json_path import collect_items, collect_sources
from monitors.probes.browser.inpage import replace_surrogates
from monitors.records.exchanges import BuildInfo

MODEL_KEYS: Final = ("model", "model_name", "model_id", "modelname", "modelid", "llm_model", "deployment_name")
FINGERPRINT_KEYS: Final = ("system_fingerprint", "model_fingerprint", "modelversion", "model_version")
"""The keys, in lower case, under which OpenAI and Gemini report the version of a model."""
MODEL_HEADERS: Final = ("x-model", "x-model-name", "x-model-id", "x-llm-model", "openai-model")
FINGERPRINT_HEADERS: Final = ("x-model-version", "x-system-fingerprint", "x-model-fingerprint")
VERSION_HEADERS: Final = (
    *("x-app-version", "x-version", "x-build", "x-build-id", "x-commit", "x-git-commit", "x-git-sha", "x-release"),
    *("x-revision", "server", "x-powered-by"),
)
DOCUMENT_KEYS: Final = (
    *("sha256", "content_hash", "hash", "checksum", "digest", "etag", "version", "revision"),
    *("updated_at", "last_modified", "modified_at"),
)
MAX_VALUE_CHARACTERS: Final = 120
MAX_DEPTH: Final = 3
_FULL_HASH: Final = re.compile(r"[0-9a-fA-F]{40,}")


def read_build_info(documents: Sequence[Any], headers: Mapping[str, str]) -> BuildInfo | None:
    """Return the model and the versions in a response, or ``None`` if the response contains neither.

    If a response contains several values, the last value counts.
    """
    models = [*_list_at_most_one_header(headers, MODEL_HEADERS), *_iterate_texts_under(documents, MODEL_KEYS)]
    fingerprints = [
        *_list_at_most_one_header(headers, FINGERPRINT_HEADERS),
        *_iterate_texts_under(documents, FINGERPRINT_KEYS),
    ]
    build = BuildInfo(
        model=models[-1] if models else None,
        fingerprint=fingerprints[-1] if fingerprints else None,
        versions=select_version_headers(headers),
    )
    return build if build != BuildInfo() else None


def select_version_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that contain a version of the app or its server, with their values.

    The header names in the result are in lower case.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: _shorten_to_one_line(lowered[name]) for name in VERSION_HEADERS if lowered.get(name)}


def read_source_versions(documents: Sequence[Any], citations: str | None) -> dict[str, str]:
    """Return the hash or version of each source at the path ``citations``, keyed by the name of the source."""
    if citations is None:
        return {}
    versions: dict[str, str] = {}
    for document in documents:
        for name, source in _iterate_named_sources(document, citations):
            version = next(_iterate_versions(source), None)
            if version is not None:
                versions[_shorten_to_one_line(name)] = version
    return versions


def _iterate_named_sources(document: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each source that is a JSON object, with its name.

    ``path`` is the path of the sources or of their names.
    """
    for item in collect_items(document, path):
        if isinstance(item, dict):
            for name in collect_sources(item, "")[:1]:
                yield name, cast("dict[str, Any]", item)
    parent, _, key = path.rpartition(".")
    for item in collect_items(document, parent) if parent else ():
        if isinstance(item, dict) and isinstance(name := cast("dict[str, Any]", item).get(key), str):
            yield name, cast("dict[str, Any]", item)


def _iterate_versions(source: dict[str, Any]) -> Iterator[str]:
    metadata = source.get("metadata")
    for level in (source, cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}):
        for key in DOCUMENT_KEYS:
            value = level.get(key)
            if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
                yield _shorten_to_one_line(str(value))


def _list_at_most_one_header(headers: Mapping[str, str], names: Sequence[str]) -> list[str]:
    lowered = {name.lower(): value for name, value in headers.items()}
    return [_shorten_to_one_line(lowered[name]) for name in names if lowered.get(name)][:1]


def _iterate_texts_under(documents: Sequence[Any], keys: Sequence[str]) -> Iterator[str]:
    for document in documents:
        yield from _iterate_texts_in_object(document, keys, MAX_DEPTH)


def _iterate_texts_in_object(value: Any, keys: Sequence[str], depth: int) -> Iterator[str]:
    """Yield the texts that have one of ``keys`` in an object or in its nested objects. Lists are skipped.

    ``depth`` is the maximum number of nested levels.
    """
    if not isinstance(value, dict):
        return
    for key, inner in cast("dict[str, Any]", value).items():
        if isinstance(inner, str) and key.lower() in keys and inner.strip():
            yield _shorten_to_one_line(inner)
        elif depth:
            yield from _iterate_texts_in_object(inner, keys, depth - 1)


def _shorten_to_one_line(text: str) -> str:
    """Return a value as one line. Long hashes are shortened to 12 characters."""
    plain = " ".join(replace_surrogates(text).split())[:MAX_VALUE_CHARACTERS]
    return _FULL_HASH.sub(lambda match: match[0][:12], plain)
