"""``lookout bisect``: which build of an application is the first bad one, where each build has an address.

Commits come from a git repository, a file or the command line; the failing cases from the last failed run.
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

from deployments.cli.data_folder import loaded
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, AllowProductionOption, ConfigOption, JsonOption
from deployments.cli.verify import check_ci
from flows.terminal import print_text, write_json, write_note
from flows.waiting import waiting
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.config.isolation import refuse_production
from monitors.errors import ConfigError
from monitors.explain.builds import BisectCandidate, BisectCase, BisectClaim, BisectReport, Build, BuildAnswer
from monitors.goldset.load import load_suite
from monitors.plural import plural
from monitors.records.grades import FailureKind

if TYPE_CHECKING:
    from flows.explain.bisect import FailingCase
    from warehouse.queries.runs import FailedSince

MOST_CASES: Final = 5
"""Cases that are asked, worst first: what they say of a build is alike, and each must be learnt to know."""
SHORT: Final = 7
SHOWN: Final = 3
"""So many hypotheses are printed where none is likely enough."""
LIKELY: Final = 0.5
LEAST_SHOWN: Final = 0.005
"""A probability that is 0 % when it is rounded is not printed."""


class CommitLine(NamedTuple):
    """A commit, and its build's address where the list names it."""

    commit: str
    address: str | None = None


def commits_in(path: Path) -> tuple[CommitLine, ...]:
    """The commits of a file, oldest first: one a line, with an address behind it or not. Raises `ConfigError`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--commits {path}: cannot be read as UTF-8 text: {error}") from None
    found: list[CommitLine] = []
    for number, line in enumerate(lines, start=1):
        parts = line.split("#", 1)[0].split() if line.lstrip().startswith("#") else line.split()
        if len(parts) > len(CommitLine._fields):
            raise ConfigError(f"--commits {path}, line {number}: accepted is a commit, or a commit and its address")
        if parts:
            found.append(CommitLine(*parts))
    return tuple(found)


def commits_between(repository: Path, good: str, bad: str) -> tuple[CommitLine, ...]:
    """The commits from ``good`` to ``bad`` along first parents, both included. Raises `ConfigError`."""
    first, last = (
        _git(repository, "rev-parse", f"{good}^{{commit}}"),
        _git(repository, "rev-parse", f"{bad}^{{commit}}"),
    )
    if first == last or first not in _git(repository, "rev-list", "--first-parent", last).split():
        raise ConfigError(
            f"--repo {repository}: {good} does not come before {bad} along first parents; name the older commit "
            "with --good, or list the builds with --commits"
        )
    between = _git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    return (CommitLine(first), *(CommitLine(commit) for commit in between))


def _git(repository: Path, *arguments: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise ConfigError("--repo needs git, which is not installed; list the builds with --commits FILE")
    command = [git, "-C", str(repository), *arguments, "--"] if arguments[0] == "rev-list" else [
        git, "-C", str(repository), *arguments
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - git, by its full path
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(f"--repo {repository}: git {arguments[0]} {arguments[-1]}: {said}")
    return done.stdout.strip()


def chosen_commits(listed: Sequence[CommitLine], good: str, bad: str) -> tuple[CommitLine, ...]:
    """The listed commits from ``good`` to ``bad``, both included. Raises `ConfigError`."""
    start, end = _place(listed, good, "--good"), _place(listed, bad, "--bad")
    if start >= end:
        raise ConfigError(f"--good {good} stands behind --bad {bad} in the list: list the oldest build first")
    return tuple(listed[start : end + 1])


def _place(listed: Sequence[CommitLine], commit: str, option: str) -> int:
    places = [at for at, line in enumerate(listed) if line.commit.startswith(commit)]
    if len(places) != 1:
        found = "is not in" if not places else "fits several commits of"
        raise ConfigError(
            f"{option} {commit} {found} the list of builds: {', '.join(one.commit for one in listed)}"
        )
    return places[0]


def builds_of(commits: Sequence[CommitLine], url_of: str | None) -> tuple[Build, ...]:
    """The builds with their addresses. ``url_of`` has {commit}, or {short} for seven characters of it."""
    if url_of is not None and "{commit}" not in url_of and "{short}" not in url_of:
        raise ConfigError(
            f"--url-of {url_of}: {{commit}} (or {{short}}, its first {SHORT} characters) must stand in it"
        )
    return tuple(Build(commit=line.commit, address=_address(line, url_of)) for line in commits)


def _address(line: CommitLine, url_of: str | None) -> str:
    address = line.address
    if address is None and url_of is not None:
        address = url_of.replace("{commit}", line.commit).replace("{short}", line.commit[:SHORT])
    if address is None:
        raise ConfigError(f"nothing says where {line.commit} is served: give --url-of, or its address in --commits")
    if not re.match(r"https?://[^\s/]", address):
        raise ConfigError(f"{address} is no address of a build: it must begin with http:// or https://")
    return address


def failing_cases(
    config: Config, target: str, named: Sequence[str], since: FailedSince | None
) -> list[FailingCase]:
    """The cases to ask, worst first: those named, else those of the last failed run. Raises `ConfigError`."""
    from flows.explain.bisect import FailingCase  # every driver

    known = {case.id: case for case in load_suite(config.target(target).suite).cases}
    kinds = {case: frozenset(map(FailureKind, names)) for case, names in since.cases} if since else {}
    for name in named:
        if name not in known:
            raise ConfigError(f"--case {name}: targets.{target}.suite has no such case")
    chosen = list(named) or [case for case in kinds if case in known][:MOST_CASES]
    if not chosen:
        raise ConfigError(
            f"no failed run of {target} with cases of its suite is stored: name what fails with --case ID"
        )
    return [FailingCase(known[name], kinds.get(name, frozenset())) for name in chosen]


def refuse_addresses(config: Config, target: str, addresses: Iterable[str], allowed: str | None) -> None:
    """Raise `ConfigError` where an address at which ``target`` is asked is production's, as for a run there."""
    from flows.runtime.secrets import environment  # duckdb, and every judge

    configured = config.target(target)
    notes: dict[str, None] = {}
    for address in addresses:
        moved = configured.model_copy(update={"url": address, "space": None})
        there = config.model_copy(update={"targets": {**config.targets, target: moved}})
        refuse_production(there, target, environment())
        if note := check_ci(there, target, environment(), allowed=allowed):
            notes[note] = None
    for note in notes:
        write_note(f"{note}\n")


