"""Checks of the host name, proxy, token and form token of each request before the request reaches a page.

a request for another host's name ───▶ 421: another site may have redirected the browser (DNS rebinding)
an unknown proxy, without a login ───▶ 400
no token, if one is needed ──────────▶ 401, for every address except the login and the health check
a form without its token ────────────▶ 403 (see `deployments.site.forms`)

Each response forbids external scripts and styles, frames, and requests to other hosts. A page view is logged before
the page is shown.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.site.tokens import Role, SessionSigner, TokenStore
from monitors.config.sections import SiteSettings
from monitors.errors import ConfigError, MonitorError
from monitors.records.base import Record, UtcTime
from monitors.storage import make_private_folder, open_without_links

LOCAL: Final = "loopback"
"""The value of ``session`` for all visitors of a site without a login."""
OPEN_ADDRESSES: Final = ("/login", "/healthz")
LOGIN_ASSETS: Final = "/login/"
"""The address prefix of the files that the login page uses."""
ACTION_RESULT_FIELDS: Final = frozenset({"done", "seal"})
"""Query parameters with the message of a finished action. They are not filters."""
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
MAX_LOGGED_CHARACTERS: Final = 500
"""Maximum number of characters of a page's path and of its filters in the log. Longer values are cut."""
_PROXY_HEADERS: Final = (
    *("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-server"),
    *("x-forwarded-prefix", "x-real-ip", "x-client-ip", "x-original-forwarded-for", "true-client-ip"),
    *("cf-connecting-ip", "fastly-client-ip", "forwarded", "via"),
)
"""Headers that only a reverse proxy sends."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that are not allowed in page addresses, file names and ids."""
_LOCAL_NAMES: Final = frozenset({"localhost", "ip6-localhost"})
_Value = TypeVar("_Value", list[datetime], None)
_IPV6_SITE_BITS: Final = 64
"""The number of bits that identify one visitor in an IPv6 address. Providers give each customer at least a /64."""


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request. ``session`` is empty for a program that sends its token in a header."""

    name: str
    role: Role
    sees_personal_data: bool
    session: str

    @property
    def may_decide(self) -> bool:
        """Return whether the visitor may make decisions."""
        return self.role is Role.OPERATE


class PageView(Record):
    """A logged view of a page, with its filters. ``personal_data`` is true if personal data was visible."""

    at: UtcTime
    who: str
    role: Role
    method: str
    path: str
    query: str = ""
    personal_data: bool


@dataclass(frozen=True, slots=True)
class ViewLog:
    """The log of page views. Each month has a file with one line for each view."""

    folder: Path

    def append(self, view: PageView) -> None:
        """Log a page view. If this method raises `OSError`, the page must not be shown."""
        make_private_folder(self.folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        handle = open_without_links(self.folder / f"views-{view.at:%Y-%m}.jsonl", flags, 0o600)
        try:
            os.write(handle, view.model_dump_json().encode() + b"\n")
        finally:
            os.close(handle)


def choose_session_cookie_name(path_prefix: str) -> str:
    """Return the name of the session cookie.

    Browsers accept the safer name prefix ``__Host-`` only for the path ``/``. A site below a path prefix uses
    ``__Secure-``.
    """
    return "__Secure-lookout" if path_prefix else "__Host-lookout"


def needs_login(settings: SiteSettings, host: str) -> bool:
    """Return whether visitors must log in.

    A login is not required if the site can be reached only from this machine, without a proxy.
    """
    return settings.login or bool(settings.trusted_proxies) or not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address refers to this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in _LOCAL_NAMES


def require_tokens_for_login(settings: SiteSettings, host: str, tokens: TokenStore) -> None:
    """Raise `ConfigError` if visitors must log in, but no token exists."""
    if needs_login(settings, host) and not tokens.load_tokens():
        raise ConfigError(
            f"the site on {host} requires a token, but no token exists. Create one with `lookout site token "
            "add NAME --role operate`"
        )


@dataclass
class AttemptLimit:
    """A limit on the number of wrong tokens in a period, for each address and in total.

    The total limit does not apply to an address that has sent a valid token. Therefore an attacker with many
    addresses cannot lock out the people on call.
    """

    now: Callable[[], datetime]
    max_per_address: int = 10
    max_total: int = 200
    window: timedelta = timedelta(minutes=5)
    max_addresses: int = 10_000
    _wrong: dict[str, list[datetime]] = field(default_factory=dict[str, list[datetime]])
    _all: list[datetime] = field(default_factory=list[datetime])
    _welcome: dict[str, None] = field(default_factory=dict[str, None])

    def compute_wait_s(self, address: str) -> int:
        """Return how many seconds ``address`` must wait before it may send a token again (0 or more)."""
        key = compute_visitor_key(address)
        own_s = self._compute_window_wait_s(self._wrong.get(key, ()), self.max_per_address)
        return own_s if key in self._welcome else max(own_s, self._compute_window_wait_s(self._all, self.max_total))

    def record_wrong_token(self, address: str) -> None:
        """Count a wrong token from an address."""
        key, at = compute_visitor_key(address), self.now()
        earlier = self._wrong.pop(key, [])
        self._wrong[key] = [*earlier, at][-self.max_per_address :]
        self._all = [*self._all, at][-self.max_total :]
        _drop_oldest_addresses(self._wrong, self.max_addresses)

    def remember_trusted_address(self, address: str) -> None:
        """Remember that a valid token came from an address."""
        key = compute_visitor_key(address)
        self._welcome.pop(key, None)
        self._welcome[key] = None
        _drop_oldest_addresses(self._welcome, self.max_addresses)

    def _compute_window_wait_s(self, wrong: Sequence[datetime], limit: int) -> int:
        since = self.now() - self.window
        recent = [at for at in wrong if at > since]
        return max(1, round((recent[-limit] - since).total_seconds())) if len(recent) >= limit else 0


def _drop_oldest_addresses(by_address: dict[str, _Value], max_addresses: int) -> None:
    while len(by_address) > max_addresses:
        by_address.pop(next(iter(by_address)))


def compute_visitor_key(address: str) -> str:
    """Return the key under which wrong tokens are counted: an IPv4 address, or the network of an IPv6 address."""
    parsed = _parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed), _IPV6_SITE_BITS), strict=False))
    return str(parsed or address)


def find_forwarded_client(peer: str, headers: Headers, trusted_proxies: Sequence[str]) -> str:
    """Return the client's address: ``peer`` or, if ``peer`` is a trusted proxy, the address that it forwards.

    The forwarded address is the last one in X-Forwarded-For that is not a trusted proxy.
    """
    if not _is_in_networks(peer, trusted_proxies):
        return peer
    forwarded = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    outside = (address for address in reversed(forwarded) if not _is_in_networks(address, trusted_proxies))
    nearest = next(outside, "")
    return nearest if _parse_address(nearest) else peer


def _is_in_networks(address: str, networks: Sequence[str]) -> bool:
    parsed = _parse_address(address)
    return parsed is not None and any(parsed in ip_network(network) for network in networks)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address. IPv4 addresses written as IPv6 become IPv4. Returns ``None`` for an invalid address."""
    try:
        parsed = ip_address(text.strip("[]"))
    except ValueError:
        return None
    return (isinstance(parsed, IPv6Address) and parsed.ipv4_mapped) or parsed


