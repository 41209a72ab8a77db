"""``lookout doctor``: check everything that runs need, or show what Lookout reads on one page.

After it has inspected a page, Lookout asks three questions, to prove that it can read the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from deployments.cli.doctor.checks import load_configuration_with_check, run_checks
from deployments.cli.doctor.fixes import Fix, apply_fixes
from deployments.cli.doctor.format import print_checks, print_fixes, print_inspection
from deployments.cli.doctor.services import DoctorContext, Health, HealthCheck, check_api
from deployments.cli.exit_codes import ExitCode
from deployments.cli.init.answers import parse_target
from deployments.cli.init.api import find_problem_if_address_is_api
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from deployments.cli.verify import derive_target_name, is_web_address
from flows.terminal import write_json
from flows.terminal_console import make_terminal_console, print_named_lines
from flows.waiting import show_waiting, update_waiting
from monitors.config.file import Config, TargetConfig, build_target_record, load_config
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.gate.assess import assess_case
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader, GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.probes.browser.login import Login
from monitors.probes.inspect.findings import AskPermission, PageInspection, Trial, is_same_answer_for_all
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange, Timings
from monitors.records.grades import CaseOutcome
from monitors.storage import make_private_folder

TRIALS: Final = 3
_UNTIMED: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A placeholder for the time of each answer to a test question. Graders do not read this time."""


def ask_questions_and_add_answers(
    inspection: PageInspection,
    address: str,
    settings: ProbeSettings,
    target: TargetConfig | None,
    login: Login | None,
) -> PageInspection:
    """Ask three questions in the same way as a run, and return the inspection with the answers.

    The questions are taken from the target's suite. If the target has no suite, general questions are asked.
    """
    from monitors.probes.inspect.page import QUESTIONS, ask_trial_questions, verify_proposed_selectors  # playwright

    cases = _select_three_simple_cases(target)
    questions = [case.turns[0] for case in cases] or QUESTIONS
    tried = asyncio.run(ask_trial_questions(address, settings, questions=questions, login=login))
    if not cases and is_same_answer_for_all(tried.trials):
        inspection = inspection.with_fallback_answer(tried.trials[0].text)
        if inspection.starters:
            tried = asyncio.run(ask_trial_questions(address, settings, questions=inspection.starters, login=login))
    trials = tried.trials
    if not any(trial.problem for trial in trials):
        inspection = asyncio.run(verify_proposed_selectors(inspection, settings, trials[0].question, login))
    if target is not None and cases:
        panel = build_rule_panel(target.graders, target.domain)
        trials = tuple(_grade_trial(trial, case, panel) for trial, case in zip(trials, cases, strict=True))
    return inspection.with_trials(trials, tried.rules or inspection.wire, tried.new_chat)


