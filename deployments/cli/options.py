"""The options that many commands have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

_COMMIT: Final = re.compile(r"(?=.{1,200}\Z)[A-Za-z0-9][A-Za-z0-9_@:+-]*(?:\.[A-Za-z0-9_@:+-]+)*", re.ASCII)
"""As `monitors.records.base.Identifier`, which --help can do without."""
DEFAULT_CONFIG: Final = Path("lookout.toml")

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
FolderOption = Annotated[Path | None, typer.Option("--data-folder", help="instead of the configured data folder")]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="also print the calculation, all metrics and the reasons that did not decide"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
MovedOption = Annotated[
    bool,
    typer.Option(
        "--moved", help="the data folder was moved here and its original is gone: go on with its incidents"
    ),
]
CopyOption = Annotated[
    bool,
    typer.Option(
        "--copy", help="the data folder is a copy and its original remains: send nothing that that one sent"
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="do not go on with a run that was stopped")]


def check_commit(commit: str | None) -> str | None:
    """Return a commit that can stand in a record and a file's name. Raises `typer.BadParameter` for any other."""
    if commit is not None and not _COMMIT.fullmatch(commit):
        raise typer.BadParameter("expected 1 to 200 letters, digits and . _ @ : + -, such as 4f2a91c")
    return commit


CommitOption = Annotated[str | None, typer.Option(help="the deployed commit, if known", callback=check_commit)]
SuiteOption = Annotated[Path | None, typer.Option(help="gold questions, JSON lines; needed with an address")]
AllowProductionOption = Annotated[
    str | None, typer.Option(help="allow a CI run against production; give a reason, which is printed")
]
