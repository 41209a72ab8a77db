"""Which driver a target is asked with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from monitors.errors import ConfigError
from monitors.probes.api import ApiDriver
from monitors.probes.browser import BrowserDriver
from monitors.probes.driver import ChatDriver
from monitors.probes.gradio_api import GradioDriver
from monitors.probes.job import Clock, JobDriver
from monitors.probes.settings import ProbeSettings

Make = Callable[[], AbstractAsyncContextManager[ChatDriver]]


def driver_for(
    address: str,
    settings: ProbeSettings,
    *,
    run_folder: Path,
    clock: Clock,
    headers: Mapping[str, str] | None = None,
    search_path: str | None = None,
) -> AbstractAsyncContextManager[ChatDriver]:
    """The driver that ``probe.driver`` names, as an async context manager; `ConfigError` names those there are.

    `headers` authenticate at an API. `clock` says when a job was started. `search_path` is where a system Chromium
    is looked for.
    """
    known: dict[str, Make] = {
        "browser": lambda: BrowserDriver(address, settings, run_folder=run_folder, search_path=search_path),
        "gradio": lambda: GradioDriver(address, settings, headers=headers),
        "json": lambda: ApiDriver(address, settings, headers=headers),
        "sse": lambda: ApiDriver(address, settings, headers=headers),
        "job": lambda: JobDriver(address, settings, run_folder=run_folder, clock=clock, headers=headers),
    }
    make = known.get(settings.driver)
    if make is None:
        raise ConfigError(f"probe.driver = {settings.driver!r}: no such driver; accepted: {', '.join(known)}")
    return make()
