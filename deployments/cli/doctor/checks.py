"""The checks of ``lookout doctor``. Each check reports a finding and what to do.

No check changes anything. By default, every configured alert channel gets a test message, each judge grades two
known answers, and each target with an API is asked one harmless question. The caller can turn off these actions. To
add a check, add its function to `CHECKS`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deployments.cli.doctor.services import (
    DoctorContext,
    Health,
    HealthCheck,
    check_apis,
    check_hallucination_logs,
    check_hub,
    check_judge,
    check_langfuse,
    check_tracing,
    check_traffic_settings,
)
from deployments.install_browser import find_and_try_browser
from flows.waiting import update_waiting
from flows.watching.polls import WATCH_TO_DO, format_late_polls, list_late_polls, read_polls
from monitors.config.file import Config, TargetConfig, build_target_record, load_config
from monitors.errors import AccessDenied, BrowserLost, ConfigError, MonitorError, WarehouseBusy
from monitors.goldset.load import load_suite, read_suite_text
from monitors.http_client import describe_http_error
from monitors.plural import plural
from monitors.probes.readiness import fetch_page_without_body
from warehouse.data_folder import refuse_symbolic_links
from warehouse.folder_identity import read_identity

if TYPE_CHECKING:
    from flows.maintenance.self_test import PathOutcome

BROWSER_FIX = "lookout browser install"
REQUEST_S = 10.0
LOCK_WAIT_S = 2.0
GIGABYTE = 1e9
DOUBTFUL_DISK_GB, BROKEN_DISK_GB = 5.0, 1.0
"""Free disk space, in GB, below which the disk is reported as doubtful or as broken.

A run of 500 cases stores at most 100 MB of screenshots. To rebuild the warehouse, DuckDB needs space for a second
copy.
"""

OTHERS = stat.S_IRWXG | stat.S_IRWXO

CLOCK_DOUBTFUL_S, CLOCK_BROKEN_S = 60.0, 300.0
"""Clock errors, in seconds, at which the clock is reported as doubtful or as broken.

