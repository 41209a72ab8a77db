"""Whether all that Lookout needs is there: each check says what it found and what to do.

Nothing is changed; a test message is sent by every way that is configured, and each judge grades two known answers,
unless it is asked not to.

More checks join by one more function in `CHECKS`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deployments.doctor_health import Check, Health, Surroundings
from deployments.doctor_hub import hub
from deployments.doctor_judge import judge
from deployments.doctor_logs import hallucination_logs, live_traffic
from monitors.config import Config, TargetConfig, load_config, target_record
from monitors.errors import BrowserLost, ConfigError, MonitorError, WarehouseBusy
from monitors.probes.chromium import Chromium, find_browser

if TYPE_CHECKING:
    from flows.alert_check import PathOutcome

REQUEST_S = 10.0
LOCK_WAIT_S = 2.0
GIGABYTE = 1e9
LITTLE_DISK_GB, TOO_LITTLE_DISK_GB = 5.0, 1.0
"""A run of 500 cases keeps some 100 MB of pictures at most; DuckDB needs room for a copy of its file to rebuild."""

CLOCK_DOUBTFUL_S, CLOCK_BROKEN_S = 60.0, 300.0
"""Signatures of webhooks and of Slack are refused beyond five minutes."""


def checks(
    config_path: Path,
    *,
    environment: Mapping[str, str],
    now: datetime,
    send_alerts: bool = True,
    ask_judges: bool = True,
) -> list[Check]:
    """All checks, in the order in which a run needs them. A check that itself breaks is told as broken."""
    config, found = _configuration(config_path)
    around = Surroundings(config_path, config, environment, now, send_alerts, ask_judges)
    results = [found]
    for check in CHECKS:
        try:
            results += check(around)
        except (MonitorError, OSError) as error:
            results.append(Check(name=check.__name__, health=Health.BROKEN, found=str(error)))
    return results


def _configuration(path: Path) -> tuple[Config | None, Check]:
    name = "configuration"
    if not path.exists():
        to_do = "lookout init writes one; `lookout demo` and `lookout doctor URL` need none"
        return None, Check(name=name, health=Health.DOUBTFUL, found=f"there is no {path}", to_do=to_do)
    try:
        config = load_config(path)
    except ConfigError as error:
        return None, Check(name=name, health=Health.BROKEN, found=str(error), to_do="mend the keys that are named")
    missing = [name for name, target in config.targets.items() if not target.suite.exists()]
    if missing:
        return config, Check(
            name=name,
            health=Health.BROKEN,
            found=f"no suite for {', '.join(missing)}",
            to_do="give its `suite` a file",
        )
    return config, Check(name=name, health=Health.GOOD, found=f"{path}: {', '.join(config.targets)}")


def browser(around: Surroundings) -> list[Check]:
    """A Chromium is found and starts."""
    try:
        found = find_browser(around.environment.get("CHROMIUM_PATH"))
        version = asyncio.run(_started(found.executable))
    except BrowserLost as error:
        return [Check(name="browser", health=Health.BROKEN, found=str(error), to_do="make browser")]
    return [
        Check(name="browser", health=Health.GOOD, found=f"Chromium {version}, {found.executable} ({found.source})")
    ]


async def _started(path: str) -> str:
    async with Chromium(browser_path=path) as chromium:
        return (await chromium.browser()).version


def pages(around: Surroundings) -> list[Check]:
    """Each target answers."""
    targets = around.config.targets if around.config else {}
    return [_page(around, name, target) for name, target in targets.items()]


def _page(around: Surroundings, name: str, target: TargetConfig) -> Check:
    what, address = f"page of {name}", target_record(name, target).address
    try:
        answer = httpx.get(address, timeout=REQUEST_S, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        to_do = "open it from this machine: its spelling, network, proxy, or the app is down"
        return Check(name=what, health=Health.BROKEN, found=f"{address}: {type(error).__name__}", to_do=to_do)
    if "date" in answer.headers:
        around.dates += _date(answer.headers["date"])
    took = f"{address}: HTTP {answer.status_code} in {answer.elapsed.total_seconds():.2f} s"
    if answer.status_code in (401, 402, 403, 407, 429):
        return Check(name=what, health=Health.BROKEN, found=took, to_do="Lookout signs in nowhere")
    if answer.status_code >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        return Check(name=what, health=Health.DOUBTFUL, found=took, to_do=f"lookout doctor {name} looks closer")
    return Check(name=what, health=Health.GOOD, found=took)


def _date(header: str) -> list[datetime]:
    try:
        told = parsedate_to_datetime(header)
    except ValueError:
        return []
    return [told if told.tzinfo else told.replace(tzinfo=UTC)]


def clock(around: Surroundings) -> list[Check]:
    """This machine's clock against the targets' own."""
    if not around.dates:
        return [
            Check(name="clock", health=Health.GOOD, found=f"{around.now:%Y-%m-%d %H:%M:%S} UTC; nothing to compare")
        ]
    off_s = min(abs((around.now - told).total_seconds()) for told in around.dates)
    found = f"{around.now:%Y-%m-%d %H:%M:%S} UTC, {off_s:.0f} s from what a target says"
    if off_s < CLOCK_DOUBTFUL_S:
        return [Check(name="clock", health=Health.GOOD, found=found)]
    health = Health.BROKEN if off_s >= CLOCK_BROKEN_S else Health.DOUBTFUL
    return [
        Check(name="clock", health=health, found=found, to_do="set it by NTP: signatures are refused beyond 300 s")
    ]


def disk(around: Surroundings) -> list[Check]:
    """The data folder can be written, and there is room."""
    folder = around.data_folder
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        to_do = "set data_folder in lookout.toml to a folder that can be written"
        return [Check(name="disk", health=Health.BROKEN, found=f"{there} cannot be written", to_do=to_do)]
    free_gb = shutil.disk_usage(there).free / GIGABYTE
    found = f"{free_gb:.1f} GB free for {folder}"
    if free_gb >= LITTLE_DISK_GB:
        return [Check(name="disk", health=Health.GOOD, found=found)]
    health = Health.BROKEN if free_gb < TOO_LITTLE_DISK_GB else Health.DOUBTFUL
    return [Check(name="disk", health=health, found=found, to_do="make room, or let pictures age out sooner")]


def warehouse(around: Surroundings) -> list[Check]:
    """The warehouse opens."""
    from flows.wiring import store_in  # duckdb

    folder = around.data_folder
    if not (folder / "warehouse.duckdb").exists():
        return [Check(name="warehouse", health=Health.GOOD, found="none yet; the first run makes it")]
    try:
        with store_in(folder).database.reading(LOCK_WAIT_S) as connection:
            row = connection.execute("select count(*) from runs").fetchone()
    except WarehouseBusy as error:
        return [Check(name="warehouse", health=Health.GOOD, found=f"in use: {error}")]
    except MonitorError as error:
        to_do = "lookout warehouse rebuild"
        return [Check(name="warehouse", health=Health.BROKEN, found=str(error), to_do=to_do)]
    return [Check(name="warehouse", health=Health.GOOD, found=f"opens; {row[0] if row else 0} runs")]


def prefect(around: Surroundings) -> list[Check]:
    """The Prefect server answers, where one is named."""
    configured = around.config.prefect.api_url if around.config else None
    url = configured or around.environment.get("PREFECT_API_URL")
    if url is None:
        found = "no server is named: a local one is started by the first run"
        return [Check(name="Prefect", health=Health.GOOD, found=found)]
    try:
        answer = httpx.get(f"{url}/health", timeout=REQUEST_S)
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        to_do = "start it, or mend prefect.api_url (PREFECT_API_URL)"
        return [Check(name="Prefect", health=Health.BROKEN, found=f"{url}: {type(error).__name__}", to_do=to_do)]
    return [Check(name="Prefect", health=Health.GOOD, found=f"{url} answers")]


def alerts(around: Surroundings) -> list[Check]:
    """Where messages go: a test is sent by every way there is, as only that tells whether they arrive."""
    from flows.alert_check import send_test_alert  # slack_sdk

    ways = ("SLACK_BOT_TOKEN", "SLACK_WEBHOOK_URL", "SLACK_FALLBACK_WEBHOOK_URL", "LOOKOUT_HEARTBEAT_URL")
    known = [name for name in ways if around.environment.get(name)]
    if not known:
        found = "no Slack credentials: messages are printed and stored"
        return [Check(name="alerts", health=Health.GOOD, found=found)]
    if around.config is None or not around.send_alerts:
        return [Check(name="alerts", health=Health.GOOD, found=f"by {', '.join(known)}; not tried")]
    target = next(iter(around.config.targets))
    outcomes = asyncio.run(send_test_alert(around.config, around.environment, target=target))
    return [_way(one) for one in outcomes]


def _way(one: PathOutcome) -> Check:
    name = f"alerts, {one.path}"
    if one.arrived:
        return Check(name=name, health=Health.GOOD, found=f"a test went out: {one.detail}")
    if not one.configured:
        return Check(name=name, health=Health.DOUBTFUL, found="not configured", to_do=one.detail)
    return Check(name=name, health=Health.BROKEN, found="the test did not arrive", to_do=one.detail)


CHECKS: tuple[Callable[[Surroundings], list[Check]], ...] = (
    browser,
    pages,
    hub,
    clock,
    judge,
    hallucination_logs,
    live_traffic,
    disk,
    warehouse,
    prefect,
    alerts,
)
