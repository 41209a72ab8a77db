"""Pages of the site in a real browser: how they are opened, and the widths and colours that they are looked at in."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page

SYSTEM_CHROMIUM = Path("/usr/bin/chromium-headless-shell")
CHROMIUM = os.environ.get("CHROMIUM_PATH") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)
RULES = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")
PHONE, DESKTOP, NARROW = 390, 1280, 320
LAYOUTS = [(width, dark) for width in (NARROW, PHONE, DESKTOP) for dark in (False, True)]


@asynccontextmanager
async def opened(
    chromium: Browser,
    address: str,
    *,
    width: int = DESKTOP,
    dark: bool = False,
    script: bool = True,
    zone: str = "UTC",
    without_policy: bool = False,
) -> AsyncIterator[tuple[Page, list[str]]]:
    """The page, and a growing list of all that went wrong or elsewhere."""
    context = await chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        timezone_id=zone,
        locale="en-GB",
        bypass_csp=without_policy,
    )
    page = await context.new_page()
    heard: list[str] = []
    host = "/".join(address.split("/")[:3])
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    page.on("popup", lambda _: heard.append("popup"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((host, "data:")) else heard.append(f"asked {request.url}"),
    )
    await page.goto(address)
    yield page, heard
    await context.close()


async def broken_rules(page: Page) -> list[str]:
    """Return the accessibility rules that ``page`` breaks, in light and dark and at every width.

    The page is laid out again and not loaded again, which costs a twentieth.
    """
    broken: list[str] = []
    for width, dark in LAYOUTS:
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme="dark" if dark else "light")
        broken += [f"{width}, {'dark' if dark else 'light'}: {line}" for line in await page.evaluate(RULES)]
    return broken