If the clock is wrong by more than five minutes, the signatures of webhooks and of Slack are refused.
"""


def run_checks(
    config_path: Path,
    *,
    environment: Mapping[str, str],
    now: datetime,
    send_alerts: bool = True,
    alert_now: bool = False,
    ask_judges: bool = True,
    ask_apis: bool = True,
) -> list[HealthCheck]:
    """Run all checks and return their results, in the order in which a run uses the checked parts.

    A check that raises an error is reported as broken.
    """
    config, configuration = load_configuration_with_check(config_path)
    context = DoctorContext(
        config_path, config, environment, now, send_alerts, ask_judges, ask_apis, alert_now=alert_now
    )
    results = [configuration]
    for check in CHECKS:
        update_waiting(f"Checking: {_format_check_name(check).replace('_', ' ')}")
        try:
            results += check(context)
        except (MonitorError, OSError) as error:
            results.append(HealthCheck(name=_format_check_name(check), health=Health.BROKEN, found=str(error)))
    return results


def _format_check_name(check: Callable[[DoctorContext], list[HealthCheck]]) -> str:
    return check.__name__.removeprefix("check_")


def load_configuration_with_check(path: Path) -> tuple[Config | None, HealthCheck]:
    """Load the configuration, and return it with the result of its check.

    The returned configuration is ``None`` if the file does not exist or is invalid.
    """
    name = "configuration"
    if not path.exists():
        to_do = (
            "run `lookout init` to create the file. `lookout demo` and `lookout doctor URL` work without the file"
        )
        return None, HealthCheck(name=name, health=Health.DOUBTFUL, found=f"{path} does not exist", to_do=to_do)
    try:
        config = load_config(path)
    except ConfigError as error:
        return None, HealthCheck(
            name=name, health=Health.BROKEN, found=str(error), to_do="correct the settings named above"
        )
    missing = [f"{name} ({target.suite})" for name, target in config.targets.items() if not target.suite.exists()]
    if missing:
        return config, HealthCheck(
            name=name,
            health=Health.BROKEN,
            found=f"no suite file exists for {', '.join(missing)}",
            to_do="create the file, or set `suite` to the path of an existing file",
        )
    return config, HealthCheck(name=name, health=Health.GOOD, found=f"{path}: {', '.join(config.targets)}")


def check_browser(context: DoctorContext) -> list[HealthCheck]:
    """Check that a Chromium is installed, starts and opens a page."""
    try:
        browser = find_and_try_browser(context.environment)
    except BrowserLost as error:
        return [HealthCheck(name="browser", health=Health.BROKEN, found=str(error), to_do=BROWSER_FIX)]
    description = f"Chromium {browser.version}, {browser.executable} ({browser.source})"
    checks = [HealthCheck(name="browser", health=Health.GOOD, found=description)]
    if browser.unsandboxed:
        reason, to_do = browser.unsandboxed.split(". ", 1)
        checks.append(HealthCheck(name="sandbox", health=Health.DOUBTFUL, found=reason, to_do=to_do, optional=True))
    return checks


def check_pages(context: DoctorContext) -> list[HealthCheck]:
    """Check that the page of each target answers."""
    targets = context.config.targets if context.config else {}
    return [
        _check_page(context, name, target) for name, target in targets.items() if target.probe.driver == "browser"
    ]


def _check_page(context: DoctorContext, name: str, target: TargetConfig) -> HealthCheck:
    check_name, address = f"page of {name}", build_target_record(name, target).address
    try:
        answer = asyncio.run(fetch_page_without_body(address, target.probe))
    except (httpx.HTTPError, AccessDenied) as error:
        to_do = (
            "open the address from this machine. Check its spelling, the network, the proxy, and whether the "
            "application runs"
        )
        reason = str(error) if isinstance(error, AccessDenied) else describe_http_error(error)
        return HealthCheck(name=check_name, health=Health.BROKEN, found=f"{address}: {reason}", to_do=to_do)
    if "date" in answer.headers:
        context.dates += _parse_date_header(answer.headers["date"])
    took = f"{address}: HTTP {answer.status_code} in {answer.elapsed.total_seconds():.2f} s"
    if answer.status_code in (401, 403) and target.login is not None:
        return HealthCheck(name=check_name, health=Health.GOOD, found=f"{took}, which is normal without a login")
    if answer.status_code in (401, 402, 403, 407, 429):
        to_do = f"if the page requires a login, configure [targets.{name}.login] (docs/login.md)"
        return HealthCheck(name=check_name, health=Health.BROKEN, found=took, to_do=to_do)
    if answer.status_code >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        return HealthCheck(
            name=check_name, health=Health.DOUBTFUL, found=took, to_do=f"run `lookout doctor {name}` for details"
        )
    return HealthCheck(name=check_name, health=Health.GOOD, found=took)


def check_logins(context: DoctorContext) -> list[HealthCheck]:
    """Check that the secrets of each login are set and, if a person must sign in, that a session is stored.

    This check does not sign in.
    """
    targets = context.config.targets if context.config else {}
    return [_check_login(context, name) for name, target in targets.items() if target.login is not None]


def _check_login(context: DoctorContext, name: str) -> HealthCheck:
    from flows.runtime.probe import build_login  # slow: imports duckdb

    assert context.config is not None
    check_name = f"login of {name}"
    try:
        login = build_login(context.config, name, context.environment)
    except ConfigError as error:
        return HealthCheck(
            name=check_name, health=Health.BROKEN, found=str(error), to_do="correct the settings named above"
        )
    assert login is not None
    if login.session is None and login.settings.needs_person_to_sign_in:
        return HealthCheck(
            name=check_name,
            health=Health.BROKEN,
            found="nobody has signed in yet",
            to_do=login.login_command_text.strip("`"),
        )
    state = "all variables of the login are set"
    if login.session is not None:
        made = f"{login.session.made_at:%Y-%m-%d %H:%M} UTC"
        check = f"To check whether the session is still valid, run {login.login_command_text}"
        state = f"signed in at {made} ({login.session.by}). {check}"
    return HealthCheck(name=check_name, health=Health.GOOD, found=state)


def _parse_date_header(header: str) -> list[datetime]:
    try:
        sent_at = parsedate_to_datetime(header)
    except ValueError:
        return []
    return [sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)]


def check_clock(context: DoctorContext) -> list[HealthCheck]:
    """Compare this machine's clock with the clocks of the targets."""
    if not context.dates:
        return [
            HealthCheck(
                name="clock",
                health=Health.GOOD,
                found=f"{context.now:%Y-%m-%d %H:%M:%S} UTC. There is no other clock to compare this time with",
            )
        ]
    off_s = min(abs((context.now - sent_at).total_seconds()) for sent_at in context.dates)
    comparison = f"{context.now:%Y-%m-%d %H:%M:%S} UTC, which differs from the clock of a target by {off_s:.0f} s"
    if off_s < CLOCK_DOUBTFUL_S:
        return [HealthCheck(name="clock", health=Health.GOOD, found=comparison)]
    health = Health.BROKEN if off_s >= CLOCK_BROKEN_S else Health.DOUBTFUL
    return [
        HealthCheck(
            name="clock",
            health=health,
            found=comparison,
            to_do=(
                "set the clock with NTP. If the clock is wrong by more than 300 s, signatures of Slack and "
                "webhooks are refused"
            ),
        )
    ]


