"""A reviewed case joins a suite's file: one line more, once, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from monitors.errors import GoldSetError
from monitors.goldset.atomic_file import alone_with, replace_text, text_of
from monitors.goldset.line_problems import shown
from monitors.goldset.load import parse_suite_lines
from monitors.goldset.write_line import line_of
from monitors.records.cases import GoldCase, Pipeline


def cases_in(path: Path) -> tuple[GoldCase, ...]:
    """The cases of a suite's file; none when there is no such file yet. `GoldSetError` as for loading."""
    text = text_of(path)
    return parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if text.strip() else ()


def join(path: Path, case: GoldCase, *, paired_with: str | None = None) -> bool:
    """Append ``case`` to the suite; false when it stands there already, so that doing it again changes nothing.

    ``paired_with`` is the id of the case that it translates: that one gets the pair's name too, in the same write.
    `GoldSetError` when the suite does not load, when another case has the id, or when nobody has reviewed ``case``.
    """
    if not (case.provenance.reviewed_by or "").strip():
        raise GoldSetError(f"{case.id} was reviewed by nobody, so it does not join {path}")
    with alone_with(path):
        text = text_of(path)
        there = next((one for one in cases_in(path) if one.id == case.id), None)
        if there is not None:
            _require_same(there, case, path)
            return False
        lines = text.split("\n")
        if paired_with is not None and case.pair is not None:
            lines = [_paired(line, paired_with, case.pair) for line in lines]
        joined = "\n".join(lines)
        ended = joined if not joined or joined.endswith("\n") else f"{joined}\n"
        parse_suite_lines([line_of(case)], name="suite", source="the new case")
        replace_text(path, f"{ended}{line_of(case)}\n")
    return True


def _require_same(there: GoldCase, case: GoldCase, path: Path) -> None:
    """A case that joined before a kill may since have been edited by hand; another one under its id may not be."""
    same_origin = there.provenance.pipeline is case.provenance.pipeline is not Pipeline.IMPORTED
    if not same_origin or (there.turns != case.turns and there.provenance.clause != case.provenance.clause):
        raise GoldSetError(f"{path} holds another case with the id {shown(case.id)}; give that one another id")


def _paired(line: str, case_id: str, pair: str) -> str:
    """The line with the pair's name, when it is the line of this case and has none."""
    if f'"{case_id}"' not in line:
        return line
    fields = json.loads(line)
    if fields.get("id") != case_id or fields.get("pair") is not None:
        return line
    source = fields.pop("provenance", None)
    again = {**fields, "pair": pair, **({"provenance": source} if source is not None else {})}
    return json.dumps(again, ensure_ascii=False, allow_nan=False)
