"""Renders pages as HTML and as JSON, and the responses to refused requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from jinja2 import Environment
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from deployments.site.access import Visitor
from deployments.site.page import Done, Page, PageRequest, Site
from deployments.site.tokens import SessionSigner
from monitors.reports.charts import StripCell, TrendPoint, build_scale, render_outcome_strip, render_trend_line
from monitors.reports.format import SEVERITY_WORDS
from monitors.reports.templating import build_template_environment, load_style_sheet

PACKAGE: Final = "deployments.site"
NAVIGATION: Final[tuple[tuple[str, str], ...]] = (
    ("/", "Now"),
    ("/incidents", "Incidents"),
    ("/runs", "Runs"),
    ("/cases", "Cases"),
    ("/nightly", "Nightly"),
    ("/hallucinations", "Hallucinations"),
    ("/review", "Review"),
    ("/judge", "Judge"),
    ("/suite", "Suite"),
)
"""The menu of the site: the address and the label of each page in the menu."""
STATIC_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy inside exported pages, because their web server may send no headers."""
ASSETS: Final = {"site.js": "text/javascript; charset=utf-8", "site.css": "text/css; charset=utf-8"}
_YEAR: Final = "private, max-age=31536000, immutable"


@cache
def build_site_templates() -> Environment:
    """Build the environment for the templates of the site and of the report."""
    environment = build_template_environment(PACKAGE)
    environment.globals.update(
        navigation_bar=NAVIGATION,
        asset_version=compute_asset_version,
        trend_chart=render_trend_chart,
        outcome_strip=render_outcome_strip,
        strip_cell=StripCell,
        static_policy=STATIC_POLICY,
        severity_texts=SEVERITY_WORDS,
    )
    return environment


class TrendShown(Protocol):
    """The fields that a value must have so that a trend chart can show it."""

    @property
    def label(self) -> str:
        """The description of the value."""
        ...

    @property
    def value(self) -> float | None:
        """The value, or ``None`` if nothing was graded."""
        ...

    @property
    def low(self) -> float | None:
        """The lower end of the value's interval."""
        ...

    @property
    def high(self) -> float | None:
        """The upper end of the value's interval."""
        ...

    @property
    def mark(self) -> bool:
        """Whether the chart highlights the value."""
        ...


def render_trend_chart(values: Sequence[TrendShown], title: str, limit: float | None = None) -> Markup:
    """Render values over time as a chart."""
    points = [TrendPoint(point.label, point.value, point.low, point.high, point.mark) for point in values]
    return render_trend_line(points, build_scale(points, limit=limit), title)


@cache
def load_asset(name: str) -> str:
    """Load the style sheet or the script. The style sheet is the report's, followed by the site's own rules."""
    own = files("deployments").joinpath(f"site/assets/{name}").read_text(encoding="utf-8")
    return f"{load_style_sheet()}\n{own}" if name.endswith(".css") else own


@cache
def compute_asset_version() -> str:
    """Compute a hash of all assets.

    The assets' addresses contain the hash, so that browsers can cache the assets for a long time.
    """
    return hashlib.sha256("".join(map(load_asset, ASSETS)).encode()).hexdigest()[:12]