def check_rights(context: DoctorContext) -> list[HealthCheck]:
    """Check that other users cannot read the data folder, and that the folder is not an unconfirmed copy."""
    name, folder = "rights", context.data_folder
    if not folder.is_dir():
        return []
    refuse_symbolic_links(folder)
    read_identity(folder)  # raises an error for a copy
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & OTHERS:
        return [HealthCheck(name=name, health=Health.GOOD, found=f"only the owner can read {folder}")]
    return [
        HealthCheck(
            name=name,
            health=Health.DOUBTFUL,
            found=f"other users of this machine can read {folder} (mode {mode:o})",
            to_do=f"run `chmod 700 {folder}`, unless other users need access",
            optional=True,
        )
    ]


def check_disk(context: DoctorContext) -> list[HealthCheck]:
    """Check that the data folder is writable and that the disk has free space."""
    folder = context.data_folder
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        to_do = "set data_folder in lookout.toml to a writable folder"
        return [HealthCheck(name="disk", health=Health.BROKEN, found=f"{existing} is not writable", to_do=to_do)]
    free_gb = shutil.disk_usage(existing).free / GIGABYTE
    free_text = f"{free_gb:.1f} GB free for {folder}"
    if free_gb >= DOUBTFUL_DISK_GB:
        return [HealthCheck(name="disk", health=Health.GOOD, found=free_text)]
    health = Health.BROKEN if free_gb < BROKEN_DISK_GB else Health.DOUBTFUL
    return [
        HealthCheck(
            name="disk",
            health=health,
            found=free_text,
            to_do="free some disk space, or store screenshots for fewer days ([evidence] in lookout.toml)",
        )
    ]


def check_warehouse(context: DoctorContext) -> list[HealthCheck]:
    """Check that the warehouse opens."""
    from flows.data_folder import open_store_in  # slow: imports duckdb
    from warehouse.queries.runs import count_runs

    folder = context.data_folder
    if not (folder / "warehouse.duckdb").exists():
        return [
            HealthCheck(
                name="warehouse",
                health=Health.GOOD,
                found="does not exist yet. The first run creates the warehouse",
            )
        ]
    try:
        runs = count_runs(open_store_in(folder), wait_s=LOCK_WAIT_S)
    except WarehouseBusy as error:
        return [HealthCheck(name="warehouse", health=Health.GOOD, found=f"the warehouse is busy: {error}")]
    except MonitorError as error:
        to_do = "lookout warehouse rebuild"
        return [HealthCheck(name="warehouse", health=Health.BROKEN, found=str(error), to_do=to_do)]
    return [
        HealthCheck(
            name="warehouse", health=Health.GOOD, found=f"the warehouse opens and contains {plural(runs, 'run')}"
        )
    ]


