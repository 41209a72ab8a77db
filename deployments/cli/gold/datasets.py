"""``lookout gold push``, ``pull`` and ``diff`` with a dataset: what would change is shown, then asked for."""

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

from deployments.cli.data_folder import store_of
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from deployments.cli.reviews.session import ReviewScreen, reviewer
from flows.clock import utc_now
from flows.goldset.datasets import (
    ComparedDataset,
    DraftSource,
    PullPlan,
    PushPlan,
    compare_dataset,
    draft_id,
    drafts_of_people,
    pull_plan,
    push_plan,
    push_suite,
    tag_of,
)
from flows.runtime.run import open_platform
from flows.runtime.secrets import environment
from flows.terminal import print_text, write_json
from flows.terminal_console import terminal_console
from monitors.config.file import Config, TargetConfig, load_config
from monitors.errors import ConfigError
from monitors.goldset.changes import ChangedBy, DatasetDiff, describe_dataset_diff
from monitors.goldset.load import cases_sha256, load_suite
from monitors.goldset.versions import SuiteEdit, cases_in, edit_suite
from monitors.platforms.platform import Dataset, OpenPlatform, Platform
from monitors.platforms.settings import DatasetAddress, PlatformScheme, dataset_address
from monitors.plural import plural
from monitors.records.cases import GoldCase, Suite
from monitors.records.operator_actions import CaseDraft
from warehouse.database.store import Store
from warehouse.queries.operator_actions import append_draft, decided_drafts, waiting_drafts

BAR_AFTER_S: Final = 2.0
LISTED: Final = 20

DatasetArgument = Annotated[str, typer.Argument(help="the dataset: langsmith:NAME or langfuse:NAME")]
SuiteFileOption = Annotated[Path | None, typer.Option("--suite", help="the suite; the target's when left out")]
TargetOption = Annotated[str | None, typer.Option("--target", help="whose suite; the only target when left out")]
YesOption = Annotated[bool, typer.Option("--yes", help="write without asking, for scripts")]
MostOption = Annotated[int, typer.Option(min=1, help="how many cases of each group to list")]


def names_dataset(written: str) -> bool:
    """Whether it is an address such as ``langsmith:DATASET``, and no file."""
    return written.partition(":")[0] in set(PlatformScheme) and ":" in written


class DatasetRequest(NamedTuple):
    """What a command is about: which dataset, which suite, whose."""

    address: DatasetAddress
    suite: Path
    target: str
    configured: TargetConfig
    config: Config

    def opened(self) -> OpenPlatform:
        """The platform; `ConfigError` without its key."""
        return open_platform(self.config, self.address.scheme, environment())


def request_of(written: str, config: Path, suite: Path | None, target: str | None) -> DatasetRequest:
    """The dataset, the suite and the target. `ConfigError` says which option is missing."""
    address, loaded = dataset_address(written), load_config(config)
    if target is None:
        whose = [name for name, one in loaded.targets.items() if suite and one.suite.resolve() == suite.resolve()]
        names = whose or list(loaded.targets)
        if len(names) > 1:
            raise ConfigError(f"--target: {config} has several; one of {', '.join(names)} is needed")
        target = names[0]
    configured = loaded.target(target)
    return DatasetRequest(address, suite or configured.suite, target, configured, loaded)


class _Bar(AbstractContextManager["_Bar"]):
    """A progress bar on standard error, once the work has taken two seconds."""

    def __init__(self, doing: str, total: int | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=terminal_console(stderr=True), transient=True)
        self._task = self._bar.add_task(doing, total=total)
        self._started_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._bar.stop()

    def advance(self, count: int) -> None:
        """So many more are done."""
        self._bar.advance(self._task, count)
        if time.monotonic() - self._started_s > BAR_AFTER_S:
            self._bar.start()


async def _compared(platform: Platform, request: DatasetRequest, suite: Sequence[GoldCase]) -> ComparedDataset:
    with _Bar(f"Reading {request.address}", None) as bar:
        return await compare_dataset(platform.datasets, request.address.dataset, suite, bar.advance)


def _may_write(what: str, *, yes: bool) -> bool:
    """Whether the person says so. `ConfigError` where nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(f"nothing was written: nobody can be asked here; with --yes it would {what}")
    return ReviewScreen().confirmed(f"{what[0].upper()}{what[1:]}?")


def _found(request: DatasetRequest, compared: ComparedDataset) -> Dataset:
    """The dataset; `ConfigError` where there is none."""
    if compared.dataset is None:
        raise ConfigError(f"{request.address}: there is no dataset of that name; lookout gold push makes one")
    return compared.dataset


def push_command(
    dataset: DatasetArgument,
    *,
    suite: SuiteFileOption = None,
    target: TargetOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="overwrite what people changed in the dataset since the last push")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="delete cases of ours that the suite has no more; never people's entries"),
    ] = False,
    yes: YesOption = False,
    most: MostOption = LISTED,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write a suite into a dataset. The difference is shown first; what people changed there is not overwritten."""
    request = request_of(dataset, config, suite, target)
    options = PushOptions(overwrite=overwrite, prune=prune, yes=yes, most=most, as_json=as_json)
    return asyncio.run(_push(request, load_suite(request.suite), options))


