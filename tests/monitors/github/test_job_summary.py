"""The job summary is appended to, never exceeds GitHub's size limit, and shows where it was cut."""

from __future__ import annotations

import pytest

from monitors.errors import NotifyRejected
from monitors.github.actions import CUT_NOTE, MAX_SUMMARY_BYTES, append_job_summary


def test_the_summary_is_appended(tmp_path):
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    append_job_summary(file, "# PASS")
    assert file.read_text(encoding="utf-8") == "before\n# PASS\n"


@pytest.mark.parametrize("there", [0, 1000, MAX_SUMMARY_BYTES - 10, MAX_SUMMARY_BYTES])
def test_one_too_large_is_cut_at_a_line(tmp_path, there):
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * there)
    append_job_summary(file, "हिन्दी line\n" * 100_000)
    raw = file.read_bytes()
    assert len(raw) <= MAX_SUMMARY_BYTES
    added = raw[there:].decode()
    if added:
        assert added.endswith(CUT_NOTE)
        assert set(added.removesuffix(CUT_NOTE).split("\n")) <= {"हिन्दी line", ""}
    assert bool(added) is (there < MAX_SUMMARY_BYTES - 1000)


def test_an_unwritable_file_is_reported(tmp_path):
    with pytest.raises(NotifyRejected, match="summary"):
        append_job_summary(tmp_path / "missing" / "summary.md", "text")