def check_prefect(context: DoctorContext) -> list[HealthCheck]:
    """Check that the configured Prefect server answers.

    If no server is configured, report the state of the local server.
    """
    from flows.data_folder import PREFECT_FOLDER  # slow: imports duckdb
    from flows.server.prefect_server import find_running_server

    configured = context.config.prefect.api_url if context.config else None
    url = configured or context.environment.get("PREFECT_API_URL")
    if url is None:
        local = find_running_server(context.data_folder / PREFECT_FOLDER)
        state = "no server is configured, and no local server runs. The next run starts a local server"
        if local is None:
            return [HealthCheck(name="Prefect", health=Health.GOOD, found=state)]
        state = f"the local server runs at {local.ui_url}. `lookout down` stops the server"
        server = HealthCheck(name="Prefect", health=Health.GOOD, found=state)
        return [server, *_check_paused_schedules(context, local.api_url)]
    try:
        answer = httpx.get(f"{url}/health", timeout=REQUEST_S)
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        to_do = "start the Prefect server, or correct its address in prefect.api_url or PREFECT_API_URL"
        return [
            HealthCheck(name="Prefect", health=Health.BROKEN, found=f"{url}: {type(error).__name__}", to_do=to_do)
        ]
    server = HealthCheck(name="Prefect", health=Health.GOOD, found=f"{url} answers")
    return [server, *_check_paused_schedules(context, url)]


def _check_paused_schedules(context: DoctorContext, api_url: str) -> list[HealthCheck]:
    """Report each configured schedule that a person paused in Prefect."""
    from flows.server.schedule_state import load_schedule_states
    from flows.server.schedules import plan_deployments

    if context.config is None:
        return []
    planned = plan_deployments(context.config, context.config_path.resolve(), context.config.schedules)
    names = {deployment.name for deployment in planned if deployment.when is not None}
    auth = context.environment.get("PREFECT_API_AUTH_STRING", "")
    states = load_schedule_states(api_url, context.config.prefect.tag, auth) or ()
    return [
        HealthCheck(
            name=f"schedule {state.name}",
            health=Health.DOUBTFUL,
            found=f"paused in Prefect since {state.paused_since:%Y-%m-%d %H:%M} UTC, so it starts no runs",
            to_do=state.resume,
        )
        for state in states
        if state.paused and state.name in names
    ]


def check_watching(context: DoctorContext) -> list[HealthCheck]:
    """Check that `lookout up` still polls the logs, Spaces, deploys and traffic sources that it polled before."""
    polls = read_polls(context.data_folder)
    if not polls:
        return []
    late = list_late_polls(context.data_folder, context.now)
    if late:
        text = format_late_polls(late)
        return [HealthCheck(name="watching", health=Health.BROKEN, found=text, to_do=WATCH_TO_DO)]
    return [HealthCheck(name="watching", health=Health.GOOD, found=", ".join(poll.name for poll in polls))]


def check_drill(context: DoctorContext) -> list[HealthCheck]:
    """Report when the last drill (a test of the alert path) proved that alerts arrive."""
    from flows.drill.course import read_drill_report_file  # slow: imports duckdb and slack_sdk
    from flows.drill.status import DrillState, build_drill_status

    if context.config is None:
        return []
    status = build_drill_status(read_drill_report_file(context.data_folder), context.config.drill, context.now)
    health = {DrillState.PROVED: Health.GOOD, DrillState.NEVER: Health.DOUBTFUL}.get(status.state, Health.BROKEN)
    return [HealthCheck(name="last drill", health=health, found=status.text, to_do=status.to_do, optional=True)]


