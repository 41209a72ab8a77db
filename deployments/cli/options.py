"""The options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

DEFAULT_CONFIG: Final = Path("lookout.toml")

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
FolderOption = Annotated[Path | None, typer.Option("--data-folder", help="instead of the configuration's")]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="also print the calculation, all metrics and the reasons that did not decide"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="do not go on with a run that was stopped")]
CommitOption = Annotated[str | None, typer.Option(help="the deployed commit, when it is known")]
SuiteOption = Annotated[Path | None, typer.Option(help="gold questions, JSON lines; needed with an address")]
AllowProductionOption = Annotated[
    str | None, typer.Option(help="allow a CI run against production; give a reason, which is printed")
]
