"""``lookout gold import``: convert a CSV table, or the JSON suite of another project, to a suite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from flows.terminal import print_text
from monitors.errors import GoldSetError
from monitors.goldset.import_array import read_suite_from_rows
from monitors.goldset.lines import format_case_line
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.storage import lock_parent_folder, replace_gold_file

OTHER_TYPES = ""
"""The dictionary key for the severity of all question types that have no severity of their own."""


def import_command(
    array: Annotated[
        Path,
        typer.Argument(
            help="a CSV table with the columns question, gold, id and severity, or the JSON array of another "
            "project"
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", help="the suite to write; the file must not exist")],
    severity: Annotated[
        list[str] | None,
        typer.Option(
            help="the severity of rows without a severity: a number for all rows, or TYPE=NUMBER for each "
            "question_type"
        ),
    ] = None,
) -> ExitCode:
    """Import questions from a CSV table, or from the JSON suite of another project."""
    if out.exists():
        raise GoldSetError(f"{out} already exists. Choose a new file, or remove this file first")
    severities = _parse_severity_options(severity or ())
    imported = read_suite_from_rows(
        array, severity_for=lambda kind, case_id: _require_severity(kind, case_id, severities)
    )
    with lock_parent_folder(out):
        replace_gold_file(out, "".join(f"{format_case_line(case)}\n" for case in imported.suite.cases))
    counts = Counter((case.type, int(case.severity)) for case in imported.suite.cases)
    print_text(f"{out}: {plural(len(imported.suite.cases), 'case')}, sha256 {imported.suite.sha256}")
    for (kind, level), count in sorted(counts.items()):
        print_text(f"  severity {level}  {count:4}  {kind}")
    for row in imported.renamed:
        print_text(f"  row {row.row}: the id {row.given} is already used, so the new id is {row.id}")
    print_text(f"To find faults in the suite: lookout gold check {out}")
    return ExitCode.PASS


def _parse_severity_options(options: Sequence[str]) -> dict[str, Severity]:
    severities: dict[str, Severity] = {}
    for option in options:
        match = re.fullmatch(r"(?:(?P<type>[^=]+)=)?(?P<level>[123])", option.strip())
        if match is None:
            raise GoldSetError(
                f"--severity {option!r} is not valid. Accepted: TYPE=1, 2 or 3 for one question type, or 1, 2 or 3 "
                "for all other types"
            )
        severities[match["type"] or OTHER_TYPES] = Severity(int(match["level"]))
    return severities


def _require_severity(kind: str, case_id: str, severities: dict[str, Severity]) -> Severity:
    severity = severities.get(kind, severities.get(OTHER_TYPES))
    if severity is None:
        by_type = f"--severity {kind}=2, or --severity 2 for all other types" if kind else "--severity 2"
        raise GoldSetError(f"{case_id}{f' of the type {kind!r}' if kind else ''} has no severity. Add {by_type}")
    return severity
