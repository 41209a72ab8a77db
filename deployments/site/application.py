"""The site: server-rendered pages over the warehouse. Each page is also available as JSON.

How to add a page
-----------------

1. **Queries.** Write them as functions of a module in `warehouse/queries/site/`. A query takes a `Store` and
   returns frozen records. It pages in SQL (``limit $rows offset $offset``) and returns the total count. A query for
   a list must not read a whole run, a whole suite or a report.
2. **Page function.** Write it in a module of `deployments/site/pages/`. It takes a `PageRequest` and runs the
   queries on ``request.site.store``, a copy that no writer can lock. It returns a `Page` with one record, which
   contains everything that the template shows. The record is also the page's JSON. Therefore it contains values,
   not HTML.
3. **Filters.** They are in the address. ``request.read_and_show_choice_filter(...)``,
   ``request.read_and_show_text_filter(...)`` and ``request.read_paging()`` read them. ``ui.filters`` and
   ``ui.pager`` show them. An invalid filter is refused with HTTP 400 and the accepted values.
4. **Redaction.** The page function passes each text of a user or of the application through
   ``request.redact_text(text, target)``. For texts in records, it uses `masking.py`. The same applies to an
   application's own path and version, and to notes and reasons that people wrote.
5. **Template.** Write it in `templates/`. It extends ``base.html.j2`` and uses the macros of ``ui.html.j2``. It
   escapes all texts, and the filter ``|shown`` makes invisible characters visible. Do not use ``|safe``, inline
   styles or inline scripts: the policy in `access.py` forbids them. Draw charts from values of the record, with
   `monitors/reports/charts.py`. Write links as ``{{ request.link("/runs", verdict="FAIL") }}``, which adds the
   prefix of a proxy.
6. **Empty state** (``ui.empty``). It states what is missing and which command creates it. "No data" has its own
   word and colour (``state-none``). Never show it as green or as zero.
7. **Decisions.** A decision is an `ActionRoute`: a POST with the form's token (``ui.action``), which a visitor with
   the role `read` may not send. Apply the decision with `decisions.py`, as Slack buttons and ``lookout alerts`` do.
8. **Routes.** Add the page to `PAGES` or the decision to `ACTIONS` below. If the page is in the menu, also add it
   to `NAVIGATION` of `rendering.py`.
9. **Tests.** `tests/deployments/site/` checks each route: 401 without a token, JSON, no script, accessibility and
   two widths. Add an address of the page to `EXAMPLES`, and tests for features that are specific to the page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from deployments.site.access import ACTION_RESULT_FIELDS
from deployments.site.figures import serve_metrics, serve_target_badge
from deployments.site.forms import read_form, require_valid_form
from deployments.site.login import LoginPages
from deployments.site.page import ActionMaker, PageMaker, PageRefused, PageRequest, Site
from deployments.site.pages.cases import build_case_page, build_cases_page
from deployments.site.pages.compare import build_compare_page
from deployments.site.pages.gold_drafts import build_gold_drafts_page, decide_gold_draft
from deployments.site.pages.grown_drafts import build_grown_drafts_page, decide_grown_draft
from deployments.site.pages.hallucinations import build_hallucinations_page
from deployments.site.pages.incidents import (
    apply_incident_decision,
    build_incident_page,
    build_incidents_list_page,
    end_incident_silence,
    silence_incident,
)
from deployments.site.pages.judge import build_judge_page
from deployments.site.pages.nightly import build_nightly_page
from deployments.site.pages.now import build_now_page
from deployments.site.pages.review import build_review_page, store_review, store_reviewer_name
from deployments.site.pages.runs import build_run_page, build_runs_page, serve_run_report
from deployments.site.pages.suite import build_suite_page
from deployments.site.refresher import Refresher
from deployments.site.rendering import Renderer, serve_asset
from monitors.errors import MonitorError, WarehouseBusy


@dataclass(frozen=True, slots=True)
class PageRoute:
    """The address of a page, and the function that builds this page."""

    path: str
    make: PageMaker


@dataclass(frozen=True, slots=True)
class ActionRoute:
    """The address to which a form is sent, and the function that carries out the form's action."""

    path: str
    apply_action: ActionMaker


PAGES: Final[tuple[PageRoute, ...]] = (
    PageRoute("/", build_now_page),
    PageRoute("/now", build_now_page),
    PageRoute("/runs", build_runs_page),
    PageRoute("/runs/{run}", build_run_page),
    PageRoute("/cases", build_cases_page),
    PageRoute("/cases/{case}", build_case_page),
    PageRoute("/compare", build_compare_page),
    PageRoute("/nightly", build_nightly_page),
    PageRoute("/judge", build_judge_page),
    PageRoute("/suite", build_suite_page),
    PageRoute("/incidents", build_incidents_list_page),
    PageRoute("/incidents/{incident}", build_incident_page),
    PageRoute("/hallucinations", build_hallucinations_page),
    PageRoute("/review", build_review_page),
    PageRoute("/review/drafts", build_gold_drafts_page),
    PageRoute("/review/incidents", build_grown_drafts_page),
)
"""All pages. Each page is also served as JSON at its address with ``.json`` (the first page at ``/now.json``)."""

