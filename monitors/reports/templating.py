"""The templates and the style sheet of every page: the report's file, and the site that shows the same things."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from monitors.plural import plural
from monitors.reports.format import (
    VERDICT_MARKS,
    elapsed,
    format_experiment,
    moment,
    percent,
    quantity,
    score,
    seconds,
    zoned_moment,
)
from monitors.reports.invisible import show_invisible

_PACKAGE: Final = "monitors.reports"
_FILTERS: Final[dict[str, Callable[..., str | tuple[str, ...]]]] = {
    "elapsed": elapsed,
    "format_experiment": format_experiment,
    "moment": moment,
    "percent": percent,
    "plural": plural,
    "quantity": quantity,
    "score": score,
    "seconds": seconds,
    "shown": show_invisible,
    "zoned_moment": zoned_moment,
}


def template_environment(*packages: str) -> Environment:
    """Templates of ``packages``, then the report's own. What goes in is escaped; an unknown name is an error."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, _PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)  # pyright: ignore[reportUnknownMemberType] - untyped in jinja2
    environment.globals.update(verdict_marks=VERDICT_MARKS)  # pyright: ignore[reportUnknownMemberType] - the same
    return environment


@cache
def style_sheet() -> str:
    """The style sheet that the report and the site share."""
    return files(_PACKAGE).joinpath("templates", "report.css").read_text(encoding="utf-8")
