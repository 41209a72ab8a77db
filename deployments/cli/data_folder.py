"""Find a command's data folder and open its warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.terminal import write_note
from flows.waiting import show_waiting
from monitors.errors import ConfigError, WarehouseError

if TYPE_CHECKING:
    from monitors.config.file import Config  # every model of the configuration
    from warehouse.database.store import Store  # duckdb, which --help can do without

DEMO_FOLDER = Path(".lookout-demo")
DEFAULT_FOLDER = Path(".lookout")
LOAD_WAIT_S: Final = 10.0
"""How long a command that asks the warehouse waits to have it for loading."""


def find_data_folder(config: Path, data_folder: Path | None) -> Path:
    """Return the given folder, else the configuration's, else the default one, else the demo's."""
    if data_folder is not None:
        return data_folder
    if config.exists():
        from monitors.config.file import load_config  # every model of the configuration

        return load_config(config).data_folder
    for folder in (DEFAULT_FOLDER, DEMO_FOLDER):
        if folder.exists():
            return folder
    raise ConfigError(
        f"there is no {config} and no {DEFAULT_FOLDER} here. `lookout verify` or `lookout demo` creates a data "
        "folder; for another place give --config or --data-folder"
    )


def settle_folder(data_folder: Path, configured: Config | None, *, moved: bool, copied: bool) -> None:
    """Claim the data folder for a command that sends. Raises `ConfigError` for a copy.

    See `claim_or_separate_data_folder`.
    """
    from flows.clock import utc_now
    from flows.folder_identity import claim_or_separate_data_folder  # duckdb
    from flows.runtime.secrets import generate_nonce

    journal_at = configured.warehouse.journal if configured is not None else None
    claim_or_separate_data_folder(
        data_folder, journal_at, new_id=generate_nonce(), at=utc_now(), moved=moved, copied=copied
    )


def open_warehouse(config: Path, data_folder: Path | None) -> Store:
    """Open the warehouse of `find_data_folder`, with its journal where that folder's configuration puts it.

    A folder that is not the configuration's has its journal inside.
    """
    from flows.data_folder import open_store, open_store_in  # duckdb
    from monitors.config.file import load_config  # as above

    folder = find_data_folder(config, data_folder)
    configured = load_config(config) if config.exists() else None
    if configured is not None and configured.data_folder.resolve() == folder.resolve():
        return open_store(configured)
    return open_store_in(folder)


def load_pending(store: Store) -> Store:
    """Load what runs have written since the last load, and return the warehouse; print what cannot be loaded.

    Raises `ConfigError` where nothing was ever written.
    """
    from warehouse.database.store import DATABASE_FILE, JOURNAL_FOLDER  # duckdb

    folder = store.database.file.parent
    if not (folder / DATABASE_FILE).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder} has no warehouse yet; `lookout verify` creates one")
    try:
        with show_waiting("Loading results of runs"):
            report = store.load_pending(LOAD_WAIT_S)
    except WarehouseError as error:
        write_note(
            f"lookout: could not load the newest results of runs ({error}); the newest rows may be missing\n"
        )
        return store
    for error_line in report.errors():
        write_note(f"lookout: not loaded: {error_line}\n")
    return store
