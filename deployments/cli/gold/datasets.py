"""``lookout gold push``, ``pull`` and ``diff`` with a dataset.

Each command prints the differences. ``push`` and ``pull`` write only after a confirmation.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deployments.cli.data_folder import open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from deployments.cli.reviews.session import ReviewScreen, get_and_store_reviewer
from flows.clock import utc_now
from flows.goldset.datasets import (
    ComparedDataset,
    DraftSource,
    PullPlan,
    PushPlan,
    build_dataset_tag,
    build_draft_id,
    build_drafts_from_entries,
    build_pull_plan,
    build_push_plan,
    compare_dataset,
    push_suite,
)
from flows.runtime.run import open_experiment_platform
from flows.runtime.secrets import get_environment
from flows.terminal import print_text, write_json
from flows.terminal_console import make_terminal_console
from monitors.config.file import Config, TargetConfig, load_config
from monitors.errors import ConfigError
from monitors.goldset.changes import ChangedBy, DatasetDiff, format_dataset_diff
from monitors.goldset.load import hash_cases, load_suite
from monitors.goldset.versions import SuiteEdit, edit_suite_if_unchanged, read_suite_cases
from monitors.platforms.platform import Dataset, OpenPlatform, Platform
from monitors.platforms.settings import DatasetAddress, PlatformScheme, parse_dataset_address
from monitors.plural import plural
from monitors.records.cases import GoldCase, Suite
from monitors.records.operator_actions import CaseDraft
from warehouse.database.store import Store
from warehouse.queries.operator_actions import append_draft, list_decided_draft_ids, list_waiting_drafts

BAR_AFTER_S: Final = 2.0
LOCK_WAIT_S: Final = 10.0
DEFAULT_LISTED: Final = 20

DatasetArgument = Annotated[str, typer.Argument(help="the dataset: langsmith:NAME or langfuse:NAME")]
SuiteFileOption = Annotated[
    Path | None, typer.Option("--suite", help="the file with the suite; default: the target's suite")
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="the target whose suite to use; default: the only target")
]
YesOption = Annotated[bool, typer.Option("--yes", help="write without confirmation, for scripts")]
MostOption = Annotated[
    int, typer.Option(min=1, help="the maximum number of cases to list in each group of changes")
]


def is_dataset_address(text: str) -> bool:
    """Return whether the text is the address of a dataset, such as ``langsmith:NAME``, and not a file."""
    return text.partition(":")[0] in set(PlatformScheme) and ":" in text


class DatasetRequest(NamedTuple):
    """The dataset, the suite and the target that a command uses."""

    address: DatasetAddress
    suite: Path
    target: str
    configured: TargetConfig
    config: Config

    def open_platform(self) -> OpenPlatform:
        """Open LangSmith or Langfuse. Raises `ConfigError` if its key is missing."""
        return open_experiment_platform(self.config, self.address.scheme, get_environment())


def build_dataset_request(dataset: str, config: Path, suite: Path | None, target: str | None) -> DatasetRequest:
    """Build the request from the options of a command.

    Without ``target``, the target with this suite is used. If no target has this suite, the only target is used.
    Raises `ConfigError` if several targets are possible, or if an option is invalid.
    """
    address, loaded = parse_dataset_address(dataset), load_config(config)
    if target is None:
        matching = [
            name
            for name, settings in loaded.targets.items()
            if suite and settings.suite.resolve() == suite.resolve()
        ]
        names = matching or list(loaded.targets)
        if len(names) > 1:
            raise ConfigError(f"{config} has several targets. Choose a target with --target: {', '.join(names)}")
        target = names[0]
    configured = loaded.require_target(target)
    return DatasetRequest(address, suite or configured.suite, target, configured, loaded)


class _ProgressBar(AbstractContextManager["_ProgressBar"]):
    """A progress bar on standard error. It appears if the work takes more than two seconds."""

    def __init__(self, doing: str, total: int | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=make_terminal_console(stderr=True), transient=True)
        self._task = self._bar.add_task(doing, total=total)
        self._started_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._bar.stop()

    def advance(self, count: int) -> None:
        """Move the progress bar forward by ``count`` entries."""
        self._bar.advance(self._task, count)
        if time.monotonic() - self._started_s > BAR_AFTER_S:
            self._bar.start()


async def _compare_suite_with_dataset(
    platform: Platform, request: DatasetRequest, suite: Sequence[GoldCase]
) -> ComparedDataset:
    with _ProgressBar(f"Reading {request.address}", None) as bar:
        return await compare_dataset(platform.datasets, request.address.dataset, suite, bar.advance)


def _confirm_write(action: str, *, yes: bool) -> bool:
    """Ask for confirmation and return the answer. If ``yes`` is set, return true without asking.

    Raises `ConfigError` if there is no terminal.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(
            "nothing was written, because Lookout needs a terminal to ask for confirmation. To skip the "
            f"confirmation, use --yes. The command will then {action}"
        )
    return ReviewScreen().confirm(f"{action[0].upper()}{action[1:]}?")


