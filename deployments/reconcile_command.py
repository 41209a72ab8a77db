"""``lookout reconcile``: the guard's log, the nights and people's labels, and what nobody found."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from rich.console import Console

from deployments.exit_codes import ExitCode
from deployments.reconcile_text import reconciliation_lines
from flows.reconciliation import reconciled
from flows.wiring import open_store, utc_now
from monitors.config import load_config
from monitors.errors import ConfigError, WarehouseBusy
from warehouse.store import FILE_NAME, Store

WAIT_S: Final = 10.0


def reconcile_command(config_path: Path, target: str | None, *, days: int, as_json: bool) -> ExitCode:
    """Print what the last ``days`` days of ``target`` (all targets without one) came to. Exit code 0.

    Unknown figures say why; they are no failure. ``as_json`` prints one line of JSON for each target. Raises
    `ConfigError` for a target that is not configured, and where there is no warehouse yet.
    """
    config = load_config(config_path)
    names = tuple(config.targets) if target is None else (target,)
    for name in names:
        config.target(name)
    if not (config.data_folder / FILE_NAME).exists():
        raise ConfigError(
            f"{config.data_folder}: no warehouse here yet; following a log or grading a night makes one"
        )
    store, until = open_store(config), utc_now()
    _load(store)
    for name in names:
        found = reconciled(store, name, until - timedelta(days=days), until, wait_s=WAIT_S)
        if as_json:
            sys.stdout.write(found.model_dump_json() + "\n")
        else:
            Console().print("\n".join(reconciliation_lines(found)), highlight=False, markup=False)
    return ExitCode.PASS


def _load(store: Store) -> None:
    """Take in what is pending; what cannot be had now is missing from the figures, and that is said."""
    try:
        store.load_pending(WAIT_S)
    except WarehouseBusy:
        sys.stderr.write("lookout: the warehouse is busy; the newest rows may be missing from these figures\n")