async def serve_asset(request: Request) -> Response:
    """Serve the style sheet or the script."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    return Response(load_asset(name), media_type=ASSETS[name], headers={"cache-control": _YEAR})


class Renderer:
    """Renders the responses of one site."""

    def __init__(self, site: Site, signer: SessionSigner) -> None:
        self.site = site
        self.signer = signer

    def render_page(self, page: Page, asked: PageRequest, request: Request) -> Response:
        """Render a page as HTML or JSON, as requested. Return HTTP 304 if the browser already has this HTML."""
        if request.state.wants_json:
            return Response(self.format_page_json(page), media_type="application/json")
        text = self._render_template(
            page.template,
            asked.visitor,
            asked.address,
            title=page.title,
            data=page.data,
            page=page.view,
            request=asked,
            live_s=page.live_s,
            flash=self._read_signed_message(request),
        )
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": tag})
        headers = {"etag": tag, "cache-control": "private, no-cache"}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    def render_static_page(self, page: Page, asked: PageRequest) -> str:
        """Render a page of a static export."""
        return self._render_template(
            page.template,
            asked.visitor,
            asked.address,
            title=page.title,
            data=page.data,
            page=page.view,
            request=asked,
        )

    def render_static_refusal(self, asked: PageRequest, text: str) -> tuple[str, str]:
        """Render HTML and JSON that give the reason why the export does not contain a page."""
        html = self._render_template(
            "refused.html.j2", asked.visitor, asked.address, title="Not in this copy", text=text, request=asked
        )
        return html, json.dumps({"error": text})

    def format_page_json(self, page: Page) -> str:
        """Format the data of a page as JSON, with the time of the warehouse copy that the data comes from."""
        as_of = self.site.snapshot.as_of
        head = f'"{as_of.isoformat().replace("+00:00", "Z")}"' if as_of else "null"
        return f'{{"as_of":{head},"data":{page.data.model_dump_json()}}}'

    def render_refusal(self, request: Request, status: HTTPStatus, text: str, *, next_url: str = "/") -> Response:
        """Render the reason why a page is not shown: as JSON, as the login form, or as an error page."""
        if getattr(request.state, "wants_json", False):
            return JSONResponse({"error": text}, status_code=status, headers=_build_status_headers(status))
        visitor = getattr(request.state, "visitor", None)
        if status is HTTPStatus.UNAUTHORIZED:
            html = self._render_login_form(request, status, text, next_url)
        else:
            html = self._render_template("refused.html.j2", visitor, "", title=status.phrase, text=text)
        return Response(html, int(status), _build_status_headers(status), media_type="text/html; charset=utf-8")

    def render_entry_refusal(self, request: Request, status: HTTPStatus, text: str) -> ASGIApp:
        """Render the response to a refused request. After a login, the visitor gets the requested page."""
        next_address = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
        return self.render_refusal(request, status, text, next_url=next_address)

    def render_login(self, request: Request, status: HTTPStatus, text: str, next_url: str) -> Response:
        """Render the login form."""
        html = self._render_login_form(request, status, text, next_url)
        return Response(html, int(status), media_type="text/html; charset=utf-8")

    def _render_login_form(self, request: Request, status: HTTPStatus, text: str, next_url: str) -> str:
        return self._render_template(
            "login.html.j2",
            None,
            "",
            title="Log in",
            text=text,
            status=int(status),
            next_url=sanitize_local_address(next_url, self.site.prefix),
            is_plain=getattr(request.state, "is_plain", False),
        )

    def build_next_address(self, done: Done) -> str:
        """Build the address to show after a form was submitted, with the form's message.

        The message is signed, so that a link cannot contain a forged message.
        """
        mark = "&" if "?" in done.next_url else "?"
        return f"{done.next_url}{mark}{urlencode({'done': done.text, 'seal': self.signer.sign_text(done.text)})}"

    def _build_link(self, address: str) -> str:
        return f"{self.site.prefix}{address}"

    def _read_signed_message(self, request: Request) -> str:
        text, seal = (request.query_params.get(name, "") for name in ("done", "seal"))
        return text if text and self.signer.is_signature_of(seal, text) else ""

    def _render_template(self, template: str, visitor: Visitor | None, address: str, **values: Any) -> str:
        request = values.get("request")
        link = request.link if isinstance(request, PageRequest) else self._build_link
        return (
            build_site_templates()
            .get_template(template)
            .render(
                site=self.site,
                link=link,
                as_of=self.site.snapshot.as_of,
                visitor=visitor,
                address=address,
                form_token=self.signer.create_form_token(visitor.session) if visitor else "",
                **{"request": None, "live_s": 0, "flash": "", **values},
            )
        )


def sanitize_local_address(next_url: str, prefix: str) -> str:
    """If ``next_url`` is an address on this site, return it without the proxy's prefix. Otherwise return ``/``."""
    if prefix and (next_url == prefix or next_url.startswith(f"{prefix}/")):
        next_url = next_url[len(prefix) :] or "/"
    is_local = next_url.startswith("/") and not next_url.startswith(("//", "/\\", "/login", "/logout"))
    return next_url if is_local and next_url.isprintable() and "\\" not in next_url else "/"


def _build_status_headers(status: HTTPStatus) -> dict[str, str]:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return {"www-authenticate": "Bearer"}
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return {"retry-after": "5"}
        case _:
            return {}
