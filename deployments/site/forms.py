"""Functions that read forms, limit their size, and check that the forms come from a page of this site."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request

from deployments.site.access import Visitor
from deployments.site.page import PageRefused
from deployments.site.tokens import SessionSigner

MAX_FORM_BYTES: Final = 64 * 1024
"""Maximum size of a form in bytes."""


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises `PageRefused` if the form is too long or invalid."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                raise PageRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too long.")
        return dict(parse_qsl(body.decode("utf-8"), True, max_num_fields=100))
    except (ClientDisconnect, ValueError):
        raise PageRefused(HTTPStatus.BAD_REQUEST, "The site could not read the form; send it again.") from None


def require_valid_form(request: Request, signer: SessionSigner, form: Mapping[str, str]) -> None:
    """Raise `PageRefused` if a form is not from a page of this site, or if the visitor may not decide.

    A program that sends its token in a header needs no form token, because another site cannot use such a token.
    """
    visitor: Visitor = request.state.visitor
    if visitor.session and not (
        is_same_origin(request) and signer.is_form_token(form.get("form_token", ""), visitor.session)
    ):
        raise PageRefused(
            HTTPStatus.FORBIDDEN, "This form is not from this site, or from an old session. Load the page again."
        )
    if not visitor.may_decide:
        raise PageRefused(
            HTTPStatus.FORBIDDEN,
            f"{visitor.name} may view pages but not make decisions. Ask the operator of the site for a new token: "
            "`lookout site token add NAME --role operate`.",
        )


def is_same_origin(request: Request) -> bool:
    """Return whether a page of this site sent the request, according to the browser's headers.

    Returns true if the request has no such headers.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.state.host
