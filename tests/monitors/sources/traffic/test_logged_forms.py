"""Test that question, reply, passages and time are read from the formats of many loggers, without a mapping."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from monitors.records.traffic import Conversation, SourceWarning, UnusableReason
from monitors.sources.traffic.files import FileTrafficSource
from monitors.sources.traffic.items import LocatedItem, Window, parse_conversations
from monitors.sources.traffic.settings import Fields, FileTraffic
from monitors.sources.traffic.times import parse_time
from tests import fork_server
from tests.in_process import run_in_process
from tests.monitors.sources.traffic.logged_forms import QUESTION, LoggedForm, is_end_time, load_logged_forms
from tests.monitors.sources.traffic.read_source import read_all
from warehouse.database.parquet import iterate_parquet_batches

ALWAYS = Window(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
FORMS = load_logged_forms()


def read_rows(*rows: Any) -> list[Conversation | SourceWarning]:
    located = [LocatedItem(f"row {number}", row) for number, row in enumerate(rows, start=1)]
    return list(parse_conversations(located, Fields(), ALWAYS))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.form)
def test_a_form_is_read_without_a_mapping(form: LoggedForm) -> None:
    (record,) = read_rows(*form.rows)
    if isinstance(record, SourceWarning):
        assert record.reason is form.reason, record.detail
        return
    turn = record.turns[-1]
    assert (turn.user_text, turn.reply_text, list(turn.context)) == (QUESTION, form.answer, form.passages)
    assert is_end_time(record.completed_at)
    assert form.reason is None


def read_by_pipe(lines: str, folder: Path) -> CompletedProcess[str]:
    return run_in_process("conversations", cwd=folder, env=fork_server.bare(), given=lines)


def test_the_pipe_reads_what_the_nightly_run_reads(tmp_path: Path) -> None:
    """The command that reads log lines from a pipe reads what the nightly run reads.

    It writes one answer for each line, in order. If a conversation has several lines, only its last line is usable.
    """
    rows = [
        (form, number == len(form.rows), row) for form in FORMS for number, row in enumerate(form.rows, start=1)
    ]
    lines = "".join(json.dumps(row) + "\n" for _, _, row in rows)
    done = read_by_pipe(lines, tmp_path)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["line"] for answer in answers] == list(range(1, len(rows) + 1))
    for (form, is_last, _), answer in zip(rows, answers, strict=True):
        assert answer["usable"] is (is_last and form.reason is None), (form.form, answer["why"])
        if answer["usable"]:
            assert (answer["question"], answer["answer"]) == (QUESTION, form.answer)
            assert answer["context_passages"] == form.passages
            assert is_end_time(datetime.fromisoformat(answer["completed_at"]))
            assert (answer["why"], answer["turns"][-1]["answer"]) == (None, form.answer)
    assert done.returncode == 0


def test_the_pipe_answers_a_broken_line_and_goes_on(tmp_path: Path) -> None:
    lines = 'not JSON\n{"question": "q", "answer": "a", "ts": "soonish"}\n{"question": "q", "answer": "a", "ts": 1772366400}\n'
    done = read_by_pipe(lines, tmp_path)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert (first["usable"], second["usable"], third["usable"]) == (False, False, True)
    assert "soonish" in second["why"]
    assert done.returncode == 0
    assert read_by_pipe("not JSON\n", tmp_path).returncode == 2
    assert read_by_pipe("", tmp_path).returncode == 0


def test_a_visit_ends_where_its_session_rests_for_hours() -> None:
    def row(role: str, text: str, time: str) -> dict[str, str]:
        return {"session": "s", "role": role, "text": text, "time": f"2026-03-01T{time}Z"}

    first, second = read_rows(
        row("user", "q1", "02:00:00"), row("bot", "a1", "02:00:09"), row("bot", "a2", "12:00:09"), row("user", "q2", "12:00:00")
    )  # fmt: skip
    assert isinstance(first, Conversation)
    assert isinstance(second, Conversation)
    assert [[(turn.user_text, turn.reply_text) for turn in visit.turns] for visit in (first, second)] == [[("q1", "a1")], [("q2", "a2")]]  # fmt: skip
    assert (first.origin_id, second.origin_id, first.id == second.id) == ("s", "s", False)


def test_the_file_shows_whether_the_day_comes_first() -> None:
    def row(time: str) -> dict[str, str]:
        return {"question": "q", "answer": "a", "time": time}

    days = [record.completed_at.day for record in read_rows(row("01/03/2026 12:00"), row("13/03/2026 12:00")) if isinstance(record, Conversation)]  # fmt: skip
    months = [record.completed_at.month for record in read_rows(row("01/03/2026 12:00"), row("01/13/2026 12:00")) if isinstance(record, Conversation)]  # fmt: skip
    assert (days, months) == ([1, 13], [1, 1])
    (open_record,) = read_rows(row("01/03/2026 12:00"))
    assert isinstance(open_record, SourceWarning)
    assert open_record.reason is UnusableReason.NO_TIME
    assert "01/03/2026 12:00" in open_record.detail


@pytest.mark.parametrize(
    "time", ["14:05", "soon", "2026-13-01T00:00:00Z", "20261303", 7, {"days": 3}, "12 parsecs"]
)
def test_what_is_no_time_is_not_read_as_one(time: Any) -> None:
    assert parse_time(time) is None


def test_a_time_with_personal_data_is_not_shown() -> None:
    (record,) = read_rows({"question": "q", "answer": "a", "time": "write to asha.verma.1987@gmail.com"})
    assert isinstance(record, SourceWarning)
    assert "asha" not in record.detail


def test_an_error_as_json_stays_the_reply() -> None:
    """If an app showed an error in JSON form, the reply is the whole JSON, because this is what the user saw."""
    error = '{"error": {"message": "Overloaded", "type": "overloaded_error"}}'
    (record,) = read_rows({"question": "q", "answer": error, "ts": 1772366400})
    assert isinstance(record, Conversation)
    assert record.turns[-1].reply_text == error


@pytest.mark.parametrize(
    "text", ["<div>How do I centre this?", "a < b and c > d", "<template><x-card></x-card></template>"]
)
def test_code_that_a_user_wrote_is_no_html_of_a_chat_product(text: str) -> None:
    (record,) = read_rows({"question": text, "answer": "a", "ts": 1772366400})
    assert isinstance(record, Conversation)
    assert record.turns[-1].user_text == text


TABLE = [
    {"session": "s1", "sender": "user", "text": 'Do you deliver\non "Sundays"?', "time": "2026-03-01 12:00:00"},
    {"session": "s1", "sender": "bot", "text": "Yes; until noon, mostly.", "time": "2026-03-01 12:00:09"},
]


def write_table(delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, TABLE[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(TABLE)
    return out.getvalue().encode("utf-8-sig")


ITEM = {"question": TABLE[0]["text"], "answer": TABLE[1]["text"], "ts": "2026-03-01 12:00:09"}
FILES = {
    "log.csv": write_table(","),
    "semicolons.csv": write_table(";"),
    "log.tsv": write_table("\t"),
    "list.json": json.dumps([ITEM], indent=2).encode(),
    "export.json": json.dumps({"exported": "2026-03-02", "conversations": [ITEM]}).encode(),
    "one.json": json.dumps(ITEM, indent=2).encode(),
    "lines.json": (json.dumps(ITEM) + "\n\n" + json.dumps(ITEM | {"answer": "No."}) + "\n").encode(),
    "list.jsonl": (json.dumps([ITEM]) + "\n").encode(),
}


@pytest.mark.parametrize("name", FILES)
async def test_tables_and_exports_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    settings = FileTraffic(kind="file", at=(str(tmp_path / name),))
    read = await read_all(FileTrafficSource(settings, iterate_parquet_batches))
    assert (read.error, read.problems) == (None, [])
    (turn,) = read.conversations[0].turns
    assert (turn.user_text, turn.reply_text) == (ITEM["question"], ITEM["answer"])


async def test_rows_of_a_session_are_joined_across_files(tmp_path: Path) -> None:
    for number, row in enumerate(TABLE):
        (tmp_path / f"log-{number}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    read = await read_all(
        FileTrafficSource(FileTraffic(kind="file", at=(str(tmp_path / "log-*.jsonl"),)), iterate_parquet_batches)
    )
    (conversation,) = read.conversations
    assert [(turn.user_text, turn.reply_text) for turn in conversation.turns] == [
        (ITEM["question"], ITEM["answer"])
    ]


@pytest.mark.parametrize("name", ["broken.json", "page.json", "page.csv"])
async def test_a_file_that_is_neither_is_reported(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b'[{"question": ' if name == "broken.json" else b"<!doctype html><p>Log in</p>")
    read = await read_all(
        FileTrafficSource(FileTraffic(kind="file", at=(str(tmp_path / name),)), iterate_parquet_batches)
    )
    assert not read.conversations
    assert (len(read.notices), read.error is None) == ((1, True) if name == "broken.json" else (0, False))
