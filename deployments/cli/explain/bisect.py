"""``lookout bisect``: find the first bad build of an application. Each build must have its own address.

The commits come from a git repository, a file or the command line. The failing cases come from the last failed run.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from deployments.cli.data_folder import load_new_results_into_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, AllowProductionOption, ConfigOption, JsonOption
from deployments.cli.verify import refuse_production_in_ci
from flows.terminal import print_text, write_json, write_note
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.explain.builds import BisectCandidate, BisectCase, BisectClaim, BisectReport, Build, BuildAnswer
from monitors.goldset.load import load_suite
from monitors.plural import plural
from monitors.records.grades import FailureKind

if TYPE_CHECKING:
    from flows.explain.bisect import FailingCase
    from warehouse.queries.runs import FailedSince

MAX_CASES: Final = 5
"""Maximum number of cases that are asked, most severe first. More cases would add little information."""
COMMIT_SHOWN_LENGTH: Final = 7
MAX_HYPOTHESES: Final = 3
"""Maximum number of possible results that are printed if the first bad build is not known."""
MIN_LIKELY_PROBABILITY: Final = 0.5
MIN_SHOWN_PROBABILITY: Final = 0.005
"""Minimum probability of a printed result. A lower probability would be rounded to 0 %."""


class CommitLine(NamedTuple):
    """A commit, and the address of its build if the list contains an address."""

    commit: str
    address: str | None = None


def read_commit_list(path: Path) -> tuple[CommitLine, ...]:
    """Read a file with one commit on each line. An address can follow the commit. Raises `ConfigError`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--commits {path} cannot be read as UTF-8 text: {error}") from None
    commits: list[CommitLine] = []
    for number, line in enumerate(lines, start=1):
        parts = line.split("#", 1)[0].split() if line.lstrip().startswith("#") else line.split()
        if len(parts) > len(CommitLine._fields):
            raise ConfigError(
                f"--commits {path}, line {number} is not valid. Accepted: a commit, or a commit followed by its "
                "address"
            )
        if parts:
            commits.append(CommitLine(*parts))
    return tuple(commits)


def list_commits_between(repository: Path, good: str, bad: str) -> tuple[CommitLine, ...]:
    """List the commits from ``good`` to ``bad`` along first parents, both ends included. Raises `ConfigError`."""
    first, last = (
        _run_git(repository, "rev-parse", f"{good}^{{commit}}"),
        _run_git(repository, "rev-parse", f"{bad}^{{commit}}"),
    )
    if first == last or first not in _run_git(repository, "rev-list", "--first-parent", last).split():
        raise ConfigError(
            f"--repo {repository}: {good} is not an older commit on the main line (first parents) of {bad}. Give "
            "the older commit as --good, or list the builds with --commits"
        )
    between = _run_git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    return (CommitLine(first), *(CommitLine(commit) for commit in between))


