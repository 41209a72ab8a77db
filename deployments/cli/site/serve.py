"""``lookout site``: serve the pages over the warehouse, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from pathlib import Path

from deployments.receivers.ports import check_port_free
from deployments.site.serve import SiteEnvironment, build_site_application, serve
from flows.clock import utc_now
from flows.runtime.secrets import get_environment
from flows.terminal import log_to_terminal, print_text
from monitors.config.file import load_config
from monitors.config.sections import DEFAULT_SITE_PORT

LOCAL_NAMES = ("LOOKOUT_USER", "USER")
"""Variables with the local user's name, which decisions made without a login carry."""


def serve_site(config: Path, *, host: str | None, port: int | None) -> None:
    """Serve the site of a configuration. Raises `ConfigError` before it listens."""
    loaded = load_config(config)
    bound_host, bound_port = host or loaded.site.host, port or loaded.site.port or DEFAULT_SITE_PORT
    application = build_site_application(loaded, bound_host, build_site_environment())
    check_port_free(bound_host, bound_port, "the site")
    log_to_terminal("%(asctime)s %(message)s")
    print_text(f"The site: {loaded.site.build_address(bound_port, bound_host)}", err=True)
    serve(application, host=bound_host, port=bound_port, settings=loaded.site)


def build_site_environment() -> SiteEnvironment:
    """Return the real clock and the local user's name."""
    variables = get_environment()
    name = next((variables[key] for key in LOCAL_NAMES if variables.get(key)), "a user of this machine")
    return SiteEnvironment(now=utc_now, local_name=name)
