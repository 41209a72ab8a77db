"""A suite frozen: a numbered copy and a manifest with its hash and counts, beside each other, never changed again.

``NAME-v3.jsonl`` is the suite as it was, ``NAME-v3.json`` says what it holds. The hash is the one on every result
(`cases_sha256`), so a result names the version it was measured with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.atomic_file import alone_with, replace_text
from monitors.goldset.load import load_suite, read_text
from monitors.goldset.write_line import line_of
from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.cases import GoldCase, Suite

Count = Annotated[int, Field(ge=0)]


class Manifest(Record):
    """What a frozen version holds, who froze it, and why."""

    suite: Identifier
    version: Annotated[int, Field(ge=1)]
    sha256: Sha256
    frozen_at: UtcTime
    note: str = ""
    cases: Count
    expected_refusals: Count
    severities: dict[str, int]
    types: dict[str, int]
    languages: dict[str, int]
    pipelines: dict[str, int]


def frozen_versions(folder: Path, name: str) -> list[Manifest]:
    """All versions of a suite in a folder, oldest first. Raises `GoldSetError` for a manifest that is none."""
    pattern = re.compile(rf"{re.escape(name)}-v[0-9]+\.json")
    paths = [path for path in folder.glob("*.json") if pattern.fullmatch(path.name)] if folder.is_dir() else []
    return sorted((_manifest(path) for path in paths), key=lambda one: one.version)


def frozen_suite(folder: Path, manifest: Manifest) -> Suite:
    """The cases of a frozen version. Raises `GoldSetError` when they are not what was frozen."""
    path = folder / f"{manifest.suite}-v{manifest.version}.jsonl"
    suite = load_suite(path, manifest.suite)
    if suite.sha256 != manifest.sha256:
        raise GoldSetError(
            f"{path} was changed after it was frozen: its hash is {suite.sha256[:12]}…, the manifest says "
            f"{manifest.sha256[:12]}…; take it from version control"
        )
    return suite


def freeze(suite: Suite, folder: Path, *, at: UtcTime, note: str = "") -> tuple[Manifest, bool]:
    """Freeze ``suite`` as the next version; the newest one and false when it holds the same cases already."""
    with alone_with(folder / "any"):
        known = frozen_versions(folder, suite.name)
        if known and known[-1].sha256 == suite.sha256:
            return known[-1], False
        version = known[-1].version + 1 if known else 1
        manifest = _manifest_of(suite, version, at, note)
        stem = f"{suite.name}-v{version}"
        replace_text(folder / f"{stem}.jsonl", "".join(f"{line_of(case)}\n" for case in suite.cases))
        replace_text(folder / f"{stem}.json", manifest.model_dump_json(indent=1) + "\n")
    return manifest, True


def _manifest_of(suite: Suite, version: int, at: UtcTime, note: str) -> Manifest:
    cases = suite.cases
    return Manifest(
        suite=suite.name,
        version=version,
        sha256=suite.sha256,
        frozen_at=at,
        note=note,
        cases=len(cases),
        expected_refusals=sum(case.expected_refusal for case in cases),
        severities=_counts([str(int(case.severity)) for case in cases]),
        types=_counts([case.type for case in cases]),
        languages=_counts([case.language.value for case in cases]),
        pipelines=_counts([case.provenance.pipeline.value for case in cases]),
    )


def _counts(values: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(read_text(path))
    except ValidationError as error:
        raise GoldSetError(f"{path} is no manifest of a frozen suite; take it from version control") from error


def cases_of(path: Path) -> tuple[GoldCase, ...]:
    """The cases of a suite, or of a frozen version named by its manifest."""
    if path.suffix == ".json":
        return frozen_suite(path.parent, _manifest(path)).cases
    return load_suite(path).cases
