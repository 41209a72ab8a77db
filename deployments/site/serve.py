"""Build the site from a configuration, and serve it until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp

from deployments.receivers.connection_limits import BoundedProtocol, build_bounded_server
from deployments.site.access import (
    AccessControl,
    AttemptLimit,
    ViewLog,
    find_forwarded_client,
    needs_login,
    require_tokens_for_login,
)
from deployments.site.application import build_pages_application
from deployments.site.health import HealthChecker
from deployments.site.login import LoginPages
from deployments.site.memory import CopyMemory, ReviewMemory
from deployments.site.page import Site
from deployments.site.refresher import Refresher
from deployments.site.rendering import Renderer
from deployments.site.tokens import SessionSigner, TokenStore
from flows.alerting.notifier import build_operator_actions
from flows.data_folder import get_runs_folder, open_store
from flows.runtime.secrets import generate_random_key, get_environment
from flows.runtime.slack import build_slack_bot
from flows.verify.run_watch import RunWatch
from monitors.config.file import Config
from monitors.config.sections import SiteSettings
from monitors.errors import MonitorError
from warehouse.database.snapshot import build_snapshot_and_store

if TYPE_CHECKING:
    import uvicorn
    from uvicorn._types import HTTPScope

STOP_TIMEOUT_S: Final = 5
COPY_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class SiteEnvironment:
    """What a site gets from its environment: the clock and the name of the local user."""

    now: Callable[[], datetime]
    local_name: str


def build_token_store(data_folder: Path) -> TokenStore:
    """Return the token store of a data folder."""
    return TokenStore(data_folder, generate_random_key)


def build_site_application(config: Config, host: str, environment: SiteEnvironment) -> ASGIApp:
    """Build the whole site for a configuration's warehouse. The site will listen on ``host``.

    Raises `ConfigError` if a token is needed but none exists.
    """
    settings, tokens = config.site, build_token_store(config.data_folder)
    require_tokens_for_login(config.site, host, tokens)
    site = _build_site(config, host, environment)
    signer = SessionSigner(tokens, tokens.load_or_create_key(), timedelta(hours=settings.session_h))
    renderer, attempts = Renderer(site, signer), AttemptLimit(environment.now)
    refresher = Refresher(site.snapshot, settings.refresh_s, lambda: _refresh_slow_data(site))
    pages = build_pages_application(site, renderer, refresher, LoginPages(site, renderer, attempts))
    return AccessControl(
        app=pages,
        settings=settings,
        host=host,
        signer=signer,
        tokens=tokens,
        attempts=attempts,
        views=ViewLog(tokens.folder),
        now=environment.now,
        local_name=environment.local_name,
        refuse=renderer.render_entry_refusal,
    )


def _build_site(config: Config, host: str, environment: SiteEnvironment) -> Site:
    store = open_store(config)
    snapshot, reading = build_snapshot_and_store(store)
    return Site(
        config=config,
        store=reading,
        snapshot=snapshot,
        watch=RunWatch(get_runs_folder(config), store.journal),
        health=HealthChecker(get_environment()),
        figures=CopyMemory(snapshot),
        reviews=ReviewMemory(),
        actions=build_operator_actions(config, store, environment.now),
        bot=build_slack_bot(config),
        now=environment.now,
        prefix=config.site.path_prefix,
        needs_login=needs_login(config.site, host),
    )


def _refresh_slow_data(site: Site) -> None:
    """Compute slow data after each copy of the warehouse, before a page needs it."""
    site.health.run_slow_checks_if_old(site)
    # The page that needs the data tries again and shows the error.
    with suppress(MonitorError):
        site.figures.get_or_compute(
            "reviews", lambda: site.reviews.load_reviewed_judged_answers(site.store, None, site.now())
        )


@contextmanager
def open_site(config: Config, environment: SiteEnvironment) -> Generator[tuple[Site, Renderer]]:
    """Open a site without a server, with a new copy of the warehouse. Raises the errors of `Snapshot.refresh`."""
    site, tokens = _build_site(config, config.site.host, environment), build_token_store(config.data_folder)
    site.snapshot.refresh(COPY_TIMEOUT_S)
    try:
        yield (
            site,
            Renderer(
                site, SessionSigner(tokens, tokens.load_or_create_key(), timedelta(hours=config.site.session_h))
            ),
        )
    finally:
        site.snapshot.close()


def build_protocol_class(settings: SiteSettings) -> type[BoundedProtocol]:
    """Build the class of the site's HTTP protocol, which limits the connections of each client.

    Behind a trusted proxy, the client is the sender of the request, not the proxy.
    """

    class SiteProtocol(BoundedProtocol):
        def find_limited_client(self, scope: HTTPScope) -> str:
            return find_forwarded_client(self.peer, Headers(raw=list(scope["headers"])), settings.trusted_proxies)

    return SiteProtocol


def build_site_server(application: ASGIApp, *, host: str, port: int, settings: SiteSettings) -> uvicorn.Server:
    """Build the server for the site's application."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return build_bounded_server(
        application,
        host=host,
        port=port,
        protocol=build_protocol_class(settings),
        stop_timeout_s=STOP_TIMEOUT_S,
        proxy_headers=False,
    )
