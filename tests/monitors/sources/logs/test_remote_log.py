"""Test that only new data of a remote log is transferred, and that a read error contains no secret."""

from __future__ import annotations

import pytest

from monitors.address_guard import AddressGuard
from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.logs import LogWarningKind
from monitors.sources.logs import files
from monitors.sources.logs.files import RemoteLog, build_hub_url, build_remote_log
from tests.monitors.sources.logs_on_disk import NAME, Reader, WrittenLog, entry
from tests.servers.ranges import RangeServer

TOKEN = "a-token-that-nobody-must-see"


@pytest.fixture
def log(tmp_path):
    return WrittenLog(tmp_path)


@pytest.fixture
def server(tmp_path):
    with RangeServer(tmp_path) as running:
        yield running


def reader_of(server: RangeServer, token: str | None = None, *allowed: str) -> Reader:
    reader = Reader(server.folder / NAME)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    reader.place = RemoteLog(
        f"{server.url}/logs/{NAME}", headers=headers, guard=AddressGuard([server.url, *allowed])
    )
    return reader


def test_lines_are_read_as_they_come(log, server):
    reader = reader_of(server)
    for number in range(5):
        log.append(entry(number))
        reader.look()
    assert reader.numbers == list(range(5))


def test_only_what_is_new_travels(log, server):
    log.append(b"".join(entry(number) for number in range(20_000)))
    reader = reader_of(server)
    reader.look()
    assert reader.numbers == list(range(20_000))
    before = server.bytes_sent
    log.append(entry(20_000))
    reader.look()
    assert reader.numbers[-1] == 20_000
    assert server.bytes_sent - before < 200_000 < log.path.stat().st_size


def test_a_truncated_and_rewritten_log_is_reported_as_a_gap(log, server):
    reader = reader_of(server)
    log.append(entry(1))
    log.append(entry(2))
    reader.look()
    log.rewrite(entry(3))
    reader.look()
    assert reader.numbers == [1, 2, 3]
    assert [notice.kind for notice in reader.notices] == [LogWarningKind.REPLACED]


def test_f75_a_removed_log_is_reported(log, server):
    reader = reader_of(server)
    log.append(entry(1))
    reader.look()
    log.path.unlink()
    reader.look()
    assert [notice.kind for notice in reader.notices] == [LogWarningKind.MISSING]


def test_an_empty_log_is_no_fault(log, server):
    log.rewrite(b"")
    reader = reader_of(server)
    reader.look()
    log.append(entry(1))
    reader.look()
    assert (reader.numbers, reader.notices) == ([1], [])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("plain", "does not support range requests"),
        ("500", "answers HTTP 500"),
        ("cut", "cannot be read|bytes early"),
    ],
)
def test_a_server_that_misbehaves_loses_nothing(log, server, fault, said):
    reader = reader_of(server)
    log.append(entry(1))
    reader.look()
    log.append(entry(2))
    server.fault = fault
    with pytest.raises(SourceUnavailable, match=said):
        reader.look()
    server.fault = None
    reader.look()
    assert reader.numbers == [1, 2]


def test_a_server_that_is_away_is_said_by_its_host_alone(tmp_path):
    with RangeServer(tmp_path) as server:
        reader = reader_of(server, TOKEN)
    with pytest.raises(SourceUnavailable) as error:
        reader.look()
    assert "127.0.0.1" in str(error.value)
    assert TOKEN not in str(error.value)


def test_the_token_opens_the_log_and_goes_nowhere_else(log, tmp_path):
    log.append(entry(1))
    with RangeServer(tmp_path, token=TOKEN) as server, RangeServer(tmp_path) as other:
        with pytest.raises(SourceUnavailable, match="LOOKOUT_LOG_TOKEN"):
            reader_of(server).look()
        reader = reader_of(server, TOKEN)
        reader.look()
        assert reader.numbers == [1]
        server.fault, server.other = "elsewhere", other.url.replace("127.0.0.1", "localhost")
        reader_of(server, TOKEN, server.other).look()
        assert set(other.authorizations) == {None}


def test_f97_a_log_that_redirects_inside_is_not_followed(log, server, tmp_path):
    log.append(entry(1))
    with RangeServer(tmp_path) as inside:
        server.fault, server.other = "elsewhere", inside.url
        with pytest.raises(SourceUnavailable, match=r"loopback address.*probe\.allowed_origins"):
            reader_of(server, TOKEN).look()
        assert inside.authorizations == []


@pytest.mark.parametrize("location", ["data:text/plain,", "file:///etc", "http://[::1", "javascript:x"])
def test_f97_a_log_that_redirects_to_no_web_page_is_its_own_fault(log, server, location):
    server.fault, server.other = "elsewhere", location
    with pytest.raises(SourceUnavailable, match="redirects to an"):
        reader_of(server).look()


@pytest.mark.parametrize("fault", ["drips", "endless"])
def test_f96_a_log_that_never_ends_is_given_up(log, server, monkeypatch, fault):
    """A response that sends one byte a second ends at the deadline.

    A response that is longer than the requested range ends at the length of the range.
    """
    monkeypatch.setattr(files, "REQUEST_DEADLINE_S", 0.5)
    log.append(entry(1))
    server.fault = fault
    reader = reader_of(server)
    if fault == "drips":
        with pytest.raises(SourceUnavailable, match="no complete answer within"):
            reader.look()
    else:
        reader.look()
        assert reader.numbers == [1]


def test_a_size_of_5000_digits_is_the_servers_fault(log, server):
    log.append(entry(1))
    server.fault = "digits"
    with pytest.raises(SourceUnavailable, match="the length of the log"):
        reader_of(server).look()


def test_a_file_of_the_hub_is_read_at_its_endpoint_with_its_token(log, tmp_path):
    log.append(entry(1))
    with RangeServer(tmp_path, token=TOKEN) as hub:
        reader = Reader(log.path)
        reader.place = build_remote_log(
            f"hf://datasets/someone/logs/{NAME}", {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        )
        reader.look()
        assert reader.numbers == [1]


def test_the_address_of_a_hub_file():
    assert (
        build_hub_url("hf://datasets/a/b/x/y.jsonl") == "https://huggingface.co/datasets/a/b/resolve/main/x/y.jsonl"
    )
    assert build_hub_url("hf://spaces/a/b@dev/y.jsonl") == "https://huggingface.co/spaces/a/b/resolve/dev/y.jsonl"
    assert build_hub_url("hf://a/b/y.jsonl", "http://127.0.0.1:1/") == "http://127.0.0.1:1/a/b/resolve/main/y.jsonl"
    with pytest.raises(ConfigError, match="hf://datasets/owner/name"):
        build_hub_url("hf://datasets/a")