class EntryRefused(Exception):
    """Raised if a request is refused.

    ``text`` states the reason and what to do. ``wait_s`` is the number of seconds after which the client may try
    again.
    """

    def __init__(self, status: HTTPStatus, text: str, wait_s: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.wait_s = wait_s


Refuse = Callable[[Request, HTTPStatus, str], ASGIApp]
"""A function that builds the response to a refused request, as a page or as JSON, depending on the request."""


@dataclass(frozen=True)
class AccessControl:
    """Checks each request before it reaches the pages. ``host`` is the address that the site listens on."""

    app: ASGIApp
    settings: SiteSettings
    host: str
    signer: SessionSigner
    tokens: TokenStore
    attempts: AttemptLimit
    views: ViewLog
    now: Callable[[], datetime]
    local_name: str
    refuse: Refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request to the pages, and respond to a refused request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            admitted = self._admit_and_log_request(scope)
        except EntryRefused as refusal:
            request = Request(scope)
            request.scope.setdefault("state", {}).setdefault(
                "wants_json",
                scope["path"].endswith(".json") or "application/json" in Headers(scope=scope).get("accept", ""),
            )
            answer = self.refuse(request, refusal.status, refusal.text)
            await answer(scope, receive, _add_security_headers(send, wait_s=refusal.wait_s))
            return
        await self.app(admitted, receive, _add_security_headers(send))

    def _admit_and_log_request(self, scope: Scope) -> Scope:
        """Check the request, and log the page view. Return the request with its visitor.

        The path of the returned request has no proxy prefix and no ``.json``. Raises `EntryRefused`.
        """
        if _CONTROL.search(scope["path"]):
            raise EntryRefused(HTTPStatus.NOT_FOUND, "This page does not exist.")
        headers = Headers(scope=scope)
        client, host = self._resolve_client_address(scope, headers), self._resolve_host_name(scope, headers)
        _require_known_host(host, self.settings.host_names)
        path, as_json = _strip_prefix_and_json_suffix(scope["path"], self.settings.path_prefix)
        state = {
            "wants_json": as_json or "application/json" in headers.get("accept", ""),
            "client": client,
            "host": host,
            "is_plain": self._is_plain_http(scope, headers, host),
        }
        scope.setdefault("state", {}).update(state)
        if not is_public_path(path):
            visitor = self._identify_visitor(headers, client)
            if visitor is None:
                raise EntryRefused(
                    HTTPStatus.UNAUTHORIZED, ("Log in first. Only people with a token can see this page.")
                )
            state["visitor"] = visitor
            self._log_page_view(visitor, scope, path)
        return {**scope, "path": path, "raw_path": path.encode(), "state": {**scope["state"], **state}}

    def _resolve_client_address(self, scope: Scope, headers: Headers) -> str:
        """Return the client's address.

        Raises `EntryRefused` if an unknown proxy sends the request and the site has no login.
        """
        peer = _read_peer_address(scope)
        if self._is_proxy(peer):
            return find_forwarded_client(peer, headers, self.settings.trusted_proxies)
        if not needs_login(self.settings, self.host) and any(name in headers for name in _PROXY_HEADERS):
            raise EntryRefused(
                HTTPStatus.BAD_REQUEST,
                "This site is behind a reverse proxy, but does not require a login. Add the proxy's address to "
                "site.trusted_proxies in lookout.toml, and a token for each person.",
            )
        return peer

    def _resolve_host_name(self, scope: Scope, headers: Headers) -> str:
        """Return the host name that the browser used. A trusted proxy reports it in a header."""
        called = headers.get("x-forwarded-host", "").partition(",")[0].strip()
        return called if called and self._is_proxy(_read_peer_address(scope)) else headers.get("host", "")

    def _is_plain_http(self, scope: Scope, headers: Headers, host: str) -> bool:
        """Return whether the browser uses unencrypted HTTP over a network. If so, no session cookie is set."""
        if is_loopback(_normalise_host_name(host)):
            return False
        if self._is_proxy(_read_peer_address(scope)):
            return headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "http"
        return scope.get("scheme") == "http"

    def _is_proxy(self, address: str) -> bool:
        return _is_in_networks(address, self.settings.trusted_proxies)

    def _identify_visitor(self, headers: Headers, client: str) -> Visitor | None:
        try:
            return self._find_visitor_by_token_or_cookie(headers, client)
        except MonitorError as error:
            log.warning("%s", error)
            text = (
                "Login is not possible now, because the site cannot read the tokens. For the cause, see the "
                "log of the site."
            )
            raise EntryRefused(HTTPStatus.SERVICE_UNAVAILABLE, text) from None

    def _find_visitor_by_token_or_cookie(self, headers: Headers, client: str) -> Visitor | None:
        authorization = headers.get("authorization", "")
        if authorization.lower().startswith("bearer "):
            return self._find_visitor_by_bearer_token(authorization[7:].strip(), client)
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        cookie = {name: value for name, _, value in pairs}.get(
            choose_session_cookie_name(self.settings.path_prefix)
        )
        owner = self.signer.find_owner(cookie, self.now()) if cookie else None
        if owner is not None and cookie is not None:
            return Visitor(owner.name, owner.role, owner.sees_personal_data, cookie)
        if needs_login(self.settings, self.host):
            return None
        return Visitor(self.local_name, Role.OPERATE, sees_personal_data=True, session=LOCAL)

    def _find_visitor_by_bearer_token(self, token: str, client: str) -> Visitor | None:
        wait_s = self.attempts.compute_wait_s(client)
        if wait_s:
            raise EntryRefused(
                HTTPStatus.TOO_MANY_REQUESTS, f"Too many wrong tokens. Try again in {wait_s} s.", wait_s
            )
        owner = self.tokens.find_owner(token)
        if owner is None:
            self.attempts.record_wrong_token(client)
            return None
        self.attempts.remember_trusted_address(client)
        return Visitor(owner.name, owner.role, owner.sees_personal_data, "")

    def _log_page_view(self, visitor: Visitor, scope: Scope, path: str) -> None:
        if path.startswith("/assets/"):
            return
        query = QueryParams(scope.get("query_string", b""))
        is_personal_data_shown = query.get("personal") == "shown" and visitor.sees_personal_data
        filters = urlencode([(name, value) for name, value in query.items() if name not in ACTION_RESULT_FIELDS])
        try:
            self.views.append(
                PageView(
                    at=self.now(),
                    who=visitor.name,
                    role=visitor.role,
                    method=scope["method"],
                    path=path[:MAX_LOGGED_CHARACTERS],
                    query=filters[:MAX_LOGGED_CHARACTERS],
                    personal_data=is_personal_data_shown,
                )
            )
        except OSError as error:
            raise EntryRefused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"The site shows no pages, because it cannot write the view log in {self.views.folder}: "
                f"{error.strerror}. Check that the log's path is a writable file and that the disk has free space.",
            ) from None


