"""No target leads into a network that it was not configured for: what redirects or rebinds there is refused.

A public page that answers with a redirect to ``http://169.254.169.254/``, whose script asks 10.0.0.5, or whose name
is 10.0.0.5 the second time it is resolved, would have Lookout ask inside its own network. So every place that is
connected to, a host with its port, is judged by the addresses that its name has at that moment. For pages this
happens where the connection is made (`browser/proxy.py`); for APIs before the request, and again when the
connection stands.

The public network is open to everything. What else is open follows from what is configured, and for just that host
and port: an address given in digits, a name that only exists inside (``bot``, ``bot.internal``), and with
`private_network = true` whatever the configured name leads to in private networks and on this machine. Link-local
addresses, where clouds keep their keys, are nobody's unless given in digits.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from itertools import product
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import httpx

from monitors.errors import AccessDenied
from monitors.probes.settings import ProbeSettings

Place = tuple[str, int]
"""A host, in small letters and without a dot at its end, and a port."""
Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""A host's name → its addresses; none when it cannot be resolved."""

_INSIDE: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
"""Ends of names that no public registry gives out (RFC 6761, 6762, 8375, and ICANN's resolution on .internal)."""
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
"""Where clouds give a machine its keys: AWS and most others, AWS by IPv6, Alibaba, Azure's own host, Oracle."""

_CARRIERS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are the IPv4 address that is meant: NAT64 (RFC 6052), IPv4-compatible (RFC 4291)
and translated addresses (RFC 2765). Mapped, 6to4 and Teredo addresses have properties of their own."""
_LAST_32_BITS: Final = 0xFFFF_FFFF

_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of one machine, this one."""
_WEB_PORTS: Final = frozenset({80, 443})
"""A host that is configured on one of them is open on the other: sites lead from plain to encrypted."""


class Network(StrEnum):
    """Where an address is."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"


_OWN: Final = frozenset({Network.PRIVATE, Network.LOOPBACK})
_EVERYBODYS: Final = frozenset({Network.PUBLIC})


def network_of(address: str) -> Network:
    """Where an address is. Raises `ValueError` for what is none."""
    found = ipaddress.ip_address(address.partition("%")[0])
    ip = _carried(found) if isinstance(found, ipaddress.IPv6Address) else found
    if ip.is_link_local or ip in _METADATA:
        return Network.LINK_LOCAL
    if ip.is_loopback or ip.is_unspecified:  # 0.0.0.0 leads to this machine
        return Network.LOOPBACK
    if isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local:  # fec0::/10, which Python calls global
        return Network.PRIVATE
    return Network.PUBLIC if ip.is_global and not ip.is_multicast else Network.PRIVATE


def _carried(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that an IPv6 one leads to, where it carries one; else the address itself."""
    if ip.is_loopback or ip.is_unspecified:
        return ip
    if ip.teredo is not None:
        return ip.teredo[1]
    carried = ip.ipv4_mapped or ip.sixtofour
    if carried is None and any(ip in network for network in _CARRIERS):
        carried = ipaddress.IPv4Address(int(ip) & _LAST_32_BITS)
    return carried or ip


class AddressGuard:
    """Watches over one target's requests. ``configured`` are the addresses that the configuration names for it.

    ``refused`` are the places that pages were refused so far: each is logged once.
    """

    def __init__(
        self, configured: Iterable[str | None], *, private_network: bool = False, resolve: Resolve | None = None
    ) -> None:
        self._own: dict[Place, frozenset[Network]] = {}
        for host, port in (place_of(address) for address in configured if address):
            networks = _implied(host) | _OWN if private_network else _implied(host)
            ports = _WEB_PORTS if port in _WEB_PORTS else {port}
            for place in product(_HERE if host in _HERE else {host}, ports):
                self._own[place] = self._own.get(place, _EVERYBODYS) | networks
        self._resolve = resolve or _look_up
        self.refused: set[str] = set()

    def is_own(self, url: str) -> bool:
        """Whether an address is one of those that are configured, by host and port."""
        return place_of(url) in self._own

    async def check(self, url: str) -> None:
        """Check before a request. Raises `AccessDenied` when ``url`` leads where the target does not belong."""
        if not url.lower().startswith(("http://", "https://")):
            raise AccessDenied(f"the target leads to an address that is no web page: {url.partition(':')[0][:20]}:")
        await self.addresses(*place_of(url))

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """A place's addresses, which may be connected to; none where its name is not known. Raises as `check`."""
        host = host.rstrip(".").lower()
        in_digits = _is_address(host)
        found = (host,) if in_digits else tuple(await self._resolve(host))
        place = await self._place_at(host, port) if in_digits else (host, port)
        for address in found:
            self._check_address(address, place)
        return found

    async def _place_at(self, address: str, port: int) -> Place:
        """The configured place at an address in digits: Playwright's own requests resolve a name themselves."""
        if (address, port) not in self._own and network_of(address) is not Network.PUBLIC:
            for host, own_port in self._own:
                if own_port == port and not _is_address(host) and address in await self._resolve(host):
                    return host, own_port
        return address, port

    def check_peer(self, address: str, url: str) -> None:
        """When a connection stands: ``address`` is its other end; a proxy's says nothing. Raises as `check`."""
        place = place_of(url)
        if not _by_proxy(url, place[0]):
            self._check_address(address, place)

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

    def _check_address(self, address: str, place: Place) -> None:
        network = network_of(address)
        if network in self._own.get(place, _EVERYBODYS):
            return
        to_do = (
            "set probe.private_network = true if its name leads there rightly"
            if place in self._own
            else "name it in probe.allowed_origins of lookout.toml if the target needs it"
        )
        raise AccessDenied(
            f"the target leads to {place_name(place)}, a {network.value} address that it is not configured for: "
            f"{to_do}"
        )


def guard_of(address: str, settings: ProbeSettings, login_url: str | None = None) -> AddressGuard:
    """The guard of a target at ``address``: everything that its ``probe`` table names, and its login's page."""
    job = settings.job
    steps = (job.status_url, job.events_url, job.report_url, job.cancel_url)
    elsewhere = (url for url in steps if url and not url.startswith("{"))  # those lead on from where it was started
    configured = (address, login_url, settings.api.url, job.url, *elsewhere, *settings.allowed_origins)
    return AddressGuard(configured, private_network=settings.private_network)


def place_of(url: str) -> Place:
    """Host and port of an address. Raises `AccessDenied` for what cannot be read."""
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL:
        raise AccessDenied("the target leads to an address that cannot be read") from None
    return read.host.rstrip(".").lower(), read.port or _PORTS.get(read.scheme, 0)


def place_name(place: Place) -> str:
    """``host:port`` for a person, the host cut to 100 characters."""
    host, port = place[0][:100], place[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _implied(host: str) -> frozenset[Network]:
    """The networks that a configured host shows to be meant."""
    if _is_address(host):
        return frozenset({network_of(host)})
    return _OWN if "." not in host or host.endswith(_INSIDE) else frozenset()


def _is_address(host: str) -> bool:
    try:
        network_of(host)
    except ValueError:
        return False
    return True


async def _look_up(host: str) -> Sequence[str]:
    """As the system does it, decimal and shortened addresses too; what cannot be resolved fails when it is used."""
    if host == "localhost" or host.endswith(".localhost"):  # as browsers do, whatever the system knows (RFC 6761)
        return ("127.0.0.1", "::1")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(entry[4][0]) for entry in found]


def _by_proxy(url: str, host: str) -> bool:
    return url.partition(":")[0].lower() in getproxies() and not proxy_bypass(host)