class PushOptions(NamedTuple):
    """What the person asked for."""

    overwrite: bool
    prune: bool
    yes: bool
    most: int
    as_json: bool


async def _push(request: DatasetRequest, suite: Suite, asked: PushOptions) -> ExitCode:
    async with request.opened() as platform:
        compared = await _compared(platform, request, suite.cases)
        plan = push_plan(compared.diff, suite.cases, overwrite=asked.overwrite, prune=asked.prune)
        _show(request, compared.diff, asked)
        if plan.blocked:
            return _blocked(request, compared.diff, plan, asked)
        if plan.size == 0 and compared.dataset is not None:
            await platform.datasets.tag(compared.dataset, tag_of(suite))
            return _pushed(request, suite, compared, plan, asked)
        if not _may_write(_would_push(request, compared, plan), yes=asked.yes):
            print_text("Nothing was written.", err=asked.as_json)
            return ExitCode.PASS
        with _Bar(f"Writing {request.address}", plan.size) as bar:
            written = await push_suite(platform.datasets, compared, suite, plan, bar.advance)
    return _pushed(request, suite, compared._replace(dataset=written), plan, asked)


def _would_push(request: DatasetRequest, compared: ComparedDataset, plan: PushPlan) -> str:
    made = "" if compared.dataset is not None else "make the dataset, "
    deleted = f" and delete {plural(len(plan.deleted), 'entry', 'entries')}" if plan.deleted else ""
    return f"{made}write {plural(len(plan.cases), 'case')}{deleted} in {request.address}"


def _show(request: DatasetRequest, diff: DatasetDiff, asked: PushOptions | PullOptions) -> None:
    if asked.as_json:
        return
    print_text(f"{request.suite} and {request.address}")
    print_text()
    print_text("\n".join(describe_dataset_diff(diff, most=asked.most)))


def _blocked(request: DatasetRequest, diff: DatasetDiff, plan: PushPlan, asked: PushOptions) -> ExitCode:
    print_text(
        f"\n{plural(plan.blocked, 'case was', 'cases were')} changed in the dataset since the last push, so "
        f"nothing was written. To take the changes over: lookout gold pull {request.address}; to overwrite them: "
        "--overwrite",
        err=asked.as_json,
    )
    if asked.as_json:
        said = {"written": 0, "deleted": 0, "blocked": plan.blocked, "diff": _plain(diff)}
        write_json(json.dumps(said, ensure_ascii=False) + "\n")
    return ExitCode.FAIL


def _pushed(
    request: DatasetRequest, suite: Suite, compared: ComparedDataset, plan: PushPlan, asked: PushOptions
) -> ExitCode:
    dataset, diff = _found(request, compared), compared.diff
    if asked.as_json:
        said: dict[str, Any] = {"written": len(plan.cases), "deleted": len(plan.deleted), "blocked": 0}
        said |= {"tag": tag_of(suite), "dataset": dataset.model_dump(mode="json"), "diff": _plain(diff)}
        write_json(json.dumps(said, ensure_ascii=False) + "\n")
        return ExitCode.PASS
    print_text(
        f"\n{plural(len(plan.cases), 'case')} written, {len(plan.deleted)} deleted. {request.address} holds "
        f"{plural(len(suite.cases), 'case')} of {request.suite}, tagged {tag_of(suite)}\n{dataset.url}"
    )
    if diff.removed and not plan.deleted:
        print_text(f"{plural(len(diff.removed), 'case')} that only the dataset has stayed; --prune deletes such")
    if diff.people:
        print_text(f"To make drafts of what people added there: lookout gold pull {request.address}")
    return ExitCode.PASS


def _plain(diff: DatasetDiff) -> dict[str, Any]:
    return diff.model_dump(mode="json", exclude={"unmarked"})


