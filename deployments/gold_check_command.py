"""``lookout gold check``: everything that makes a suite lie, leak or waste a run, in one list."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from deployments.exit_codes import ExitCode
from deployments.gold_check_text import told
from monitors.goldset.duplicates_check import duplicates
from monitors.goldset.findings import GoldFinding, Weight
from monitors.goldset.lines_check import bad_lines
from monitors.goldset.numbered import Numbered, read_numbered


def check_command(suite: Path, *, as_json: bool) -> ExitCode:
    """Check one suite; FAIL when a finding must be mended."""
    numbered = read_numbered(suite)
    findings = list(findings_of(numbered))
    if as_json:
        plain = {
            "suite": str(suite),
            "cases": len(numbered.cases),
            "findings": [finding.model_dump(mode="json") for finding in findings],
        }
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    else:
        typer.echo(told(suite, len(numbered.cases), findings))
    return ExitCode.FAIL if any(finding.weight is Weight.MUST for finding in findings) else ExitCode.PASS


def findings_of(suite: Numbered) -> Iterator[GoldFinding]:
    """All findings, check by check."""
    yield from bad_lines(suite)
    yield from duplicates(suite.cases)
