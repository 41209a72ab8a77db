"""The pages and forms for logging in with a token and for logging out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from deployments.site.access import AttemptLimit, choose_session_cookie_name
from deployments.site.forms import is_same_origin, read_form
from deployments.site.page import Site
from deployments.site.rendering import Renderer, sanitize_local_address

WRONG: Final = "This token is not valid. It was mistyped or revoked."


class LoginPages:
    """The pages of the login. ``attempts`` counts wrong tokens, including those that `AccessControl` receives."""

    def __init__(self, site: Site, renderer: Renderer, attempts: AttemptLimit) -> None:
        self._site = site
        self._renderer = renderer
        self._attempts = attempts

    def build_routes(self) -> list[Route]:
        """Return the routes of the login and logout."""
        return [
            Route("/login", self.show_login_form, methods=["GET"]),
            Route("/login", self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
        ]

    async def show_login_form(self, request: Request) -> Response:
        """Show the login form."""
        next_url = request.query_params.get("next", "/")
        return await run_in_threadpool(self._renderer.render_login, request, HTTPStatus.OK, "", next_url)

    async def log_in(self, request: Request) -> Response:
        """Start a session if the token is valid. A wrong token is counted for the client's address."""
        client = request.state.client
        form = await read_form(request)
        next_url = form.get("next", "/")
        wait_s = self._attempts.compute_wait_s(client)
        if wait_s:
            text = f"Too many wrong tokens came from your address. Try again in {wait_s} s."
            return self._answer_refusal(
                request, HTTPStatus.TOO_MANY_REQUESTS, text, next_url, {"retry-after": str(wait_s)}
            )
        if not is_same_origin(request):
            return self._answer_refusal(
                request, HTTPStatus.FORBIDDEN, "This form is not from this site. Load the page again.", next_url
            )
        signer = self._renderer.signer
        owner = signer.tokens.find_owner(form.get("token", ""))  # no await between the count and this line
        if owner is None:
            self._attempts.record_wrong_token(client)
            return self._answer_refusal(request, HTTPStatus.UNAUTHORIZED, WRONG, next_url)
        self._attempts.remember_trusted_address(client)
        answer = RedirectResponse(
            self._site.prefix + sanitize_local_address(next_url, self._site.prefix), HTTPStatus.SEE_OTHER
        )
        self._set_cookie(
            answer, signer.create_session_cookie(owner, self._site.now()), round(signer.lasts.total_seconds())
        )
        return answer

    async def log_out(self, request: Request) -> Response:
        """End the session, including copies of its cookie in other browsers."""
        form, session = await read_form(request), request.state.visitor.session
        signer = self._renderer.signer
        if not (is_same_origin(request) and signer.is_form_token(form.get("form_token", ""), session)):
            return self._answer_refusal(
                request, HTTPStatus.FORBIDDEN, "This form is not from this site. Load the page again.", "/"
            )
        await run_in_threadpool(signer.end_session, session, self._site.now())
        answer = RedirectResponse(f"{self._site.prefix}/login", HTTPStatus.SEE_OTHER)
        self._set_cookie(answer, "", 0)
        return answer

    def _answer_refusal(
        self, request: Request, status: HTTPStatus, text: str, next_url: str, headers: dict[str, str] | None = None
    ) -> Response:
        if request.state.wants_json:
            return JSONResponse({"error": text}, status, headers)
        answer = self._renderer.render_login(request, status, text, next_url)
        answer.headers.update(headers or {})
        return answer

    def _set_cookie(self, answer: Response, cookie: str, lasts_s: int) -> None:
        answer.set_cookie(
            choose_session_cookie_name(self._site.prefix),
            cookie,
            max_age=lasts_s,
            path=self._site.prefix or "/",
            secure=True,
            httponly=True,
            samesite="strict",
        )