ACTIONS: Final[tuple[ActionRoute, ...]] = (
    ActionRoute("/incidents/{incident}/decide/{decision}", apply_incident_decision),
    ActionRoute("/incidents/{incident}/silence", silence_incident),
    ActionRoute("/incidents/{incident}/silence/{silence}/end", end_incident_silence),
    ActionRoute("/review/name", store_reviewer_name),
    ActionRoute("/review/answer", store_review),
    ActionRoute("/review/drafts/{draft}", decide_gold_draft),
    ActionRoute("/review/incidents/{draft}", decide_grown_draft),
)
"""All decisions that a person can send to the site."""

FILES: Final[tuple[tuple[str, Callable[[PageRequest], Response]], ...]] = (
    ("/runs/{run}/report", serve_run_report),
    ("/metrics", serve_metrics),
    ("/badge/{target}.svg", serve_target_badge),
)
"""Addresses that are not pages: files of runs, and data for other programs."""

Answer = Callable[[Request], Awaitable[Response]]


def build_pages_application(site: Site, renderer: Renderer, refresher: Refresher, login: LoginPages) -> Starlette:
    """Build the application behind `AccessControl`, which stores the visitor in ``request.state``."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with refresher:
            yield

    routes: list[BaseRoute] = [
        *(Route(route.path, _build_page_endpoint(site, renderer, route.make), methods=["GET"]) for route in PAGES),
        *(
            Route(route.path, _build_action_endpoint(site, renderer, route.apply_action), methods=["POST"])
            for route in ACTIONS
        ),
        *(Route(path, _build_endpoint_for_ready_response(site, read), methods=["GET"]) for path, read in FILES),
        Route("/assets/{name}", serve_asset, methods=["GET"]),
        Route("/login/assets/{name}", serve_asset, methods=["GET"]),
        Route("/healthz", _build_health_endpoint(refresher), methods=["GET"]),
        *login.build_routes(),
    ]

    async def answer_error(request: Request, error: Exception) -> Response:
        status, text = _choose_error_response(error)
        return await run_in_threadpool(renderer.render_refusal, request, status, text)

    handled = (HTTPException, PageRefused, MonitorError, Exception)
    pages = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, answer_error), lifespan=lifespan)
    pages.router.redirect_slashes = False  # such a redirect would lack the proxy's host name and prefix
    return pages


def _build_page_endpoint(site: Site, renderer: Renderer, make: PageMaker) -> Answer:
    def answer(request: Request) -> Response:
        page_request = _build_page_request(site, request)
        return renderer.render_page(make(page_request), page_request, request)

    async def answer_in_thread(request: Request) -> Response:
        return await run_in_threadpool(answer, request)

    return answer_in_thread


def _build_action_endpoint(site: Site, renderer: Renderer, apply_action: ActionMaker) -> Answer:
    async def answer(request: Request) -> Response:
        form = await read_form(request)
        require_valid_form(request, renderer.signer, form)
        done = await run_in_threadpool(apply_action, _build_page_request(site, request), form)
        if request.state.wants_json:
            return JSONResponse({"done": done.text})
        return RedirectResponse(renderer.build_next_address(done), HTTPStatus.SEE_OTHER)

    return answer


def _build_endpoint_for_ready_response(site: Site, read: Callable[[PageRequest], Response]) -> Answer:
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(read, _build_page_request(site, request))

    return answer


def _build_page_request(site: Site, request: Request) -> PageRequest:
    return PageRequest(
        site=site,
        visitor=request.state.visitor,
        address=request.url.path,
        path=request.path_params,
        query={name: value for name, value in request.query_params.items() if name not in ACTION_RESULT_FIELDS},
    )


def _build_health_endpoint(refresher: Refresher) -> Answer:
    async def answer(_request: Request) -> Response:
        problem = refresher.problem
        return PlainTextResponse(f"ok, but {problem}\n" if problem else "ok\n")

    return answer


def _choose_error_response(error: Exception) -> tuple[HTTPStatus, str]:
    """Return the status and the text for an error. For an unexpected error, the text contains only its type."""
    match error:
        case PageRefused():
            return error.status, error.text
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return HTTPStatus.NOT_FOUND, "This page does not exist. Use the menu above."
        case HTTPException():
            return HTTPStatus(error.status_code), error.detail
        case WarehouseBusy():
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        case MonitorError():
            return HTTPStatus.INTERNAL_SERVER_ERROR, str(error)
        case _:
            return (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"Lookout has an internal error: {type(error).__name__}. For details, see the log of the site.",
            )
