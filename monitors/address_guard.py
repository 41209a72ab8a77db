"""Refuses connections to networks that are not in the configuration of a target.

Without this guard, a public page could make Lookout send requests inside its own network. The page could redirect
to the address 169.254.169.254, run a script that requests 10.0.0.5, or use a host name that resolves to 10.0.0.5
only when it is resolved a second time. Therefore, for each connection, the guard checks the IP address to which the
host name resolves at that moment. The browser connects through `probes/browser/proxy.py`, and all other requests
through `http_client.py`.

Public addresses are always allowed. Other addresses are allowed only for the host and port in the configuration: an
IP address, or a name that exists only in internal networks, such as ``bot.internal``. With `private_network =
true`, a configured host may resolve to private addresses and to this machine. Link-local addresses, where clouds
serve credentials, are allowed only if they are configured as an IP address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from itertools import product
from typing import Final

import httpx

from monitors.errors import AccessDenied

Place = tuple[str, int]
"""A host and a port. The host is in lower case, without a dot at the end."""
Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""A function that returns the IP addresses of a host name. The result is empty if the name cannot be resolved."""

_INTERNAL_SUFFIXES: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
"""Suffixes of host names that exist only in internal networks (RFC 6761, 6762, 8375, and ICANN on .internal)."""
_METADATA_ADDRESSES: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
"""Addresses at which clouds serve credentials: AWS and most other clouds, AWS with IPv6, Alibaba, Azure, Oracle."""

_IPV4_CARRIERS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose addresses end with an IPv4 address: RFC 6052, RFC 4291 and RFC 2765."""
_LAST_32_BITS_MASK: Final = 0xFFFF_FFFF

_DEFAULT_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_LOCALHOST_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Host names of this machine."""
_WEB_PORTS: Final = frozenset({80, 443})
"""The ports of HTTP and HTTPS.

If a host is configured with one of these ports, both ports are allowed, because sites redirect from http to https.
"""


