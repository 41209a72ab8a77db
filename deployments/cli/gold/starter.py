"""``lookout gold starter``: cases that fit any application, or a schema with templates for one's own policies."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from flows.terminal import print_text, write_json
from monitors.errors import ConfigError

FILES = Path(__file__).parents[3] / "monitors" / "goldset" / "starter"
ADVERSARIAL = FILES / "adversarial.jsonl"
POLICIES = ("policies.schema.json", "policies.templates.toml", "facts/example-returns.json")
POLICIES_FOLDER = Path("gold")


class StarterKind(StrEnum):
    """The starters that there are."""

    ADVERSARIAL = "adversarial"
    POLICIES = "policies"


def starter_command(
    what: Annotated[
        StarterKind,
        typer.Argument(
            help="adversarial: twenty severity-3 cases for any application; policies: a schema, templates and an "
            "example of facts, to be replaced by your own"
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="a new file, or a folder for policies (gold); adversarial cases are printed without it"
        ),
    ] = None,
) -> ExitCode:
    """Write a starter: attacks that any application must decline, or a first schema with templates."""
    if what is StarterKind.ADVERSARIAL and out is None:
        write_json(ADVERSARIAL.read_text(encoding="utf-8"))
    elif what is StarterKind.ADVERSARIAL and out is not None:
        _write({out: ADVERSARIAL})
        print_text(f"{out}: twenty cases of severity 3. Look at them: lookout gold check {out}")
    else:
        _policies(out or POLICIES_FOLDER)
    return ExitCode.PASS


def _policies(folder: Path) -> None:
    schema, templates, facts = places = [folder / name for name in POLICIES]
    _write(dict(zip(places, (FILES / name for name in POLICIES), strict=True)))
    print_text("Written: " + ", ".join(map(str, places)))
    print_text("Put your own fields, questions and facts there, then make the cases:")
    print_text(
        f"lookout gold build --facts {facts.parent} --schema {schema} --templates {templates} --out suite.jsonl"
    )


def _write(copies: dict[Path, Path]) -> None:
    """Write all of them or none, and never over another file. Raises `ConfigError`."""
    there = [str(place) for place in copies if place.exists() or place.is_symlink()]
    if there:
        raise ConfigError(f"nothing was written, as there is already {', '.join(there)}; name another --out")
    written: list[Path] = []
    place = Path()
    try:
        for place, source in copies.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8") as file:
                written.append(place)
                file.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        for one in written:
            one.unlink()
        raise ConfigError(f"{place}: cannot be written ({error.strerror}); nothing was left there") from error
