"""``lookout site export``: write the pages of the site as static files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.plural import plural


def export_command(
    folder: Annotated[
        Path,
        typer.Argument(help="the folder for the files: a new or empty folder, or the folder of an earlier export"),
    ],
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Write the site as static files with masked personal data, for a static Space or any web server."""
    from deployments.cli.site.serve import build_site_clock_and_user  # slow: imports duckdb and every SDK
    from deployments.site.export import export_site
    from deployments.site.serve import open_site
    from monitors.config.file import load_config

    with (
        show_waiting(f"Writing the pages into {folder}"),
        open_site(load_config(config), build_site_clock_and_user()) as (site, renderer),
    ):
        written = export_site(site, renderer, folder)
    if as_json:
        write_json(written.model_dump_json(indent=2) + "\n")
        return
    print_text(f"Lookout wrote {plural(written.pages, 'page')}. Open {folder / 'index.html'}")
    if written.left_out:
        print_text(
            f"Lookout skipped {plural(written.left_out, 'more page')}, because the number of pages in an export is "
            "limited."
        )
