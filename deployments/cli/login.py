"""``lookout login``: sign in to a page that requires a login, and store the session for runs."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption
from flows.terminal import write_note, write_text
from flows.waiting import show_waiting
from monitors.config.file import build_target_record, load_config
from monitors.errors import ConfigError
from monitors.probes.browser.login import Login, read_storage_state
from monitors.probes.browser.sign_in import sign_in, sign_in_by_window
from monitors.probes.settings import ProbeSettings

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
NO_SCREEN = (
    "this machine has no screen for a window ({screens} are not set). If the page has a login form, set "
    "targets.{target}.login.user and .password. Otherwise, run `playwright codegen --save-storage=FILE URL` on a "
    "computer with a screen, and sign in there. Then copy FILE to this machine, and run `lookout login {target} "
    "--from FILE`"
)


def login_command(
    target: Annotated[str, typer.Argument(help="the name of a configured target that requires a login")],
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    window: Annotated[
        bool, typer.Option("--window", help="open a window where a person signs in, even if a user is configured")
    ] = False,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", help="import a session file (Playwright storage state) from another machine"),
    ] = None,
) -> ExitCode:
    """Sign in to a page that requires a login, and store the session for runs."""
    from flows.runtime.probe import build_login  # slow: imports duckdb
    from flows.runtime.secrets import get_environment  # slow: imports duckdb

    loaded, variables = load_config(config), get_environment()
    configured = loaded.require_target(target)
    login = build_login(loaded, target, variables)
    if login is None:
        raise ConfigError(
            f"target {target!r} has no login. Add the table [targets.{target}.login] to {config}. If a person "
            "signs in, leave the table empty (docs/login.md)"
        )
    by_person = from_file is None and (window or login.settings.needs_person_to_sign_in)
    if by_person and sys.platform == "linux" and not any(variables.get(screen) for screen in SCREENS):
        raise ConfigError(NO_SCREEN.format(screens=" and ".join(SCREENS), target=target))
    address = build_target_record(target, configured).address
    settings = configured.probe.with_browser_from_environment(variables)
    state = read_storage_state(from_file) if from_file is not None else None
    asyncio.run(_sign_in_and_store_session(address, settings, login, state=state, by_person=by_person))
    write_text(f"{_format_login_summary(target, address, login, state is not None or by_person)}\n")
    return ExitCode.PASS


async def _sign_in_and_store_session(
    address: str, settings: ProbeSettings, login: Login, *, state: dict[str, Any] | None, by_person: bool
) -> None:
    if by_person:
        write_note(
            "A window opens. Sign in there. The window closes when the page shows the chat, or when you press "
            "Enter here.\n"
        )
        pressed = threading.Event()
        if sys.stdin.isatty():
            threading.Thread(target=lambda: (sys.stdin.readline(), pressed.set()), daemon=True).start()
        state = await sign_in_by_window(address, settings, login, pressed=pressed.is_set)
        await sign_in(address, settings, login, state=state, by="window")
    else:
        with show_waiting(f"Signing in at {address}"):
            await sign_in(address, settings, login, state=state, by="file" if state is not None else "form")


def _format_login_summary(target: str, address: str, login: Login, by_hand: bool) -> str:
    summary = f"Signed in to {target}. The chat page is {address}."
    if not by_hand and not login.settings.has_form_login:
        return (
            f"{summary} Lookout stores no session, because each run sends the headers, cookies or password of "
            "[login]."
        )
    again = (
        "When the session ends, runs sign in again with the form."
        if login.settings.has_form_login
        else f"When the session ends, Lookout sends an alert. Then run {login.login_command_text} again."
    )
    return f"{summary} The session is stored in {login.file.path}, which only its owner can read. {again}"
