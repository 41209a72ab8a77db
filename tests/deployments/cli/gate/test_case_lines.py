"""Tests of the line number of a case in its suite file. It is the number that editors and GitHub show."""

from __future__ import annotations

from deployments.cli.gate.github import find_case_line_numbers, format_repository_path


def test_lines_are_counted_as_editors_do(tmp_path):
    file = tmp_path / "suite.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"id": "a"}\r\n\n{"id": "b"}\nnot json\n[1]\n{"id": 3}\n{"id": "a"}\n{"id": "c"}'
    )
    assert find_case_line_numbers(file) == {"a": 1, "b": 3, "c": 8}


def test_a_file_that_cannot_be_read_has_none(tmp_path):
    assert find_case_line_numbers(tmp_path / "nowhere.jsonl") == {}
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    assert find_case_line_numbers(tmp_path / "x") == {}


def test_a_path_is_relative_to_the_repository_where_it_lies_in_it(tmp_path):
    assert format_repository_path(tmp_path, tmp_path / "gold" / "suite.jsonl") == "gold/suite.jsonl"
    assert (
        format_repository_path(tmp_path / "other", tmp_path / "suite.jsonl")
        == (tmp_path / "suite.jsonl").as_posix()
    )
    assert format_repository_path(None, tmp_path / "suite.jsonl") == (tmp_path / "suite.jsonl").as_posix()
