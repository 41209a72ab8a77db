"""Where the files of ``lookout init`` go: all or none of them, and never over another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deployments.init_answers import Answers
from deployments.init_texts import SUITE_NAME, WEBHOOKS_NAME, texts
from monitors.config import FILE_NAME
from monitors.errors import ConfigError


def places(config_path: Path) -> Mapping[str, Path]:
    """Where each of `texts` goes: all beside the configuration."""
    folder = config_path.parent
    return {
        FILE_NAME: config_path,
        SUITE_NAME: folder / SUITE_NAME,
        WEBHOOKS_NAME: folder / WEBHOOKS_NAME,
    }


def refuse_existing(config_path: Path) -> None:
    """Raise `ConfigError` that names every file which is there already."""
    there = [str(path) for path in places(config_path).values() if path.exists() or path.is_symlink()]
    if there:
        raise ConfigError(
            f"nothing was written, as there is already {', '.join(there)}; --force moves aside what is there, "
            "and --config writes into another folder"
        )


def write(config_path: Path, answers: Answers, *, force: bool) -> tuple[Path, ...]:
    """Write all three, or none; what was moved aside, under its new names.

    Nothing is ever overwritten: without ``force`` what is there is refused, with it it gets another name. Raises
    `ConfigError`.
    """
    if not force:
        refuse_existing(config_path)
    content = texts(answers)
    moved: dict[Path, Path] = {}
    written: list[Path] = []
    at = config_path.parent
    try:
        at.mkdir(parents=True, exist_ok=True)
        for key, at in places(config_path).items():
            if force and (at.exists() or at.is_symlink()):
                moved[at] = at.rename(_free_name(at))
            with at.open("x", encoding="utf-8") as file:
                written.append(at)
                file.write(content[key])
    except OSError as error:
        for path in written:
            path.unlink()
        for path, aside in moved.items():
            aside.rename(path)
        raise ConfigError(f"{at}: cannot be written ({error.strerror}); nothing was changed") from error
    return tuple(moved.values())


def _free_name(path: Path) -> Path:
    """``lookout.toml.old``, or the first of ``.old-2``, ``.old-3``, … that nothing has."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.old" + (f"-{number}" if number > 1 else ""))
        if not (aside.exists() or aside.is_symlink()):
            return aside
        number += 1