def _require_existing_dataset(request: DatasetRequest, compared: ComparedDataset) -> Dataset:
    """Return the dataset. Raises `ConfigError` if it does not exist."""
    if compared.dataset is None:
        raise ConfigError(f"{request.address} does not exist. `lookout gold push` creates the dataset")
    return compared.dataset


def push_command(
    dataset: DatasetArgument,
    *,
    suite: SuiteFileOption = None,
    target: TargetOption = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="also overwrite cases that people changed in the dataset since the last push"
        ),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="delete pushed cases from the dataset if they are no longer in the suite; Lookout never deletes "
            "entries that people added",
        ),
    ] = False,
    yes: YesOption = False,
    most: MostOption = DEFAULT_LISTED,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write a suite into a dataset. Lookout first shows the changes, and stops if people changed the dataset."""
    request = build_dataset_request(dataset, config, suite, target)
    options = PushOptions(overwrite=overwrite, prune=prune, yes=yes, most=most, as_json=as_json)
    return asyncio.run(_confirm_and_push_suite(request, load_suite(request.suite), options))


class PushOptions(NamedTuple):
    """The options of ``lookout gold push``."""

    overwrite: bool
    prune: bool
    yes: bool
    most: int
    as_json: bool


async def _confirm_and_push_suite(request: DatasetRequest, suite: Suite, options: PushOptions) -> ExitCode:
    async with request.open_platform() as platform:
        compared = await _compare_suite_with_dataset(platform, request, suite.cases)
        plan = build_push_plan(compared.diff, suite.cases, overwrite=options.overwrite, prune=options.prune)
        _print_diff(request, compared.diff, options)
        if plan.blocked:
            return _report_blocked_push(request, compared.diff, plan, options)
        if plan.size == 0 and compared.dataset is not None:
            await platform.datasets.tag(compared.dataset, build_dataset_tag(suite))
            return _print_push_report(request, suite, compared, plan, options)
        made = "" if compared.dataset is not None else "create the dataset, "
        deleted = f" and delete {plural(len(plan.deleted), 'entry', 'entries')}" if plan.deleted else ""
        if not _confirm_write(
            f"{made}write {plural(len(plan.cases), 'case')}{deleted} in {request.address}", yes=options.yes
        ):
            print_text("Nothing was written.", err=options.as_json)
            return ExitCode.PASS
        with _ProgressBar(f"Writing {request.address}", plan.size) as bar:
            written = await push_suite(platform.datasets, compared, suite, plan, bar.advance)
    return _print_push_report(request, suite, compared._replace(dataset=written), plan, options)


def _print_diff(request: DatasetRequest, diff: DatasetDiff, options: PushOptions | PullOptions) -> None:
    if options.as_json:
        return
    print_text(f"{request.suite} and {request.address}")
    print_text()
    print_text("\n".join(format_dataset_diff(diff, max_entries=options.most)))


def _report_blocked_push(
    request: DatasetRequest, diff: DatasetDiff, plan: PushPlan, options: PushOptions
) -> ExitCode:
    print_text(
        f"\nNothing was written, because {plural(plan.blocked, 'case was', 'cases were')} changed in the dataset "
        f"since the last push. To copy the changes into the suite: lookout gold pull {request.address}. To "
        "overwrite the changes, push with --overwrite.",
        err=options.as_json,
    )
    if options.as_json:
        summary = {"written": 0, "deleted": 0, "blocked": plan.blocked, "diff": _convert_diff_to_json(diff)}
        write_json(json.dumps(summary, ensure_ascii=False) + "\n")
    return ExitCode.FAIL


def _print_push_report(
    request: DatasetRequest, suite: Suite, compared: ComparedDataset, plan: PushPlan, options: PushOptions
) -> ExitCode:
    dataset, diff = _require_existing_dataset(request, compared), compared.diff
    if options.as_json:
        summary: dict[str, Any] = {"written": len(plan.cases), "deleted": len(plan.deleted), "blocked": 0}
        summary |= {
            "tag": build_dataset_tag(suite),
            "dataset": dataset.model_dump(mode="json"),
            "diff": _convert_diff_to_json(diff),
        }
        write_json(json.dumps(summary, ensure_ascii=False) + "\n")
        return ExitCode.PASS
    print_text(
        f"\nLookout wrote {plural(len(plan.cases), 'case')} and deleted "
        f"{plural(len(plan.deleted), 'entry', 'entries')}. {request.address} now has "
        f"{plural(len(suite.cases), 'case')} of {request.suite}, with the tag "
        f"{build_dataset_tag(suite)}.\n{dataset.url}"
    )
    if diff.removed and not plan.deleted:
        print_text(
            f"{plural(len(diff.removed), 'case is', 'cases are')} in the dataset but not in the suite. To delete "
            "such cases, use --prune."
        )
    if diff.people:
        print_text(
            "People added entries to the dataset. To create drafts from these entries: lookout gold pull "
            f"{request.address}"
        )
    return ExitCode.PASS


def _convert_diff_to_json(diff: DatasetDiff) -> dict[str, Any]:
    return diff.model_dump(mode="json", exclude={"unmarked"})


def pull_command(
    dataset: DatasetArgument,
    *,
    suite: SuiteFileOption = None,
    target: TargetOption = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="use the dataset's version of a case even if the case was also changed in the suite"
        ),
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="remove cases from the suite that are not in the dataset")
    ] = False,
    yes: YesOption = False,
    by: Annotated[
        str | None,
        typer.Option("--as", help="your name; if you give no name, Lookout asks for it once and stores it"),
    ] = None,
    most: MostOption = DEFAULT_LISTED,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Copy people's changes from a dataset into the suite. New entries become drafts for `gold grow`."""
    request = build_dataset_request(dataset, config, suite, target)
    cases = read_suite_cases(request.suite)
    options = PullOptions(overwrite, prune, yes, most, as_json, by, data_folder, config)
    return asyncio.run(_confirm_and_pull_changes(request, cases, options))