def check_alert_delivery(context: DoctorContext) -> list[HealthCheck]:
    """Send a test message through each alert channel, unless a test message arrived in the last day.

    If ``alert_now`` is set, send the message even if one arrived in the last day.
    """
    from flows.clock import utc_now  # slow: imports duckdb
    from flows.maintenance.self_test import (  # slow import
        read_delivery_proofs,
        send_test_alerts_and_ping,
        store_delivery_proofs,
    )

    variables = ("SLACK_BOT_TOKEN", "SLACK_WEBHOOK_URL", "SLACK_FALLBACK_WEBHOOK_URL", "LOOKOUT_HEARTBEAT_URL")
    configured = [name for name in variables if context.environment.get(name)]
    if not configured:
        state = "no Slack credentials are set, so Lookout only prints and stores alerts"
        return [HealthCheck(name="alerts", health=Health.GOOD, found=state)]
    if context.config is None or not context.send_alerts:
        return [
            HealthCheck(
                name="alerts", health=Health.GOOD, found=f"configured with {', '.join(configured)}; not tested"
            )
        ]
    target = next(iter(context.config.targets))
    past = read_delivery_proofs(context.data_folder, context.config, context.environment)
    proofs = {} if context.alert_now else past.proofs
    outcomes = asyncio.run(
        send_test_alerts_and_ping(context.config, context.environment, target=target, now=utc_now, proofs=proofs)
    )
    store_delivery_proofs(context.data_folder, past, outcomes, utc_now())
    return [_build_delivery_check(outcome) for outcome in outcomes]


def _build_delivery_check(outcome: PathOutcome) -> HealthCheck:
    name = f"alerts, {outcome.path}"
    if outcome.arrived:
        return HealthCheck(name=name, health=Health.GOOD, found=outcome.detail)
    if not outcome.configured:
        return HealthCheck(
            name=name, health=Health.DOUBTFUL, found="not configured", to_do=outcome.detail, optional=True
        )
    return HealthCheck(
        name=name, health=Health.BROKEN, found="the test message did not arrive", to_do=outcome.detail
    )


def check_share_gradable_by_rules(context: DoctorContext) -> list[HealthCheck]:
    """Check, for each target without a judge, that rules can grade enough of its suite for a verdict."""
    from flows.goldset.mutation_testing import (  # the graders, which would slow down --help
        MAX_REACH_CASES,
        count_cases_rules_can_grade,
    )
    from monitors.graders.panel import build_rule_panel

    results: list[HealthCheck] = []
    for name, target in context.config.targets.items() if context.config else ():
        if context.config is None or not is_without_judge(context.config, name, context.environment):
            continue
        if not target.suite.exists():
            continue
        check_name = f"golds of {name}"
        if not read_suite_text(target.suite).strip():
            to_do = "write the first cases with `lookout gold grow`, `lookout gold build` or `lookout gold draft`"
            empty = f"{target.suite} is empty"
            results.append(HealthCheck(name=check_name, health=Health.DOUBTFUL, found=empty, to_do=to_do))
            continue
        cases = [case for case in load_suite(target.suite).cases if case.triage is None]
        reach = count_cases_rules_can_grade(
            cases, build_rule_panel(target.graders, target.domain), max_cases=MAX_REACH_CASES
        )
        if shortfall := reach.explain_rule_coverage_shortfall(context.config.gate.coverage_floor):
            to_do = f"run `lookout gold check {target.suite}`. The command lists these golds and how to fix them"
            results.append(HealthCheck(name=check_name, health=Health.DOUBTFUL, found=shortfall, to_do=to_do))
        elif cases:
            decided = f"rules can grade the answers to {reach.by_rules} of {plural(reach.golds, 'gold')}"
            results.append(HealthCheck(name=check_name, health=Health.GOOD, found=decided))
    return results


def is_without_judge(config: Config, name: str, environment: Mapping[str, str]) -> bool:
    """Return whether runs of a target have no judge.

    Returns false for a misconfigured judge, because `check_judge` reports such a judge.
    """
    from flows.runtime.judge import build_judge_plan  # slow: imports duckdb

    try:
        plan = build_judge_plan(config.judge, build_target_record(name, config.require_target(name)), environment)
    except ConfigError:
        return False
    return bool(plan.why_off)


CHECKS: tuple[Callable[[DoctorContext], list[HealthCheck]], ...] = (
    check_browser,
    check_pages,
    check_apis,
    check_logins,
    check_hub,
    check_clock,
    check_judge,
    check_share_gradable_by_rules,
    check_hallucination_logs,
    check_traffic_settings,
    check_tracing,
    check_langfuse,
    check_disk,
    check_rights,
    check_warehouse,
    check_prefect,
    check_watching,
    check_drill,
    check_alert_delivery,
)
