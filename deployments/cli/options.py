"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

_COMMIT: Final = re.compile(r"(?=.{1,200}\Z)[A-Za-z0-9][A-Za-z0-9_@:+-]*(?:\.[A-Za-z0-9_@:+-]+)*", re.ASCII)
"""The pattern of `monitors.records.base.Identifier`.

The pattern is copied, because an import would slow down --help.
"""
DEFAULT_CONFIG: Final = Path("lookout.toml")

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
FolderOption = Annotated[
    Path | None, typer.Option("--data-folder", help="the data folder; default: the configured data folder")
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="also print the calculation, all metrics and all reasons"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
MovedOption = Annotated[
    bool,
    typer.Option(
        "--moved", help="the data folder was moved here and the original is gone. Lookout continues its incidents"
    ),
]
CopyOption = Annotated[
    bool,
    typer.Option(
        "--copy",
        help="the data folder is a copy and the original is still in use. The copy does not send the original's "
        "alerts again",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="start a new run instead of continuing a stopped run")]


def validate_commit(commit: str | None) -> str | None:
    """Return the commit if it is valid in records and file names. Otherwise raise `typer.BadParameter`."""
    if commit is not None and not _COMMIT.fullmatch(commit):
        raise typer.BadParameter(
            "expected 1 to 200 characters: letters, digits and . _ @ : + -, for example 4f2a91c"
        )
    return commit


CommitOption = Annotated[str | None, typer.Option(help="the deployed commit, if known", callback=validate_commit)]
SuiteOption = Annotated[
    Path | None, typer.Option(help="the file with the suite (JSON Lines); required if the target is an address")
]
AllowProductionOption = Annotated[
    str | None,
    typer.Option(help="allow a CI run against production. The value is the reason, which Lookout prints"),
]
