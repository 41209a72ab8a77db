"""No target leads into a network that it was not configured for: what redirects or rebinds there is refused.

A public page that answers with a redirect to ``http://169.254.169.254/``, or whose name is 10.0.0.5 the second time
it is looked up, would have Lookout ask inside its own network. So a name is looked up before anything is sent, and
when the connection stands its other end is looked at again: between the two the name may have changed.

Which networks are a target's own follows from what is configured: always the public one; for an address given in
digits the kind of network it is in; for a name that only exists inside (``bot``, ``bot.internal``), and with
`private_network = true`, private networks and this machine. Link-local addresses, where clouds keep their keys, are
nobody's unless given in digits.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies, proxy_bypass

import httpx

from monitors.errors import AccessDenied
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import Response

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""A host's name → its addresses; none when it cannot be told."""

_INSIDE: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
"""Ends of names that no public registry gives out (RFC 6761, 6762, 8375, and ICANN's resolution on .internal)."""
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200")))


class Network(StrEnum):
    """Where an address is."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"


_OWN: Final = frozenset({Network.PRIVATE, Network.LOOPBACK})


def network_of(address: str) -> Network:
    """Where an address is. Raises `ValueError` for what is none."""
    found = ipaddress.ip_address(address.partition("%")[0])
    ip = (found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None) or found
    if ip.is_link_local or ip in _METADATA:
        return Network.LINK_LOCAL
    if ip.is_loopback or ip.is_unspecified:  # 0.0.0.0 leads to this machine
        return Network.LOOPBACK
    return Network.PUBLIC if ip.is_global and not ip.is_multicast else Network.PRIVATE


class AddressGuard:
    """Watches over one target's requests. ``configured`` are the addresses that the configuration names for it."""

    def __init__(
        self, configured: Iterable[str | None], *, private_network: bool = False, resolve: Resolve | None = None
    ) -> None:
        named = [_host_of(address) for address in configured if address]
        self._allowed = frozenset({Network.PUBLIC}).union(_OWN if private_network else (), *map(_implied, named))
        self._resolve = resolve or _look_up

    async def check(self, url: str) -> None:
        """Before a request. Raises `AccessDenied` when ``url`` leads where the target does not belong."""
        if not url.lower().startswith(("http://", "https://")):
            raise AccessDenied(f"the target leads to an address that is no web page: {url.partition(':')[0][:20]}:")
        host = _host_of(url)
        for address in [host] if _is_address(host) else await self._resolve(host):
            self._check_address(address, host)

    def check_peer(self, address: str, url: str) -> None:
        """When a connection stands: ``address`` is its other end; a proxy's says nothing. Raises as `check`."""
        host = _host_of(url)
        if not _by_proxy(url, host):
            self._check_address(address, host)

    def hooks(self) -> dict[str, list[Callable[..., Any]]]:
        """For ``httpx.AsyncClient(event_hooks=…)``: every request, each step of a redirect included."""

        async def before(request: httpx.Request) -> None:
            await self.check(str(request.url))

        async def after(response: httpx.Response) -> None:
            stream = response.extensions.get("network_stream")
            peer = stream.get_extra_info("server_addr") if stream is not None else None
            if peer:
                self.check_peer(str(peer[0]), str(response.request.url))

        return {"request": [before], "response": [after]}

    async def check_page(self, response: Response) -> None:
        """After a page was opened: the other end of each step that led to it. Raises as `check`."""
        step: Response | None = response
        while step is not None:
            await self.check(step.url)
            peer = await step.server_addr()
            if peer is not None:
                self.check_peer(peer["ipAddress"].strip("[]"), step.url)
            before = step.request.redirected_from
            step = await before.response() if before is not None else None

    def _check_address(self, address: str, host: str) -> None:
        network = network_of(address)
        if network not in self._allowed:
            raise AccessDenied(
                f"the target leads to {host[:100]}, a {network.value} address that it is not configured for. If it "
                "moved there, put its address in digits into lookout.toml, or set probe.private_network = true"
            )


def guard_of(address: str, settings: ProbeSettings) -> AddressGuard:
    """The guard of a target at ``address``, over everything that its ``probe`` table names."""
    return AddressGuard((address, settings.api.url, settings.job.url), private_network=settings.private_network)


def _implied(host: str) -> frozenset[Network]:
    """The networks that a configured host shows to be meant."""
    if _is_address(host):
        return frozenset({network_of(host)})
    return _OWN if "." not in host or host.endswith(_INSIDE) else frozenset()


def _host_of(url: str) -> str:
    try:
        return httpx.URL(url).host.rstrip(".").lower()
    except httpx.InvalidURL:
        raise AccessDenied("the target leads to an address that cannot be read") from None


def _is_address(host: str) -> bool:
    try:
        network_of(host)
    except ValueError:
        return False
    return True


async def _look_up(host: str) -> Sequence[str]:
    """As the system does it, decimal and shortened addresses too; what cannot be told fails when it is used."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(entry[4][0]) for entry in found]


def _by_proxy(url: str, host: str) -> bool:
    return url.partition(":")[0].lower() in getproxies() and not proxy_bypass(host)
