"""Test that server-sent events are read correctly, wherever the network splits them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import PageNotUnderstood
from monitors.probes.api.driver import Event, parse_server_sent_events, split_lines


async def coming(pieces: list[str]) -> AsyncIterator[str]:
    for piece in pieces:
        yield piece


@given(st.text(st.sampled_from("ab\r\n\u2028\x85: "), max_size=40), st.lists(st.integers(0, 40), max_size=8))
async def test_lines_do_not_depend_on_where_the_stream_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    whole = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [line async for line in split_lines(coming(pieces))] == (whole if whole[-1] else whole[:-1])


async def test_a_separator_of_lines_within_an_answer_is_part_of_it() -> None:
    stream = 'event: token\r\ndata: {"t": "one\u2028two\x85three"}\r\n\r\n'
    assert [event async for event in parse_server_sent_events(split_lines(coming([stream])))] == [
        Event(name="token", data='{"t": "one\u2028two\x85three"}')
    ]


async def test_a_line_without_end_is_given_up() -> None:
    with pytest.raises(PageNotUnderstood, match="more than 100 characters"):
        async for _ in split_lines(coming(["x" * 60] * 3), 100):
            pass
