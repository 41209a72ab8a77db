"""Read the part of a judge's prompt that is outside the fences. This part must contain no word of a graded text."""

from __future__ import annotations

import re

_FENCE_LINE = re.compile(r"<<<(?P<edge>BEGIN|END) (?P<part>[A-Z ]+) (?P<nonce>[0-9a-f]{16,64})>>>")


def unfenced(prompt: str, nonce: str) -> str:
    """Return the lines of a prompt that are outside all fences with this nonce.

    Raises `ValueError` if the BEGIN and END lines of the fences do not match.
    """
    outside: list[str] = []
    open_part: str | None = None
    for line in prompt.split("\n"):
        fence_line = _FENCE_LINE.fullmatch(line)
        if fence_line is None or fence_line["nonce"] != nonce:
            if open_part is None:
                outside.append(line)
            continue
        is_opening = fence_line["edge"] == "BEGIN"
        if is_opening is (open_part is not None) or not (is_opening or fence_line["part"] == open_part):
            raise ValueError(f"a fence is out of order: {fence_line['edge'].lower()} of {fence_line['part']}")
        open_part = fence_line["part"] if is_opening else None
    if open_part is not None:
        raise ValueError(f"the fence of {open_part} is not closed")
    return "\n".join(outside)
