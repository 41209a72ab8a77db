"""``results.json``: a whole run for machines, written here and read back by the gate.

One case per line, so that two runs can be compared with ``diff``. The texts are raw: the file belongs to the run's
folder, which never leaves the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, ValidationError

from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.records.runs import CaseResult, RunReport

FORMAT: Final = 1
"""Raised when a reader of the old format could no longer understand the file."""


class Results(Record):
    """The file's shape."""

    format: Literal[1]
    report: RunReport
    cases: tuple[CaseResult, ...]


class _Header(Record):
    """What tells a results file of any format from another JSON file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int


def results_json(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    """The file in pieces, one case at a time: a long run is never held twice."""
    yield f'{{"format": {FORMAT},\n"report": {report.model_dump_json()},\n"cases": ['
    for place, case in enumerate(cases):
        yield f"{',' if place else ''}\n{case.model_dump_json()}"
    yield "\n]}\n"


def read_results(path: Path) -> tuple[RunReport, tuple[CaseResult, ...]]:
    """The run that ``results.json`` at ``path`` holds.

    Raises ``ConfigError`` naming file, key and what is accepted: when the file cannot be read, is no JSON, is of
    another format, lacks or misspells a field, or when its parts do not belong to one run.
    """
    content = _content(path)
    _check_format(path, content)
    try:
        results = Results.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(_first_fault(path, error)) from error
    _check_belongs_together(path, results)
    return results.report, results.cases


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); accepted is the results.json of a finished run"
        raise ConfigError(message) from error


def _check_format(path: Path, content: bytes) -> None:
    try:
        header = _Header.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        what = f"no JSON ({fault['msg']})" if fault["type"] == "json_invalid" else f"`format`: {fault['msg']}"
        message = f"{path}: {what}; accepted is the results.json of a run, with `format`, `report` and `cases`"
        raise ConfigError(message) from error
    if header.format != FORMAT:
        hint = "written by a newer Lookout: update this one" if header.format > FORMAT else "no such format exists"
        raise ConfigError(f"{path}: `format` is {header.format} ({hint}); accepted: {FORMAT}")


def _first_fault(path: Path, error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    fault = faults[0]
    key = ".".join(str(part) for part in fault["loc"]) or "the file"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    given = "" if fault["type"] in {"missing", "extra_forbidden"} else f", got {_brief(fault['input'])}"
    return f"{path}: `{key}`: {fault['msg']}{given}{more}; accepted is a file as `lookout verify` writes it"


def _brief(value: object) -> str:
    """Only the kind of a text is named: it may hold what a user was told."""
    return f"a text of {len(value)} characters" if isinstance(value, str) else type(value).__name__


def _check_belongs_together(path: Path, results: Results) -> None:
    seen: set[tuple[str, int]] = set()
    for place, case in enumerate(results.cases):
        key = f"cases.{place}"
        ids = {case.case.id, case.result.case_id, case.assessment.case_id}
        runs = {results.report.run_id, case.result.run_id, case.assessment.run_id}
        identity = (case.case.id, case.result.repeat)
        if len(ids) > 1:
            raise ConfigError(f"{path}: `{key}`: case, result and assessment name different cases: {sorted(ids)}")
        if len(runs) > 1:
            raise ConfigError(f"{path}: `{key}`: belongs to another run than the report: {sorted(runs)}")
        if identity in seen:
            message = f"{path}: `{key}`: case {case.case.id} is there twice; accepted is once per repeat"
            raise ConfigError(message)
        seen.add(identity)
