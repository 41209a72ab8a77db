"""Back up a data folder into one file, and restore it. Runs can write to the folder during a backup.

A backup is a tar.gz file with the files of the data folder that Lookout cannot create again, and a manifest with
the SHA-256 of each file. Usually, the backup does not contain the warehouse file, because this file can be rebuilt
from the journal. The backup contains the warehouse file only if that file has rows that are no longer in the
journal.

Runs never wait for a backup. The order in which files are read makes the backup consistent:

- All other files are read before the journal, because the journal refers to them.
- Segments are read before archives, because a segment is deleted only after its archive is complete.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from pydantic import Field, ValidationError

from monitors.errors import ConfigError, SchemaTooNew, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.records.base import Record, Sha256, UtcTime
from monitors.storage import (
    OWNER_ONLY_MODE,
    build_unwritable_error,
    make_private_folder,
    move,
    open_without_links,
)
from warehouse.database.database import build_wal_path
from warehouse.database.snapshot import SNAPSHOT_FOLDER
from warehouse.database.stage import AGED, ARCHIVE_FOLDER, MANIFEST, PARQUET, ArchiveManifest
from warehouse.database.store import DATABASE_FILE, JOURNAL_FOLDER, Store
from warehouse.journal.journal import SUITES
from warehouse.journal.segments import SET_ASIDE, SUFFIX, LocalSegments, decode_segment, parse_segment_id, sync_file

MANIFEST_NAME: Final = "lookout-backup.json"
FORMAT_VERSION: Final = 1
MAX_MANIFEST_BYTES: Final = 256_000_000
"""Maximum size of a manifest in bytes, enough for two million files. A larger manifest is refused."""
BLOCK_BYTES: Final = 1_000_000
"""Number of bytes that are read at a time while a backup is verified."""

_LEFT_OUT_FOLDERS: Final = ("prefect", SNAPSHOT_FOLDER)
"""Folders that are not part of a backup: Prefect's own history, and the copies of the warehouse for the site."""
_LOCK_SUFFIXES: Final = (".lock", ".turn", ".alive")
_DATABASE_NAMES: Final = (DATABASE_FILE, f"{DATABASE_FILE}.wal")
_DAMAGE: Final = (OSError, EOFError, tarfile.TarError, zlib.error, ValueError, RecursionError)
"""Errors that gzip, tarfile and json raise for a damaged file."""


class BackupManifest(Record):
    """The manifest of a backup. The manifest maps the path of each file in the data folder to the hash of the file.

    ``lookout`` is the version of Lookout that made the backup. ``has_journal`` is false if the journal is in an
    object store.
    """

    lookout_backup: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    lookout: str
    made_at: UtcTime
    has_journal: bool
    files: Mapping[str, Sha256]


_StoredFile = tuple[str, bytes, float]
"""A file's path in the data folder, its content, and the time of its last change in seconds since 1970."""


def write_backup(store: Store, file: Path, *, version: str, wait_s: float) -> BackupManifest:
    """Back up the store's data folder into the new file ``file``, and return the manifest.

    Only the owner can read the file. The file is written atomically. ``version`` is the version of Lookout. Raises
    `ConfigError` if the file exists or would be inside the data folder, `WarehouseBusy` if the warehouse file stays
    locked for ``wait_s`` seconds, `WarehouseDamaged` if a file cannot be read, and `WarehouseUnwritable`.
    """
    folder = store.database.file.parent
    if file.exists():
        raise ConfigError(f"{file} already exists; specify the name of a new file")
    if file.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{file} is inside the data folder {folder}; write the backup to another folder or disk")
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    made_at, hashes = store.clock(), dict[str, str]()
    try:
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with (
            os.fdopen(open_without_links(beside, new, OWNER_ONLY_MODE), "wb") as target,
            tarfile.open(fileobj=target, mode="w:gz") as archive,
        ):
            for name, content, changed_at in _iterate_backup_files(store, file.parent, made_at, wait_s):
                hashes[name] = hashlib.sha256(content).hexdigest()
                _add_archive_member(archive, name, content, changed_at)
            manifest = BackupManifest(
                lookout=version,
                made_at=made_at,
                has_journal=isinstance(store.journal.segments, LocalSegments),
                files=hashes,
            )
            text = manifest.model_dump_json(indent=1).encode()
            _add_archive_member(archive, MANIFEST_NAME, text, made_at.timestamp())
        sync_file(beside)
        move(beside, file)
    except OSError as error:
        raise build_unwritable_error(file, error) from error
    finally:
        beside.unlink(missing_ok=True)
    return manifest


def _add_archive_member(archive: tarfile.TarFile, name: str, content: bytes, changed_at: float) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), OWNER_ONLY_MODE, changed_at
    archive.addfile(member, io.BytesIO(content))


