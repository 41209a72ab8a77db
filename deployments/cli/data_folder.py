"""Which data folder a command is about, and its warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.terminal import write_note
from flows.waiting import waiting
from monitors.errors import ConfigError, WarehouseError

if TYPE_CHECKING:
    from warehouse.database.store import Store  # duckdb, which --help can do without

DEMO_FOLDER = Path(".lookout-demo")
DEFAULT_FOLDER = Path(".lookout")
LOAD_WAIT_S: Final = 10.0
"""How long a command that asks the warehouse waits to have it for loading."""


def data_folder_of(config: Path, given: Path | None) -> Path:
    """The folder that was given, else the configuration's, else the usual one, else the demo's."""
    if given is not None:
        return given
    if config.exists():
        from monitors.config.file import load_config  # every model of the configuration

        return load_config(config).data_folder
    for folder in (DEFAULT_FOLDER, DEMO_FOLDER):
        if folder.exists():
            return folder
    raise ConfigError(
        f"there is no {config} and no {DEFAULT_FOLDER} here: `lookout verify` or `lookout demo` makes one, "
        "--config or --data-folder names one elsewhere"
    )


def store_of(config: Path, given: Path | None) -> Store:
    """The warehouse of `data_folder_of`, with its journal where the configuration of that folder puts it.

    A folder that is not the configuration's has its journal inside: nothing names another place.
    """
    from flows.data_folder import open_store, store_in  # duckdb
    from monitors.config.file import load_config  # as above

    folder = data_folder_of(config, given)
    configured = load_config(config) if config.exists() else None
    if configured is not None and configured.data_folder.resolve() == folder.resolve():
        return open_store(configured)
    return store_in(folder)


def loaded(store: Store) -> Store:
    """The warehouse with what runs have written since it was last loaded; it says what cannot be loaded now.

    Raises `ConfigError` where nothing was ever written.
    """
    from warehouse.database.store import FILE_NAME, JOURNAL_FOLDER  # duckdb

    folder = store.database.file.parent
    if not (folder / FILE_NAME).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; `lookout verify` makes one")
    try:
        with waiting("Loading what runs wrote"):
            report = store.load_pending(LOAD_WAIT_S)
    except WarehouseError as error:
        write_note(f"lookout: what runs wrote last could not be loaded ({error}); the newest rows may be missing\n")
        return store
    for trouble in report.errors():
        write_note(f"lookout: not loaded: {trouble}\n")
    return store
