"""``lookout doctor``: what Lookout sees on a page, or whether all that it needs is there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from rich.console import Console

from deployments.doctor_checks import checks
from deployments.doctor_health import Check, Health
from deployments.doctor_text import print_checks, print_look
from deployments.exit_codes import ExitCode
from deployments.verify_command import is_address, name_of
from monitors.config import Config, load_config, target_record
from monitors.errors import ConfigError
from monitors.probes.page_look import Asking, PageLook
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame, Record

PICTURES = "doctor"
OWNER_ONLY_FOLDER = 0o700


class HealthReport(Record):
    """All checks, as ``--json`` prints them."""

    checks: tuple[Check, ...]


def doctor_command(
    target: str | None,
    config_path: Path,
    *,
    asking: Asking,
    picture: Path | None,
    environment: Mapping[str, str],
    send_alerts: bool,
    ask_judges: bool,
    as_json: bool,
) -> ExitCode:
    """Look at ``target`` (a name or an address), or check everything; see ``lookout doctor --help``."""
    if target is None:
        found = checks(
            config_path,
            environment=environment,
            now=_now(),
            send_alerts=send_alerts,
            ask_judges=ask_judges,
        )
        return _told(found, as_json=as_json)
    config = load_config(config_path) if config_path.exists() or not is_address(target) else None
    name, address, settings = _what(target, config)
    settings = _with_browser(settings, environment)
    goal = picture or _picture_path(config, name)
    look = asyncio.run(_look(address, settings, goal, asking))
    if as_json:
        sys.stdout.write(look.model_dump_json(indent=2) + "\n")
    else:
        print_look(Console(), look, name=name, pinned=settings.selectors)
    return exit_code_of(look)


def exit_code_of(look: PageLook) -> ExitCode:
    """PASS when the page can be asked, FAIL when the application is in the way, else INCONCLUSIVE."""
    if look.trouble is None:
        return ExitCode.PASS
    return ExitCode.FAIL if look.trouble.blame is Blame.APP else ExitCode.INCONCLUSIVE


def _what(target: str, config: Config | None) -> tuple[str, str, ProbeSettings]:
    """Name, address and settings; an address that a target has is looked at as that target is."""
    if is_address(target):
        known = {name: t for name, t in (config.targets if config else {}).items() if t.url == target}
        if not known:
            return name_of(target), target, ProbeSettings()
        target = next(iter(known))
    if config is None:
        raise ConfigError(f"no target {target!r}: there is no configuration")
    configured = config.target(target)
    if configured.probe.driver != "browser":
        driver = configured.probe.driver
        raise ConfigError(
            f"target {target!r} is asked by its API (probe.driver = {driver!r}): it has no page to look at"
        )
    return target, target_record(target, configured).address, configured.probe


def _with_browser(settings: ProbeSettings, environment: Mapping[str, str]) -> ProbeSettings:
    path = environment.get("CHROMIUM_PATH")
    return settings if settings.browser_path or not path else settings.model_copy(update={"browser_path": path})


def _picture_path(config: Config | None, name: str) -> Path:
    """A file of its own for each look, for its owner's eyes: the page may show anything."""
    folder = (config.data_folder if config else Path(".lookout")) / PICTURES
    folder.mkdir(parents=True, exist_ok=True, mode=OWNER_ONLY_FOLDER)
    return folder / f"{name}-{_now():%Y%m%dT%H%M%S}.png"


async def _look(address: str, settings: ProbeSettings, picture: Path, asking: Asking) -> PageLook:
    from monitors.probes.look import look_at_page  # playwright

    return await look_at_page(address, settings, picture=picture, asking=asking)


def _now() -> datetime:
    from flows.wiring import utc_now  # duckdb

    return utc_now()


def _told(found: list[Check], *, as_json: bool) -> ExitCode:
    if as_json:
        sys.stdout.write(HealthReport(checks=tuple(found)).model_dump_json(indent=2) + "\n")
    else:
        print_checks(Console(), found)
    worst = max((check.health for check in found), default=Health.GOOD)
    return ExitCode.MONITOR if worst is Health.BROKEN else ExitCode.PASS
