"""Test that a target is rejected if it redirects or rebinds to a network that the configuration does not allow.

The tests use real sockets.
"""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monitors.address_guard import AddressGuard, Network, classify_address
from monitors.errors import AccessDenied, Unreachable
from monitors.probes.api.driver import HttpClientPool
from monitors.probes.choose import build_driver
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame
from monitors.request_headers import NO_HEADERS
from tests.monitors.probes.conftest import MakeDriver
from tests.monitors.probes.scripted import Ticking

PUBLIC = "https://bot.example.com/chat"
NAME = "bot.example.com"


class Redirecting(ThreadingHTTPServer):
    """A server that answers every request with a redirect, or with an answer if no redirect is set."""

    daemon_threads = True

    def __init__(self, to: str | None = None) -> None:
        self.to = to
        self.asked = 0
        self.flood: str | None = None
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Redirecting

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Suppress the request log."""

    def _answer(self) -> None:
        self.server.asked += 1
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.flood:
            self._send_flood(packed=self.server.flood == "packed")
            return
        body = b'{"answer": "the inside"}'
        self.send_response(307 if self.server.to else 200)
        if self.server.to:
            self.send_header("Location", self.server.to)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_flood(self, *, packed: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        piece = b"x" * 1_000_000
        with suppress(ConnectionError):
            for _ in range(2_000):
                self.wfile.write(packer.compress(piece) if packed else piece)

    do_GET = do_POST = _answer  # noqa: N815 - the base class looks for these names


@pytest.fixture
def inside() -> Iterator[Redirecting]:
    """Yield an internal server that no target is allowed to reach."""
    server = Redirecting()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def app(inside: Redirecting) -> Iterator[Redirecting]:
    """Yield the configured app. A test can set an address to which the app redirects."""
    server = Redirecting()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("93.184.216.34", Network.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", Network.PUBLIC),
        ("10.0.0.5", Network.PRIVATE),
        ("172.16.0.1", Network.PRIVATE),
        ("192.168.1.1", Network.PRIVATE),
        ("100.64.0.1", Network.PRIVATE),
        ("fd00::1", Network.PRIVATE),
        ("224.0.0.1", Network.PRIVATE),
        ("::ffff:10.0.0.5", Network.PRIVATE),
        ("127.0.0.1", Network.LOOPBACK),
        ("127.8.8.8", Network.LOOPBACK),
        ("0.0.0.0", Network.LOOPBACK),
        ("::1", Network.LOOPBACK),
        ("::ffff:127.0.0.1", Network.LOOPBACK),
        ("169.254.169.254", Network.LINK_LOCAL),
        ("::ffff:169.254.169.254", Network.LINK_LOCAL),
        ("fe80::1%eth0", Network.LINK_LOCAL),
        ("fd00:ec2::254", Network.LINK_LOCAL),
        ("100.100.100.200", Network.LINK_LOCAL),
        ("168.63.129.16", Network.LINK_LOCAL),
        ("192.0.0.192", Network.LINK_LOCAL),
        ("64:ff9b::a9fe:a9fe", Network.LINK_LOCAL),
        ("64:ff9b::10.0.0.5", Network.PRIVATE),
        ("64:ff9b::8.8.8.8", Network.PUBLIC),
        ("2002:7f00:1::", Network.LOOPBACK),
        ("2002:a00:5::1", Network.PRIVATE),
        ("2002:808:808::1", Network.PUBLIC),
        ("2001:0:808:808:0:0:f5ff:fffa", Network.PRIVATE),
        ("::127.0.0.1", Network.LOOPBACK),
        ("::10.0.0.5", Network.PRIVATE),
        ("::", Network.LOOPBACK),
        ("::ffff:0:169.254.169.254", Network.LINK_LOCAL),
        ("::ffff:0:10.0.0.5", Network.PRIVATE),
        ("fec0::1", Network.PRIVATE),
    ],
)
def test_where_an_address_is(address: str, network: Network) -> None:
    assert classify_address(address) is network


INSIDE = ["http://10.0.0.5/", "http://127.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://2130706433/",
          "http://0x7f.1/", "http://[::ffff:10.0.0.5]/", "http://localhost./"]  # fmt: skip


@pytest.mark.parametrize("url", INSIDE)
async def test_f38_a_public_target_leads_nowhere_inside(url: str) -> None:
    with pytest.raises(AccessDenied, match="Its configuration does not allow") as refused:
        await AddressGuard([PUBLIC]).check(url)
    assert "probe.allowed_origins" in str(refused.value)
    assert refused.value.blame is Blame.MONITOR
    assert not refused.value.retryable


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://127.0.0.1:70/_x", "ftp://x/", "javascript:alert(1)", ""]
)
async def test_f38_a_non_web_address_is_refused_with_any_configuration(url: str) -> None:
    with pytest.raises(AccessDenied, match="does not begin with http"):
        await AddressGuard([PUBLIC], private_network=True).check(url)


@pytest.mark.parametrize(
    ("configured", "url", "taken"),
    [
        ("http://127.0.0.1:7860", "http://127.0.0.1:7860/x", True),
        ("http://127.0.0.1:7860", "http://127.0.0.1:9/", False),
        ("http://10.0.0.5", "https://10.0.0.5/", True),
        ("http://10.0.0.5", "http://10.0.0.5:8080/", False),
        ("http://127.0.0.1:7860", "http://10.0.0.5/", False),
        ("http://10.0.0.5", "http://10.1.1.1/", False),
        ("http://10.0.0.5", "http://127.0.0.1/", False),
        ("http://10.0.0.5", "http://169.254.169.254/", False),
        ("http://169.254.10.1", "http://169.254.10.1/", True),
        ("http://bot:7860", "http://BOT.:7860/", True),
        ("http://bot:7860", "http://10.0.0.5:7860/", True),
        ("http://bot:7860", "http://10.0.0.6:7860/", False),
        ("http://bot:7860", "http://10.0.0.5:8080/", False),
        ("http://bot.internal", "https://bot.internal/", True),
        ("http://bot.internal", "http://api.internal/", False),
        ("http://keys.internal", "http://keys.internal/", False),
        ("http://localhost:7860", "http://localhost:7860/", True),
        ("http://localhost:7860", "http://[::1]:7860/", True),
        ("http://localhost:7860", "http://127.0.0.2:7860/", False),
        (PUBLIC, "http://93.184.216.34/", True),
    ],
)
async def test_the_configured_address_shows_which_networks_are_meant(
    configured: str, url: str, taken: bool
) -> None:
    inside = {"bot": "10.0.0.5", "bot.internal": "10.0.0.5", "api.internal": "10.0.0.6", "localhost": "127.0.0.1"}

    async def resolve(host: str) -> list[str]:
        return [inside.get(host, "169.254.169.254")]

    guard = AddressGuard([configured, None], resolve=resolve)
    if taken:
        await guard.check(url)
    else:
        with pytest.raises(AccessDenied):
            await guard.check(url)


async def test_one_address_inside_among_those_of_a_name_is_enough() -> None:
    async def both(_host: str) -> list[str]:
        return ["93.184.216.34", "10.0.0.5"]

    with pytest.raises(AccessDenied):
        await AddressGuard([PUBLIC], resolve=both).check(PUBLIC)
    await AddressGuard([PUBLIC], resolve=both, private_network=True).check(PUBLIC)


@pytest.mark.parametrize(
    "elsewhere", ["https://other.example.com/", "https://bot.example.com:8443/", "http://10.0.0.6/"]
)
async def test_a_private_network_is_open_for_the_targets_own_address_alone(elsewhere: str) -> None:
    """If a target is in a private network, only the target's own address is allowed there.

    Cloud metadata addresses stay forbidden, even if the target's name resolves to them.
    """
    leads_to = ["10.0.0.5"]

    async def resolve(_host: str) -> list[str]:
        return leads_to

    guard = AddressGuard([PUBLIC], resolve=resolve, private_network=True)
    await guard.check(PUBLIC)
    with pytest.raises(AccessDenied, match=r"probe\.allowed_origins"):
        await guard.check(elsewhere)
    leads_to[:] = ["169.254.169.254"]
    with pytest.raises(AccessDenied, match="link-local address"):
        await guard.check(PUBLIC)


def api_of(address: str, driver: str = "json", **changes: object):
    settings = ProbeSettings.model_validate({"driver": driver, "answer_deadline_s": 20, **changes})
    return build_driver(address, settings, run_folder=Path("unused"), clock=Ticking())


def address_of(server: Redirecting, host: str = "127.0.0.1") -> str:
    return f"http://{host}:{server.server_port}/"


@pytest.mark.parametrize(
    "to", ["http://10.255.255.1/", "http://169.254.169.254/latest/meta-data/", "http://167772161/"]
)
@pytest.mark.parametrize("driver", ["json", "gradio", "sse"])
async def test_f38_an_api_that_redirects_elsewhere_is_refused_before_anything_is_sent_there(
    app: Redirecting, to: str, driver: str
) -> None:
    app.to = to
    async with api_of(address_of(app), driver) as asked:
        with pytest.raises(AccessDenied, match="Its configuration does not allow"):
            await asked.ask(("hello",))
    assert app.asked == 1


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the public name of the target resolve to this machine."""
    real = socket.getaddrinfo

    def to_here(host: object, *rest: object, **more: object):
        name = host.decode() if isinstance(host, bytes) else host
        return real("127.0.0.1" if name == NAME else host, *rest, **more)  # type: ignore[arg-type] - handed on

    monkeypatch.setattr(socket, "getaddrinfo", to_here)


