"""Small PNG files that code generates: a chat window in flat colours."""

from __future__ import annotations

import struct
import zlib


def chat_png(width: int = 360, height: int = 480, *, noise: bytes = b"") -> bytes:
    """Return a PNG with the bubbles of a question and an answer; ``noise`` makes the file larger and unique."""
    rows = b"".join(b"\x00" + _row(y, width, height) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    text = _chunk(b"tEXt", b"Comment\x00" + noise) if noise else b""
    chunks = [_chunk(b"IHDR", header), text, _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _row(y: int, width: int, height: int) -> bytes:
    paper, question, answer, ink = b"\xf7\xf7\xf4", b"\xd8\xe4\xf5", b"\xe9\xe9\xe4", b"\x6a\x6d\x72"
    if 40 <= y < 90:
        line = ink if y % 22 in {4, 5} else question
        return paper * (width // 3) + line * (width - width // 3 - 20) + paper * 20
    if 120 <= y < height - 160:
        line = ink if y % 18 in {4, 5} else answer
        return paper * 20 + line * (width - width // 4 - 20) + paper * (width // 4)
    return paper * width


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
