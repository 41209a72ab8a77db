from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import SchemaTooNew, WarehouseDamaged
from tests.warehouse.sample_rows import (
    NOON,
    alert,
    assessment,
    deploy,
    exchange,
    incident,
    receipt,
    run_report,
    suite,
)
from tests.warehouse.temporary_stores import SteppingClock, seeded_entropy
from warehouse.journal.rows import (
    AlertRow,
    AssessmentRow,
    CaseRow,
    DeployRow,
    IncidentRow,
    IncidentVersion,
    ReceiptRow,
    ResultRow,
    RunRow,
    SuiteCase,
)
from warehouse.journal.segments import SegmentId, SegmentNames, decode_segment, encode_rows, encode_segment

ALL_ROWS = (
    ResultRow(row=exchange()),
    AssessmentRow(row=assessment()),
    RunRow(row=run_report()),
    CaseRow(row=SuiteCase(suite_sha256="a" * 64, suite_name="gold", case=suite().cases[0])),
    DeployRow(row=deploy()),
    IncidentRow(row=IncidentVersion(sequence=1, incident=incident())),
    AlertRow(row=alert()),
    ReceiptRow(row=receipt()),
)
WHOLE = encode_segment(encode_rows(ALL_ROWS), segment_id=SegmentId("s-1"), run_id="run-1")


def read(data: bytes):
    return decode_segment(data, where="x.jsonl", segment_id="s-1", run_id="run-1")


def test_rows_of_every_table_come_back_as_they_were_in_order():
    assert tuple(read(WHOLE).rows()) == ALL_ROWS


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_text_comes_back_as_it_was(text):
    """A text with line ends, quotes, U+2028 or NUL is read exactly as it was written."""
    rows = (ResultRow(row=exchange(text=text)),)
    assert (
        tuple(read(encode_segment(encode_rows(rows), segment_id=SegmentId("s-1"), run_id="run-1")).rows()) == rows
    )


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_flipped_byte_anywhere_is_noticed_or_changes_nothing(place, mask):
    data = bytearray(WHOLE)
    data[place] ^= mask
    try:
        found = tuple(read(bytes(data)).rows())
    except (WarehouseDamaged, SchemaTooNew):
        return
    assert found == ALL_ROWS


@given(st.integers(0, len(WHOLE) - 1))
def test_a_torn_segment_is_noticed(length):
    with pytest.raises(WarehouseDamaged, match=r"x\.jsonl is damaged"):
        read(WHOLE[:length])


def test_a_segment_under_another_name_is_noticed():
    with pytest.raises(WarehouseDamaged, match="s-1"):
        decode_segment(WHOLE, where="x.jsonl", segment_id="s-2", run_id="run-1")
    with pytest.raises(WarehouseDamaged, match="run-1"):
        decode_segment(WHOLE, where="x.jsonl", segment_id="s-1", run_id="run-2")


@pytest.mark.parametrize("change", [{"lookout_segment": 2}, {"rows": {"thoughts": 1}}])
def test_a_segment_of_a_newer_lookout_is_not_called_damaged(change):
    body = b'{"table":"thoughts","row":{}}\n'
    header = {
        "lookout_segment": 1,
        "id": "s-1",
        "run_id": "run-1",
        "rows": {"thoughts": 1},
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    with pytest.raises(SchemaTooNew, match="update Lookout"):
        read(json.dumps(header | change).encode() + b"\n" + body)


def test_ids_sort_in_the_order_of_asking_even_when_the_clock_steps_back():
    clock = SteppingClock()
    names = SegmentNames(clock, seeded_entropy(1))
    ids = []
    for _ in range(50):
        ids.append(names.build_next_id())
        clock.skip(seconds=-3)
    assert ids == sorted(ids)
    assert len(set(ids)) == 50


def test_two_processes_with_the_same_clock_give_different_ids():
    one = SegmentNames(lambda: NOON, seeded_entropy(1)).build_next_id()
    other = SegmentNames(lambda: NOON, seeded_entropy(2)).build_next_id()
    assert one != other


def test_an_empty_segment_is_refused():
    with pytest.raises(ValueError, match="at least one row"):
        encode_segment(encode_rows([]), segment_id=SegmentId("s-1"), run_id=None)