class Network(StrEnum):
    """The kind of network to which an address belongs."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"


_PRIVATE_NETWORKS: Final = frozenset({Network.PRIVATE, Network.LOOPBACK})
_PUBLIC_ONLY: Final = frozenset({Network.PUBLIC})


def classify_address(address: str) -> Network:
    """Return the kind of network that an address belongs to.

    Raises `ValueError` if ``address`` is not an IP address.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    ip = _prefer_embedded_ipv4(parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed
    if ip.is_link_local or ip in _METADATA_ADDRESSES:
        return Network.LINK_LOCAL
    if ip.is_loopback or ip.is_unspecified:  # 0.0.0.0 is this machine
        return Network.LOOPBACK
    if isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local:  # fec0::/10, which Python calls global
        return Network.PRIVATE
    return Network.PUBLIC if ip.is_global and not ip.is_multicast else Network.PRIVATE


def _prefer_embedded_ipv4(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that an IPv6 address contains. If it contains none, return the IPv6 address."""
    if ip.is_loopback or ip.is_unspecified:
        return ip
    if ip.teredo is not None:
        return ip.teredo[1]
    carried = ip.ipv4_mapped or ip.sixtofour
    if carried is None and any(ip in network for network in _IPV4_CARRIERS):
        carried = ipaddress.IPv4Address(int(ip) & _LAST_32_BITS_MASK)
    return carried or ip


class AddressGuard:
    """Checks the addresses to which requests for one target connect.

    ``configured`` contains the addresses in the settings. ``refused`` contains the hosts and ports that were
    refused so far. Each refused host and port is logged once.
    """

    def __init__(
        self, configured: Iterable[str | None], *, private_network: bool = False, resolve: Resolve | None = None
    ) -> None:
        self._configured: dict[Place, frozenset[Network]] = {}
        for host, port in (parse_host_and_port(address) for address in configured if address):
            networks = _infer_networks(host) | _PRIVATE_NETWORKS if private_network else _infer_networks(host)
            ports = _WEB_PORTS if port in _WEB_PORTS else {port}
            for place in product(_LOCALHOST_NAMES if host in _LOCALHOST_NAMES else {host}, ports):
                self._configured[place] = self._configured.get(place, _PUBLIC_ONLY) | networks
        self._resolve = resolve or _resolve_host
        self.refused: set[str] = set()

    def is_own(self, url: str) -> bool:
        """Return whether the target's configuration contains the host and port of ``url``."""
        return parse_host_and_port(url) in self._configured

    async def check(self, url: str) -> None:
        """Raise `AccessDenied` if requests for the target must not connect to ``url``."""
        if not url.lower().startswith(("http://", "https://")):
            raise AccessDenied(
                "the target leads to an address that does not begin with http:// or https:// "
                f"({url.partition(':')[0][:20]}:)"
            )
        await self.resolve_allowed(*parse_host_and_port(url))

    async def resolve_allowed(self, host: str, port: int) -> tuple[str, ...]:
        """Return the IP addresses of a host. The result is empty if the host cannot be resolved.

        Raises `AccessDenied` if one of the addresses is not allowed.
        """
        host = host.rstrip(".").lower()
        in_digits = _is_ip_address(host)
        addresses = (host,) if in_digits else tuple(await self._resolve(host))
        place = await self._find_configured_place(host, port) if in_digits else (host, port)
        for address in addresses:
            self._check_address(address, place)
        return addresses

    async def _find_configured_place(self, address: str, port: int) -> Place:
        """Return the configured host that resolves to this IP address.

        If there is no such host, return the address itself. The guard needs this because Playwright resolves some
        host names itself, and its request then contains only the IP address.
        """
        if (address, port) not in self._configured and classify_address(address) is not Network.PUBLIC:
            for host, own_port in self._configured:
                if own_port == port and not _is_ip_address(host) and address in await self._resolve(host):
                    return host, own_port
        return address, port

    def _check_address(self, address: str, place: Place) -> None:
        network = classify_address(address)
        if network in self._configured.get(place, _PUBLIC_ONLY):
            return
        to_do = (
            "If the host name may resolve to this address, set probe.private_network = true in lookout.toml"
            if place in self._configured
            else "If the target needs this address, add it to probe.allowed_origins in lookout.toml"
        )
        raise AccessDenied(
            f"the target leads to {format_host_and_port(place)}. Its configuration does not allow this "
            f"{network.value} address. {to_do}"
        )


def parse_host_and_port(url: str) -> Place:
    """Return the host and port of an address. Raises `AccessDenied` for an invalid address."""
    try:
        parsed_url = httpx.URL(url)
    except httpx.InvalidURL:
        raise AccessDenied("the target leads to an invalid address") from None
    return parsed_url.host.rstrip(".").lower(), parsed_url.port or _DEFAULT_PORTS.get(parsed_url.scheme, 0)


def format_host_and_port(place: Place) -> str:
    """Return ``host:port`` for messages. A long host is cut to 100 characters."""
    host, port = place[0][:100], place[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _infer_networks(host: str) -> frozenset[Network]:
    """Infer the kinds of networks, besides the public network, to which a configured host may resolve."""
    if _is_ip_address(host):
        return frozenset({classify_address(host)})
    return _PRIVATE_NETWORKS if "." not in host or host.endswith(_INTERNAL_SUFFIXES) else frozenset()


def _is_ip_address(host: str) -> bool:
    try:
        classify_address(host)
    except ValueError:
        return False
    return True


async def _resolve_host(host: str) -> Sequence[str]:
    """Resolve a host with this system's resolver. The result is empty if the host cannot be resolved."""
    if host == "localhost" or host.endswith(".localhost"):  # like browsers (RFC 6761)
        return ("127.0.0.1", "::1")
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(entry[4][0]) for entry in entries]
