"""The site put together from a configuration, and served until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from deployments.receivers.connection_limits import BoundedProtocol
from deployments.site.access import AccessControl, AttemptLimit, ViewLog, check_tokens, needs_login
from deployments.site.application import pages_application
from deployments.site.health import HealthWatch
from deployments.site.login import LoginPages
from deployments.site.memory import CopyMemory, ReviewMemory
from deployments.site.page import Site
from deployments.site.refresher import Refresher
from deployments.site.rendering import Renderer
from deployments.site.tokens import SessionSigner, TokenStore
from flows.alerting.notifier import people_of
from flows.data_folder import open_store, runs_folder
from flows.runtime.secrets import environment, fresh_key
from flows.runtime.slack import slack_bot
from flows.verify.run_watch import RunWatch
from monitors.config.file import Config
from monitors.errors import MonitorError
from warehouse.database.snapshot import snapshot_of

STOP_S: Final = 5
COPY_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a site takes from outside: its clock, and who sits at this machine."""

    now: Callable[[], datetime]
    local_name: str


def tokens_in(data_folder: Path) -> TokenStore:
    """The tokens of a data folder."""
    return TokenStore(data_folder, fresh_key)


def site_application(config: Config, host: str, outside: Surroundings) -> ASGIApp:
    """The whole site over a configuration's warehouse, for listening on ``host``.

    Raises `ConfigError` where a token is needed to see it and nobody has one.
    """
    settings, tokens = config.site, tokens_in(config.data_folder)
    check_tokens(config.site, host, tokens)
    site = _site(config, host, outside)
    signer = SessionSigner(tokens, tokens.key(), timedelta(hours=settings.session_h))
    renderer, attempts = Renderer(site, signer), AttemptLimit(outside.now)
    refresher = Refresher(site.snapshot, settings.refresh_s, lambda: _ask_beside(site))
    pages = pages_application(site, renderer, refresher, LoginPages(site, renderer, attempts))
    return AccessControl(
        app=pages,
        settings=settings,
        host=host,
        signer=signer,
        tokens=tokens,
        attempts=attempts,
        views=ViewLog(tokens.folder),
        now=outside.now,
        local_name=outside.local_name,
        refuse=renderer.at_the_door,
    )


def _site(config: Config, host: str, outside: Surroundings) -> Site:
    store = open_store(config)
    snapshot, reading = snapshot_of(store)
    return Site(
        config=config,
        store=reading,
        snapshot=snapshot,
        watch=RunWatch(runs_folder(config), store.journal),
        health=HealthWatch(environment()),
        figures=CopyMemory(snapshot),
        reviews=ReviewMemory(),
        people=people_of(config, store, outside.now),
        bot=slack_bot(config),
        now=outside.now,
        prefix=config.site.path_prefix,
        needs_login=needs_login(config.site, host),
    )


def _ask_beside(site: Site) -> None:
    """What takes long and no page should wait for, once there is a copy."""
    site.health.renew(site)
    # The page that needs it asks again, and shows the error.
    with suppress(MonitorError):
        site.figures.once("reviews", lambda: site.reviews.answers(site.store, None, site.now()))


@contextmanager
def opened_site(config: Config, outside: Surroundings) -> Generator[tuple[Site, Renderer]]:
    """A site that nobody is served, over a new copy of the warehouse. Raises as `Snapshot.refresh` does."""
    site, tokens = _site(config, config.site.host, outside), tokens_in(config.data_folder)
    site.snapshot.refresh(COPY_WAIT_S)
    try:
        yield site, Renderer(site, SessionSigner(tokens, tokens.key(), timedelta(hours=config.site.session_h)))
    finally:
        site.snapshot.close()


def serve(application: ASGIApp, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    uvicorn.run(
        application,
        host=host,
        port=port,
        http=BoundedProtocol,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_S,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
