"""Build the guard that decides to which addresses Lookout may connect for a target."""

from __future__ import annotations

from monitors.address_guard import AddressGuard
from monitors.probes.settings import ProbeSettings


def build_address_guard(address: str, settings: ProbeSettings, login_url: str | None = None) -> AddressGuard:
    """Build the guard for a target.

    The guard allows ``address``, all addresses in the settings, and the login page.
    """
    job = settings.job
    steps = (job.status_url, job.events_url, job.report_url, job.cancel_url)
    elsewhere = (url for url in steps if url and not url.startswith("{"))  # {start} and {location} have no host
    configured = (
        *(address, login_url, settings.api.url, settings.readiness.version_url, job.url),
        *elsewhere,
        *settings.allowed_origins,
    )
    return AddressGuard(configured, private_network=settings.private_network)
