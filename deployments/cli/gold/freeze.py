"""``lookout gold freeze`` and ``lookout gold diff``: freeze versions of a suite, and compare versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.check import format_findings, run_all_suite_checks
from deployments.cli.gold.datasets import TargetOption, is_dataset_address, print_dataset_diff
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.clock import utc_now
from flows.terminal import print_text, write_json
from monitors.domains.pack import load_domain
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings
from monitors.goldset.checks import Weight, read_suite_with_bad_lines
from monitors.goldset.load import load_suite
from monitors.goldset.versions import (
    SuiteManifest,
    compare_suites,
    format_suite_diff,
    freeze_suite_if_changed,
    list_frozen_versions,
    load_cases_of_suite_or_version,
    load_frozen_suite,
)
from monitors.graders.base import GraderSettings
from monitors.plural import plural
from monitors.records.cases import Suite


def freeze_command(
    suite: Annotated[Path, typer.Argument(help="the file with the suite (JSON Lines)")],
    *,
    into: Annotated[
        Path | None,
        typer.Option(help="the folder for frozen versions; default: the folder `frozen` next to the suite"),
    ] = None,
    note: Annotated[str, typer.Option(help="the reason for this version")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="only check that the suite equals its newest frozen version")
    ] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="freeze the suite even if it has faults that must be fixed")
    ] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Freeze a version of a suite: write a numbered copy with its hash and counts."""
    loaded, folder = load_suite(suite), into or suite.parent / "frozen"
    if verify:
        return _verify_newest_frozen_version(loaded, suite, folder)
    if not unchecked and _print_findings_that_block_freezing(suite, as_json=as_json):
        return ExitCode.FAIL
    manifest, is_new = freeze_suite_if_changed(loaded, folder, at=utc_now(), note=note)
    if as_json:
        write_json(json.dumps({"new": is_new, **manifest.model_dump(mode="json")}, ensure_ascii=False) + "\n")
        return ExitCode.PASS
    print_text("\n".join(_format_frozen_version(manifest, folder, is_new=is_new)))
    previous = [
        version for version in list_frozen_versions(folder, loaded.name) if version.version == manifest.version - 1
    ]
    if is_new and previous:
        print_text(f"\nSince version {previous[0].version}:")
        old = load_frozen_suite(folder, previous[0])
        print_text(
            "\n".join(
                f"  {line}" for line in format_suite_diff(compare_suites(old.cases, loaded.cases), max_cases=10)
            )
        )
    return ExitCode.PASS


def _print_findings_that_block_freezing(suite: Path, *, as_json: bool) -> bool:
    """Print the findings of `lookout gold check` that must be fixed. Return whether there are any."""
    numbered = read_suite_with_bad_lines(suite)
    findings = run_all_suite_checks(numbered, None, GraderSettings(), load_domain(), GateSettings(), mutants=True)
    must = [finding for finding in findings if finding.weight is Weight.MUST]
    if must:
        print_text(format_findings(suite, [case_line.case for case_line in numbered.cases], must), err=as_json)
        print_text(
            "The suite was not frozen. Fix these findings, or freeze the suite with --unchecked.", err=as_json
        )
    return bool(must)


def _format_frozen_version(manifest: SuiteManifest, folder: Path, *, is_new: bool) -> list[str]:
    verb = "was frozen as" if is_new else "is already"
    return [
        f"{manifest.suite} {verb} version {manifest.version}: {plural(manifest.cases, 'case')}",
        f"  sha256      {manifest.sha256}",
        f"  severities  {_format_counts(manifest.severities)}",
        f"  languages   {_format_counts(manifest.languages)}",
        f"  refusals    {manifest.expected_refusals} expected",
        f"  in          {folder / f'{manifest.suite}-v{manifest.version}.jsonl'}",
    ]


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _verify_newest_frozen_version(suite: Suite, file: Path, folder: Path) -> ExitCode:
    versions = list_frozen_versions(folder, suite.name)
    newest = versions[-1] if versions else None
    if newest is not None and newest.sha256 == suite.sha256:
        load_frozen_suite(folder, newest)
        print_text(f"{suite.name} is the same as version {newest.version}")
        return ExitCode.PASS
    against = f"differs from version {newest.version}" if newest else "was never frozen"
    print_text(f"{suite.name} {against}. To create a new version, run `lookout gold freeze {file}`")
    return ExitCode.FAIL


Version = Annotated[str, typer.Argument(help="a suite, the manifest of a frozen version, or a dataset")]


def diff_command(
    old: Version,
    new: Annotated[
        str | None,
        typer.Argument(
            help="the second suite, manifest or dataset; if the first argument is a dataset, the default is the "
            "target's suite"
        ),
    ] = None,
    *,
    most: Annotated[
        int, typer.Option(min=1, help="the maximum number of cases to list in each group of changes")
    ] = 20,
    target: TargetOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """List the changes between two versions of a suite, or between a suite and a dataset."""
    datasets = [name for name in (old, new) if name is not None and is_dataset_address(name)]
    files = [Path(name) for name in (old, new) if name is not None and not is_dataset_address(name)]
    if datasets:
        if len(datasets) > 1:
            raise ConfigError("Lookout cannot compare two datasets. Give a suite instead of one of the datasets")
        suite = files[0] if files else None
        return print_dataset_diff(datasets[0], suite, target, config, most=most, as_json=as_json)
    if len(files) == 1:
        raise ConfigError(f"to compare {old}, also give a second suite, manifest or dataset")
    return _print_suite_diff(*files, most=most, as_json=as_json)


def _print_suite_diff(old: Path, new: Path, *, most: int, as_json: bool) -> ExitCode:
    before, after = load_cases_of_suite_or_version(old), load_cases_of_suite_or_version(new)
    diff = compare_suites(before, after)
    if as_json:
        write_json(diff.model_dump_json(indent=2) + "\n")
        return ExitCode.PASS
    head = f"{old} → {new}: {len(before)} → {plural(len(after), 'case')}"
    print_text("\n".join([head, "", *format_suite_diff(diff, max_cases=most)]))
    return ExitCode.PASS