def _select_three_simple_cases(target: TargetConfig | None) -> list[GoldCase]:
    """Select three simple cases of the suite. Select none if the suite has fewer than three.

    A simple case has one turn, no expected refusal, and a severity below 3.
    """
    if target is None or not target.suite.exists() or not target.suite.stat().st_size:
        return []
    simple_cases = [
        case
        for case in load_suite(target.suite).cases
        if len(case.turns) == 1 and not case.expected_refusal and case.severity is not Severity.CRITICAL
    ]
    if len(simple_cases) < TRIALS:
        return []
    return [simple_cases[at * (len(simple_cases) - 1) // (TRIALS - 1)] for at in range(TRIALS)]


def _grade_trial(trial: Trial, case: GoldCase, panel: tuple[Grader, ...]) -> Trial:
    if trial.problem is not None:
        return trial
    by_wire = None if trial.sent is None else _explain_wrong_trial_answer(trial, case, panel, Channel.WIRE)
    return trial.with_grades(
        by_page=_explain_wrong_trial_answer(trial, case, panel, Channel.VISIBLE), by_wire=by_wire
    )


def _explain_wrong_trial_answer(
    trial: Trial, case: GoldCase, panel: tuple[Grader, ...], channel: Channel
) -> str | None:
    """Return what is wrong with the answer to a test question, according to the graders in ``panel``.

    Returns an empty text if the answer is correct, and ``None`` if the graders cannot decide.
    """
    exchange = Exchange(
        run_id="doctor",
        case_id=case.id,
        repeat=0,
        turns=case.turns,
        visible_text=trial.text,
        wire=trial.sent if channel is Channel.WIRE else None,
        graded_channel=channel,
        asked_at=_UNTIMED,
        timings=Timings(total_ms=0),
    )
    assessment = assess_case(case, exchange, grade_exchange(panel, case, exchange))
    match assessment.outcome:
        case CaseOutcome.CORRECT:
            return ""
        case CaseOutcome.FAILED:
            return ", ".join(kind.value.replace("_", " ") for kind in assessment.failure_kinds)
        case CaseOutcome.NO_ANSWER | CaseOutcome.UNGRADED:
            return None


PICTURES = "doctor"


class HealthReport(Record):
    """The results of all checks, and the fixes that ``--fix`` applied before the checks.

    ``--json`` prints this record.
    """

    checks: tuple[HealthCheck, ...]
    fixes: tuple[Fix, ...] = ()


AskOption = Annotated[
    bool | None,
    typer.Option(
        "--ask/--no-ask",
        help="ask each API one harmless question, and an inspected page three questions; --no-ask asks no question",
    ),
]
AlertOption = Annotated[
    bool | None,
    typer.Option(
        "--alert/--no-alert",
        help="send a test message through every alert channel; default: skip channels tested in the last day",
    ),
]
JudgeOption = Annotated[
    bool,
    typer.Option(
        "--judge/--no-judge",
        help="test each judge with two answers whose grades are known; this costs about one cent",
    ),
]
FixOption = Annotated[
    bool,
    typer.Option(
        "--fix",
        help="before the checks, apply the safe fixes: install a missing browser and load new results of runs",
    ),
]


def doctor_command(
    target: Annotated[
        str | None,
        typer.Argument(
            help="the target, or the address of a page or API, to inspect; default: check everything that a run "
            "needs"
        ),
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    ask: AskOption = None,
    picture: Annotated[
        Path | None, typer.Option(help="the file for the picture of the page; default: a file in the data folder")
    ] = None,
    alert: AlertOption = None,
    judge: JudgeOption = True,
    fix: FixOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Check everything that a run needs. With an address, show what Lookout reads on that page, with a picture."""
    if target is not None:
        if fix:
            raise ConfigError(
                "--fix does not work with a target, because --fix repairs this machine. Run `lookout doctor --fix`"
            )
        code = _inspect_target(target, config, ask, picture, as_json=as_json)
        if not as_json:
            _print_traffic_sample(target, config)
        return code
    from flows.clock import utc_now  # slow: imports duckdb
    from flows.runtime.secrets import get_environment  # slow: imports duckdb

    variables, now = get_environment(), utc_now()
    with show_waiting("Applying safe fixes" if fix else "Checking"):
        fixes = (
            apply_fixes(DoctorContext(config, load_configuration_with_check(config)[0], variables, now))
            if fix
            else None
        )
        permissions = {
            "send_alerts": alert is not False,
            "alert_now": alert is True,
            "ask_judges": judge,
            "ask_apis": ask is not False,
        }
        results = run_checks(config, environment=variables, now=now, **permissions)
    return _print_checks_and_choose_exit_code(results, fixes, as_json=as_json)


def _inspect_target(
    target: str, config: Path, ask: bool | None, picture: Path | None, *, as_json: bool
) -> ExitCode:
    """Inspect one page or API, even if it is not configured."""
    from flows.clock import utc_now  # slow: imports duckdb
    from flows.runtime.secrets import get_environment  # slow: imports duckdb
    from monitors.probes.inspect.page import inspect_page  # slow: imports playwright

    ask_apis, variables = ask is not False, get_environment()
    loaded = load_config(config) if config.exists() or not is_web_address(target) else None
    if loaded is not None and target in loaded.targets:
        refuse_production_settings(loaded, target, variables)
    api = _find_api_by_name_or_address(target, loaded)
    if api is not None:
        with show_waiting("Asking the API one question" if ask_apis else "Checking the API"):
            check = check_api(*api, variables, ask=ask_apis)
        _print_checks_and_choose_exit_code([check], as_json=as_json)
        return exit_code_from_check(check)
    name, address, settings = _resolve_page_settings(target, loaded, variables)
    configured = loaded.targets.get(name) if loaded else None
    if (
        configured is None
        and not as_json
        and (problem := find_problem_if_address_is_api(address, variables, ask=ask_apis))
    ):
        console = make_terminal_console(highlight=False, soft_wrap=True)
        console.print(f"[bold]{escape(address)}[/]\n\n[bold red]{escape(problem.detail)}[/]")
        console.print(f"What to do: {escape(problem.to_do)}")
        return ExitCode.INCONCLUSIVE
    login = _load_configured_login(loaded, name, variables)
    asking = AskPermission.IF_NEEDED if ask is None else AskPermission.ALWAYS if ask else AskPermission.NEVER
    if picture is None:
        folder = (loaded.data_folder if loaded else Path(".lookout")) / PICTURES
        make_private_folder(folder)  # the page may show confidential text
        picture = folder / f"{name}-{utc_now():%Y%m%dT%H%M%S}.png"
    with show_waiting(f"Looking at {address}"):
        inspection = asyncio.run(inspect_page(address, settings, picture=picture, asking=asking, login=login))
        if inspection.problem is None and ask_apis:
            update_waiting(f"Asking {address} {TRIALS} questions")
            inspection = ask_questions_and_add_answers(inspection, address, settings, configured, login)
    # The target's name, or the name that `lookout init` would give it.
    _print_inspection(
        inspection,
        name if loaded is not None and name in loaded.targets else parse_target(address).name,
        settings,
        configured,
        as_json=as_json,
    )
    return exit_code_from_inspection(inspection)


def _print_traffic_sample(target: str, config: Path) -> None:
    """Print some conversations that a nightly run would read, if the target's live traffic is configured."""
    loaded = load_config(config) if config.exists() else None
    name = next(iter(_find_targets_at(loaded, target)), None) if is_web_address(target) else target
    settings = loaded.require_target(name) if loaded is not None and name is not None else None
    if settings is None or settings.traffic is None:
        return
    from deployments.cli.doctor.traffic import format_traffic, read_first_traffic_items  # slow: imports duckdb
    from flows.clock import utc_now  # slow: imports duckdb

    with show_waiting("Reading live traffic"):
        samples = asyncio.run(read_first_traffic_items(settings, settings.traffic, utc_now()))
    console = make_terminal_console()
    for row_name, line in format_traffic(samples, settings.graders.account_patterns):
        print_named_lines(console, row_name, [escape(line)])


def _print_inspection(
    inspection: PageInspection,
    name: str,
    settings: ProbeSettings,
    configured: TargetConfig | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        write_json(inspection.model_dump_json(indent=2) + "\n")
        return
    graders = configured.graders if configured is not None else GraderSettings()
    print_inspection(make_terminal_console(), inspection, name, settings, graders)


def exit_code_from_inspection(inspection: PageInspection) -> ExitCode:
    """Return PASS if Lookout can ask the page, FAIL if the application has a fault, and otherwise INCONCLUSIVE."""
    problem = inspection.problem or next((trial.problem for trial in inspection.trials if trial.problem), None)
    if problem is not None:
        return ExitCode.FAIL if problem.blame is Blame.APP else ExitCode.INCONCLUSIVE
    has_no_small_talk = bool(inspection.fallback_answer) and is_same_answer_for_all(inspection.trials)
    doubtful = any(trial.doubt for trial in inspection.trials) and not has_no_small_talk
    return ExitCode.INCONCLUSIVE if doubtful else ExitCode.PASS


def exit_code_from_check(check: HealthCheck) -> ExitCode:
    """Return PASS if the API answers, FAIL if the application has a fault, and USAGE if the settings are wrong."""
    if check.health is not Health.BROKEN:
        return ExitCode.PASS
    return ExitCode.FAIL if check.blame is Blame.APP else ExitCode.USAGE


def _resolve_page_settings(
    target: str, config: Config | None, environment: Mapping[str, str]
) -> tuple[str, str, ProbeSettings]:
    """Return the name, address and settings of a page.

    If the address belongs to a configured target, that target's settings are used.
    """
    if is_web_address(target):
        targets = _find_targets_at(config, target)
        if not targets:
            return derive_target_name(target), target, ProbeSettings().with_browser_from_environment(environment)
        target = next(iter(targets))
    if config is None:
        raise ConfigError(
            f"target {target!r} does not exist, because there is no configuration file. Run `lookout init`"
        )
    configured = config.require_target(target)
    return (
        target,
        build_target_record(target, configured).address,
        configured.probe.with_browser_from_environment(environment),
    )


def _find_api_by_name_or_address(target: str, config: Config | None) -> tuple[str, TargetConfig] | None:
    """Return the target with this name or address if it is an API. Otherwise, return ``None``."""
    if config is None:
        return None
    targets = (
        _find_targets_at(config, target) if is_web_address(target) else {target: config.require_target(target)}
    )
    return next(
        ((name, settings) for name, settings in targets.items() if settings.probe.driver != "browser"), None
    )


def _find_targets_at(config: Config | None, address: str) -> dict[str, TargetConfig]:
    targets = config.targets if config else {}
    return {
        name: settings
        for name, settings in targets.items()
        if (settings.url or "").rstrip("/") == address.rstrip("/")
    }


def _load_configured_login(config: Config | None, name: str, environment: Mapping[str, str]) -> Login | None:
    if config is None or name not in config.targets:
        return None
    from flows.runtime.probe import build_login  # slow: imports duckdb

    return build_login(config, name, environment)


def _print_checks_and_choose_exit_code(
    results: list[HealthCheck], fixes: list[Fix] | None = None, *, as_json: bool
) -> ExitCode:
    if as_json:
        write_json(HealthReport(checks=tuple(results), fixes=tuple(fixes or ())).model_dump_json(indent=2) + "\n")
    else:
        print_checks(make_terminal_console(), results)
        if fixes is not None:
            print_fixes(make_terminal_console(), fixes, results)
    worst = max((check.health for check in results), default=Health.GOOD)
    return ExitCode.MONITOR if worst is Health.BROKEN else ExitCode.PASS
