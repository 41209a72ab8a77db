"""Choices that a seed decides: the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Pick:
    """A row of choices. Two with the same words choose alike; one choice does not change the next."""

    def __init__(self, *words: str | int) -> None:
        self._key = "\0".join(map(str, words)).encode()
        self._count = 0

    def below(self, most: int) -> int:
        """A whole number from 0 to below ``most``."""
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:8], "big") % most

    def one(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.below(len(options))]

    def mixed(self, options: Sequence[T]) -> list[T]:
        """All of them in another order."""
        left, row = list(options), list[T]()
        while left:
            row.append(left.pop(self.below(len(left))))
        return row