@pytest.mark.usefixtures("rebound")
async def test_f38_a_name_that_leads_inside_is_refused_before_anything_is_sent(inside: Redirecting) -> None:
    async with api_of(address_of(inside, NAME)) as asked:
        with pytest.raises(AccessDenied, match=rf"leads to {NAME}:\d+\. .* this loopback address"):
            await asked.ask(("hello",))
    assert inside.asked == 0
    async with api_of(address_of(inside, NAME), private_network=True) as asked:
        assert (await asked.ask(("hello",))).visible_text == "the inside"


@pytest.mark.parametrize("to", ["data:text/html,x", "ftp://127.0.0.1/", "http://[::1"])
async def test_f97_an_api_that_redirects_to_no_web_page_is_at_fault_itself(app: Redirecting, to: str) -> None:
    app.to = to
    async with api_of(address_of(app)) as driver:
        with pytest.raises(Unreachable, match="redirects to an") as refused:
            await driver.ask(("hello",))
    assert refused.value.blame is Blame.APP


@pytest.mark.parametrize("packed", [True, False])
async def test_f96_an_api_that_sends_too_much_is_at_fault_and_is_not_read(app: Redirecting, packed: bool) -> None:
    """If an API sends two gigabytes, Lookout stops reading after 20 MB and blames the app.

    The response is sent plain, or as two megabytes of gzip.
    """
    app.flood = "packed" if packed else "plain"
    async with api_of(address_of(app)) as driver:
        with pytest.raises(Unreachable, match="more than 20 MB"):
            await driver.ask(("hello",))