def pull_command(
    dataset: DatasetArgument,
    *,
    suite: SuiteFileOption = None,
    target: TargetOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="take the dataset's case also where the suite has changed it")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="remove cases from the suite that the dataset has not")
    ] = False,
    yes: YesOption = False,
    by: Annotated[
        str | None, typer.Option("--as", help="who pulls; asked once and remembered when left out")
    ] = None,
    most: MostOption = LISTED,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Bring what people changed in a dataset into the suite; what they added there becomes drafts for gold grow."""
    request = request_of(dataset, config, suite, target)
    cases = cases_in(request.suite)
    options = PullOptions(overwrite, prune, yes, most, as_json, by, data_folder, config)
    return asyncio.run(_pull(request, cases, options))


class PullOptions(NamedTuple):
    """What the person asked for."""

    overwrite: bool
    prune: bool
    yes: bool
    most: int
    as_json: bool
    by: str | None
    data_folder: Path | None
    config: Path

    def store(self) -> Store:
        """The warehouse that drafts wait in."""
        return store_of(self.config, self.data_folder)


async def _pull(request: DatasetRequest, cases: Sequence[GoldCase], asked: PullOptions) -> ExitCode:
    async with request.opened() as platform:
        compared = await _compared(platform, request, cases)
        dataset, diff = _found(request, compared), compared.diff
        plan = pull_plan(diff, overwrite=asked.overwrite, prune=asked.prune)
        store = asked.store()
        known = _known_drafts(store) if diff.people else frozenset[str]()
        new = [entry for entry in diff.people if draft_id(entry) not in known]
        _show(request, diff, asked)
        if plan.size == 0 and not new:
            return _pulled(request, plan, (), diff, asked)
        if not _may_write(_would_pull(request, plan, len(new)), yes=asked.yes):
            print_text("Nothing was written.", err=asked.as_json)
            return ExitCode.PASS
        drafts: Sequence[CaseDraft] = ()
        if new:
            person = reviewer(asked.by, request.config.data_folder, None, option="--as")
            patterns = request.configured.graders.account_patterns
            source = DraftSource(dataset, request.target, patterns, person, utc_now())
            drafts = await drafts_of_people(new, source, platform.traces)
    _write(request, cases, plan, drafts, store)
    return _pulled(request, plan, drafts, diff, asked)


def _known_drafts(store: Store) -> frozenset[str]:
    waiting = waiting_drafts(store, target=None, wait_s=LOCK_WAIT_S)
    return frozenset(draft.id for draft in waiting) | decided_drafts(store, wait_s=LOCK_WAIT_S)


LOCK_WAIT_S: Final = 10.0


def _would_pull(request: DatasetRequest, plan: PullPlan, drafts: int) -> str:
    parts = [f"write {plural(len(plan.changed) + len(plan.added), 'case')} into {request.suite}"]
    parts += [f"remove {len(plan.removed)} from it"] if plan.removed else []
    parts += [f"make {plural(drafts, 'draft')}"] if drafts else []
    return ", ".join(parts)


def _write(
    request: DatasetRequest, cases: Sequence[GoldCase], plan: PullPlan, drafts: Sequence[CaseDraft], store: Store
) -> None:
    """The suite first: drafts are made again by the next pull after a kill between the two."""
    if plan.size:
        edit = SuiteEdit(changed=plan.changed, added=plan.added, removed=plan.removed)
        edit_suite(request.suite, edit, known_sha256=cases_sha256(cases))
    for draft in drafts:
        append_draft(store.journal, draft)
    if drafts:
        store.load_pending(LOCK_WAIT_S)


def _pulled(
    request: DatasetRequest, plan: PullPlan, drafts: Sequence[CaseDraft], diff: DatasetDiff, asked: PullOptions
) -> ExitCode:
    result = ExitCode.FAIL if plan.conflicts or diff.broken else ExitCode.PASS
    if asked.as_json:
        said: dict[str, Any] = {
            "changed": len(plan.changed),
            "added": len(plan.added),
            "removed": len(plan.removed),
        }
        said |= {"conflicts": plan.conflicts, "drafts": [draft.model_dump(mode="json") for draft in drafts]}
        write_json(json.dumps(said | {"diff": _plain(diff)}, ensure_ascii=False) + "\n")
        return result
    print_text(
        f"\n{len(plan.changed)} changed, {len(plan.added)} added, {len(plan.removed)} removed in {request.suite}"
    )
    ahead = len(diff.by(ChangedBy.SUITE)) + len(diff.added)
    if ahead and not asked.overwrite:
        print_text(
            f"{plural(ahead, 'case')} of the suite are not in the dataset like this: lookout gold push writes them"
        )
    if plan.conflicts:
        print_text(f"{plural(plan.conflicts, 'conflict')}: the suite kept its own; --overwrite takes the dataset's")
    if drafts:
        print_text(
            f"{plural(len(drafts), 'draft')} of what people added. None is gold yet: "
            f"lookout gold grow --suite {request.suite}"
        )
    return result


def compare_command(
    written: str, suite: Path | None, target: str | None, config: Path, *, most: int, as_json: bool
) -> ExitCode:
    """Say what differs between a suite and a dataset; nothing is written."""
    request = request_of(written, config, suite, target)
    cases = cases_in(request.suite)

    async def compare() -> ComparedDataset:
        async with request.opened() as platform:
            return await _compared(platform, request, cases)

    compared = asyncio.run(compare())
    _found(request, compared)
    if as_json:
        write_json(json.dumps(_plain(compared.diff), ensure_ascii=False, indent=2) + "\n")
        return ExitCode.PASS
    print_text(f"{request.suite} and {request.address}\n")
    print_text("\n".join(describe_dataset_diff(compared.diff, most=most)))
    return ExitCode.PASS
