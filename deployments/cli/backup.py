"""``lookout backup`` writes a data folder into one file, and ``lookout restore`` restores the folder from it."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.data_folder import DEFAULT_FOLDER, claim_data_folder, find_data_folder, open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, FolderOption, JsonOption, MovedOption
from deployments.cli.warehouse import WaitOption, iterate_rebuild_lines
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.errors import ConfigError
from monitors.plural import plural

if TYPE_CHECKING:
    from warehouse.backup import BackupManifest  # slow: imports duckdb


def backup_command(
    file: Annotated[
        Path | None,
        typer.Argument(help="the backup file to write; default: lookout-backup-TIME.tar.gz in this folder"),
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Write a backup of the data folder into one file. Runs can continue during the backup.

    The file contains all stored data, including personal data, and the keys of login sessions and of the site. Only
    the owner of the file can read it. The file does not contain lookout.toml, suites or keys from the environment.
    """
    from flows.clock import utc_now  # slow: imports duckdb
    from warehouse.backup import write_backup  # slow: imports duckdb

    folder = find_data_folder(config, data_folder)
    if not folder.is_dir():
        raise ConfigError(
            f"the data folder {folder} does not exist. Run `lookout verify` to create it, or check --data-folder"
        )
    file = file or Path(f"lookout-backup-{utc_now():%Y%m%dT%H%M%SZ}.tar.gz")
    store = open_warehouse(config, data_folder)
    with show_waiting("Writing the backup"):
        manifest = write_backup(store, file, version=version("lookout-monitor"), wait_s=wait_s)
    size_bytes = file.stat().st_size
    if as_json:
        _print_json(manifest, file=str(file), bytes=size_bytes)
        return
    print_text(f"Wrote {file}: {plural(len(manifest.files), 'file')} of {folder}, {size_bytes / 1e6:.1f} MB")
    if not manifest.has_journal:
        print_text(
            "The journal is in an object store, so this file does not contain it. Back up that store as well."
        )
    print_text(
        "Also back up lookout.toml, the suites and the keys in the environment. This file does not contain them."
    )


def restore_command(
    file: Annotated[Path, typer.Argument(help="a backup file from `lookout backup`")],
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Verify a backup and restore it into a new or empty data folder. Then rebuild the warehouse.

    If the file or the folder has a fault, nothing is changed. If the journal in the backup is incomplete, the
    folder is restored, the output names what is missing, and the exit code is 4.
    """
    from flows.data_folder import open_store_in  # slow: imports duckdb
    from flows.folder_identity import require_valid_copy_options  # slow: imports duckdb
    from monitors.config.file import load_config  # slow: imports all configuration models
    from warehouse.backup import extract_backup_atomically, read_verified_manifest  # slow: imports duckdb
    from warehouse.database.rebuild import rebuild_database  # slow: imports duckdb
    from warehouse.folder_identity import IDENTITY_FILE

    configured = load_config(config) if config.exists() else None
    folder = (data_folder or (configured.data_folder if configured else DEFAULT_FOLDER)).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f"{folder} is not an empty folder, and a restore never overwrites files. Move it away, or give another "
            "--data-folder"
        )
    with show_waiting("Verifying the backup"):
        manifest = read_verified_manifest(file, version=version("lookout-monitor"))
    if IDENTITY_FILE in manifest.files and not (moved or copy):
        raise ConfigError(
            f"{file} is a backup of a data folder. If the original folder is gone, add --moved, and the restored "
            "folder continues its incidents. If the original is still in use, add --copy, and the restored folder "
            "does not send its alerts again"
        )
    journal_at = configured.warehouse.journal if configured is not None else None
    if manifest.has_journal != (journal_at is None):
        place = (
            "inside the data folder. Remove warehouse.journal"
            if manifest.has_journal
            else "in an object store. Set warehouse.journal to the address of that store"
        )
        raise ConfigError(f"{config} does not match this backup, because the journal of the backup is {place}")
    require_valid_copy_options(journal_at, moved=moved, copied=copy)
    with show_waiting("Restoring the data folder"), extract_backup_atomically(file, manifest, folder) as beside:
        report = rebuild_database(open_store_in(beside, journal_at), wait_s=0)
    claim_data_folder(folder, configured, moved=moved, copied=copy)
    if as_json:
        _print_json(manifest, data_folder=str(folder), whole=report.has_all_data)
    else:
        made = f"from the backup of {manifest.made_at:%Y-%m-%d %H:%M} UTC by Lookout {manifest.lookout}"
        print_text(f"Restored {plural(len(manifest.files), 'file')} to {folder} {made}")
        for line in iterate_rebuild_lines(report):
            print_text(line)
        print_text("Next: `lookout doctor` checks keys, login sessions and this machine. Then run `lookout up`.")
    return ExitCode.PASS if report.has_all_data else ExitCode.MONITOR


def _print_json(manifest: BackupManifest, **figures: str | int) -> None:
    head = manifest.model_dump(mode="json", exclude={"files"})
    write_json(json.dumps({**figures, "files": len(manifest.files), **head}, indent=2) + "\n")