async def test_a_connection_that_is_used_again_is_looked_at_again(app: Redirecting) -> None:
    clients = HttpClientPool(ProbeSettings(), NO_HEADERS, address_of(app), AddressGuard([address_of(app)]))
    async with clients.lend_client() as client:
        for _ in range(2):
            assert (await client.get(address_of(app))).json() == {"answer": "the inside"}
    await clients.aclose()


@pytest.mark.browser
@pytest.mark.usefixtures("rebound")
async def test_f38_a_page_whose_name_leads_inside_is_refused_before_it_is_asked(
    driver_for: MakeDriver, inside: Redirecting
) -> None:
    async with driver_for(address_of(inside, NAME)) as driver:
        with pytest.raises(AccessDenied, match=rf"leads to {NAME}:\d+\. .* this loopback address"):
            await driver.ask(("hello",))
    assert inside.asked == 0


@pytest.mark.browser
async def test_f38_a_page_whose_name_changes_for_the_browser_is_refused_where_it_connects(
    driver_for: MakeDriver, inside: Redirecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a name is public at first and then resolves to this machine, the browser's connection is refused."""
    real, asked = socket.getaddrinfo, 0

    def changing(host: object, *rest: object, **more: object):
        nonlocal asked
        if host != NAME:
            return real(host, *rest, **more)  # type: ignore[arg-type] - handed on
        asked += 1
        return real("127.0.0.1" if asked > 1 else "93.184.216.34", *rest, **more)  # type: ignore[arg-type] - handed on

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    async with driver_for(address_of(inside, NAME)) as driver:
        with pytest.raises(AccessDenied, match=rf"leads to {NAME}:\d+\. .* this loopback address"):
            await driver.ask(("hello",))
    assert inside.asked == 0
    assert asked > 1, "its name was looked up again"


@pytest.mark.browser
async def test_f38_a_page_that_redirects_inside_is_refused_before_anything_is_sent_there(
    driver_for: MakeDriver, app: Redirecting, inside: Redirecting
) -> None:
    app.to = address_of(inside)
    async with driver_for(address_of(app)) as driver:
        with pytest.raises(AccessDenied, match="loopback address"):
            await driver.ask(("hello",))
    assert inside.asked == 0
