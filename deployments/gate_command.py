"""``lookout gate``: verify and weigh a staging deploy, or weigh a run's results again; the exit code says how."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from deployments.ci_guard import check_ci
from deployments.exit_codes import ExitCode, of_verdict
from deployments.gate_github import JobResults, runner_obeys_nothing
from deployments.gate_settings import with_flags
from deployments.results_commands import weighed_again
from deployments.verdict_text import print_verdict
from deployments.verify_command import with_target
from deployments.verify_run import verified
from flows.baselines import named_baseline
from flows.request import NO_BASELINE, VerifyRequest
from flows.wiring import runs_folder
from monitors.alerts.redact import redact
from monitors.config import Config, load_config
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings
from monitors.github.workflow import Job, is_actions, job_of
from monitors.goldset.load import load_suite
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.atomic import write_atomically
from monitors.reports.junit import junit_xml
from monitors.reports.masking import Redact
from monitors.reports.results_json import read_results

DEFAULT_CONFIG = Path("lookout.toml")


@dataclass(frozen=True)
class GateOptions:
    """What the command line says."""

    results: Path | None
    config: Path | None
    target: str | None
    suite: Path | None
    commit: str | None
    baseline: str
    min_score: float | None
    fail_on_regression: bool
    strict: bool
    junit: Path | None
    as_json: bool
    github: bool
    allow_production: str | None


@dataclass(frozen=True)
class _Weighed:
    """A verdict with what it rests on, and where its report stands."""

    report: RunReport
    cases: tuple[CaseResult, ...]
    page: Path | None
    suite: Path | None
    redact: Redact


def gate_command(options: GateOptions, environment: Mapping[str, str]) -> ExitCode:
    """See ``lookout gate --help``. Raises `ConfigError` before anything is asked."""
    if (options.results is None) == (options.target is None):
        raise ConfigError(
            "give --target (and --suite) to verify a deploy, or the results.json of a run to weigh it again"
        )
    if options.junit is not None:
        _check_place(options.junit)
    job = job_of(environment) if options.github or is_actions(environment) else None
    with runner_obeys_nothing(environment):
        posts, weighed = _verify(options, environment, job) if options.target else _weigh(options, environment, job)
        if weighed is None:
            return ExitCode.INCONCLUSIVE
        _print(weighed, as_json=options.as_json)
    if options.junit is not None:
        write_atomically(options.junit, [junit_xml(weighed.report, weighed.cases, redact=weighed.redact)])
    if posts is not None:
        posts.say(weighed.report, weighed.cases, redact=weighed.redact, suite=weighed.suite)
    return of_verdict(weighed.report.verdict)


def _check_place(file: Path) -> None:
    """Raises `ConfigError` for a file that could not be written: that is told now, not after the run."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise ConfigError(f"--junit {file}: cannot be written ({error.strerror}); name a file that can") from error
    if file.is_dir():
        raise ConfigError(f"--junit {file}: is a folder; name a file in it")


def _verify(
    options: GateOptions, environment: Mapping[str, str], job: Job | None
) -> tuple[JobResults | None, _Weighed | None]:
    """The whole line against the target, as ``lookout verify`` does it."""
    name, config = _configured(options)
    note = check_ci(config, name, environment, allowed=options.allow_production)
    if note:
        sys.stderr.write(f"{note}\n")
    if config.gate.rating_needed and config.judge is None:
        raise ConfigError(
            f"an average rating of {config.gate.min_rubric:g} is asked for (--min-score above 1, or "
            "gate.rating_needed), which a judge gives, and the configuration has no [judge]"
        )
    named_baseline(options.baseline, runs_folder(config))
    load_suite(config.target(name).suite)  # what is wrong with it is told before anything hears of a run
    posts = JobResults(job, name, environment) if options.github and job else None
    request = VerifyRequest(
        target=name,
        config=config,
        commit=options.commit,
        baseline=_as_found_from_here(options.baseline),
        pull_request=job.pull_request if job else None,
    )
    with ExitStack() as stack:
        if posts is not None:
            stack.enter_context(posts.following())
        report = verified(request)
    if report is None:
        if posts is not None:
            posts.stopped()
        return posts, None
    folder = runs_folder(config) / report.run_id
    _, cases = read_results(folder / "results.json")
    patterns = config.target(name).graders.account_patterns
    return posts, _Weighed(
        report=report,
        cases=cases,
        page=folder / "report.html",
        suite=config.target(name).suite,
        redact=lambda text: redact(text, account_patterns=patterns),
    )


def _configured(options: GateOptions) -> tuple[str, Config]:
    """The target's name, and the configuration as the command line changes it.

    The job itself says what it found; the run in it must not say it a second time.
    """
    path = options.config or DEFAULT_CONFIG
    known = path.exists() or options.config is not None or not _is_address(options.target)
    name, config = with_target(options.target or "", load_config(path) if known else None, options.suite)
    silent = config.github.model_copy(update={"post_results": False})
    return name, config.model_copy(update={"gate": _settings(options, config.gate), "github": silent})


def _is_address(target: str | None) -> bool:
    return target is not None and target.startswith(("http://", "https://"))


def _settings(options: GateOptions, settings: GateSettings) -> GateSettings:
    return with_flags(
        settings,
        min_score=options.min_score,
        fail_on_regression=options.fail_on_regression,
        strict=options.strict,
    )


def _as_found_from_here(baseline: str) -> str:
    """A file's path as it is from anywhere."""
    return str(Path(baseline).absolute()) if Path(baseline).is_file() else baseline


def _weigh(
    options: GateOptions, environment: Mapping[str, str], job: Job | None
) -> tuple[JobResults | None, _Weighed | None]:
    """A run's results under the settings as they are now; the warehouse is not asked, so ``auto`` finds none."""
    if options.results is None:
        raise AssertionError("without a target there are results")
    config = load_config(options.config) if options.config else None
    settings = _settings(options, config.gate if config else GateSettings())
    runs = runs_folder(config) if config else options.results.parent.parent
    baseline = named_baseline(options.baseline, runs) if options.baseline != NO_BASELINE else None
    report, cases = weighed_again(options.results, settings, baseline)
    posts = JobResults(job, report.target.name, environment) if options.github and job else None
    known = config.targets.get(report.target.name) if config else None
    patterns = known.graders.account_patterns if known else ()
    weighed = _Weighed(
        report=report,
        cases=cases,
        page=None,
        suite=options.suite or (known.suite if known else None),
        redact=lambda text: redact(text, account_patterns=patterns),
    )
    return posts, weighed


def _print(weighed: _Weighed, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(weighed.report.model_dump_json(indent=2) + "\n")
    else:
        print_verdict(Console(), weighed.report, report_page=weighed.page)
