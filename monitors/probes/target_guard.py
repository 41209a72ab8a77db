"""Build the guard that decides which addresses a target may reach."""

from __future__ import annotations

from monitors.address_guard import AddressGuard
from monitors.probes.settings import ProbeSettings


def build_address_guard(address: str, settings: ProbeSettings, login_url: str | None = None) -> AddressGuard:
    """Build a target's guard. It allows ``address``, all addresses in the ``probe`` table, and the login page."""
    job = settings.job
    steps = (job.status_url, job.events_url, job.report_url, job.cancel_url)
    elsewhere = (url for url in steps if url and not url.startswith("{"))  # a template starts with {start}
    configured = (
        *(address, login_url, settings.api.url, settings.readiness.version_url, job.url),
        *elsewhere,
        *settings.allowed_origins,
    )
    return AddressGuard(configured, private_network=settings.private_network)
