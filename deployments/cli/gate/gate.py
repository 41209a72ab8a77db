"""``lookout gate``: verify a staging deploy, or evaluate a run's results again.

The exit code is the verdict. To evaluate a run again, Lookout needs only the run's results.json. Command-line
options override the gate's settings.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from deployments.cli.exit_codes import ExitCode, exit_code_from_verdict
from deployments.cli.gate.github import JobResults, disable_workflow_commands
from deployments.cli.gate.verdict import print_verdict
from deployments.cli.options import (
    DEFAULT_CONFIG,
    AllowProductionOption,
    CommitOption,
    FreshOption,
    JsonOption,
    SuiteOption,
    VerboseOption,
)
from deployments.cli.verify import (
    add_detected_probe_settings,
    is_build_known,
    is_web_address,
    refuse_production_in_ci,
    resolve_target,
    run_verification,
)
from flows.data_folder import get_runs_folder
from flows.runtime.secrets import get_environment
from flows.terminal import write_json, write_note
from flows.terminal_console import make_terminal_console
from flows.verify.run_folder import NO_BASELINE, VerifyRequest
from flows.verify.run_state import load_named_baseline
from monitors.alerts.redact import build_redactor
from monitors.config.file import Config, load_config
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.github.actions import WorkflowJob, is_github_actions, parse_job
from monitors.github.pull_requests import MAX_NAME_CHARACTERS, build_gate_name
from monitors.goldset.load import load_suite
from monitors.records.runs import Baseline, CaseResult, RunReport
from monitors.reports.junit import build_junit_xml
from monitors.reports.marked_text import Redact
from monitors.reports.proof_rows import explain_missing_regression_check
from monitors.reports.results_json import read_results
from monitors.storage import write_atomically


def reevaluate_results(
    results: Path, settings: GateSettings, baseline: Baseline | None
) -> tuple[RunReport, tuple[CaseResult, ...]]:
    """Evaluate a results.json again with ``settings``. Return the new report and the cases.

    Raises `ConfigError`.
    """
    recorded, cases = read_results(results)
    reassessed = tuple(
        case.with_assessment(
            assess_case(case.case, case.result, case.assessment.grades).mark_unconfirmed(
                case.assessment.unconfirmed
            )
        )
        for case in cases
    )
    return evaluate_results(_build_run_facts(recorded), reassessed, settings, baseline=baseline), reassessed


def _build_run_facts(report: RunReport) -> RunFacts:
    return RunFacts(
        run_id=report.run_id,
        target=report.target,
        suite_name=report.suite_name,
        suite_sha256=report.suite_sha256,
        planned=report.coverage.asked,
        commit=report.commit,
        started_at=report.started_at,
        finished_at=report.finished_at,
        interrupted=report.interrupted,
        resumed_cases=report.resumed_cases,
        judging=report.judging,
        pull_request=report.pull_request,
        change=report.change,
    )


_NAME: Final = re.compile(rf"[\w][\w ./-]{{0,{MAX_NAME_CHARACTERS - 1}}}")
MAX_SHARE: Final = 1.0
MAX_RATING: Final = 5.0


def apply_gate_flags(
    settings: GateSettings, *, min_score: float | None, fail_on_regression: bool, strict: bool
) -> GateSettings:
    """Return ``settings``, changed by the command-line options. Raises `ConfigError` for an invalid --min-score.

    A ``min_score`` up to 1 is the minimum weighted score. A higher value is the minimum average rating, and
    the run must have ratings.
    """
    settings = settings.with_stricter_checks(fail_on_regression=fail_on_regression, strict=strict)
    if min_score is None:
        return settings
    if math.isfinite(min_score) and 0 <= min_score <= MAX_SHARE:
        return settings.with_min_weighted_score(min_score)
    if math.isfinite(min_score) and MAX_SHARE < min_score <= MAX_RATING:
        return settings.with_required_min_rating(min_score)
    raise ConfigError(
        f"--min-score {min_score:g} is out of range. For a minimum weighted score, give 0 to 1, such as 0.98. For "
        "a minimum average rating of reports, give more than 1 and at most 5, such as 4.0."
    )


ResultsArgument = Annotated[
    Path | None,
    typer.Argument(help="the results.json of a run, to evaluate the run again without asking questions"),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        help="the target to verify: the name of a configured target, or the address of a chat page or API"
    ),
]
ConfigOrNoneOption = Annotated[
    Path | None, typer.Option("--config", help="the configuration file; default with --target: lookout.toml")
]
BaselineOption = Annotated[
    str,
    typer.Option(
        help="the run to compare with: auto, none, the id of a run, or the path of its results.json. With auto, "
        "this is the target's last accepted run that was not for a pull request"
    ),
]
MinScoreOption = Annotated[
    float | None,
    typer.Option(
        help="the minimum score. A value up to 1, such as 0.98, is for the weighted score. A value above 1 and up "
        "to 5 is for the average rating of reports, which needs a judge"
    ),
]
FailOnRegressionOption = Annotated[
    bool,
    typer.Option(
        "--fail-on-regression",
        help="fail the run if it is significantly worse than the baseline. Even without this option, a run fails "
        "if the average rating drops by more than 0.3",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="make the run INCONCLUSIVE if the suite is unbalanced")
]
JunitOption = Annotated[
    Path | None, typer.Option(help="also write the results of the cases to this file, as JUnit XML")
]
NameOption = Annotated[
    str | None,
    typer.Option(
        help="the name that follows lookout/ in the commit status and the comment on GitHub; default: the folder "
        "of the configuration, the target and the suite"
    ),
]
GithubOption = Annotated[
    bool,
    typer.Option(
        "--github",
        help=(
            "in GitHub Actions, write a comment, a commit status, the job summary and annotations. This option "
            "needs GITHUB_TOKEN"
        ),
    ),
]


@dataclass(frozen=True)
class GateOptions:
    """The options of ``lookout gate``."""

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
    verbose: bool
    github: bool
    name: str | None
    fresh: bool
    allow_production: str | None


@dataclass(frozen=True)
class _GateResult:
    """The report of a run with its cases, and the data that is needed to print and post it."""

    report: RunReport
    cases: tuple[CaseResult, ...]
    page: Path | None
    suite: Path | None
    redact: Redact


def gate_command(
    results: ResultsArgument = None,
    *,
    target: TargetOption = None,
    suite: SuiteOption = None,
    config: ConfigOrNoneOption = None,
    commit: CommitOption = None,
    baseline: BaselineOption = "auto",
    min_score: MinScoreOption = None,
    fail_on_regression: FailOnRegressionOption = False,
    strict: StrictOption = False,
    junit: JunitOption = None,
    github: GithubOption = False,
    name: NameOption = None,
    fresh: FreshOption = False,
    allow_production: AllowProductionOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Verify a staging deploy, or evaluate the results of a run again. The exit code is the verdict.

    The exit code is 0 for PASS, 1 for FAIL, and 3 for INCONCLUSIVE or if the application did not answer. It is 2
    if the command or the configuration is not valid, and 4 if Lookout itself failed.
    """
    options = GateOptions(
        results=results,
        config=config,
        target=target,
        suite=suite,
        commit=commit,
        baseline=baseline,
        min_score=min_score,
        fail_on_regression=fail_on_regression,
        strict=strict,
        junit=junit,
        as_json=as_json,
        verbose=verbose,
        github=github,
        name=name,
        fresh=fresh,
        allow_production=allow_production,
    )
    return _run_gate(options, get_environment())


