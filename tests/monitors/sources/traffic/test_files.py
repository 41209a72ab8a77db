"""Test that traffic is read from local files, URLs, buckets and Hub repositories.

A bad line does not affect other lines.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from monitors.address_guard import AddressGuard
from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.traffic import SourceWarningKind
from monitors.request_headers import build_request_headers
from monitors.sources.traffic.files import (
    HEAD_BYTES,
    FileTrafficSource,
    detect_format_and_compression,
    read_lines,
    strip_secrets,
)
from monitors.sources.traffic.settings import FileFormat, FileTraffic
from tests.monitors.sources.traffic.read_source import NOON, as_lines, read_all, stored
from tests.servers.files import FileServer
from tests.servers.hub_files import HubFiles
from tests.stable_text import replace_volatile
from warehouse.database.parquet import iterate_parquet_batches

SECRET = "hush-hush"


def source(*at: object, token: str | None = None, allowed: Sequence[str] = (), **changes: Any) -> FileTrafficSource:
    places = [str(place) for place in at]
    settings = FileTraffic.model_validate({"kind": "file", "at": places, **changes})
    held = {} if token is None else {"T": token}
    bearer = build_request_headers({}, held, key="traffic.headers", token_variable="T")
    web = [place for place in places if place.startswith("http")]
    return FileTrafficSource(
        settings, iterate_parquet_batches, headers=bearer, guard=AddressGuard([*web, *allowed])
    )


async def test_every_conversation_of_a_file_is_read(tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    log.write_bytes(as_lines(*map(stored, range(600))))
    read = await read_all(source(log))
    assert read.ids == [f"c-{n}" for n in range(600)]
    assert (read.notices, read.error) == ([], None)


async def test_only_what_was_completed_in_the_window_is_read(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_bytes(as_lines(*map(stored, range(9))))
    read = await read_all(source(tmp_path / "*.jsonl"), NOON + timedelta(seconds=3), NOON + timedelta(seconds=5))
    assert read.ids == ["c-3", "c-4"]


BAD_LINES: list[tuple[bytes, str]] = [
    (b'{"id": "\xff\xfe"}', "not UTF-8 at byte 8"),
    (b'{"id": 1', "not JSON: EOF"),
    (b"[" * 200_000, "not JSON"),
    (b"12", "expected an object"),
    (json.dumps(stored(5) | {"completed_at": None}).encode(), "no completion time"),
    (b'{"question": "my PIN is 4471"}', "no completion time"),
]


@pytest.mark.parametrize(("line", "why"), BAD_LINES, ids=[why for _, why in BAD_LINES])
async def test_f71_a_bad_line_is_reported_and_the_rest_is_read(tmp_path: Path, line: bytes, why: str) -> None:
    log = tmp_path / "chat.jsonl"
    log.write_bytes(as_lines(stored(1), line, stored(2)))
    read = await read_all(source(log))
    assert read.ids == ["c-1", "c-2"]
    ((place, detail),) = read.problems
    assert place == f"{log}:2"
    assert why in detail
    assert "4471" not in detail


async def test_f72_a_line_of_50_mb_is_reported_and_not_held(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    log = tmp_path / "chat.jsonl"
    log.write_bytes(as_lines(stored(1), b'{"x": "' + b"y" * 50_000_000 + b'"}', stored(2)))
    read = await read_all(source(log, longest_line_mb=1))
    assert read.ids == ["c-1", "c-2"]
    ((place, detail),) = read.problems
    assert place == f"{log}:2"
    assert all(part in detail for part in ("50,000,009", "traffic.longest_line_mb"))
    assert detail == snapshot


async def test_f73_marks_carriage_returns_and_zero_bytes_are_no_part_of_a_line(tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    first, second = (json.dumps(stored(n)).encode() for n in (1, 2))
    log.write_bytes(b"\xef\xbb\xbf" + first + b"\r\n\r\n\0\0\0" + second + b"\r\n")
    read = await read_all(source(log))
    assert (read.ids, read.notices) == (["c-1", "c-2"], [])


async def test_f66_a_partial_last_line_is_reported_and_a_whole_one_without_its_end_is_read(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    log = tmp_path / "chat.jsonl"
    whole = as_lines(stored(1), stored(2))
    log.write_bytes(whole[:-1])
    assert (await read_all(source(log))).ids == ["c-1", "c-2"]
    log.write_bytes(whole[:-9])
    read = await read_all(source(log))
    assert read.ids == ["c-1"]
    assert [notice.kind for notice in read.notices] == [SourceWarningKind.LINE_UNREADABLE]
    assert read.problems[0][1] == snapshot


async def test_nan_and_half_characters_cost_nothing_but_themselves(tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    nan = json.dumps(stored(1, latency_ms=float("nan"))).encode()
    half = json.dumps(stored(2)).replace('"q2"', '"q2\\ud83d"').encode()
    log.write_bytes(as_lines(nan, half))
    first, second = (await read_all(source(log))).conversations
    assert first.turns[0].latency_ms is None
    assert second.turns[0].user_text == "q2\ufffd"


async def test_packed_files_are_unpacked_and_a_cut_one_is_reported_after_the_others(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    packed = gzip.compress(as_lines(*map(stored, range(2000))), mtime=0)
    (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(as_lines(stored(9000))))
    read = await read_all(source(tmp_path / "*.gz"))
    assert read.ids[-1] == "c-9000"
    assert len(read.ids) > 100, "what stands before the cut is read"
    assert isinstance(read.error, SourceUnavailable)
    assert replace_volatile(str(read.error), tmp_path) == snapshot


async def test_a_missing_file_is_reported_after_the_others(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "b.jsonl").write_bytes(as_lines(stored(1)))
    read = await read_all(source(tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c*.jsonl"))
    assert read.ids == ["c-1"]
    assert isinstance(read.error, SourceUnavailable)
    assert replace_volatile(str(read.error), tmp_path) == snapshot


async def test_reading_can_be_left_at_any_time(tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    log.write_bytes(as_lines(*map(stored, range(5000))))
    reading = source(log).read_conversations(NOON, NOON + timedelta(days=1))
    assert [(await anext(reading)).id for _ in range(3)] == ["c-0", "c-1", "c-2"]
    await reading.aclose()
    log.unlink()


ROWS = [
    {**stored(1), "completed_at": NOON, "feedback": {"thumb": "up", "comment": "ok"}, "sources": ["Gold"], "latency_ms": float("nan")},
    {**stored(2), "completed_at": NOON.replace(tzinfo=None), "feedback": None, "sources": None, "latency_ms": 4.0},
]  # fmt: skip


async def test_parquet_is_read_row_group_by_row_group(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([stored(n) for n in range(1200)])
    pq.write_table(table, tmp_path / "night.parquet", row_group_size=500)
    read = await read_all(source(tmp_path / "night.parquet"))
    assert read.ids == [f"c-{n}" for n in range(1200)]


async def test_parquet_types_are_understood(tmp_path: Path) -> None:
    for number, row in enumerate(ROWS):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{number}.parquet")
    first, second = (await read_all(source(tmp_path / "*.parquet"))).conversations
    assert first.completed_at == second.completed_at == NOON
    assert (first.turns[0].citations, first.turns[0].latency_ms, second.turns[0].latency_ms) == (("Gold",), None, 4)
    assert first.turns[0].feedback is not None


async def test_f71_a_bad_value_in_parquet_costs_its_characters_alone(tmp_path: Path) -> None:
    columns = {name: [row[name] for row in map(stored, range(3))] for name in stored(0)}
    broken = pa.array([b"q0", b"\xff\xfe", b"q2"], pa.binary()).view(pa.string())
    pq.write_table(pa.table(columns | {"question": broken}), tmp_path / "x.parquet")
    read = await read_all(source(tmp_path / "x.parquet"))
    assert [one.turns[0].user_text for one in read.conversations] == ["q0", "??", "q2"]
    assert read.problems == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}", b"PAR1" + b"\0" * 500 + b"PAR1"])
async def test_f81_a_file_that_is_not_parquet_is_named_in_the_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    read = await read_all(source(tmp_path / "x.parquet"))
    assert isinstance(read.error, SourceUnavailable)
    assert "x.parquet cannot be read" in str(read.error)


async def test_parquet_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = f"select 'c-9' as id, '{NOON}'::timestamptz as ts, 'q' as question, 'a' as answer"
    duckdb.sql(f"copy ({row}) to '{tmp_path}/x.parquet'")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert (await read_all(source(tmp_path / "x.parquet"))).ids == ["c-9"]


async def test_texts_that_were_stored_as_bytes_are_texts(tmp_path: Path) -> None:
    rows = [{**stored(1), "question": b"q1", "answer": "जी".encode(), "picture": b"\xff\xd8"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    (found,) = (await read_all(source(tmp_path / "x.parquet"))).conversations
    assert (found.turns[0].user_text, found.turns[0].reply_text) == ("q1", "जी")


async def test_packed_parquet_and_odd_names_are_read_from_a_copy_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pq.write_table(pa.Table.from_pylist([stored(1)]), tmp_path / "x.parquet")
    packed = gzip.compress((tmp_path / "x.parquet").read_bytes())
    (tmp_path / "y[1].parquet.gz").write_bytes(packed)
    (tmp_path / "z[1].parquet").write_bytes((tmp_path / "x.parquet").read_bytes())
    assert (await read_all(source(tmp_path / "*.gz"))).ids == ["c-1"]
    assert (await read_all(source(tmp_path / "z*.parquet"))).ids == ["c-1"]
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_copy_is_bounded(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    with FileServer({"x.parquet": b"PAR1" * 1_000_000}) as server:
        read = await read_all(source(f"{server.url}/x.parquet", largest_copy_mb=1))
    assert "traffic.largest_copy_mb" in str(read.error)
    assert read.error_text == snapshot


FORMATS = [
    ("a.jsonl", FileFormat.JSONL, False),
    ("s3://b/a.NDJSON.gz", FileFormat.JSONL, True),
    ("https://h/a.parquet?x=1.jsonl", FileFormat.PARQUET, False),
]


@pytest.mark.parametrize(("path", "kind", "packed"), FORMATS)
def test_a_files_name_says_how_it_is_written(path: str, kind: FileFormat, packed: bool) -> None:
    assert detect_format_and_compression(path, FileFormat.BY_SUFFIX) == (kind, packed)


def test_a_name_that_does_not_say_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"x\.txt does not show the format\. Set jsonl, json, csv or parquet"):
        detect_format_and_compression("x.txt", FileFormat.BY_SUFFIX)
    assert detect_format_and_compression("x.txt", FileFormat.JSONL) == (FileFormat.JSONL, False)


@pytest.mark.parametrize("ranges", [True, False])
async def test_an_address_is_read(ranges: bool) -> None:
    with FileServer({"chat.jsonl": as_lines(*map(stored, range(300)))}, ranges=ranges) as server:
        read = await read_all(source(f"{server.url}/chat.jsonl"))
    assert len(read.ids) == 300
    assert read.error is None


async def test_parquet_at_an_address_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([stored(1)]), tmp_path / "x.parquet")
    with FileServer({"x.parquet": (tmp_path / "x.parquet").read_bytes()}) as server:
        assert (await read_all(source(f"{server.url}/x.parquet"))).ids == ["c-1"]


async def test_an_address_behind_a_token_is_opened_with_it(snapshot: SnapshotAssertion) -> None:
    with FileServer({"chat.jsonl": as_lines(stored(1))}, token=SECRET) as server:
        assert (await read_all(source(f"{server.url}/chat.jsonl", token=SECRET))).ids == ["c-1"]
        refused = await read_all(source(f"{server.url}/chat.jsonl?key={SECRET}", token="expired"))
    assert isinstance(refused.error, SourceUnavailable)
    assert refused.error_text == snapshot
    assert SECRET not in str(refused.error)


async def test_f38_the_token_does_not_follow_a_redirect_to_another_host() -> None:
    with FileServer({"chat.jsonl": as_lines(stored(1))}) as other, FileServer({}) as server:
        moved_to = server.moved["chat.jsonl"] = f"{other.url}/chat.jsonl".replace("127.0.0.1", "localhost")
        assert (await read_all(source(f"{server.url}/chat.jsonl", token=SECRET, allowed=[moved_to]))).ids == ["c-1"]
        assert server.tokens[0] == f"Bearer {SECRET}"
        assert set(other.tokens) <= {None}


async def test_f97_an_address_that_redirects_inside_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(as_lines(stored(2)))
    with FileServer({"chat.jsonl": as_lines(stored(1))}) as inside, FileServer({}) as server:
        server.moved["chat.jsonl"] = f"{inside.url}/chat.jsonl"
        read = await read_all(source(f"{server.url}/chat.jsonl", tmp_path / "a.jsonl"))
        assert inside.asked == []
    assert isinstance(read.error, SourceUnavailable)
    assert "probe.allowed_origins" in str(read.error)
    assert read.ids == ["c-2"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "jsonl.gz"])
async def test_f96_a_named_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe.{suffix}")
    read = await read_all(source(tmp_path / f"pipe.{suffix}"))
    assert "not a regular file" in str(read.error)


@pytest.mark.parametrize("status", [404, 403, 500])
async def test_an_address_that_fails_is_named_without_its_parameters(status: int) -> None:
    with FileServer({}) as server:
        server.statuses["chat.jsonl"] = status
        read = await read_all(source(f"{server.url}/chat.jsonl?key={SECRET}"))
        assert isinstance(read.error, SourceUnavailable)
        assert f"{server.url}/chat.jsonl" in str(read.error)
    assert SECRET not in str(read.error)


async def test_a_login_page_is_no_file_of_bad_lines(snapshot: SnapshotAssertion) -> None:
    with FileServer({"chat.jsonl": b"\n  <!doctype html>\n" + b"<p>sign in</p>\n" * 1000}) as server:
        read = await read_all(source(f"{server.url}/chat.jsonl"))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot
    assert read.notices == []


@pytest.fixture(scope="module")
def bucket() -> Any:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, **keys)
    client.create_bucket(Bucket="traffic")
    client.put_object(Bucket="traffic", Key="2026/03/01.jsonl", Body=as_lines(stored(1)))
    client.put_object(Bucket="traffic", Key="2026/03/02.jsonl.gz", Body=gzip.compress(as_lines(stored(2))))
    yield endpoint, client
    client.close()
    server.stop()


@pytest.fixture
def keys_of_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.mark.usefixtures("keys_of_the_bucket")
async def test_a_bucket_is_listed_again_each_night(bucket: Any) -> None:
    endpoint, client = bucket
    night = source("s3://traffic/2026/*/*", endpoint_url=endpoint)
    assert sorted((await read_all(night)).ids) == ["c-1", "c-2"]
    client.put_object(Bucket="traffic", Key="2026/03/03.jsonl", Body=as_lines(stored(3)))
    assert sorted((await read_all(night)).ids) == ["c-1", "c-2", "c-3"]
    client.delete_object(Bucket="traffic", Key="2026/03/03.jsonl")


@pytest.mark.usefixtures("keys_of_the_bucket")
async def test_checking_a_bucket_reads_the_start_of_its_newest_file(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, client = bucket
    client.put_object(Bucket="traffic", Key="2026/03/03.jsonl", Body=b"x" * 10_000_000)
    ranges: list[tuple[str, int, int]] = []
    fetch_range = s3fs.core.S3File._fetch_range

    def note_range(file: Any, start: int, end: int) -> bytes:
        ranges.append((file.path, start, end))
        return fetch_range(file, start, end)

    monkeypatch.setattr(s3fs.core.S3File, "_fetch_range", note_range)
    await source("s3://traffic/2026/*/*", endpoint_url=endpoint).check_readable(NOON)
    client.delete_object(Bucket="traffic", Key="2026/03/03.jsonl")
    ((path, start, end),) = ranges
    assert (path, start) == ("traffic/2026/03/03.jsonl", 0)
    assert end <= 4 * HEAD_BYTES


@pytest.mark.usefixtures("keys_of_the_bucket")
async def test_a_bucket_that_is_not_there_is_named_without_secrets(bucket: Any) -> None:
    read = await read_all(source("s3://nowhere/2026/x.jsonl", endpoint_url=bucket[0]))
    assert isinstance(read.error, SourceUnavailable)
    assert "s3://nowhere/2026/x.jsonl" in str(read.error)
    assert SECRET not in str(read.error)


async def test_a_hub_repository_is_listed_again_each_night(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([stored(3)]), tmp_path / "x.parquet")
    files = {"nights/1.jsonl": as_lines(*map(stored, range(2))), "README.md": b"#"}
    with HubFiles(files) as server:
        night = source("hf://datasets/owner/logs/nights/*", endpoint_url=server.url)
        assert (await read_all(night)).ids == ["c-0", "c-1"]
        server.files["nights/2.jsonl.gz"] = gzip.compress(as_lines(stored(2)))
        server.files["nights/3.parquet"] = (tmp_path / "x.parquet").read_bytes()
        assert (await read_all(night)).ids == ["c-0", "c-1", "c-2", "c-3"]
        one = source("hf://datasets/owner/logs/nights/1.jsonl", endpoint_url=server.url)
        assert (await read_all(one)).ids == ["c-0", "c-1"]


async def test_a_hub_repository_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", f"hf_{SECRET}")
    with HubFiles({"a.jsonl": b""}, token="other") as server:
        read = await read_all(source("hf://datasets/owner/logs/a.jsonl", endpoint_url=server.url))
    assert isinstance(read.error, SourceUnavailable)
    assert "hf://datasets/owner/logs/a.jsonl" in str(read.error)
    assert SECRET not in str(read.error)


async def test_a_check_reads_the_newest_file_of_each_pattern(tmp_path: Path) -> None:
    """The readability check reads only the newest file of each pattern, and accepts a file without conversations.

    A quiet hour and a new, empty file are not errors.
    """
    (tmp_path / "2026-02-01.jsonl").write_bytes(b"<html>")
    (tmp_path / "2026-03-01.jsonl").write_bytes(as_lines(stored(1)))
    (tmp_path / "today.jsonl").write_bytes(b"")
    (tmp_path / "old.csv.gz").write_bytes(gzip.compress(b"question,answer\n" * 9)[:-9])
    await source(tmp_path / "2026-*.jsonl", tmp_path / "today.jsonl", tmp_path / "old.csv.gz").check_readable(NOON)


async def test_a_check_names_everything_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "page.jsonl").write_bytes(b"<html>")
    with FileServer({}) as server:
        server.statuses["chat.jsonl"] = 500
        files = [tmp_path / name for name in ("gone.jsonl", "none-*.jsonl", "pipe.jsonl", "page.jsonl")]
        with pytest.raises(SourceUnavailable) as refusal:
            await source(*files, f"{server.url}/chat.jsonl?key={SECRET}").check_readable(NOON)
    assert all(str(file) in str(refusal.value) for file in [*files, f"{server.url}/chat.jsonl"])
    assert SECRET not in str(refusal.value)


async def test_an_unknown_protocol_is_said() -> None:
    assert "nosuch://x/y.jsonl cannot be read" in str((await read_all(source("nosuch://x/y.jsonl"))).error)


def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(ValidationError, match="without user name and password"):
        source("https://me:hush@host/x.jsonl")


def test_local_paths_are_resolved_and_addresses_are_not(tmp_path: Path) -> None:
    settings = FileTraffic(kind="file", at=("logs/*.jsonl", "/var/x.jsonl", "s3://b/x.jsonl"))
    assert settings.resolve_paths(tmp_path).at == (f"{tmp_path}/logs/*.jsonl", "/var/x.jsonl", "s3://b/x.jsonl")


def test_a_name_shows_no_secret() -> None:
    assert strip_secrets("https://host/x.jsonl?key=hush") == "https://host/x.jsonl"
    assert source("a.jsonl", "b.jsonl").name == "a.jsonl and 1 more"


async def test_no_thread_of_ours_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(as_lines(stored(1)))
    await read_all(source(tmp_path / "a.jsonl"))
    left = [thread.name for thread in threading.enumerate() if not thread.daemon]
    assert all(name.startswith(("MainThread", "asyncio_")) for name in left), left


class Trickle:
    """A stream that returns fewer bytes than requested."""

    def __init__(self, content: bytes, sizes: list[int]) -> None:
        self.content, self.sizes = content, sizes

    def read(self, size: int, /) -> bytes:
        size = min(size, self.sizes.pop() if self.sizes else size)
        given, self.content = self.content[:size], self.content[size:]
        return given


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"bcd", b"\r\n"]), max_size=20).map(b"".join),
    st.lists(st.integers(1, 4)),
)
def test_lines_are_the_same_however_they_come(content: bytes, sizes: list[int]) -> None:
    lines = list(read_lines(Trickle(content, sizes), max_bytes=3))
    assert [line.raw for line in lines] == [line[:3] for line in content.split(b"\n")[: len(lines)]]
    assert sum(line.length + line.ended for line in lines) == len(content)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
