"""Blocks of Markdown into a text that may not grow too long: what does not fit is counted, never dropped unseen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

CUT: Final = "*Cut here: a comment holds no more. The report has the rest.*"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: ``rows`` may be left out from the end, ``head`` and ``foot`` may not.

    ``total`` is how many rows there would be: the missing ones are counted after those that are shown.
    """

    head: Sequence[str] = ()
    rows: Sequence[str] = ()
    foot: Sequence[str] = ()
    total: int | None = None


def fitted(blocks: Sequence[Block], last: Block, *, limit: int) -> str:
    """The blocks in their order with a line between, and always ``last``; at most ``limit`` characters.

    Characters are counted as UTF-16 does, where one beyond the basic plane is two: no way of counting gives more.
    A block that does not fit with at least one row, and all after it, give way to a note that says so.
    """
    room = limit - _size(_lines(last, len(last.rows))) - _size([CUT]) - 4
    shown: list[str] = []
    for block in blocks:
        lines = _within(block, room)
        if lines is None:
            shown.append(CUT)
            break
        room -= _size(lines) + 2
        shown.append("\n".join(lines))
    return "\n\n".join([*shown, "\n".join(_lines(last, len(last.rows)))]) + "\n"


def _within(block: Block, room: int) -> list[str] | None:
    """As many rows as there is room for; nothing when there is not even room for one of those there are."""
    left = room - _size([*block.head, *_more(block, 0), *block.foot])
    count = 0
    for row in block.rows:
        left -= _size([row])
        if left < 0:
            break
        count += 1
    if left < 0 and count == 0:
        return None
    return list(_lines(block, count))


def _lines(block: Block, count: int) -> Iterator[str]:
    yield from block.head
    yield from block.rows[:count]
    yield from _more(block, count)
    yield from block.foot


def _more(block: Block, count: int) -> Iterator[str]:
    missing = (block.total if block.total is not None else len(block.rows)) - count
    if missing > 0:
        yield ""
        yield f"And {missing:,} more in the report."


def _size(lines: Sequence[str] | Iterator[str]) -> int:
    return sum(len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1 for line in lines)
