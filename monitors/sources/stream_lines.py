"""Lines of a stream that can only be read forward, in bounded memory."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import IO, NamedTuple, Protocol

CHUNK_BYTES = 1 << 20


class ByteStream(Protocol):
    """What lines are read from."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes, none at the end."""
        ...


class Unpacked:
    """What a packed stream holds. Of one that is cut off all is given before ``EOFError`` tells of it."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._unpacking = gzip.GzipFile(fileobj=packed)

    def read(self, size: int, /) -> bytes:
        """See `ByteStream`; a whole ``read`` would lose what stands before a cut."""
        return self._unpacking.read1(size)


class StreamLine(NamedTuple):
    """One line without its end. ``length`` in bytes exceeds that of ``raw`` where only its start was kept.

    ``ended`` is false for a last line without a line's end. ``number`` counts from 1.
    """

    number: int
    raw: bytes
    length: int
    ended: bool


def lines_of(stream: ByteStream, *, longest_bytes: int) -> Iterator[StreamLine]:
    """Every line. Of one longer than ``longest_bytes`` only the start is kept."""
    number, kept, length = 1, bytearray(), 0
    while chunk := stream.read(CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        kept += first[: max(0, longest_bytes - len(kept))]
        length += len(first)
        for piece in others:
            yield StreamLine(number, bytes(kept), length, ended=True)
            number, kept, length = number + 1, bytearray(piece[:longest_bytes]), len(piece)
    if length:
        yield StreamLine(number, bytes(kept), length, ended=False)