def _run_gate(options: GateOptions, environment: Mapping[str, str]) -> ExitCode:
    """Check the options, run the gate, and print, write and post the result. Raises `ConfigError`."""
    if (options.results is None) == (options.target is None):
        raise ConfigError(
            "give either --target, to verify a deploy, or the results.json of a run, to evaluate the run again"
        )
    if options.junit is not None:
        _require_writable_file(options.junit)
    if options.name is not None and not _NAME.fullmatch(options.name):
        raise ConfigError(
            f"--name {options.name!r} is not valid. Start with a letter or digit, and give at most "
            f"{MAX_NAME_CHARACTERS} letters, digits, spaces and ._/-, such as staging/checkout"
        )
    job = parse_job(environment) if options.github or is_github_actions(environment) else None
    with disable_workflow_commands(environment):
        posts, result = (_verify_target if options.target is not None else _reevaluate_stored_run)(
            options, environment, job
        )
        if result is None:
            return ExitCode.INCONCLUSIVE
        _print_gate_result(result, as_json=options.as_json, verbose=options.verbose)
        if options.fail_on_regression and explain_missing_regression_check(result.report):
            write_note(f"--fail-on-regression has no effect: {explain_missing_regression_check(result.report)}\n")
    if options.junit is not None:
        with suppress(OSError):  # the next line reports the error
            options.junit.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(options.junit, build_junit_xml(result.report, result.cases, redact=result.redact))
    if posts is not None:
        posts.post_results(result.report, result.cases, redact=result.redact, suite=result.suite)
    return exit_code_from_verdict(result.report.verdict)