def _run_git(repository: Path, *arguments: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise ConfigError(
            "--repo needs git, which is not installed. Install git, or list the builds with --commits FILE"
        )
    command = [git, "-C", str(repository), *arguments, "--"] if arguments[0] == "rev-list" else [
        git, "-C", str(repository), *arguments
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - git, by its full path
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(f"--repo {repository}: git {arguments[0]} {arguments[-1]}: {reason}")
    return process.stdout.strip()


def select_commits_between(listed: Sequence[CommitLine], good: str, bad: str) -> tuple[CommitLine, ...]:
    """Return the listed commits from ``good`` to ``bad``, both ends included. Raises `ConfigError`."""
    start, end = _require_commit_index(listed, good, "--good"), _require_commit_index(listed, bad, "--bad")
    if start >= end:
        raise ConfigError(f"--good {good} must be before --bad {bad} in the list. List the oldest build first")
    return tuple(listed[start : end + 1])


def _require_commit_index(listed: Sequence[CommitLine], commit: str, option: str) -> int:
    places = [at for at, line in enumerate(listed) if line.commit.startswith(commit)]
    if len(places) != 1:
        problem = "is not in" if not places else "matches several commits in"
        raise ConfigError(
            f"{option} {commit} {problem} the list of builds. Choose one of: "
            f"{', '.join(line.commit for line in listed)}"
        )
    return places[0]


def resolve_build_addresses(commits: Sequence[CommitLine], url_of: str | None) -> tuple[Build, ...]:
    """Return the builds with their addresses.

    A commit without an address gets the address ``url_of``, with the commit in place of {commit}, or its first
    characters in place of {short}.
    """
    if url_of is not None and "{commit}" not in url_of and "{short}" not in url_of:
        raise ConfigError(
            f"--url-of {url_of} must contain {{commit}} for the commit, or {{short}} for the first "
            f"{COMMIT_SHOWN_LENGTH} characters of the commit"
        )
    return tuple(Build(commit=line.commit, address=_resolve_build_address(line, url_of)) for line in commits)


def _resolve_build_address(line: CommitLine, url_of: str | None) -> str:
    address = line.address
    if address is None and url_of is not None:
        address = url_of.replace("{commit}", line.commit).replace("{short}", line.commit[:COMMIT_SHOWN_LENGTH])
    if address is None:
        raise ConfigError(
            f"the commit {line.commit} has no address. Give --url-of, or add the address to the --commits file"
        )
    if not re.match(r"https?://[^\s/]", address):
        raise ConfigError(
            f"{address} is not a valid address of a build. An address must begin with http:// or https://"
        )
    return address


def select_failing_cases(
    config: Config, target: str, case_ids: Sequence[str], since: FailedSince | None
) -> list[FailingCase]:
    """Return the cases to ask: the cases in ``case_ids``, or the failed cases of the last failed run.

    Raises `ConfigError`.
    """
    from flows.explain.bisect import FailingCase  # slow: imports all drivers

    suite_cases = {case.id: case for case in load_suite(config.require_target(target).suite).cases}
    kinds = {case: frozenset(map(FailureKind, names)) for case, names in since.cases} if since else {}
    for name in case_ids:
        if name not in suite_cases:
            raise ConfigError(f"--case {name}: the suite of {target} has no case with this id")
    chosen = list(case_ids) or [case for case in kinds if case in suite_cases][:MAX_CASES]
    if not chosen:
        raise ConfigError(
            f"no stored run of {target} failed with a case of its current suite. Name a failing case with --case ID"
        )
    return [FailingCase(suite_cases[name], kinds.get(name, frozenset())) for name in chosen]


def refuse_production_addresses(config: Config, target: str, addresses: Iterable[str], allowed: str | None) -> None:
    """Raise `ConfigError` if a run against one of the addresses would use production.

    ``allowed`` is a reason that permits a CI run to use production. The reason is printed if it was needed.
    """
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and all judges

    configured = config.require_target(target)
    notes: dict[str, None] = {}
    for address in addresses:
        moved_config = config.with_target(target, configured.with_address_instead_of_space(address))
        refuse_production_settings(moved_config, target, get_environment())
        if note := refuse_production_in_ci(moved_config, target, get_environment(), allowed=allowed):
            notes[note] = None
    for note in notes:
        write_note(f"{note}\n")


def format_bisect_report(report: BisectReport) -> Iterator[str]:
    """Yield the lines of the report for a person. The first line states the conclusion."""
    best, *others = report.candidates
    if not report.why_open:
        yield _format_bisect_claim(best, report)
    else:
        yield f"The first bad build is not known: {report.why_open}."
        others = [best, *others]
    likely = [candidate for candidate in others if candidate.probability >= MIN_SHOWN_PROBABILITY][
        : MAX_HYPOTHESES if report.why_open else 2
    ]
    if likely:
        listed = "; ".join(
            f"{_format_bisect_candidate(candidate, report)} ({_format_percent(candidate.probability)})"
            for candidate in likely
        )
        yield f"{'Most likely' if report.why_open else 'Next most likely'}: {listed}."
    if best.claim is BisectClaim.FIRST_BAD:
        yield from (f"  {_format_bisect_case(case)}" for case in report.cases)
    for commit, why in report.left_out:
        yield f"  {_shorten_commit(commit)} skipped: {why}"
    stored = f" and used {plural(report.stored, 'stored answer')}" if report.stored else ""
    yield f"Lookout sent {plural(report.asked, 'question')} to {plural(report.builds, 'build')}{stored}."


def _format_bisect_claim(best: BisectCandidate, report: BisectReport) -> str:
    sure = _format_percent(best.probability)
    match best.claim:
        case BisectClaim.FIRST_BAD:
            listed = ", ".join(map(_shorten_commit, best.commits))
            if len(best.commits) > 1:
                return f"First bad build: one of {listed} ({sure}). Lookout cannot determine which."
            return f"First bad build: {listed} ({sure})."
        case BisectClaim.GOOD_FAILS:
            good = _shorten_commit(report.good)
            return f"The good build {good} already fails ({sure}). Give an older build with --good."
        case BisectClaim.BAD_PASSES:
            return (
                f"No build is bad ({sure}). {_shorten_commit(report.bad)} does not fail more often than older "
                "builds. The cause is not in a build, or the fault no longer occurs."
            )


def _format_bisect_candidate(candidate: BisectCandidate, report: BisectReport) -> str:
    match candidate.claim:
        case BisectClaim.FIRST_BAD:
            return " or ".join(map(_shorten_commit, candidate.commits))
        case BisectClaim.GOOD_FAILS:
            return f"the good build {_shorten_commit(report.good)} already fails"
        case BisectClaim.BAD_PASSES:
            return "no build is bad"


def _format_bisect_case(case: BisectCase) -> str:
    if not case.asked_before + case.asked_after:
        return f"{case.case_id}: not asked"
    after = (
        f"from this build on, {case.failed_after} of {plural(case.asked_after, 'answer')} failed"
        if case.asked_after
        else "from this build on, not asked"
    )
    before = (
        (f"before this build, {case.failed_before} of {plural(case.asked_before, 'answer')} failed")
        if case.asked_before
        else ("before this build, not asked")
    )
    doubt = (
        f". The case probably broke at another build or fails at random ({_format_percent(case.elsewhere)})"
        if case.elsewhere >= MIN_LIKELY_PROBABILITY
        else ""
    )
    return f"{case.case_id}: {after}; {before}{doubt}"


def _shorten_commit(commit: str) -> str:
    return commit[:COMMIT_SHOWN_LENGTH] if re.fullmatch(r"[0-9a-f]{8,}", commit) else commit


def _format_percent(probability: float) -> str:
    return "over 99 %" if probability > 1 - MIN_SHOWN_PROBABILITY else f"{probability:.0%}".replace("%", " %")


def _print_case_outcome_on_build(answer: BuildAnswer, failed: bool | None) -> None:
    outcome = {True: "fails", False: "passes", None: f"not decided ({redact(answer.reason)})"}[failed]
    write_note(f"  {_shorten_commit(answer.commit)}  {answer.case_id}  {outcome}\n")


def bisect_command(
    target: Annotated[str, typer.Argument(help="the name of a configured target")],
    *,
    good: Annotated[
        str | None, typer.Option(help="a commit that passed; default: the commit of the last run with PASS")
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help="a later commit that fails; default: the commit of the last run with FAIL")
    ] = None,
    url_of: Annotated[
        str | None,
        typer.Option(
            "--url-of", help="the address of each build, in which {commit} or {short} stands for the commit"
        ),
    ] = None,
    repo: Annotated[Path | None, typer.Option(help="a git repository with the commits")] = None,
    commits: Annotated[
        Path | None,
        typer.Option(
            help="a file with one commit on each line, oldest first; each line may also contain the address of the "
            "build"
        ),
    ] = None,
    commit: Annotated[
        list[str] | None, typer.Option(help="the commit of a build; repeat the option for each build, oldest first")
    ] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="the id of a case that fails; repeat the option for more cases")
    ] = None,
    budget: Annotated[int, typer.Option(min=2, help="the maximum number of questions to ask")] = 40,
    config: ConfigOption = DEFAULT_CONFIG,
    allow_production: AllowProductionOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Find the first build that fails. Each build must have its own address."""
    from flows.data_folder import open_store  # slow: imports duckdb
    from warehouse.queries.runs import find_failures_since_last_pass

    configured = load_config(config)
    configured.require_target(target)
    with show_waiting("Reading the records of runs"):
        since = (
            find_failures_since_last_pass(load_new_results_into_warehouse(open_store(configured)), target)
            if not (case and good and bad)
            else None
        )
    first = _require_commit(good, since.passed_commit if since else None, "--good", "PASS")
    last = _require_commit(bad, since.commit if since else None, "--bad", "FAIL")
    builds = resolve_build_addresses(_load_commits_between(repo, commits, commit or [], first, last), url_of)
    cases: list[FailingCase] = select_failing_cases(configured, target, case or [], since)
    refuse_production_addresses(configured, target, (build.address for build in builds), allow_production)
    with show_waiting(f"{target}: asking {plural(len(builds), 'build')}"):
        report = asyncio.run(_run_bisection(configured, target, builds, cases, budget))
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        for line in format_bisect_report(report):
            print_text(line)
    return ExitCode.INCONCLUSIVE if report.why_open else ExitCode.PASS


def _require_commit(commit: str | None, recorded: str | None, option: str, verdict: str) -> str:
    """Return ``commit`` if the user gave one, and otherwise ``recorded``, the commit of a stored run.

    Raises `ConfigError` if there is no commit. The error names the ``option`` to give, and the ``verdict`` that the
    stored run must have.
    """
    if commit is None and recorded is None:
        raise ConfigError(
            f"{option} is missing, and no stored run has the verdict {verdict} and a commit. Give {option} COMMIT"
        )
    return commit or recorded or ""


def _load_commits_between(
    repository: Path | None, list_file: Path | None, commits: Sequence[str], good: str, bad: str
) -> tuple[CommitLine, ...]:
    sources = [repository is not None, list_file is not None, bool(commits)]
    if sum(sources) != 1:
        raise ConfigError(
            "give the builds with exactly one of these options: --repo DIR, --commits FILE, or --commit for each "
            "build"
        )
    if repository is not None:
        return list_commits_between(repository, good, bad)
    listed = read_commit_list(list_file) if list_file else tuple(CommitLine(commit) for commit in commits)
    return select_commits_between(listed, good, bad)


async def _run_bisection(
    config: Config, target: str, builds: Sequence[Build], cases: Sequence[FailingCase], budget: int
) -> BisectReport:
    from flows.clock import utc_now  # slow: imports duckdb and all judges
    from flows.data_folder import get_runs_folder  # slow: imports duckdb and all judges
    from flows.explain.bisect import BISECT_FOLDER, BuildAnswers, BuildBisection, open_build_visitor
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and all judges

    run_id = f"bisect-{target}"
    write_note(f"{target}: {plural(len(builds), 'build')}, {plural(len(cases), 'failing case')}\n")
    async with open_build_visitor(
        config,
        target,
        [failing_case.case for failing_case in cases],
        folder=get_runs_folder(config).parent / BISECT_FOLDER / run_id,
        run_id=run_id,
        environment=get_environment(),
        clock=utc_now,
    ) as visitor:
        answers = BuildAnswers(config.data_folder, target)
        return await BuildBisection(
            target, builds, cases, answers, visitor.ask, _print_case_outcome_on_build, budget
        ).run()
