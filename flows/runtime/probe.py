"""Turns the settings of a probe into what asks the target: a driver, its headers and its login."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from flows.clock import utc_now
from monitors.config.file import Config, target_record
from monitors.errors import ConfigError
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.login import Login
from monitors.probes.choose import driver_for
from monitors.probes.driver import ChatDriver
from monitors.probes.job.driver import JobTraces, Script, no_script
from monitors.probes.pace import CpuTimes, Pace, pace_of
from monitors.probes.settings import ProbeSettings
from monitors.records.cases import GoldCase
from monitors.request_headers import API_TOKEN_VARIABLE, RequestHeaders, headers_of

BROWSER_VARIABLE = "CHROMIUM_PATH"


def browser_of(driver: ChatDriver) -> str | None:
    """The browser that a driver asks with, and its version; ``None`` where it needs none."""
    version = driver.chromium.version if isinstance(driver, BrowserDriver) else None
    return f"Chromium {version}" if version else None


def browser_settings(settings: ProbeSettings, environment: Mapping[str, str]) -> ProbeSettings:
    """The settings with the browser that the environment names, where they name none."""
    named = environment.get(BROWSER_VARIABLE)
    return settings if settings.browser_path or not named else settings.model_copy(update={"browser_path": named})


def driver_at(
    address: str,
    settings: ProbeSettings,
    *,
    folder: Path,
    environment: Mapping[str, str],
    login: Login | None = None,
    traces: JobTraces | None = None,
    script: Script = no_script,
) -> AbstractAsyncContextManager[ChatDriver]:
    """The driver that asks at an address and authenticates there. `ConfigError` for a header without a value."""
    headers = probe_headers(settings, environment)
    return driver_for(
        address,
        settings,
        run_folder=folder,
        clock=utc_now,
        headers=headers,
        login=login,
        traces=traces,
        script=script,
    )


def script_of(cases: Sequence[GoldCase]) -> Script:
    """What these cases answer an agent that stops to ask: each case knows its own turns."""
    scripted = {case.turns: case for case in cases if case.when_asked}

    def answer(turns: tuple[str, ...], question: str) -> str | None:
        case = scripted.get(turns)
        return case.answer_to(question) if case else None

    return answer


def probe_headers(settings: ProbeSettings, environment: Mapping[str, str]) -> RequestHeaders:
    """The headers for a target that is asked through an API. `ConfigError` names what is missing."""
    return headers_of(settings.headers, environment, key="probe.headers", token_variable=API_TOKEN_VARIABLE)


def login_of(config: Config, name: str, environment: Mapping[str, str]) -> Login | None:
    """The login that opens a target's pages, ``None`` where it has none.

    `ConfigError` names the variable that is missing.
    """
    return login_at(config, name, target_record(name, config.target(name)).address, environment)


def login_at(config: Config, name: str, address: str, environment: Mapping[str, str]) -> Login | None:
    """Like `login_of`, at another address of the target.

    A session opens one origin: at another one a target has a session of its own, which a form or headers make.
    `ConfigError` where only a person can sign in there.
    """
    configured = config.target(name)
    if configured.login is None:
        return None
    own = target_record(name, configured).address
    elsewhere = urlsplit(own)[:2] != urlsplit(address)[:2]
    if elsewhere and configured.login.needs_person:
        raise ConfigError(f"{address} cannot be asked: only a person can sign in to {name}, and did so at {own}")
    return Login(
        configured.login,
        target=f"{name}@{urlsplit(address).netloc}" if elsewhere else name,
        address=address,
        data_folder=config.data_folder,
        environment=environment,
        now=utc_now,
    )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pace(settings: ProbeSettings) -> Pace:
    """How many questions are under way on this machine."""
    return pace_of(settings, cores(), CpuTimes())
