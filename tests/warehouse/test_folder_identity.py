"""Test that a renamed data folder keeps its identity, and that a copy is detected however it was made."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from monitors.errors import ConfigError
from tests.builders import NOON
from warehouse.folder_identity import (
    IDENTITY_FILE,
    CopiedFolder,
    assign_new_identity,
    create_or_check_identity,
    read_identity,
)


@pytest.fixture
def folder(tmp_path):
    create_or_check_identity(tmp_path / "data", new_id="first", at=NOON)
    return tmp_path / "data"


def copy_tree(source, destination):
    shutil.copytree(source, destination)


def copy_all(source, destination):
    subprocess.run(["cp", "-a", str(source), str(destination)], check=True)


def pack_and_unpack(source, destination):
    archive = shutil.make_archive(str(destination) + "-packed", "tar", source)
    shutil.unpack_archive(archive, destination)


def write_birth(folder, born_ns):
    """Change the creation time in the identity file, without replacing the file."""
    with (folder / IDENTITY_FILE).open("r+") as file:
        stored = json.load(file) | {"born_ns": born_ns}
        file.seek(0)
        json.dump(stored, file)
        file.truncate()


def test_a_renamed_folder_is_the_same_one(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    renamed = folder.rename(tmp_path / "elsewhere" / "renamed")
    create_or_check_identity(renamed, new_id="second", at=NOON)
    assert read_identity(renamed).id == "first"


@pytest.mark.parametrize("copy", [copy_tree, copy_all, pack_and_unpack])
def test_a_copy_is_refused_until_a_person_says_what_it_is(folder, tmp_path, copy):
    copy(folder, tmp_path / "copy")
    for use in (read_identity, lambda path: create_or_check_identity(path, new_id="second", at=NOON)):
        with pytest.raises(CopiedFolder, match="is a copy of the data folder that was created as"):
            use(tmp_path / "copy")
    assert read_identity(folder).id == "first"


def test_a_copy_back_in_the_place_of_the_original_is_a_copy(folder, tmp_path):
    """A copy is detected as a copy even if it replaces the original folder at the same path.

    An example is a backup that replaces a lost folder.
    """
    copy_all(folder, tmp_path / "backup")
    folder.rename(tmp_path / "away")
    copy_all(tmp_path / "backup", folder)
    with pytest.raises(CopiedFolder):
        read_identity(folder)


def test_a_moved_folder_has_its_identity_and_is_the_same_from_then_on(folder, tmp_path):
    copy_all(folder, tmp_path / "copy")
    create_or_check_identity(tmp_path / "copy", new_id="second", at=NOON, moved=True)
    create_or_check_identity(tmp_path / "copy", new_id="third", at=NOON)
    identity = read_identity(tmp_path / "copy")
    assert (identity.id, identity.copied_at) == ("first", None)


def test_a_separated_copy_has_an_identity_of_its_own(folder, tmp_path):
    copy_all(folder, tmp_path / "copy")
    assign_new_identity(tmp_path / "copy", new_id="second", at=NOON)
    create_or_check_identity(tmp_path / "copy", new_id="third", at=NOON)
    identity = read_identity(tmp_path / "copy")
    assert (identity.id, identity.copied_at) == ("second", NOON)


def test_the_creation_time_tells_a_copy_that_got_the_same_inode(folder):
    """If a copy has the inode number of the original, its creation time shows that it is a copy."""
    born_ns = read_identity(folder).born_ns
    if born_ns is None:
        pytest.skip("this file system has no creation times")
    write_birth(folder, born_ns - 1)
    with pytest.raises(CopiedFolder):
        read_identity(folder)


def test_without_creation_times_the_inode_decides(folder, tmp_path):
    write_birth(folder, None)
    assert read_identity(folder).id == "first"
    copy_all(folder, tmp_path / "copy")
    with pytest.raises(CopiedFolder):
        read_identity(tmp_path / "copy")


def test_commands_that_start_together_agree_on_one_identity(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: create_or_check_identity(tmp_path / "data", new_id=f"id-{n}", at=NOON), range(32)))
    first = read_identity(tmp_path / "data").id
    create_or_check_identity(tmp_path / "data", new_id="late", at=NOON)
    assert read_identity(tmp_path / "data").id == first


def test_a_damaged_identity_is_an_error_that_names_the_file(folder):
    (folder / IDENTITY_FILE).write_text('{"id": ')
    with pytest.raises(ConfigError, match=r"identity\.json cannot be read"):
        create_or_check_identity(folder, new_id="second", at=NOON)


def test_a_folder_that_does_not_exist_has_no_identity(tmp_path):
    assert read_identity(tmp_path / "data") is None
    assert not (tmp_path / "data").exists()
