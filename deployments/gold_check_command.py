"""``lookout gold check``: everything that makes a suite lie, leak or waste a run, in one list."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from deployments.exit_codes import ExitCode
from deployments.gold_check_graders import fails_itself, missed_twins
from deployments.gold_check_text import told
from deployments.gold_settings import gate_settings, grader_settings
from monitors.gate.balance import balance_of
from monitors.gate.settings import GateSettings
from monitors.goldset.contradictions_check import contradictions
from monitors.goldset.disclosures_check import leaks
from monitors.goldset.duplicates_check import duplicates
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.languages_check import languages
from monitors.goldset.lines_check import bad_lines
from monitors.goldset.numbered import Numbered, read_numbered
from monitors.goldset.quotes_check import quotes, read_documents
from monitors.graders.settings import GraderSettings
from monitors.records.cases import GoldCase


@dataclass(frozen=True)
class CheckOptions:
    """The command's options as they were given."""

    suite: Path
    documents: Path | None
    config: Path | None
    target: str | None
    twins: bool
    as_json: bool


def check_command(options: CheckOptions) -> ExitCode:
    """Check one suite; FAIL when a finding must be mended."""
    numbered = read_numbered(options.suite)
    graders = grader_settings(options.config, options.target)
    gate = gate_settings(options.config)
    findings = list(all_findings(numbered, options.documents, graders, gate, twins=options.twins))
    if options.as_json:
        plain = {
            "suite": str(options.suite),
            "cases": len(numbered.cases),
            "findings": [finding.model_dump(mode="json") for finding in findings],
        }
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    else:
        typer.echo(told(options.suite, [one.case for one in numbered.cases], findings))
    return ExitCode.FAIL if any(finding.weight is Weight.MUST for finding in findings) else ExitCode.PASS


def all_findings(
    suite: Numbered, documents: Path | None, graders: GraderSettings, gate: GateSettings, *, twins: bool
) -> Iterator[GoldFinding]:
    """All findings, check by check; clauses only where ``documents`` are at hand."""
    cases = suite.cases
    yield from bad_lines(suite)
    yield from duplicates(cases)
    yield from contradictions(cases)
    yield from leaks(cases, account_patterns=graders.account_patterns, public_contacts=graders.public_contacts)
    yield from languages(cases)
    yield from fails_itself(cases, graders)
    if documents is not None:
        yield from quotes(cases, read_documents(documents))
    if twins:
        yield from missed_twins(cases, graders)
    yield from balance([one.case for one in cases], gate)


def balance(cases: Sequence[GoldCase], settings: GateSettings) -> Iterator[GoldFinding]:
    """What the gate would say about the spread of the cases."""
    for shortfall in balance_of(cases, settings).shortfalls:
        yield GoldFinding(
            check=Check.BALANCE,
            weight=Weight.SHOULD,
            what=shortfall,
            do="add such cases, or change what the gate asks for in [gate]",
        )
