"""``lookout gold``: build, check, freeze and compare suites. Each command has a file of its own."""

from __future__ import annotations

import typer

from deployments import (
    gold_bite_options,
    gold_build_options,
    gold_check_options,
    gold_freeze_options,
    gold_import_options,
    gold_review_options,
)

app = typer.Typer(help="Build, check, freeze and compare suites of gold questions.", no_args_is_help=True)

gold_build_options.register(app)
gold_bite_options.register(app)
gold_check_options.register(app)
gold_freeze_options.register(app)
gold_import_options.register(app)
gold_review_options.register(app)
