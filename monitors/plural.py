"""A count and its noun, the same in every message, report and line of output."""

from __future__ import annotations


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Format a count: ``1 case``, ``2 cases``; ``many`` is a plural that does not end in s.

    Thousands are separated.
    """
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"