def _iterate_backup_files(store: Store, scratch: Path, made_at: datetime, wait_s: float) -> Iterator[_StoredFile]:
    """Yield every file of a backup, in a consistent order.

    ``scratch`` is a folder with space for temporary files.
    """
    yield from _read_files_outside_journal(store.database.file.parent)
    if not isinstance(store.journal.segments, LocalSegments):
        return
    loaded = _list_loaded_segment_ids(store, wait_s)
    intact: set[str] = set()
    for name, content, segment_ids in _iterate_journal_files(store):
        intact |= segment_ids
        yield f"{JOURNAL_FOLDER}/{name}", content, made_at.timestamp()
    if loaded - intact:  # the journal lost records that the warehouse file still has
        with tempfile.TemporaryDirectory(dir=scratch, prefix=".lookout-backup-") as temporary:
            copy = Path(temporary) / DATABASE_FILE
            store.database.copy_and_return_version(copy, wait_s)
            for path in (copy, build_wal_path(copy)):
                if path.exists():
                    yield path.name, path.read_bytes(), made_at.timestamp()


def _read_files_outside_journal(folder: Path) -> Iterator[_StoredFile]:
    """Yield the files of ``folder`` that a backup includes, except the files of the journal.

    A file that is removed during the backup is skipped.
    """
    for parent, folders, files in os.walk(folder, onerror=_raise_unless_missing):
        folders[:] = sorted(name for name in folders if not (Path(parent) == folder and name == JOURNAL_FOLDER))
        for path in (Path(parent) / name for name in sorted(files)):
            name = path.relative_to(folder).as_posix()
            if not _is_backed_up(name) or path.is_symlink() or not path.is_file():
                continue
            try:
                content, changed_at = path.read_bytes(), path.stat().st_mtime
            except OSError as error:
                _raise_unless_missing(error)
                continue
            if path.suffix == SUFFIX:  # another process may have written only half of the last line
                content = content[: content.rfind(b"\n") + 1]
            yield name, content, changed_at


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise WarehouseDamaged(
            f"cannot read {error.filename}: {error.strerror}; run the backup as the user that runs Lookout"
        ) from error


def _is_backed_up(name: str) -> bool:
    """Return whether a backup includes this file of the data folder.

    Locks, temporary files, and files that Lookout can create again are not included.
    """
    path = PurePosixPath(name)
    return (
        path.parts[0] not in _LEFT_OUT_FOLDERS
        and not path.parts[0].startswith(DATABASE_FILE)
        and not any(piece.startswith(".") for piece in path.parts)
        and path.suffix not in _LOCK_SUFFIXES
    )


def _list_loaded_segment_ids(store: Store, wait_s: float) -> frozenset[str]:
    """List the ids of the segments in the warehouse file. If the file cannot be read, the list is empty."""
    if not store.database.file.exists():
        return frozenset()
    try:
        with store.database.open_for_reading(wait_s) as connection:
            return frozenset(str(row[0]) for row in connection.execute("select id from segments").fetchall())
    except WarehouseBusy:
        raise
    except WarehouseError:  # no rows can be copied from a damaged file
        return frozenset()


def _iterate_journal_files(store: Store) -> Iterator[tuple[str, bytes, frozenset[str]]]:
    """Yield the name and content of each file of the journal, and the ids of the intact segments in the file."""
    segments = store.journal.segments
    newest = max(
        (parse_segment_id(name) for name in segments.list_segments() if not _is_in_suite_folder(name)), default=""
    )
    for name in segments.list_segments():
        if _is_in_suite_folder(name) or parse_segment_id(name) <= newest:
            try:
                content = segments.read(name)
            except FileNotFoundError:
                continue  # archived or set aside since it was listed: the loops below find it
            yield name, content, _find_id_if_intact(name, content)
    done: set[str] = set()
    while new := [name for name in _list_archive_files(store) if name not in done]:
        for name in new:
            done.add(name)
            try:
                content = segments.read(name)
            except FileNotFoundError:
                continue  # replaced since it was listed: the next listing has the new file
            yield name, content, _list_intact_archived_ids(store, name, content)
    for name in segments.list_files(SET_ASIDE, ""):
        yield name, segments.read(name), frozenset()


def _is_in_suite_folder(name: str) -> bool:
    return name.startswith(f"{SUITES}/")


def _list_archive_files(store: Store) -> list[str]:
    """Return the names of all archive files. Manifests are listed before Parquet files.

    The Parquet file of an archive is written before its manifest. Therefore, the result contains the Parquet file
    of each manifest in the result.
    """
    return [
        name
        for suffix in (MANIFEST, AGED, PARQUET)
        for name in store.journal.segments.list_files(ARCHIVE_FOLDER, suffix)
    ]


def _find_id_if_intact(name: str, content: bytes) -> frozenset[str]:
    folder, segment_id = name.partition("/")[0], parse_segment_id(name)
    run_id = None if folder.startswith("_") else folder
    try:
        decode_segment(content, where=name, segment_id=segment_id, run_id=run_id)
    except WarehouseDamaged:
        return frozenset()
    except SchemaTooNew:
        pass
    return frozenset((segment_id,))


