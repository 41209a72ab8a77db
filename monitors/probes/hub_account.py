"""Who a token of the Hub belongs to: whether it is one that the Hub takes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from monitors.errors import AccessDenied, ReadinessUntold
from monitors.probes.inpage import clean
from monitors.records.base import Record

REFUSED = (401, 403)


class HubAccount(Record):
    """Whom the Hub knows by a token, and what the token may do (``read``, ``write``, ``fineGrained``)."""

    name: str
    role: str


async def account_of(token: str, *, hub_url: str | None, deadline_s: float) -> HubAccount:
    """Ask the Hub, by default the public one.

    Raises `AccessDenied` when it refuses the token, `ReadinessUntold` when it says nothing. The Hub's client is
    synchronous, so it is asked in a thread. No error holds the token.
    """
    from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
    from huggingface_hub.errors import HfHubHTTPError  # 0.5 s

    try:
        told = await asyncio.wait_for(asyncio.to_thread(_asked, token, hub_url), deadline_s)
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in REFUSED:
            raise AccessDenied(f"the Hub answered HTTP {status}: it does not take this token") from None
        raise ReadinessUntold(f"the Hub answered HTTP {status}") from None
    except (TimeoutError, HubHTTPError) as error:
        raise ReadinessUntold(f"the Hub: {type(error).__name__}") from None
    return HubAccount(name=clean(str(told.get("name", "?"))), role=clean(_role(told)))


def _asked(token: str, hub_url: str | None) -> dict[str, Any]:
    from huggingface_hub import HfApi  # 0.5 s

    return cast("dict[str, Any]", HfApi(endpoint=hub_url).whoami(token=token))  # pyright: ignore[reportUnknownMemberType] - typed as a bare dict


def _role(told: dict[str, Any]) -> str:
    held = cast("dict[str, Any]", told.get("auth") or {})
    known = cast("dict[str, Any]", held.get("accessToken") or {})
    return str(known.get("role") or "unknown")