def report_lines(report: BisectReport) -> Iterator[str]:
    """The report as a person reads it, the claim first."""
    best, *others = report.candidates
    if not report.why_open:
        yield _claim(best, report)
    else:
        yield f"The first bad build is not known: {report.why_open}."
        others = [best, *others]
    likely = [one for one in others if one.probability >= LEAST_SHOWN][: SHOWN if report.why_open else 2]
    if likely:
        listed = "; ".join(f"{_named(one, report)} {_percent(one.probability)}" for one in likely)
        yield f"{'Likeliest' if report.why_open else 'Next likeliest'}: {listed}."
    if best.claim is BisectClaim.FIRST_BAD:
        yield from (f"  {_case(case)}" for case in report.cases)
    for commit, why in report.left_out:
        yield f"  {_short(commit)} was left out: {why}"
    stored = f"; {plural(report.stored, 'answer')} stored before" if report.stored else ""
    yield f"{plural(report.asked, 'question')} asked of {plural(report.builds, 'build')}{stored}."


def _claim(best: BisectCandidate, report: BisectReport) -> str:
    sure = _percent(best.probability)
    match best.claim:
        case BisectClaim.FIRST_BAD:
            listed = ", ".join(map(_short, best.commits))
            if len(best.commits) > 1:
                return f"First bad build: one of {listed}, {sure}; which of them is open."
            return f"First bad build: {listed}, {sure}."
        case BisectClaim.GOOD_FAILS:
            return f"The good build {_short(report.good)} fails already, {sure}: name an older one with --good."
        case BisectClaim.BAD_PASSES:
            return (
                f"No build is bad, {sure}: {_short(report.bad)} does not fail more often than those before it. "
                "The cause is not in a build, or it is gone."
            )


def _named(one: BisectCandidate, report: BisectReport) -> str:
    match one.claim:
        case BisectClaim.FIRST_BAD:
            return " or ".join(map(_short, one.commits))
        case BisectClaim.GOOD_FAILS:
            return f"already {_short(report.good)}"
        case BisectClaim.BAD_PASSES:
            return "no build"


def _case(case: BisectCase) -> str:
    if not case.asked_before + case.asked_after:
        return f"{case.case_id}: not asked"
    after = (
        f"fails {case.failed_after} of {case.asked_after} from it on"
        if case.asked_after
        else "not asked from it on"
    )
    before = f"{case.failed_before} of {case.asked_before} before" if case.asked_before else "not asked before"
    doubt = f"; breaks elsewhere or at random, {_percent(case.elsewhere)}" if case.elsewhere >= LIKELY else ""
    return f"{case.case_id}: {after}, {before}{doubt}"


