"""``lookout site``: serve the web site until SIGTERM or Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deployments.receivers.connection_limits import serve_until_signal
from deployments.receivers.ports import require_free_port
from deployments.site.serve import SiteEnvironment, build_site_application, build_site_server
from flows.clock import utc_now
from flows.runtime.secrets import get_environment
from flows.terminal import configure_logging_to_stderr, print_text
from monitors.config.file import Config, load_config
from monitors.config.sections import DEFAULT_SITE_PORT

if TYPE_CHECKING:
    import uvicorn

LOCAL_NAMES = ("LOOKOUT_USER", "USER")
"""Environment variables with the name of the local user. The name is stored with decisions made without a login."""


def serve_site(config: Path, *, host: str | None, port: int | None) -> None:
    """Serve the site of a configuration until it is stopped. Raises `ConfigError` before the site starts."""
    loaded = load_config(config)
    bound_host, bound_port = host or loaded.site.host, port or loaded.site.port or DEFAULT_SITE_PORT
    server = build_configured_site_server(loaded, bound_host, bound_port)
    configure_logging_to_stderr("%(asctime)s %(message)s")
    print_text(f"The site: {loaded.site.build_address(bound_port, bound_host)}", err=True)
    serve_until_signal(server)


def build_configured_site_server(config: Config, host: str, port: int) -> uvicorn.Server:
    """Build the site's server. Raises `ConfigError` if a token is missing or the port is in use."""
    application = build_site_application(config, host, build_site_clock_and_user())
    require_free_port(host, port, "the site")
    return build_site_server(application, host=host, port=port, settings=config.site)


def build_site_clock_and_user() -> SiteEnvironment:
    """Return the clock and the name of the local user."""
    variables = get_environment()
    name = next((variables[key] for key in LOCAL_NAMES if variables.get(key)), "a user of this machine")
    return SiteEnvironment(now=utc_now, local_name=name)
