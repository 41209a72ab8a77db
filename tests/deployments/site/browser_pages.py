"""Opens pages of the site in a real browser, at the tested widths and colours, and checks their accessibility."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

SYSTEM_CHROMIUM = Path("/usr/bin/chromium-headless-shell")
CHROMIUM = os.environ.get("CHROMIUM_PATH") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)
OWN_RULES = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")
AXE_OPTIONS = {
    "resultTypes": ["violations", "incomplete"],
    "preload": False,  # it would request style sheets, which the pages' policy refuses
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"label-content-name-mismatch": {"enabled": True}},
}
PHONE, DESKTOP, NARROW = 390, 1280, 320
LAYOUTS = [(width, dark) for width in (NARROW, PHONE, DESKTOP) for dark in (False, True)]
AXE_LAYOUTS = [(NARROW, True), (DESKTOP, False)]
"""The layouts that are also checked with axe-core, which takes twenty times as long as our own rules."""


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
    """Open a page.

    Yield the page and a list of errors, dialogs and requests to other hosts, which grows as these events occur.
    """
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


async def find_broken_rules(page: Page, *, axe: bool = True) -> list[str]:
    """Find the accessibility rules of axe-core, and our own, that ``page`` breaks in its current layout.

    Findings that axe-core leaves to human review count as broken, except contrast, because axe-core cannot measure
    the contrast of a symbol.
    """
    broken = list[str](await page.evaluate(OWN_RULES))
    if axe:
        response = (await Axe().run(page, options=AXE_OPTIONS)).response
        doubts = [rule for rule in response["incomplete"] if rule["id"] != "color-contrast"]
        broken += [
            f"{rule['id']}: {node['html'][:120]}"
            for rule in (*response["violations"], *doubts)
            for node in rule["nodes"]
        ]
    return broken


async def find_broken_rules_everywhere(page: Page) -> list[str]:
    """Find the accessibility rules that ``page`` breaks, in light and dark colours and at every width.

    The page changes its layout without loading again, which takes a twentieth of the time.
    """
    broken: list[str] = []
    for width, dark in LAYOUTS:
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme="dark" if dark else "light")
        rules = await find_broken_rules(page, axe=(width, dark) in AXE_LAYOUTS)
        broken += [f"{width}, {'dark' if dark else 'light'}: {rule}" for rule in rules]
    return broken