class PullOptions(NamedTuple):
    """The options of ``lookout gold pull``."""

    overwrite: bool
    prune: bool
    yes: bool
    most: int
    as_json: bool
    by: str | None
    data_folder: Path | None
    config: Path

    def open_store(self) -> Store:
        """Open the warehouse that contains the waiting drafts."""
        return open_warehouse(self.config, self.data_folder)


async def _confirm_and_pull_changes(
    request: DatasetRequest, cases: Sequence[GoldCase], options: PullOptions
) -> ExitCode:
    async with request.open_platform() as platform:
        compared = await _compare_suite_with_dataset(platform, request, cases)
        dataset, diff = _require_existing_dataset(request, compared), compared.diff
        plan = build_pull_plan(diff, overwrite=options.overwrite, prune=options.prune)
        store = options.open_store()
        known_ids: set[str] = set()
        if diff.people:
            known_ids |= {draft.id for draft in list_waiting_drafts(store, target=None, wait_s=LOCK_WAIT_S)}
            known_ids |= list_decided_draft_ids(store, wait_s=LOCK_WAIT_S)
        new = [entry for entry in diff.people if build_draft_id(entry) not in known_ids]
        _print_diff(request, diff, options)
        if plan.size == 0 and not new:
            return _print_pull_report(request, plan, (), diff, options)
        parts = [f"write {plural(len(plan.changed) + len(plan.added), 'case')} into {request.suite}"]
        parts += [f"remove {plural(len(plan.removed), 'case')} from it"] if plan.removed else []
        parts += [f"create {plural(len(new), 'draft')}"] if new else []
        if not _confirm_write(", ".join(parts), yes=options.yes):
            print_text("Nothing was written.", err=options.as_json)
            return ExitCode.PASS
        drafts: Sequence[CaseDraft] = ()
        if new:
            person = get_and_store_reviewer(options.by, request.config.data_folder, None)
            patterns = request.configured.graders.account_patterns
            source = DraftSource(dataset, request.target, patterns, person, utc_now())
            drafts = await build_drafts_from_entries(new, source, platform.traces)
    _write_pulled_changes(request, cases, plan, drafts, store)
    return _print_pull_report(request, plan, drafts, diff, options)


