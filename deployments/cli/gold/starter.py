"""``lookout gold starter``: write attack cases that fit any application, or a domain pack to edit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from flows.terminal import print_text, write_json
from monitors.errors import ConfigError

_MONITORS = Path(__file__).parents[3] / "monitors"
ADVERSARIAL = _MONITORS / "goldset" / "starter" / "adversarial.jsonl"
EXAMPLE = Path("facts/example-returns.json")
PACK = _MONITORS / "domains" / "general"
MY_PACK = Path("my_domain")


class StarterKind(StrEnum):
    """The kinds of starter files."""

    ADVERSARIAL = "adversarial"
    DOMAIN = "domain"


def starter_command(
    what: Annotated[
        StarterKind,
        typer.Argument(
            help="adversarial: twenty attack questions of severity 3 for any application; domain: a domain pack "
            "with example facts for you to edit"
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="a new file for the questions, or a folder for the pack; default: print the questions, or write "
            "the pack to my_domain",
        ),
    ] = None,
) -> ExitCode:
    """Write starter files: attack questions that every application must decline, or a first domain pack."""
    if what is StarterKind.ADVERSARIAL and out is None:
        write_json(ADVERSARIAL.read_text(encoding="utf-8"))
    elif what is StarterKind.ADVERSARIAL and out is not None:
        _copy_all_files_or_none({out: ADVERSARIAL})
        print_text(
            f"Lookout wrote twenty cases of severity 3 to {out}. To check the cases: lookout gold check {out}"
        )
    else:
        _write_domain_pack(out or MY_PACK)
    return ExitCode.PASS


def _write_domain_pack(folder: Path) -> None:
    copies = {folder / file.name: file for file in sorted(PACK.glob("*.toml"))}
    copies[folder / EXAMPLE] = ADVERSARIAL.parent / EXAMPLE
    _copy_all_files_or_none(copies)
    place = str(folder) if folder.is_absolute() else f"./{folder}"
    print_text("Lookout wrote " + ", ".join(map(str, copies)))
    print_text(
        "Replace the words, fields, questions and facts in these files with yours. In lookout.toml, set domains = "
        f'["{place}"]'
    )
    print_text("Then build the cases:")
    print_text(f"lookout gold build --facts {folder / EXAMPLE.parent} --domain {place} --out suite.jsonl")


def _copy_all_files_or_none(copies: dict[Path, Path]) -> None:
    """Write all files or none. Raises `ConfigError` if one of the files already exists."""
    existing = [str(place) for place in copies if place.exists() or place.is_symlink()]
    if existing:
        raise ConfigError(
            f"nothing was written, because these files already exist: {', '.join(existing)}. Give another path "
            "with --out"
        )
    written: list[Path] = []
    place = Path()
    try:
        for place, source in copies.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8") as file:
                written.append(place)
                file.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        for path in written:
            path.unlink()
        raise ConfigError(f"nothing was written, because {place} cannot be written: {error.strerror}") from error
