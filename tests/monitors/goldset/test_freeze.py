"""A frozen version of a suite has one number and cannot be changed. It stores a copy of the cases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.load import build_suite
from monitors.goldset.versions import (
    freeze_suite_if_changed,
    list_frozen_versions,
    load_cases_of_suite_or_version,
    load_frozen_suite,
)
from tests.monitors.goldset.gold_cases import case_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def suite(*cases):
    return build_suite(list(cases), name="core", source="core")


def test_a_version_holds_hash_counts_and_the_cases_themselves(tmp_path):
    """A frozen version contains the hash, the counts and the cases, so that a result can be checked years later."""
    frozen, is_new = freeze_suite_if_changed(
        suite(case_of(), case_of(id="b", severity=3)), tmp_path, at=NOON, note="first"
    )
    assert (is_new, frozen.version, frozen.cases, frozen.note) == (True, 1, 2, "first")
    assert frozen.severities == {"2": 1, "3": 1}
    assert load_frozen_suite(tmp_path, frozen).sha256 == frozen.sha256
    assert load_cases_of_suite_or_version(tmp_path / "core-v1.json") == load_cases_of_suite_or_version(
        tmp_path / "core-v1.jsonl"
    )


def test_the_same_cases_are_the_same_version(tmp_path):
    """The same cases in any order give the same version."""
    freeze_suite_if_changed(suite(case_of(id="a"), case_of(id="b")), tmp_path, at=NOON)
    again, is_new = freeze_suite_if_changed(suite(case_of(id="b"), case_of(id="a")), tmp_path, at=NOON)
    assert (is_new, again.version) == (False, 1)


def test_versions_count_up_and_are_not_confused_with_other_suites(tmp_path):
    """Versions of a suite have consecutive numbers, and versions of other suites are not counted.

    Version 10 follows version 9, and ``core-extra`` is another suite than ``core``.
    """
    for number in range(11):
        freeze_suite_if_changed(suite(case_of(gold=f"{number + 1} months")), tmp_path, at=NOON)
    freeze_suite_if_changed(build_suite([case_of()], name="core-extra", source="x"), tmp_path, at=NOON)
    assert [one.version for one in list_frozen_versions(tmp_path, "core")] == list(range(1, 12))


def test_a_frozen_file_that_was_changed_is_not_believed(tmp_path):
    """A frozen file that was changed is rejected by its hash, with the file name in the message."""
    frozen, _ = freeze_suite_if_changed(suite(case_of()), tmp_path, at=NOON)
    path = tmp_path / "core-v1.jsonl"
    path.write_text(path.read_text().replace("24 months", "36 months"))
    with pytest.raises(GoldSetError, match=r"core-v1\.jsonl was changed"):
        load_frozen_suite(tmp_path, frozen)


def test_a_broken_manifest_is_named(tmp_path):
    """A broken manifest is reported; numbering does not restart at 1."""
    (tmp_path / "core-v3.json").write_text("{}")
    with pytest.raises(GoldSetError, match=r"core-v3\.json is not the manifest"):
        freeze_suite_if_changed(suite(case_of()), tmp_path, at=NOON)
