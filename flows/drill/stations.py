"""The stations of a drill that run before the drill asks a question. Each station tests one part that alerts need.

A station returns a message about its result. A station raises `StationFailed` if the part does not work, and
`NotSetUp` if this installation does not have the part.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from flows.drill.context import DrillContext, NotSetUp, StationFailed
from flows.hallucination_log.follower import build_log_place
from flows.runtime.slack import TOKEN_VARIABLE, WEBHOOK_VARIABLE
from flows.server.schedules import plan_deployments
from monitors.alerts.message import format_duration
from monitors.config.file import Config
from monitors.errors import MonitorError, SourceUnavailable
from monitors.goldset.load import load_suite
from monitors.plural import plural
from monitors.records.logs import HallucinationEntry
from monitors.records.self_checks import DRILL_TARGET
from monitors.sources.logs.entries import is_whole_entry, parse_line
from monitors.sources.logs.files import LocalLog, LogPlace
from monitors.sources.logs.settings import HallucinationLogSettings
from monitors.sources.logs.tail import read_new_batches

REQUEST_TIMEOUT_S: Final = 10.0
MIN_FREE_BYTES: Final = 256_000_000
"""Minimum free space in bytes.

A run of 500 cases stores about 100 MB of screenshots, and DuckDB needs space for a copy of its file.
"""
PROBE_BYTES: Final = 1_000_000
MAX_CLOCK_OFFSET_S: Final = 300.0
"""Maximum difference between this machine's clock and Slack's clock, in seconds.

Webhook signatures and Slack signatures are valid for this time.
"""


async def check_data_folder(drill: DrillContext) -> str:
    """Check that the data folder can be written and has enough free space."""
    return await asyncio.to_thread(_check_write_access_and_space, drill.folder)


def _check_write_access_and_space(folder: Path) -> str:
    probe = folder / "probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with probe.open("wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        probe.unlink()
    except OSError as error:
        probe.unlink(missing_ok=True) if os.access(folder, os.W_OK) else None
        raise StationFailed(
            f"{folder} cannot be written: {error.strerror}", "free some disk space, or make the folder writable"
        ) from error
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise StationFailed(
            f"only {free / 1e6:,.0f} MB are free at {folder}",
            "free some disk space, or store screenshots for fewer days ([evidence] in lookout.toml)",
        )
    return f"{folder} is writable, {free / 1e9:.1f} GB free"


async def check_suites(drill: DrillContext) -> str:
    """Check that every target's suite can be loaded."""
    for name, target in drill.config.targets.items():
        try:
            await asyncio.to_thread(load_suite, target.suite)
        except MonitorError as error:
            raise StationFailed(str(error), f"fix targets.{name}.suite, or restore the file") from error
    return f"{plural(len(drill.config.targets), 'suite')} can be read"


async def check_schedules(drill: DrillContext) -> str:
    """Check that every scheduled deployment is registered at Prefect and not paused."""
    if drill.prefect_api is None:
        raise NotSetUp("the schedules were not checked, because this drill runs without a worker")
    from prefect.client.orchestration import PrefectClient  # Prefect reads its settings at import
    from prefect.exceptions import ObjectNotFound

    planned = plan_deployments(drill.config, drill.config_path, drill.config.schedules)
    timed = [deployment for deployment in planned if deployment.when is not None]
    async with PrefectClient(drill.prefect_api) as client:
        for deployment in timed:
            try:
                registered = await client.read_deployment_by_name(deployment.full_name)
            except ObjectNotFound:
                raise StationFailed(
                    f"{deployment.full_name} is not registered at Prefect",
                    "restart `lookout up`, or deploy to your work pool with `lookout prefect-yaml --deploy`",
                ) from None
            if registered.paused or not any(row.active for row in registered.schedules):
                raise StationFailed(
                    f"{deployment.full_name} is paused, so its schedule does not start it",
                    "resume it on its page in the Prefect UI, or with the command that `lookout doctor` shows",
                )
    return f"{plural(len(timed), 'active schedule')}"


async def check_slack_connection(drill: DrillContext) -> str:
    """Check that Slack's host name can be resolved and that Slack can be reached, if needed through a proxy.

    The time that the server reports is stored in ``drill.outside_at`` for `check_clock`.
    """
    url = _find_slack_url(drill.config, drill.environment)
    if url is None:
        raise NotSetUp("the connection to Slack was not tested, because there are no Slack credentials")
    host = urlsplit(url).hostname or ""
    scheme = urlsplit(url).scheme
    proxied = scheme in getproxies() and not proxy_bypass(host)
    variable = f"{scheme.upper()}_PROXY" if proxied else None
    if variable is None:
        await _check_name_resolves(host)
    try:
        async with httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S) as client:
            response = await client.get(url)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _build_network_failure(host, variable, type(error).__name__) from error
    _store_server_time(drill, response)
    is_from_slack = _is_response_from_slack(response) or (variable is None and response.is_server_error)
    if url.endswith(_API_TEST) and not is_from_slack:
        raise _build_network_failure(
            host, variable, f"the response (HTTP {response.status_code}) is not from Slack"
        )
    return f"{host} answers" + (f" through the proxy in {variable}" if variable else "")


