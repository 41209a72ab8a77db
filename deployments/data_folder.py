"""Which data folder a command is about, and its warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from monitors.config import load_config
from monitors.errors import ConfigError

if TYPE_CHECKING:
    from warehouse.store import Store  # duckdb, which --help can do without

DEMO_FOLDER = Path(".lookout-demo")
DEFAULT_FOLDER = Path(".lookout")


def data_folder_of(config: Path, given: Path | None) -> Path:
    """The folder that was given, else the configuration's, else the usual one, else the demo's."""
    if given is not None:
        return given
    if config.exists():
        return load_config(config).data_folder
    for folder in (DEFAULT_FOLDER, DEMO_FOLDER):
        if folder.exists():
            return folder
    raise ConfigError(f"there is no {config} and no {DEFAULT_FOLDER} here; name one with --config or --data-folder")


def store_of(config: Path, given: Path | None) -> Store:
    """The warehouse of `data_folder_of`, with its journal where the configuration of that folder has it.

    A folder that is not the configuration's has its journal beside it: nothing says that it is elsewhere.
    """
    from flows.wiring import open_store, store_in  # duckdb

    folder = data_folder_of(config, given)
    configured = load_config(config) if config.exists() else None
    if configured is not None and configured.data_folder.resolve() == folder.resolve():
        return open_store(configured)
    return store_in(folder)
