"""Test the storage format of the warehouse file. The format decides which DuckDB versions can read the file."""

from __future__ import annotations

import struct

from tests.conftest import ROOT
from tests.warehouse.temporary_stores import store_in


def test_the_documentation_names_the_storage_format_of_the_file(tmp_path):
    store = store_in(tmp_path)
    store.load_pending(5)
    query = "select tags['storage_version'] from duckdb_databases() where database_name = current_database()"
    ((version,),) = store.query(query).rows
    header = store.database.file.read_bytes()[:20]
    (number,) = struct.unpack_from("<Q", header, 12)  # after a checksum of 8 bytes and the word DUCK
    assert header[8:12] == b"DUCK"
    page = (ROOT / "docs" / "warehouse.md").read_text(encoding="utf-8")
    assert f"storage format `{version}` (number {number} in its header)" in page