def _write_pulled_changes(
    request: DatasetRequest, cases: Sequence[GoldCase], plan: PullPlan, drafts: Sequence[CaseDraft], store: Store
) -> None:
    """Write the changes in ``plan`` to the suite, then store the drafts.

    If the process is killed before the drafts are stored, the next pull creates them.
    """
    if plan.size:
        edit = SuiteEdit(changed=plan.changed, added=plan.added, removed=plan.removed)
        edit_suite_if_unchanged(request.suite, edit, known_sha256=hash_cases(cases))
    for draft in drafts:
        append_draft(store.journal, draft)
    if drafts:
        store.load_pending(LOCK_WAIT_S)


def _print_pull_report(
    request: DatasetRequest, plan: PullPlan, drafts: Sequence[CaseDraft], diff: DatasetDiff, options: PullOptions
) -> ExitCode:
    result = ExitCode.FAIL if plan.conflicts or diff.broken else ExitCode.PASS
    if options.as_json:
        summary: dict[str, Any] = {
            "changed": len(plan.changed),
            "added": len(plan.added),
            "removed": len(plan.removed),
        }
        summary |= {"conflicts": plan.conflicts, "drafts": [draft.model_dump(mode="json") for draft in drafts]}
        write_json(json.dumps(summary | {"diff": _convert_diff_to_json(diff)}, ensure_ascii=False) + "\n")
        return result
    print_text(
        f"\nIn {request.suite}, Lookout changed {plural(len(plan.changed), 'case')}, added {len(plan.added)} and "
        f"removed {len(plan.removed)}."
    )
    ahead = len(diff.select_changed_by(ChangedBy.SUITE)) + len(diff.added)
    if ahead and not options.overwrite:
        print_text(
            f"{plural(ahead, 'case of the suite is', 'cases of the suite are')} missing or older in the dataset. "
            "To update the dataset, run `lookout gold push`."
        )
    if plan.conflicts:
        print_text(
            f"{plural(plan.conflicts, 'case was', 'cases were')} changed in the suite and in the dataset. "
            "The suite's version stays. To use the dataset's version, pull with --overwrite."
        )
    if drafts:
        print_text(
            f"Lookout created {plural(len(drafts), 'draft')} from people's new entries. To review the drafts: "
            f"lookout gold grow --suite {request.suite}"
        )
    return result


def print_dataset_diff(
    dataset: str, suite: Path | None, target: str | None, config: Path, *, most: int, as_json: bool
) -> ExitCode:
    """Print the differences between a suite and a dataset."""
    request = build_dataset_request(dataset, config, suite, target)
    cases = read_suite_cases(request.suite)

    async def compare() -> ComparedDataset:
        async with request.open_platform() as platform:
            return await _compare_suite_with_dataset(platform, request, cases)

    compared = asyncio.run(compare())
    _require_existing_dataset(request, compared)
    if as_json:
        write_json(json.dumps(_convert_diff_to_json(compared.diff), ensure_ascii=False, indent=2) + "\n")
        return ExitCode.PASS
    print_text(f"{request.suite} and {request.address}\n")
    print_text("\n".join(format_dataset_diff(compared.diff, max_entries=most)))
    return ExitCode.PASS
