"""``lookout gold freeze`` and ``lookout gold diff``: versions of a suite, and what changed between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.check import all_findings, format_findings
from deployments.cli.gold.datasets import TargetOption, compare_command, names_dataset
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.clock import utc_now
from flows.terminal import print_text, write_json
from monitors.domains.pack import load_domain
from monitors.errors import ConfigError
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
from monitors.plural import plural
from monitors.records.cases import Suite


def freeze_command(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    into: Annotated[
        Path | None, typer.Option(help="the folder of frozen versions; `frozen` beside the suite when left out")
    ] = None,
    note: Annotated[str, typer.Option(help="why this version was made")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="only say whether the suite is its newest frozen version")
    ] = False,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="freeze also what must be mended")] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Freeze a suite: a numbered copy with its hash and counts. Exit code 1 when it must be fixed first."""
    loaded, folder = load_suite(suite), into or suite.parent / "frozen"
    if verify:
        return _verify(loaded, suite, folder)
    if not unchecked and not _is_sound(suite, as_json=as_json):
        return ExitCode.FAIL
    manifest, is_new = freeze(loaded, folder, at=utc_now(), note=note)
    if as_json:
        write_json(json.dumps({"new": is_new, **manifest.model_dump(mode="json")}, ensure_ascii=False) + "\n")
        return ExitCode.PASS
    print_text("\n".join(_said(manifest, folder, is_new=is_new)))
    before = [one for one in frozen_versions(folder, loaded.name) if one.version == manifest.version - 1]
    if is_new and before:
        print_text(f"\nSince version {before[0].version}:")
        old = frozen_suite(folder, before[0])
        print_text("\n".join(f"  {line}" for line in describe_diff(diff_of(old.cases, loaded.cases), most=10)))
    return ExitCode.PASS


def _is_sound(suite: Path, *, as_json: bool) -> bool:
    """Whether `lookout gold check` finds nothing that must be fixed; its findings are printed."""
    numbered = read_numbered(suite)
    found = all_findings(numbered, None, GraderSettings(), load_domain(), GateSettings(), mutants=True)
    must = [one for one in found if one.weight is Weight.MUST]
    if must:
        print_text(format_findings(suite, [one.case for one in numbered.cases], must), err=as_json)
        print_text("Not frozen; mend it, or freeze it --unchecked.", err=as_json)
    return not must


def _said(manifest: SuiteManifest, folder: Path, *, is_new: bool) -> list[str]:
    verb = "frozen as" if is_new else "is already"
    return [
        f"{manifest.suite} {verb} version {manifest.version}: {plural(manifest.cases, 'case')}",
        f"  sha256      {manifest.sha256}",
        f"  severities  {_counts(manifest.severities)}",
        f"  languages   {_counts(manifest.languages)}",
        f"  refusals    {manifest.expected_refusals} expected",
        f"  in          {folder / f'{manifest.suite}-v{manifest.version}.jsonl'}",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _verify(suite: Suite, file: Path, folder: Path) -> ExitCode:
    known = frozen_versions(folder, suite.name)
    newest = known[-1] if known else None
    if newest is not None and newest.sha256 == suite.sha256:
        frozen_suite(folder, newest)
        print_text(f"{suite.name} is version {newest.version}, unchanged")
        return ExitCode.PASS
    against = f"differs from version {newest.version}" if newest else "was never frozen"
    print_text(f"{suite.name} {against}; `lookout gold freeze {file}` makes the next version")
    return ExitCode.FAIL


Version = Annotated[str, typer.Argument(help="a suite, the manifest of a frozen version, or a dataset")]


def diff_command(
    old: Version,
    new: Annotated[str | None, typer.Argument(help="the same; the target's suite beside a dataset")] = None,
    *,
    most: Annotated[int, typer.Option(min=1, help="how many cases of each group to list")] = 20,
    target: TargetOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Say in words what changed between two versions of a suite, severity changes first; or against a dataset."""
    datasets = [one for one in (old, new) if one is not None and names_dataset(one)]
    files = [Path(one) for one in (old, new) if one is not None and not names_dataset(one)]
    if datasets:
        if len(datasets) > 1:
            raise ConfigError("one of the two must be a suite: two datasets are not compared")
        suite = files[0] if files else None
        return compare_command(datasets[0], suite, target, config, most=most, as_json=as_json)
    if len(files) == 1:
        raise ConfigError(f"what is {old} compared with? Accepted: another suite, a manifest, or a dataset")
    return _diff_files(*files, most=most, as_json=as_json)


def _diff_files(old: Path, new: Path, *, most: int, as_json: bool) -> ExitCode:
    before, after = cases_of(old), cases_of(new)
    diff = diff_of(before, after)
    if as_json:
        write_json(diff.model_dump_json(indent=2) + "\n")
        return ExitCode.PASS
    head = f"{old} → {new}: {len(before)} → {plural(len(after), 'case')}"
    print_text("\n".join([head, "", *describe_diff(diff, most=most)]))
    return ExitCode.PASS
