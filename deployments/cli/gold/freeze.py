"""``lookout gold freeze`` and ``lookout gold diff``: versions of a suite, and what changed between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.check import all_findings, format_findings
from flows.terminal import print_text, write_json
from monitors.domains.pack import load_domain
from monitors.gate.settings import GateSettings
from monitors.goldset.checks import Weight, read_numbered
from monitors.goldset.load import load_suite
from monitors.goldset.versions import (
    SuiteManifest,
    cases_of,
    describe_diff,
    diff_of,
    freeze,
    frozen_suite,
    frozen_versions,
)
from monitors.graders.base import GraderSettings
from monitors.records.cases import Suite


@dataclass(frozen=True)
class FreezeOptions:
    """The command's options as they were given."""

    suite: Path
    into: Path
    note: str
    verify: bool
    unchecked: bool
    as_json: bool


def freeze_command(options: FreezeOptions, *, at: datetime) -> ExitCode:
    """Freeze, or verify that nothing changed since; FAIL when something must be fixed or has changed."""
    suite = load_suite(options.suite)
    if options.verify:
        return _verify(suite, options)
    if not options.unchecked and not _is_sound(options):
        return ExitCode.FAIL
    manifest, is_new = freeze(suite, options.into, at=at, note=options.note)
    if options.as_json:
        write_json(json.dumps({"new": is_new, **manifest.model_dump(mode="json")}, ensure_ascii=False) + "\n")
        return ExitCode.PASS
    print_text("\n".join(_said(manifest, options.into, is_new=is_new)))
    before = [one for one in frozen_versions(options.into, suite.name) if one.version == manifest.version - 1]
    if is_new and before:
        print_text(f"\nSince version {before[0].version}:")
        old = frozen_suite(options.into, before[0])
        print_text("\n".join(f"  {line}" for line in describe_diff(diff_of(old.cases, suite.cases), most=10)))
    return ExitCode.PASS


def _is_sound(options: FreezeOptions) -> bool:
    """Whether `lookout gold check` finds nothing that must be fixed; its findings are printed."""
    numbered = read_numbered(options.suite)
    found = all_findings(numbered, None, GraderSettings(), load_domain(), GateSettings(), mutants=True)
    must = [one for one in found if one.weight is Weight.MUST]
    if must:
        print_text(format_findings(options.suite, [one.case for one in numbered.cases], must), err=options.as_json)
        print_text("Not frozen; mend it, or freeze it --unchecked.", err=options.as_json)
    return not must


def _said(manifest: SuiteManifest, folder: Path, *, is_new: bool) -> list[str]:
    verb = "frozen as" if is_new else "is already"
    return [
        f"{manifest.suite} {verb} version {manifest.version}: {manifest.cases} cases",
        f"  sha256      {manifest.sha256}",
        f"  severities  {_counts(manifest.severities)}",
        f"  languages   {_counts(manifest.languages)}",
        f"  refusals    {manifest.expected_refusals} expected",
        f"  in          {folder / f'{manifest.suite}-v{manifest.version}.jsonl'}",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _verify(suite: Suite, options: FreezeOptions) -> ExitCode:
    known = frozen_versions(options.into, suite.name)
    newest = known[-1] if known else None
    if newest is not None and newest.sha256 == suite.sha256:
        frozen_suite(options.into, newest)
        print_text(f"{suite.name} is version {newest.version}, unchanged")
        return ExitCode.PASS
    against = f"differs from version {newest.version}" if newest else "was never frozen"
    print_text(f"{suite.name} {against}; `lookout gold freeze {options.suite}` makes the next version")
    return ExitCode.FAIL


def diff_command(old: Path, new: Path, *, most: int, as_json: bool) -> ExitCode:
    """Print what changed."""
    before, after = cases_of(old), cases_of(new)
    diff = diff_of(before, after)
    if as_json:
        write_json(diff.model_dump_json(indent=2) + "\n")
        return ExitCode.PASS
    print_text(
        "\n".join([f"{old} → {new}: {len(before)} → {len(after)} cases", "", *describe_diff(diff, most=most)])
    )
    return ExitCode.PASS
