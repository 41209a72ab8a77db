"""``lookout gold starter``: write cases that fit any application, or a domain pack to adapt."""

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
    """The starters that there are."""

    ADVERSARIAL = "adversarial"
    DOMAIN = "domain"


def starter_command(
    what: Annotated[
        StarterKind,
        typer.Argument(
            help="adversarial: twenty severity-3 cases for any application; domain: a domain pack with example "
            "facts, for you to edit"
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="a new file, or a folder for the pack (my_domain); without it, adversarial cases are printed",
        ),
    ] = None,
) -> ExitCode:
    """Write a starter: attacks that every application must decline, or a first domain pack."""
    if what is StarterKind.ADVERSARIAL and out is None:
        write_json(ADVERSARIAL.read_text(encoding="utf-8"))
    elif what is StarterKind.ADVERSARIAL and out is not None:
        _copy_files({out: ADVERSARIAL})
        print_text(f"{out}: twenty cases of severity 3. To check them: lookout gold check {out}")
    else:
        _write_domain_pack(out or MY_PACK)
    return ExitCode.PASS


def _write_domain_pack(folder: Path) -> None:
    copies = {folder / file.name: file for file in sorted(PACK.glob("*.toml"))}
    copies[folder / EXAMPLE] = ADVERSARIAL.parent / EXAMPLE
    _copy_files(copies)
    place = str(folder) if folder.is_absolute() else f"./{folder}"
    print_text("Written: " + ", ".join(map(str, copies)))
    print_text(f'Put your own words, fields, questions and facts there; in lookout.toml: domains = ["{place}"]')
    print_text("Make the cases:")
    print_text(f"lookout gold build --facts {folder / EXAMPLE.parent} --domain {place} --out suite.jsonl")


def _copy_files(copies: dict[Path, Path]) -> None:
    """Write all of them or none, and never over another file. Raises `ConfigError`."""
    existing = [str(place) for place in copies if place.exists() or place.is_symlink()]
    if existing:
        raise ConfigError(
            f"nothing was written, because these files already exist: {', '.join(existing)}; give another --out"
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
        raise ConfigError(f"{place}: cannot be written ({error.strerror}); no file was left behind") from error