def _short(commit: str) -> str:
    return commit[:SHORT] if re.fullmatch(r"[0-9a-f]{8,}", commit) else commit


def _percent(probability: float) -> str:
    return "over 99 %" if probability > 1 - LEAST_SHOWN else f"{probability:.0%}".replace("%", " %")


def _say(answer: BuildAnswer, failed: bool | None) -> None:
    said = {True: "fails", False: "passes", None: f"says nothing ({redact(answer.reason)})"}[failed]
    write_note(f"  {_short(answer.commit)}  {answer.case_id}  {said}\n")


def bisect_command(
    target: Annotated[str, typer.Argument(help="a target of the configuration")],
    *,
    good: Annotated[str | None, typer.Option(help="a commit that was right; default: of the last PASS")] = None,
    bad: Annotated[str | None, typer.Option(help="a later commit that fails; default: of the last FAIL")] = None,
    url_of: Annotated[
        str | None, typer.Option("--url-of", help="where a build is served, with {commit} or {short} in it")
    ] = None,
    repo: Annotated[Path | None, typer.Option(help="a git repository that has the commits")] = None,
    commits: Annotated[
        Path | None,
        typer.Option(help="a file with the commits, oldest first, one a line, each with its address or not"),
    ] = None,
    commit: Annotated[list[str] | None, typer.Option(help="a commit, oldest first; repeat for each build")] = None,
    case: Annotated[list[str] | None, typer.Option(help="a case that fails; repeat for more")] = None,
    budget: Annotated[int, typer.Option(min=2, help="the most questions to ask")] = 40,
    config: ConfigOption = DEFAULT_CONFIG,
    allow_production: AllowProductionOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Find the first bad build, where each build has an address; exit code 3 when it stays open."""
    from flows.data_folder import open_store  # duckdb
    from warehouse.queries.runs import failed_since

    configured = load_config(config)
    configured.target(target)
    with waiting("Reading what runs recorded"):
        since = failed_since(loaded(open_store(configured)), target) if not (case and good and bad) else None
    first, last = _end(good, since.passed_commit if since else None, "--good", "PASS"), _end(
        bad, since.commit if since else None, "--bad", "FAIL"
    )  # fmt: skip
    builds = builds_of(_commits(repo, commits, commit or [], first, last), url_of)
    cases: list[FailingCase] = failing_cases(configured, target, case or [], since)
    refuse_addresses(configured, target, (build.address for build in builds), allow_production)
    with waiting(f"{target}: asking {plural(len(builds), 'build')}"):
        report = asyncio.run(_bisected(configured, target, builds, cases, budget))
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        for line in report_lines(report):
            print_text(line)
    return ExitCode.INCONCLUSIVE if report.why_open else ExitCode.PASS


def _end(given: str | None, recorded: str | None, option: str, verdict: str) -> str:
    if given is None and recorded is None:
        raise ConfigError(f"{option} is missing, and no {verdict} with a commit is stored: name the commit")
    return given or recorded or ""


def _commits(
    repository: Path | None, path: Path | None, named: Sequence[str], good: str, bad: str
) -> tuple[CommitLine, ...]:
    given = [repository is not None, path is not None, bool(named)]
    if sum(given) != 1:
        raise ConfigError("name the builds in one way: --repo DIR, --commits FILE, or --commit for each")
    if repository is not None:
        return commits_between(repository, good, bad)
    listed = commits_in(path) if path is not None else tuple(CommitLine(one) for one in named)
    return chosen_commits(listed, good, bad)


async def _bisected(
    config: Config, target: str, builds: Sequence[Build], cases: Sequence[FailingCase], budget: int
) -> BisectReport:
    from flows.clock import utc_now  # duckdb, and every judge
    from flows.data_folder import runs_folder  # duckdb, and every judge
    from flows.explain.bisect import BISECT_FOLDER, BuildAnswers, BuildBisection, build_visitor
    from flows.runtime.secrets import environment  # duckdb, and every judge

    run_id = f"bisect-{target}"
    write_note(f"{target}: {plural(len(builds), 'build')}, {plural(len(cases), 'failing case')}\n")
    async with build_visitor(
        config,
        target,
        [one.case for one in cases],
        folder=runs_folder(config).parent / BISECT_FOLDER / run_id,
        run_id=run_id,
        environment=environment(),
        clock=utc_now,
    ) as visitor:
        answers = BuildAnswers(config.data_folder, target)
        return await BuildBisection(target, builds, cases, answers, visitor.ask, _say, budget).run()
