import json
import os
import threading
from pathlib import Path

import pytest

from monitors.errors import WarehouseUnwritable
from monitors.reports.results_json import read_results
from monitors.reports.settings import ReportsSettings
from monitors.reports.write import build_report_paths, write_reports
from monitors.storage import write_atomically
from tests.monitors.reports.example_run import example_run, report_of
from tests.monitors.reports.parts import redact


def test_all_five_reports_are_written_and_can_be_read(tmp_path):
    run = example_run(tmp_path, correct=4)
    paths = write_reports(tmp_path / "new" / "run", run.report, run.cases, redact=redact, incidents=run.incidents)
    assert paths == build_report_paths(tmp_path / "new" / "run")
    assert read_results(paths.json) == (run.report, run.cases)
    assert len(paths.hallucinations.read_text().splitlines()) == 10
    assert paths.junit.read_text().startswith("<?xml")
    assert paths.markdown.read_text().startswith("# ✕ FAIL")
    assert "</html>" in paths.html.read_text()


def test_writing_again_replaces_and_leaves_nothing_beside(tmp_path):
    run = example_run(correct=2)
    first = write_reports(tmp_path, run.report, run.cases, redact=redact)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_reports(tmp_path, run.report, run.cases, redact=redact)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(before) == 5
    assert first.html.stat().st_mode & 0o777 == 0o644


def test_a_run_without_cases_is_written_too(tmp_path):
    paths = write_reports(tmp_path, report_of((), ()), (), redact=redact)
    assert read_results(paths.json)[1] == ()
    assert paths.hallucinations.read_text() == ""


def test_a_folder_that_cannot_be_is_named(tmp_path):
    """If a file is in the place of the report folder, the error names the path.

    The file stands for a read-only disk, which the test cannot use because root can write to read-only folders.
    """
    (tmp_path / "taken").write_text("x")
    run = example_run(correct=0)
    with pytest.raises(WarehouseUnwritable, match=r"cannot write .*taken/results\.json: File exists"):
        write_reports(tmp_path / "taken", run.report, run.cases, redact=redact)


def test_a_file_that_breaks_off_leaves_the_old_one_and_nothing_beside(tmp_path):
    path = tmp_path / "x.txt"
    write_atomically(path, ["old"])

    def pieces():
        yield "new"
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_atomically(path, pieces())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "x.json"
    write_atomically(path, [json.dumps([0] * 20_000)])
    seen: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(len(json.loads(path.read_text())))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(6):
        write_atomically(path, (json.dumps([number] * 20_000)[at : at + 9_999] for at in range(0, 99_999, 9_999)))
    stop.set()
    reader.join()
    assert set(seen) == {20_000}


def test_text_is_written_as_utf_8_whatever_the_locale_says(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    write_atomically(tmp_path / "x", ["₹ हिन्दी"])
    assert (tmp_path / "x").read_bytes() == "₹ हिन्दी".encode()


def test_every_setting_is_described_and_unknown_ones_are_refused():
    assert all(field.description for field in ReportsSettings.model_fields.values())
    with pytest.raises(ValueError, match="not permitted"):
        ReportsSettings.model_validate({"max_transcript": 3})


def test_only_files_below_the_run_are_read(tmp_path):
    """If a record names a screenshot outside the run folder, that file is not embedded."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"\x89PNG\r\n\x1a\n" + os.urandom(20))
    run = example_run(correct=0)
    evidence = run.cases[1].result.evidence.model_copy(update={"screenshot": f"../{secret.name}"})
    result = run.cases[1].result.model_copy(update={"evidence": evidence})
    case = run.cases[1].model_copy(update={"result": result})
    paths = write_reports(tmp_path / "run", run.report, [case], redact=redact)
    page = Path(paths.html).read_text()
    assert "data:image" not in page
    assert "no longer in" in page
