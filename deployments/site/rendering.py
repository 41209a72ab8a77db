"""Pages as HTML and as JSON: one record, two forms. And what is answered where there is no page to show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
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
"""The bar: address and word, in its order."""
STATIC_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Of a page in a file: whoever serves it may send no headers."""
ASSETS: Final = {"site.js": "text/javascript; charset=utf-8", "site.css": "text/css; charset=utf-8"}
_YEAR: Final = "private, max-age=31536000, immutable"


@cache
def build_site_templates() -> Environment:
    """The site's templates, and the report's beside them."""
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
    """A value of a trend, as records of pages have it."""

    @property
    def label(self) -> str:
        """What it is, in words."""
        ...

    @property
    def value(self) -> float | None:
        """``None`` where nothing was graded."""
        ...

    @property
    def low(self) -> float | None:
        """The lower end of its interval."""
        ...

    @property
    def high(self) -> float | None:
        """The upper end."""
        ...

    @property
    def mark(self) -> bool:
        """Whether it is set apart."""
        ...


def render_trend_chart(values: Sequence[TrendShown], title: str, limit: float | None = None) -> Markup:
    """A page's values over time as a chart."""
    points = [TrendPoint(point.label, point.value, point.low, point.high, point.mark) for point in values]
    return render_trend_line(points, build_scale(points, limit=limit), title)


@cache
def load_asset(name: str) -> str:
    """A file that pages load: the style sheet is the report's, and the site's few lines after it."""
    own = files("deployments").joinpath(f"site/assets/{name}").read_text(encoding="utf-8")
    return f"{load_style_sheet()}\n{own}" if name.endswith(".css") else own


@cache
def compute_asset_version() -> str:
    """What changes when any of these files does: in their addresses, so that browsers keep them for long."""
    return hashlib.sha256("".join(map(load_asset, ASSETS)).encode()).hexdigest()[:12]


async def serve_asset(request: Request) -> Response:
    """The style sheet or the script."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    return Response(load_asset(name), media_type=ASSETS[name], headers={"cache-control": _YEAR})


class Renderer:
    """Makes the answers of one site."""

    def __init__(self, site: Site, signer: SessionSigner) -> None:
        self.site = site
        self.signer = signer

    def render_page(self, page: Page, asked: PageRequest, request: Request) -> Response:
        """A page, as it was asked for. One that the browser has already is not sent again."""
        if request.state.wants_json:
            return Response(self.format_json(page), media_type="application/json")
        text = self._render_template(
            page.template,
            asked.visitor,
            asked.address,
            title=page.title,
            data=page.data,
            page=page.view,
            request=asked,
            live_s=page.live_s,
            flash=self._read_flash(request),
        )
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": tag})
        headers = {"etag": tag, "cache-control": "private, no-cache"}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    def render_static_page(self, page: Page, asked: PageRequest) -> str:
        """A page of a copy in files."""
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
        """The same where a copy has no such page, and its JSON: why not."""
        html = self._render_template(
            "refused.html.j2", asked.visitor, asked.address, title="Not in this copy", text=text, request=asked
        )
        return html, json.dumps({"error": text})

    def format_json(self, page: Page) -> str:
        """A page's record, and when the copy was last known to be all that the warehouse has."""
        as_of = self.site.snapshot.as_of
        head = f'"{_format_iso(as_of)}"' if as_of else "null"
        return f'{{"as_of":{head},"data":{page.data.model_dump_json()}}}'

    def render_refusal(self, request: Request, status: HTTPStatus, text: str, *, go_on: str = "/") -> Response:
        """Why there is no page: as JSON, as the login where one is needed, or as a page of its own."""
        if getattr(request.state, "wants_json", False):
            return JSONResponse({"error": text}, status_code=status, headers=_build_challenge_headers(status))
        visitor = getattr(request.state, "visitor", None)
        if status is HTTPStatus.UNAUTHORIZED:
            html = self._render_login_form(request, status, text, go_on)
        else:
            html = self._render_template("refused.html.j2", visitor, "", title=status.phrase, text=text)
        return Response(html, int(status), _build_challenge_headers(status), media_type="text/html; charset=utf-8")

    def refuse_entry(self, request: Request, status: HTTPStatus, text: str) -> ASGIApp:
        """The same, for a request that was not let in; a person who logs in goes on to where they wanted."""
        next_address = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
        return self.render_refusal(request, status, text, go_on=next_address)

    def render_login(self, request: Request, status: HTTPStatus, text: str, go_on: str) -> Response:
        """The form that asks for a token."""
        html = self._render_login_form(request, status, text, go_on)
        return Response(html, int(status), media_type="text/html; charset=utf-8")

    def _render_login_form(self, request: Request, status: HTTPStatus, text: str, go_on: str) -> str:
        return self._render_template(
            "login.html.j2",
            None,
            "",
            title="Log in",
            text=text,
            status=int(status),
            go_on=sanitize_local_address(go_on, self.site.prefix),
            is_plain=getattr(request.state, "is_plain", False),
        )

    def build_next_address(self, done: Done) -> str:
        """The address to go on to after an action, with what was done: sealed, so that no link says it falsely."""
        mark = "&" if "?" in done.go_on else "?"
        return f"{done.go_on}{mark}{urlencode({'done': done.text, 'seal': self.signer.seal(done.text)})}"

    def _build_link(self, address: str) -> str:
        return f"{self.site.prefix}{address}"

    def _read_flash(self, request: Request) -> str:
        text, seal = (request.query_params.get(name, "") for name in ("done", "seal"))
        return text if text and self.signer.is_seal(seal, text) else ""

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


def sanitize_local_address(go_on: str, prefix: str) -> str:
    """The address to go on to, within this site and without its prefix, whatever was asked: never another host."""
    if prefix and (go_on == prefix or go_on.startswith(f"{prefix}/")):
        go_on = go_on[len(prefix) :] or "/"
    is_local = go_on.startswith("/") and not go_on.startswith(("//", "/\\", "/login", "/logout"))
    return go_on if is_local and go_on.isprintable() and "\\" not in go_on else "/"


def _build_challenge_headers(status: HTTPStatus) -> dict[str, str]:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return {"www-authenticate": "Bearer"}
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return {"retry-after": "5"}
        case _:
            return {}


def _format_iso(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")
