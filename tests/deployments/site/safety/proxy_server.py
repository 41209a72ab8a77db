"""A typical reverse proxy: it uses a path prefix, terminates TLS, and adds forwarding headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.deployments.site.site_server import serving

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "x-forwarded-for"}


@dataclass(frozen=True)
class ProxyWay:
    """The behaviour of a proxy.

    ``strips`` removes the prefix from the path of a request. ``renames`` changes the host of a request, and
    sends the browser's host in a header.
    """

    prefix: str = "/lookout"
    strips: bool = False
    renames: bool = False


@dataclass
class ReverseProxy:
    """A running proxy: its address, and the requests to the proxy whose path was outside the prefix."""

    address: str
    outside: list[str] = field(default_factory=list)


@contextmanager
def reverse_proxy(upstream: str, way: ProxyWay) -> Iterator[ReverseProxy]:
    """Start a proxy that serves only the site ``upstream``, below the prefix of ``way``."""
    proxy = ReverseProxy("")

    async def passed_on(request: Request) -> Response:
        path = request.scope["raw_path"].decode("ascii")
        if path != way.prefix and not path.startswith(f"{way.prefix}/"):
            proxy.outside.append(path)
            return PlainTextResponse("nothing is here", 418)
        path = (path[len(way.prefix) :] or "/") if way.strips else path
        query = f"?{request.url.query}" if request.url.query else ""
        answer = await request.app.state.client.request(
            request.method, f"{upstream}{path}{query}", headers=_headers(request, way), content=await request.body()
        )
        passed_on_headers = [
            (name, value) for name, value in answer.headers.multi_items() if name not in HOP_BY_HOP
        ]
        passed = Response(answer.content, answer.status_code)
        passed.raw_headers = [(name.encode(), value.encode("latin-1")) for name, value in passed_on_headers]
        passed.headers["content-length"] = str(len(answer.content))
        return passed

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            app.state.client = client
            yield

    routes = [Route("/{path:path}", passed_on, methods=["GET", "HEAD", "POST"])]
    with serving(Starlette(routes=routes, lifespan=lifespan)) as address:
        proxy.address = address
        yield proxy


def _headers(request: Request, way: ProxyWay) -> list[tuple[str, str]]:
    """Return the browser's headers, and the proxy's own forwarding headers as separate lines."""
    sent = [(name, value) for name, value in request.headers.items() if name not in HOP_BY_HOP]
    before = [("x-forwarded-for", value) for value in request.headers.getlist("x-forwarded-for")]
    client = request.client.host if request.client else ""
    host = request.headers["host"]
    named = [("host", "lookout.internal"), ("x-forwarded-host", host)] if way.renames else [("host", host)]
    return [*sent, *named, *before, ("x-forwarded-for", client), ("x-forwarded-proto", "https")]