def _list_intact_archived_ids(store: Store, name: str, content: bytes) -> frozenset[str]:
    """Return the segment ids in the manifest ``name``, if its archive is intact.

    The result is empty if the archive's Parquet file is damaged, or if ``name`` is not the name of a manifest.
    """
    try:
        manifest = ArchiveManifest.model_validate_json(content) if not name.endswith(PARQUET) else None
        parquet = store.journal.segments.read(manifest.parquet) if manifest else b""
    except (ValidationError, FileNotFoundError):
        return frozenset()
    if manifest is None or hashlib.sha256(parquet).hexdigest() != manifest.sha256:
        return frozenset()
    return frozenset(archived.header.id for archived in manifest.segments)


def read_verified_manifest(file: Path, *, version: str) -> BackupManifest:
    """Verify every file in a backup, and return its manifest. The function does not write anything.

    ``version`` is the version of the running Lookout. Raises `ConfigError` if the backup is missing, damaged,
    incomplete or from a newer version of Lookout, or if it contains links, devices or names that a data folder
    cannot have.
    """
    try:
        hashes, text = _hash_archive_members(file)
        format_version = json.loads(text)["lookout_backup"] if text is not None else None
        if isinstance(format_version, int) and format_version > FORMAT_VERSION:
            raise _build_newer_error(file, f"backup format {format_version}")
        manifest = BackupManifest.model_validate_json(text or "")
    except (*_DAMAGE, KeyError, TypeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise ConfigError(
                f"{file} cannot be read: {error.strerror}; specify a file from `lookout backup`"
            ) from None
        is_foreign = isinstance(error, ValidationError | KeyError | TypeError)
        reason = "the manifest is missing or cannot be read" if is_foreign else str(error)
        raise ConfigError(
            f"{file} is not a complete backup of Lookout ({reason}); copy the file again, or use another backup"
        ) from None
    if _parse_version(manifest.lookout) > _parse_version(version):
        raise _build_newer_error(file, f"Lookout {manifest.lookout}")
    for name in sorted({*hashes, *manifest.files}):
        if hashes.get(name) != manifest.files.get(name):
            difference = "is missing" if name not in hashes else "differs from its hash in the manifest"
            raise ConfigError(
                f"{file} is damaged: {name!r} {difference}; copy the backup again, or use another backup"
            )
    folders = {str(parent) for name in hashes for parent in PurePosixPath(name).parents}
    for name in hashes:
        if not _is_valid_name(name) or name in folders:
            raise ConfigError(
                f"{file} contains {name!r}, which is not part of a Lookout backup; use another backup"
            )
    return manifest


def _hash_archive_members(file: Path) -> tuple[Mapping[str, str], bytes | None]:
    """Return the hash of each file in the backup, keyed by file name, and the text of the manifest.

    The manifest is the last file in the backup. If the manifest is missing, its text is ``None``.
    """
    hashes: dict[str, str] = {}
    text = None
    with gzip.open(file) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.type == tarfile.REGTYPE else None
            if content is None or member.issparse() or member.name in hashes or text is not None:
                raise ConfigError(
                    f"{file} has the entry {member.name!r}, which is a link, a device or a duplicate; "
                    "use another backup"
                )
            if member.name == MANIFEST_NAME and member.size <= MAX_MANIFEST_BYTES:
                text = content.read()
                continue
            digest = hashlib.sha256()
            while block := content.read(BLOCK_BYTES):
                digest.update(block)
            hashes[member.name] = digest.hexdigest()
        while stream.read(BLOCK_BYTES):  # read up to the checksum at the end of the member
            pass
    return hashes, text


def _parse_version(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", version)]


def _build_newer_error(file: Path, version: str) -> ConfigError:
    return ConfigError(
        f"{file} was written by a newer Lookout ({version}); update Lookout, then restore the backup"
    )


def _is_valid_name(name: str) -> bool:
    path = PurePosixPath(name)
    is_plain = bool(path.parts) and str(path) == name and not path.is_absolute() and "\0" not in name
    return is_plain and (name in _DATABASE_NAMES or _is_backed_up(name))


@contextmanager
def extract_backup_atomically(file: Path, manifest: BackupManifest, folder: Path) -> Generator[Path]:
    """Extract a verified backup into a temporary folder, and yield the path of that folder.

    At the end of the ``with`` block, the temporary folder is moved to ``folder``, which must be missing or empty.
    If anything fails, ``folder`` does not change. Raises `WarehouseUnwritable`.
    """
    try:
        make_private_folder(folder.parent)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.restoring-", dir=folder.parent))
    except OSError as error:
        raise build_unwritable_error(folder, error) from error
    try:
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name in manifest.files else None
                if content is None:
                    continue
                path = beside / member.name
                make_private_folder(path.parent)
                with os.fdopen(open_without_links(path, new, OWNER_ONLY_MODE), "wb") as target:
                    shutil.copyfileobj(content, target)
                os.utime(path, (member.mtime, member.mtime))  # pictures are deleted by their age
        yield beside
        os.sync()  # write all files to the disk before the folder gets its name
        move(beside, folder)
    except OSError as error:
        raise build_unwritable_error(folder, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
