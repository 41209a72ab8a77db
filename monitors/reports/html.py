"""``report.html``: one file that asks nobody for anything, opens from disk, and runs no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from monitors.reports.page_view import Page
from monitors.reports.visible import show_invisible
from monitors.reports.wording import VERDICT_MARKS, elapsed, moment, percent, plural, quantity, score, seconds

_PACKAGE: Final = "monitors.reports"
_FILTERS: Final[dict[str, Callable[..., str]]] = {
    "elapsed": elapsed,
    "moment": moment,
    "percent": percent,
    "plural": plural,
    "quantity": quantity,
    "score": score,
    "seconds": seconds,
    "shown": show_invisible,
}


def html_report(page: Page) -> Iterator[str]:
    """The page in pieces.

    Everything is escaped by the template engine. Beside that a policy in the page itself allows its one style sheet
    (by its hash) and embedded pictures, and nothing else: no script, no request, no form, no frame.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    template = _environment().get_template("report.html.j2")
    # The style sheet is our own file, not a value.
    return template.generate(page=page, report=page.report, style=Markup(style), policy=policy)  # noqa: S704 - see above


@cache
def _style() -> str:
    return files(_PACKAGE).joinpath("templates", "report.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)  # pyright: ignore[reportUnknownMemberType] - untyped in jinja2
    environment.globals.update(verdict_marks=VERDICT_MARKS)  # pyright: ignore[reportUnknownMemberType] - the same
    return environment