def _require_writable_file(file: Path) -> None:
    """Raise `ConfigError` if the file cannot be written. The user then learns this before the run."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise ConfigError(f"Lookout cannot write --junit {file}: {error.strerror}. Give another file") from error
    if file.is_dir():
        raise ConfigError(f"--junit {file} is a folder. Give a file")


def _verify_target(
    options: GateOptions, environment: Mapping[str, str], job: WorkflowJob | None
) -> tuple[JobResults | None, _GateResult | None]:
    """Run a verification of the target, as ``lookout verify`` does."""
    name, config = _load_config_with_gate_options(options)
    note = refuse_production_in_ci(config, name, environment, allowed=options.allow_production)
    if note:
        write_note(f"{note}\n")
    refuse_production_settings(config, name, environment)
    config = add_detected_probe_settings(options.target or "", name, config, environment)
    if config.gate.rating_needed and config.judge is None:
        raise ConfigError(
            f"an average rating of {config.gate.min_rubric:g} is required (--min-score above 1, or "
            "gate.rating_needed), but only a judge gives ratings. Add [judge] to the configuration"
        )
    load_named_baseline(options.baseline, get_runs_folder(config))
    load_suite(config.require_target(name).suite)  # report an error in the suite before the run starts
    configured = config.require_target(name)
    posts = _create_github_results_poster(options, job, name, configured.suite, environment)
    change = posts.change if posts else job.change if job else None
    request = VerifyRequest(
        target=name,
        config=config,
        commit=options.commit,
        fresh=options.fresh or not is_build_known(config, name, options.commit, change),
        baseline=str(Path(options.baseline).absolute()) if Path(options.baseline).is_file() else options.baseline,
        pull_request=job.pull_request if job else None,
        change=change,
    )
    with ExitStack() as stack:
        if posts is not None:
            stack.enter_context(posts.track_commit_status())
        report = run_verification(request)
    if report is None:
        if posts is not None:
            posts.post_run_stop_status()
        return posts, None
    folder = get_runs_folder(config) / report.run_id
    _, cases = read_results(folder / "results.json")
    patterns = config.require_target(name).graders.account_patterns
    return posts, _GateResult(
        report=report,
        cases=cases,
        page=folder / "report.html",
        suite=config.require_target(name).suite,
        redact=build_redactor(patterns, strict=True),
    )


def _create_github_results_poster(
    options: GateOptions, job: WorkflowJob | None, target: str, suite: Path, environment: Mapping[str, str]
) -> JobResults | None:
    """Return the object that posts results to GitHub, or ``None`` without --github. Raises `ConfigError`."""
    if not options.github or job is None:
        return None
    folder = (options.config or DEFAULT_CONFIG).absolute().parent
    name = options.name or build_gate_name(target, suite, config_folder=folder, workspace=job.workspace)
    return JobResults(job, name, environment)


def _load_config_with_gate_options(options: GateOptions) -> tuple[str, Config]:
    """Return the target's name, and the configuration with the values of the command-line options.

    In this configuration, the run posts nothing to GitHub, because ``lookout gate`` itself posts the results.
    """
    path = options.config or DEFAULT_CONFIG
    has_config = path.exists() or options.config is not None or not is_web_address(options.target or "")
    name, config = resolve_target(options.target or "", load_config(path) if has_config else None, options.suite)
    return name, config.with_gate_without_github_posts(_apply_gate_options(options, config.gate))


def _apply_gate_options(options: GateOptions, settings: GateSettings) -> GateSettings:
    return apply_gate_flags(
        settings,
        min_score=options.min_score,
        fail_on_regression=options.fail_on_regression,
        strict=options.strict,
    )


def _reevaluate_stored_run(
    options: GateOptions, environment: Mapping[str, str], job: WorkflowJob | None
) -> tuple[JobResults | None, _GateResult | None]:
    """Evaluate the stored results of a run with the current settings, without asking questions.

    If the baseline is ``auto``, the results are not compared with another run.
    """
    if options.results is None:
        raise AssertionError("internal error: the gate has neither a target nor results")
    config = load_config(options.config) if options.config else None
    settings = _apply_gate_options(options, config.gate if config else GateSettings())
    runs = get_runs_folder(config) if config else options.results.parent.parent
    baseline = load_named_baseline(options.baseline, runs) if options.baseline != NO_BASELINE else None
    report, cases = reevaluate_results(options.results, settings, baseline)
    target = config.targets.get(report.target.name) if config else None
    suite = options.suite or (target.suite if target else None)
    posts = _create_github_results_poster(
        options, job, report.target.name, suite or Path(report.suite_name), environment
    )
    patterns = target.graders.account_patterns if target else ()
    result = _GateResult(
        report=report,
        cases=cases,
        page=None,
        suite=suite,
        redact=build_redactor(patterns, strict=True),
    )
    return posts, result


def _print_gate_result(result: _GateResult, *, as_json: bool, verbose: bool) -> None:
    if as_json:
        write_json(result.report.model_dump_json(indent=2) + "\n")
    else:
        print_verdict(
            make_terminal_console(),
            result.report,
            cases=result.cases,
            report_page=result.page,
            verbose=verbose,
        )
