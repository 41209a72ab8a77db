"""Format a number with its noun, such as "2 cases"."""

from __future__ import annotations


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 case``, ``1,000 cases``.

    ``many`` is the plural of the noun. By default, the plural is ``singular`` with an added s.
    """
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"