_API_TEST: Final = "api.test"


def _find_slack_url(config: Config, environment: Mapping[str, str]) -> str | None:
    """Return a Slack URL without secrets for a connection test, or ``None`` without Slack credentials."""
    if environment.get(TOKEN_VARIABLE):
        return f"{config.alerts.slack_api_url.rstrip('/')}/{_API_TEST}"
    webhook = urlsplit(environment.get(WEBHOOK_VARIABLE, ""))
    return f"{webhook.scheme}://{webhook.netloc}/" if webhook.netloc else None


async def _check_name_resolves(host: str) -> None:
    try:
        await asyncio.to_thread(socket.getaddrinfo, host, 443)
    except OSError as error:
        raise StationFailed(
            f"DNS: the name {host} cannot be resolved",
            f"check the name server of this machine: getent hosts {host}",
        ) from error


def _build_network_failure(host: str, variable: str | None, reason: str) -> StationFailed:
    if variable is not None:
        return StationFailed(
            f"{host} cannot be reached through the proxy in {variable}: {reason}",
            f"fix {variable}, or allow {host} in the proxy",
        )
    return StationFailed(f"{host} cannot be reached: {reason}", "check firewalls, proxies and network login pages")


def _is_response_from_slack(response: httpx.Response) -> bool:
    try:
        document = response.json()
    except ValueError:
        return False
    return isinstance(document, dict) and "ok" in document


def _store_server_time(drill: DrillContext, response: httpx.Response) -> None:
    try:
        sent_at = parsedate_to_datetime(response.headers["date"])
    except (KeyError, ValueError):
        return
    drill.outside_at = (sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC), drill.now())


async def check_clock(drill: DrillContext) -> str:
    """Check that this machine's clock agrees with Slack's clock."""
    if drill.outside_at is None:
        raise NotSetUp("the clock was not checked, because no external server reported the time")
    theirs, ours = drill.outside_at
    off_s = (ours - theirs).total_seconds()
    if abs(off_s) > MAX_CLOCK_OFFSET_S:
        raise StationFailed(
            f"this machine's clock is {format_duration(timedelta(seconds=abs(off_s)))} "
            f"{'ahead of' if off_s > 0 else 'behind'} Slack's",
            "synchronise it with NTP: timedatectl set-ntp true",
        )
    return f"differs by {abs(off_s):.0f} s from Slack's clock"


async def check_hallucination_logs(drill: DrillContext) -> str:
    """Check that Lookout reads a line in a test log, and that it can open each configured log."""
    logs = {
        name: (target.hallucination_log, target.probe)
        for name, target in drill.config.targets.items()
        if target.hallucination_log
    }
    if not logs:
        raise NotSetUp("no target has a hallucination_log")
    await asyncio.to_thread(_write_and_read_planted_line, drill)
    for name, (settings, probe) in logs.items():
        try:
            await asyncio.to_thread(_check_log_opens, build_log_place(settings, probe), settings)
        except (MonitorError, OSError) as error:
            raise StationFailed(
                f"the hallucination log of {name} cannot be read: {error}",
                f"check targets.{name}.hallucination_log.at and the permissions of the file",
            ) from error
    return f"Lookout read a test line and can open {plural(len(logs), 'log')}"


def _write_and_read_planted_line(drill: DrillContext) -> None:
    planted = f"drill {drill.drill_id}"
    path = drill.folder / "hallucinations.jsonl"
    path.write_text(json.dumps({"question": "Is this a drill?", "answer": planted}) + "\n", encoding="utf-8")
    with LocalLog(path).poll() as files:
        batches = list(read_new_batches(files, DRILL_TARGET, None, is_whole=is_whole_entry))
    entries = [parse_line(DRILL_TARGET, line) for batch in batches for line in batch.lines]
    if not any(isinstance(entry, HallucinationEntry) and entry.reply.blocked_reply == planted for entry in entries):
        raise StationFailed("Lookout did not find its test line in a test log", "run `lookout doctor` for details")


def _check_log_opens(place: LogPlace, settings: HallucinationLogSettings) -> None:
    with place.poll() as files:
        if files.newest is not None:
            files.newest.read(0, 1)
        elif not settings.may_be_missing:
            raise SourceUnavailable(f"there is no file at {settings.at}")
