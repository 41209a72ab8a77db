"""``lookout verify``: verify a configured target by its name, or any page or API by its address.

The command runs the verify flow with a Prefect server. It shows a progress bar and a line for each case that is not
correct. At the end, it prints the verdict.

In CI, a run stops before its first request if its settings point at production:

- the target has the environment ``production``, or its address is on the host of a production target;
- there are credentials for Slack, and the configuration has a production target;
- there is an address for heartbeats.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from deployments.cli.data_folder import claim_data_folder
from deployments.cli.exit_codes import ExitCode, exit_code_from_verdict
from deployments.cli.gate.verdict import print_verdict
from deployments.cli.options import (
    DEFAULT_CONFIG,
    AllowProductionOption,
    CommitOption,
    ConfigOption,
    CopyOption,
    FreshOption,
    JsonOption,
    MovedOption,
    SuiteOption,
    VerboseOption,
)
from flows.terminal import write_json, write_note
from flows.terminal_console import make_terminal_console, print_wrapped
from flows.verify.run_folder import VerifyRequest
from flows.waiting import show_waiting, update_waiting
from monitors.alerts.redact import redact, redact_except_hosts
from monitors.config.file import Config, TargetConfig, build_target_record, load_config
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.github.actions import is_ci, is_github_actions, parse_job
from monitors.goldset.load import load_suite
from monitors.plural import plural
from monitors.probes.readiness import can_read_serving_commit
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import NoAnswer, NoAnswerReason
from monitors.records.grades import FAILURE_WORDS, CaseOutcome
from monitors.records.runs import CaseResult, RunReport
from monitors.records.targets import Environment, GitChange

FLAG = "--allow-production"
MIN_REASON_CHARACTERS = 10
"""Minimum length of a reason in characters: enough for the id of a ticket and a word."""


def refuse_production_in_ci(
    config: Config, target: str, environment: Mapping[str, str], *, allowed: str | None
) -> str | None:
    """Raise `ConfigError` if a CI run of ``target`` would use production.

    The error message lists the settings that select production. If ``allowed`` contains a reason, no error is
    raised, and a text with this reason is returned. Outside CI, nothing is checked and ``None`` is returned.
    """
    if allowed is not None and len(allowed.strip()) < MIN_REASON_CHARACTERS:
        raise ConfigError(f"{FLAG} needs a reason of at least {MIN_REASON_CHARACTERS} characters")
    if not is_ci(environment):
        return None
    findings = list(_iterate_production_uses(config, target, environment))
    if not findings:
        return None
    if allowed is not None:
        return f"This CI run is allowed to use production. Reason: {allowed.strip()}"
    problems = "".join(f"\n  {line}" for line in findings)
    raise ConfigError(
        f"this is a CI run, and its settings select production. Lookout asked no question.{problems}\nTo allow "
        f"this run, add {FLAG} with a reason."
    )


def _iterate_production_uses(config: Config, target: str, environment: Mapping[str, str]) -> Iterator[str]:
    from flows.runtime.slack import (  # slow import
        FALLBACK_VARIABLE,
        HEARTBEAT_VARIABLE,
        TOKEN_VARIABLE,
        WEBHOOK_VARIABLE,
    )

    production = {
        name for name, settings in config.targets.items() if settings.environment is Environment.PRODUCTION
    }
    if target in production:
        yield (
            f'targets.{target}.environment is "production". Choose a staging target. If this target is a staging '
            "target, set "
            'environment = "staging"'
        )
    host = _get_target_host(config, target)
    for name in sorted(production - {target}):
        if _get_target_host(config, name) == host:
            yield (f"{host} is also the host of the production target {name}. Give the address of a staging deploy")
    slack = [name for name in (TOKEN_VARIABLE, WEBHOOK_VARIABLE, FALLBACK_VARIABLE) if environment.get(name)]
    if slack and production:
        yield (
            f"alerts of this run would go to the production channel. Remove {' and '.join(slack)} from the "
            "environment of the job, or use a configuration without production targets"
        )
    if environment.get(HEARTBEAT_VARIABLE):
        yield (
            f"this run would send a heartbeat for the production monitor. Remove {HEARTBEAT_VARIABLE} from the "
            "environment of the job"
        )


def _get_target_host(config: Config, target: str) -> str:
    """Return the host and port of the target's address in lower case."""
    return urlsplit(build_target_record(target, config.require_target(target)).address).netloc.lower()


