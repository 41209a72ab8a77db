"""The template cases of a suite's file made anew; what people and other pipelines added stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitors.errors import GoldSetError
from monitors.goldset.atomic_file import alone_with, replace_text, text_of
from monitors.goldset.fingerprint import cases_sha256
from monitors.goldset.load import parse_suite_lines
from monitors.goldset.write_line import line_of
from monitors.records.cases import GoldCase, Pipeline


@dataclass(frozen=True)
class Renewed:
    """What became of a suite's file."""

    sha256: str
    added: int
    changed: int
    removed: int
    same: int
    kept: int
    """Cases that no template made."""


def renew_template_cases(path: Path, cases: Sequence[GoldCase]) -> Renewed:
    """Write ``cases`` first, then every case of the file that no template made, as it stood there.

    The same cases give the same bytes. Raises `GoldSetError` when the file does not load, or holds a case of
    another pipeline under the id of a new one.
    """
    with alone_with(path):
        text = text_of(path)
        lines = [line for line in text.split("\n") if line.strip()]
        there = parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if lines else ()
        others = [(case, line) for case, line in zip(there, lines, strict=True) if not _is_of_template(case)]
        _require_new({case.id for case, _ in others}, cases, path)
        written = [*(line_of(case) for case in cases), *(line for _, line in others)]
        replace_text(path, "".join(f"{line}\n" for line in written))
    before = {case.id: case for case in there if _is_of_template(case)}
    now = {case.id: case for case in cases}
    changed = sum(before[name] != case for name, case in now.items() if name in before)
    return Renewed(
        sha256=cases_sha256([*cases, *(case for case, _ in others)]),
        added=len(now.keys() - before.keys()),
        changed=changed,
        removed=len(before.keys() - now.keys()),
        same=len(now.keys() & before.keys()) - changed,
        kept=len(others),
    )


def _is_of_template(case: GoldCase) -> bool:
    return case.provenance.pipeline is Pipeline.TEMPLATE


def _require_new(taken: set[str], cases: Sequence[GoldCase], path: Path) -> None:
    clash = next((case.id for case in cases if case.id in taken), None)
    if clash is not None:
        raise GoldSetError(f"{path} holds {clash} of another pipeline; give that case, or the template, another id")
