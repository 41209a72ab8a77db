"""Loads the templates and the style sheet of the report and the site."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from monitors.plural import plural
from monitors.reports.format import (
    VERDICT_MARKS,
    format_elapsed,
    format_experiment_problems,
    format_moment,
    format_percent,
    format_quantity,
    format_score,
    format_seconds,
    format_zoned_moment,
)
from monitors.reports.invisible import replace_invisible_by_code_points

_PACKAGE: Final = "monitors.reports"
_FILTERS: Final[dict[str, Callable[..., str | tuple[str, ...]]]] = {
    "elapsed": format_elapsed,
    "format_experiment_problems": format_experiment_problems,
    "moment": format_moment,
    "percent": format_percent,
    "plural": plural,
    "quantity": format_quantity,
    "score": format_score,
    "seconds": format_seconds,
    "shown": replace_invisible_by_code_points,
    "zoned_moment": format_zoned_moment,
}


def build_template_environment(*packages: str) -> Environment:
    """Build the environment for the templates in the Python packages ``packages``.

    The environment escapes values and raises errors for unknown names.
    """
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


def render_document(name: str, **values: object) -> Iterator[str]:
    """Yield a complete page piece by piece. Its template extends ``document.html.j2``.

    All values are escaped. The page's security policy allows only its own style sheet and embedded pictures.
    """
    style = load_style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    # The style sheet is Lookout's own file, so it is safe without escaping.
    return _load_templates().get_template(name).generate(**values, style=Markup(style), policy=policy)  # noqa: S704 - see above


@cache
def _load_templates() -> Environment:
    return build_template_environment()


@cache
def load_style_sheet() -> str:
    """Load the style sheet that the report and the site share."""
    return files(_PACKAGE).joinpath("templates", "report.css").read_text(encoding="utf-8")