NO_ANSWER = "[yellow]∅[/]"
MARKS = {CaseOutcome.FAILED: "[red]✗[/]", CaseOutcome.NO_ANSWER: NO_ANSWER, CaseOutcome.UNGRADED: "[blue]?[/]"}
MAX_LINES = 40
"""Maximum number of lines about incorrect cases during a run. The report contains all incorrect cases."""


class TerminalProgress:
    """A display of a run's progress on a console. Use it as a context manager."""

    def __init__(self, console: Console, address: str = "") -> None:
        """Create the display. ``address`` is the target's address, which is never masked in the output."""
        self._console = console
        self._address = address
        self._bar = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=max(5, min(30, console.width - 60))),  # the other columns need up to 58 characters
            MofNCompleteColumn(),
            TextColumn("{task.fields[wrong]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task: TaskID | None = None
        self._starting = ExitStack()
        self._wrong = 0
        self._unanswered: list[CaseResult] = []
        self.run_id: str | None = None
        self.result_count = 0
        self.cases = 0

    def __enter__(self) -> Self:
        self._starting.enter_context(show_waiting("Starting the run"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._starting.close()
        self._print_no_answer_causes()
        self._bar.stop()

    def on_planned(self, run_id: str, cases: int, resumed: int) -> None:
        """Start the progress bar. For a resumed run, print how many results already exist."""
        self._starting.close()
        self._bar.start()
        self.run_id, self.cases, self.result_count = run_id, cases, resumed
        if resumed:
            self._console.print(
                f"Lookout continues run {run_id}, which already has {resumed} of {plural(cases, 'result')}. To "
                "start a new run instead, use --fresh."
            )
        self._task = self._bar.add_task("Asking", total=cases, completed=resumed, wrong="")

    def on_result(self, result: CaseResult) -> None:
        """Advance the progress bar. If the result is not correct, print a line."""
        self.result_count += 1
        if result.assessment.outcome is not CaseOutcome.CORRECT:
            self._wrong += 1
            if isinstance(result.result, NoAnswer):
                self._unanswered.append(result)  # printed later, with one line for each cause
            else:
                self._print_not_correct_result(result)
        if self._task is not None:
            wrong = f"[red]{self._wrong} not correct[/]" if self._wrong else ""
            self._bar.update(self._task, advance=1, wrong=wrong)

    def on_stage(self, name: str) -> None:
        """Print the causes of missing answers in the previous stage, then show the name of the current stage."""
        self._print_no_answer_causes()
        if self._task is not None:
            self._bar.update(self._task, description=name.capitalize())
        else:
            update_waiting(name.capitalize())

    def on_ended(self, text: str, report: str) -> None:
        """Print what happened to the alerts. The path of the report is printed later, with the verdict."""
        del report
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _print_no_answer_causes(self) -> None:
        """Print one line for each cause of missing answers, most frequent cause first."""
        unanswered, self._unanswered = self._unanswered, []
        for line in format_no_answer_causes(unanswered):
            print_wrapped(
                self._console,
                escape(redact_except_hosts(line, [self._address])),
                Text.assemble(" ", Text.from_markup(NO_ANSWER), " "),
            )

    def _print_not_correct_result(self, result: CaseResult) -> None:
        if self._wrong > MAX_LINES:
            return
        assessment = result.assessment
        kinds = ", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds)
        title = kinds or assessment.outcome.value.replace("_", " ")
        line = f"severity {assessment.severity.value}, {title}  {assessment.case_id}: {redact(assessment.reason)}"
        mark = Text.from_markup(MARKS[assessment.outcome])
        print_wrapped(self._console, escape(line), Text.assemble(" ", mark, " "))
        if self._wrong == MAX_LINES:
            self._console.print("   More cases are not correct. The report shows all of them.")


def format_no_answer_causes(results: Sequence[CaseResult]) -> Iterator[str]:
    """Yield a line for each cause of missing answers.

    After too many failures, Lookout stops asking. The number of questions that were not asked is added to the first
    cause.
    """
    asked = [
        result
        for result in results
        if not isinstance(result.result, NoAnswer) or result.result.reason is not NoAnswerReason.CIRCUIT_OPEN
    ]
    spared = len(results) - len(asked)
    causes = Counter(result.assessment.reason for result in asked).most_common()
    if not causes and results:
        yield f"Lookout did not ask {plural(spared, 'question')}: {results[0].assessment.reason.partition(': ')[2]}"
    for number, (cause, count) in enumerate(causes):
        case_ids = [result.assessment.case_id for result in asked if result.assessment.reason == cause]
        named = f"no answer  {case_ids[0]}: {cause}" if count == 1 else f"{count} questions got no answer: {cause}"
        if number or not spared:
            yield named
        else:
            first = "the first failed" if len(asked) == 1 else f"the first {len(asked)} failed"
            yield (
                f"{count + spared} questions got no answer: {cause}. Lookout did not ask {spared} of them "
                f"after {first}"
            )


def connect_and_explain_failure(address: str, environment: Mapping[str, str]) -> str:
    """Try to connect to the address. If no application can answer there, return the reason.

    Otherwise, return an empty string.
    """
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    if any(environment.get(name) or environment.get(name.lower()) for name in PROXIES):
        return ""  # the proxy looks up the host name
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except ConnectionRefusedError:
        return f"connection refused at {address}"
    except socket.gaierror as error:
        return f"the host name {host} does not exist" if error.errno == socket.EAI_NONAME else ""
    except OSError:
        return ""
    return ""


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
CONNECT_S = 5.0


def _check_and_print_if_unreachable(request: VerifyRequest) -> bool:
    """Print why no application can answer at the target's address. Return whether anything was printed.

    The address is not checked if the run can send an alert, uses a running Prefect server, or asks a Space.
    """
    from flows.data_folder import get_prefect_home
    from flows.runtime.run import load_request_config
    from flows.runtime.secrets import get_environment
    from flows.runtime.slack import FALLBACK_VARIABLE, HEARTBEAT_VARIABLE, TOKEN_VARIABLE, WEBHOOK_VARIABLE, console
    from flows.server.prefect_server import find_running_server  # slow import

    config, variables = load_request_config(request), get_environment()
    target = config.require_target(request.target)
    ways = (TOKEN_VARIABLE, WEBHOOK_VARIABLE, FALLBACK_VARIABLE, HEARTBEAT_VARIABLE)
    has_server = config.prefect.api_url or variables.get("PREFECT_API_URL")
    if (
        target.url is None
        or has_server
        or any(map(variables.get, ways))
        or find_running_server(get_prefect_home(config))
    ):
        return False
    why = connect_and_explain_failure(target.url, variables)
    if why:
        count = plural(len(load_suite(target.suite).cases), "question")
        to_do = f"Start the application, or correct targets.{request.target}.url."
        console.print(f"Lookout did not ask {count}: {why}. {to_do}", highlight=False, markup=False, soft_wrap=True)
    return bool(why)


def verify_and_print_verdict(request: VerifyRequest, *, as_json: bool, verbose: bool = False) -> ExitCode:
    """Verify the target, print the verdict, and return its exit code."""
    from flows.data_folder import get_runs_folder  # slow import
    from flows.runtime.run import load_request_config  # slow import
    from monitors.reports.results_json import read_all_but_correct_cases

    report = run_verification(request, check_address=not as_json)
    if report is None:
        return ExitCode.INCONCLUSIVE
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        folder = get_runs_folder(load_request_config(request)) / report.run_id
        cases = read_all_but_correct_cases(folder / "results.json")
        print_verdict(
            make_terminal_console(), report, cases=cases, report_page=folder / "report.html", verbose=verbose
        )
    return exit_code_from_verdict(report.verdict)


def run_verification(request: VerifyRequest, *, check_address: bool = False) -> RunReport | None:
    """Run a verification and return its report.

    Returns ``None`` if a person stopped the run. The answers received so far are not lost. If ``check_address`` is
    true and no application listens at the address, the reason is printed and ``None`` is returned. If the Prefect
    server stops answering at the end, the report is still returned, provided that the run itself has finished.
    """
    from flows.data_folder import get_runs_folder  # slow import
    from flows.runtime.run import load_request_config, require_valid_request  # slow import
    from flows.runtime.slack import console  # slow import
    from flows.server.prefect_server import PrefectUnavailable, is_server_gone  # slow import
    from flows.verify.early import verify  # slow import

    config = load_request_config(request)
    _print_run_heading(console, config, request)
    with show_waiting("Checking the prerequisites of the run"):
        require_valid_request(request)
        if check_address and _check_and_print_if_unreachable(request):
            return None
    address = build_target_record(request.target, config.require_target(request.target)).address
    with TerminalProgress(console, address) as progress:
        try:
            return asyncio.run(verify(request, progress))
        except (KeyboardInterrupt, asyncio.CancelledError):
            _print_run_stop(console, progress, "Stopped", fresh=request.fresh)
            return None
        except PrefectUnavailable:
            _print_run_stop(console, progress, "No Prefect server is running", fresh=request.fresh)
            raise
        except Exception as error:  # Prefect raises errors of several types; only a lost server is handled
            report = (
                load_finished_report(get_runs_folder(config), progress.run_id) if is_server_gone(error) else None
            )
            if report is None:
                raise
            console.print(GONE_AT_THE_END, highlight=False)
            return report


GONE_AT_THE_END = (
    "The Prefect server stopped answering, so its pages do not show the end of this run. The run itself is "
    "complete: all results are stored and all alerts were sent."
)


def load_finished_report(runs: Path, run_id: str | None) -> RunReport | None:
    """Load the report of a finished run. Returns ``None`` if the run is not finished."""
    from flows.verify.run_folder import is_run_complete  # slow import
    from monitors.reports.results_json import read_results

    if run_id is None or not is_run_complete(runs / run_id):
        return None
    return read_results(runs / run_id / "results.json")[0]


def _print_run_heading(console: Console, config: Config, request: VerifyRequest) -> None:
    """Print the target and the suite before the run starts, so that a person notices a wrong suite early."""
    target = config.require_target(request.target)
    suite = load_suite(target.suite)
    severe = sum(case.severity is Severity.CRITICAL for case in suite.cases)
    print_wrapped(
        console,
        f"[bold]{request.target}[/]  {target.url or target.space}  ·  {suite.name}: "
        f"{plural(len(suite.cases), 'case')}, {severe} of severity 3",
    )
    if shortfall := _predict_shortfall_without_judge(config, request.target, suite.cases):
        print_wrapped(console, f"[yellow]Coverage[/]  {escape(shortfall)}. `lookout gold check` lists the fixes.")


def _predict_shortfall_without_judge(config: Config, name: str, cases: Sequence[GoldCase]) -> str:
    """Return why a run without a judge may grade too few answers for a verdict.

    Returns an empty text if the run can grade enough answers.
    """
    from flows.goldset.mutation_testing import MAX_REACH_CASES, count_cases_rules_can_grade
    from flows.runtime.judge import build_judge_plan  # slow import
    from flows.runtime.secrets import get_environment  # slow import
    from monitors.graders.panel import build_rule_panel

    target = config.require_target(name)
    answers = [case for case in cases if case.triage is None]
    if (
        not answers
        or not build_judge_plan(config.judge, build_target_record(name, target), get_environment()).why_off
    ):
        return ""
    reach = count_cases_rules_can_grade(
        answers, build_rule_panel(target.graders, target.domain), max_cases=MAX_REACH_CASES
    )
    return reach.explain_rule_coverage_shortfall(config.gate.coverage_floor)


def _print_run_stop(console: Console, progress: TerminalProgress, why: str, *, fresh: bool) -> None:
    if progress.run_id is None:
        console.print(f"\n{why}. Lookout has asked no question yet.")
        return
    console.print(
        f"\n{why}. Lookout stored {progress.result_count} of {plural(progress.cases, 'result')} of run "
        f"{progress.run_id}. " + ("With --fresh, the same command asks all questions again." if fresh else GOES_ON)
    )


GOES_ON = (
    "To continue the run, run the same command again within one hour without changing anything. "
    "To start a new run, use --fresh."
)

MAX_NAME_CHARACTERS = 60


def verify_command(
    target: Annotated[
        str, typer.Argument(help="the name of a configured target, or the address of any chat page or API")
    ],
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    suite: SuiteOption = None,
    commit: CommitOption = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="the number of parallel questions")] = None,
    fresh: FreshOption = False,
    allow_production: AllowProductionOption = None,
    moved: MovedOption = False,
    copy: CopyOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Ask a live application the questions of a suite, grade the answers and print a verdict."""
    from flows.runtime.secrets import get_environment  # slow: imports duckdb, which --help does not need

    loaded = load_config(config) if config.exists() or not is_web_address(target) else None
    name, loaded = resolve_target(target, loaded, suite)
    note = refuse_production_in_ci(loaded, name, get_environment(), allowed=allow_production)
    if note:
        write_note(f"{note}\n")
    refuse_production_settings(loaded, name, get_environment())
    claim_data_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
    loaded = add_detected_probe_settings(target, name, loaded, get_environment())
    if concurrency is not None:
        settings = loaded.targets[name]
        loaded = loaded.with_target(name, settings.with_probe(settings.probe.with_concurrency(concurrency)))
    environment = get_environment()
    change = parse_job(environment).change if is_github_actions(environment) else None
    is_unknown = is_ci(environment) and not is_build_known(loaded, name, commit, change)
    request = VerifyRequest(target=name, config=loaded, commit=commit, fresh=fresh or is_unknown, change=change)
    return verify_and_print_verdict(request, as_json=as_json, verbose=verbose)


def is_build_known(config: Config, target: str, commit: str | None, change: GitChange | None) -> bool:
    """Return whether the build of the application is known: a commit is given, or the application reports it.

    If the build is unknown, a CI run must not continue a stopped run, because the stopped run may have asked
    another build.
    """
    settings = config.require_target(target)
    record = build_target_record(target, settings)
    return bool(commit or (change and change.head)) or can_read_serving_commit(record, settings.probe.readiness)


def resolve_target(target: str, config: Config | None, suite: Path | None) -> tuple[str, Config]:
    """Return the target's name and a configuration that contains it.

    If ``suite`` is given, the target uses this suite.
    """
    if not is_web_address(target):
        if config is None:
            raise ConfigError(f"target {target!r} does not exist, because there is no configuration file")
        if target not in config.targets and re.search(r"\w\.\w|/|:\d", target):
            scheme = "http" if re.match(r"localhost\b|[\d.]+(:|/|$)", target) else "https"
            raise ConfigError(f"target {target!r} does not exist. For an address, write {scheme}://{target}")
        settings = config.require_target(target)
        if suite is not None:
            settings = settings.with_suite(suite.absolute())
        return target, config.with_target(target, settings)
    configured_pages = {
        name: settings for name, settings in (config.targets if config else {}).items() if settings.url == target
    }
    if configured_pages and suite is None and config is not None:
        return next(iter(configured_pages)), config
    if suite is None:
        raise ConfigError(
            "to verify an address, also give --suite FILE, a file with questions and right answers. `lookout init` "
            "creates a first suite. docs/suite.md explains the format"
        )
    name = derive_target_name(target)
    try:
        page = TargetConfig(url=target, suite=suite.absolute())
        urlsplit(target)
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
    except ValueError:
        raise ConfigError("the address is not valid. Copy it from the address bar of a browser") from None
    if config is None:
        return name, Config(data_folder=Path(".lookout").absolute(), targets={name: page})
    return name, config.with_target(name, page)


def add_detected_probe_settings(target: str, name: str, config: Config, environment: Mapping[str, str]) -> Config:
    """Detect how to ask the address ``target``, and return the configuration with the detected settings.

    The configuration does not change if ``target`` is a name, or if the target already has settings. Raises
    `ConfigError`.
    """
    settings = config.targets[name]
    if not is_web_address(target) or settings.probe != ProbeSettings():
        return config
    from deployments.cli.init.api import ask_and_detect_probe_settings  # slow: its imports take half a second

    probe = ask_and_detect_probe_settings(target, environment, write_note)
    return config.with_target(name, settings.with_probe(probe))


def is_web_address(target: str) -> bool:
    """Return whether ``target`` is an address and not the name of a configured target."""
    return target.startswith(("http://", "https://"))


def derive_target_name(address: str) -> str:
    """Derive a target's name from its address. The name contains only letters, digits and hyphens."""
    bare = re.sub(r"^https?://", "", address)
    return re.sub(r"[^a-z0-9]+", "-", bare.lower()).strip("-")[:MAX_NAME_CHARACTERS].rstrip("-") or "page"