def _read_peer_address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _require_known_host(host: str, known_names: Sequence[str]) -> None:
    name = _normalise_host_name(host)
    if _parse_address(name) or name in _LOCAL_NAMES or name in {known_name.lower() for known_name in known_names}:
        return
    raise EntryRefused(
        HTTPStatus.MISDIRECTED_REQUEST,
        f"{name[:80]!r} is not a host name of this site. If the name is yours, add it to site.host_names in "
        "lookout.toml.",
    )


def is_public_path(path: str) -> bool:
    """Return whether a path is open to visitors without a token."""
    return path in OPEN_ADDRESSES or path.startswith(LOGIN_ASSETS)


def _strip_prefix_and_json_suffix(path: str, prefix: str) -> tuple[str, bool]:
    """Return the path without the proxy's prefix and ``.json``, and whether the path had ``.json``."""
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        path = path[len(prefix) :] or "/"
    path = path.rstrip("/") or "/"
    as_json = path.endswith(".json")
    return (path.removesuffix(".json"), as_json) if as_json else (path, False)


def _normalise_host_name(host: str) -> str:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name.lower().rstrip(".")


def _add_security_headers(send: Send, *, wait_s: int = 0) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
            if wait_s:
                headers["retry-after"] = str(wait_s)
        await send(message)

    return send_with_headers
