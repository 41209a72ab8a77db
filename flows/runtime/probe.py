"""Builds the driver that asks the target, with headers and login, from the settings of the probe."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from flows.clock import utc_now
from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.login import Login
from monitors.probes.choose import build_driver
from monitors.probes.driver import ChatDriver
from monitors.probes.job.driver import FindScriptedAnswer, JobTraces, answer_no_question
from monitors.probes.pace import CpuTimes, Pace, build_pace
from monitors.probes.settings import ProbeSettings
from monitors.records.cases import GoldCase
from monitors.request_headers import API_TOKEN_VARIABLE, RequestHeaders, build_request_headers


def format_browser(driver: ChatDriver) -> str | None:
    """Format the name and version of a driver's browser. Return ``None`` for a driver without a browser."""
    version = driver.chromium.version if isinstance(driver, BrowserDriver) else None
    return f"Chromium {version}" if version else None


def open_driver(
    address: str,
    settings: ProbeSettings,
    *,
    folder: Path,
    environment: Mapping[str, str],
    login: Login | None = None,
    traces: JobTraces | None = None,
    script: FindScriptedAnswer = answer_no_question,
) -> AbstractAsyncContextManager[ChatDriver]:
    """Open the driver that asks an application. Raises `ConfigError` for a header without a value."""
    headers = build_probe_headers(settings, environment)
    return build_driver(
        address,
        settings,
        run_folder=folder,
        clock=utc_now,
        headers=headers,
        login=login,
        traces=traces,
        script=script,
    )


def build_scripted_reply_finder(cases: Sequence[GoldCase]) -> FindScriptedAnswer:
    """Build a function that answers an agent's questions with the texts in ``when_asked`` of ``cases``."""
    scripted = {case.turns: case for case in cases if case.when_asked}

    def find_answer(turns: tuple[str, ...], question: str) -> str | None:
        case = scripted.get(turns)
        return case.find_answer_to_agent(question) if case else None

    return find_answer


def build_probe_headers(settings: ProbeSettings, environment: Mapping[str, str]) -> RequestHeaders:
    """Build the headers for a target with an API. Raises `ConfigError` if a value is missing."""
    return build_request_headers(
        settings.headers, environment, key="probe.headers", token_variable=API_TOKEN_VARIABLE
    )


def build_login(config: Config, name: str, environment: Mapping[str, str]) -> Login | None:
    """Build the login of a target, or ``None`` if no login is configured.

    Raises `ConfigError` if an environment variable is missing.
    """
    return build_login_at(config, name, build_target_record(name, config.require_target(name)).address, environment)


def build_login_at(config: Config, name: str, address: str, environment: Mapping[str, str]) -> Login | None:
    """Build the login for one address of a target, or ``None`` if no login is configured.

    Each host has its own stored session. Raises `ConfigError` if ``address`` is on another host than the target,
    and only a person can sign in there.
    """
    configured = config.require_target(name)
    if configured.login is None:
        return None
    own = build_target_record(name, configured).address
    elsewhere = urlsplit(own)[:2] != urlsplit(address)[:2]
    if elsewhere and configured.login.needs_person_to_sign_in:
        raise ConfigError(
            f"Lookout cannot ask {address}: only a person can sign in to {name}, and the saved session is for {own}"
        )
    return Login(
        configured.login,
        target=f"{name}@{urlsplit(address).netloc}" if elsewhere else name,
        address=address,
        data_folder=config.data_folder,
        environment=environment,
        now=utc_now,
    )


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build_concurrency_limit(settings: ProbeSettings) -> Pace:
    """Build the limit on concurrent questions from this machine's cores and load."""
    return build_pace(settings, count_cores(), CpuTimes())
