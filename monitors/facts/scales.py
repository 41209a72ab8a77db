"""Groups with their scale words: five crore, twenty lakh, three hundred and two."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.groups import GroupReader
from monitors.facts.lookup import Group
from monitors.facts.number_words import NUMBER_WORDS, Part
from monitors.facts.numbers import EXACT, LARGEST
from monitors.facts.tokens import NUMERAL, WORD


class ScaleReader(GroupReader):
    """Reads groups with falling scales; `monitors.facts.words.Reader` adds what may follow them."""

    def _scaled(self, at: int) -> tuple[Decimal, int, Decimal] | None:
        """Groups with falling scales: five crore | twenty lakh | two. Value, next token, last scale."""
        total, limit, begin, end = Decimal(0), LARGEST, at, at
        last_scale = Decimal(1)
        while True:
            group = self._group(at)
            first = end == begin
            if group is None:
                if not first or self.part(at) is not Part.SCALE:
                    break
                group = Group(Decimal(1), at)
            scale, after = self._scale(group.after, group)
            if not first and not self._continues(group, scale, limit, at):
                break
            total = EXACT.fma(group.value, scale, total)
            end, last_scale = after, scale
            if scale == 1 or total >= LARGEST:
                break
            limit = scale
            at = self._past_joint(after)
        return None if end == begin else (total, end, last_scale)

    def _continues(self, group: Group, scale: Decimal, limit: Decimal, at: int) -> bool:
        """Whether a group belongs to the number before it: smaller, and not a number of its own."""
        if group.year or scale >= limit or group.value * scale >= limit or self._is_numerator(group.after):
            return False
        if not group.numeral or scale > 1:
            return True
        joined = self.part(at - 1) is Part.AND
        return joined and group.value == group.value.to_integral_value()

    def _is_numerator(self, at: int) -> bool:
        """Whether what follows makes a fraction of the group before: "… and three quarters"."""
        at = self._past_hyphen(at)
        return self._is_fraction(at) or self._denominator_word(at, numerator=Decimal(0)) is not None

    def _past_joint(self, at: int) -> int:
        """Over an "and" or a comma between two groups, when a number word or digits follow."""
        if self.part(at) is Part.AND and self._begins_group(at + 1):
            return at + 1
        comma = self.token(at).text == "," and self.token(at + 1).kind == WORD
        return at + 1 if comma and self._begins_group(at + 1) else at

    def _begins_group(self, at: int) -> bool:
        if self.token(at).kind == NUMERAL:
            return True
        return self.part(at) in {Part.SMALL, Part.HUNDRED, Part.QUARTERED, Part.FIXED}

    def _scale(self, at: int, group: Group) -> tuple[Decimal, int]:
        """All scale words from ``at`` on, multiplied: lakh crore, k, cr, bn."""
        scale, first = Decimal(1), at
        while self.part(at) is Part.SCALE and at < first + _MOST_SCALES:
            scale = EXACT.multiply(scale, NUMBER_WORDS[self.token(at).key].value)
            at += 1
        if scale == 1 and group.numeral:
            return self._suffix_scale(at)
        return scale, at

    def _suffix_scale(self, at: int) -> tuple[Decimal, int]:
        token, before = self.token(at), self.token(at - 1)
        if token.kind != WORD:
            return Decimal(1), at
        glued = before.end == token.start
        if glued and token.text in _CAPITAL_SCALES:
            return _CAPITAL_SCALES[token.text], at + 1
        word = NUMBER_WORDS.get(token.key)
        if word is not None and word.part is Part.SUFFIX_SCALE:
            if token.key == "g" and not (token.text == "G" and (glued or "." in before.text)):
                return Decimal(1), at
            return word.value, at + 1
        return Decimal(1), at

    def _denominator_word(self, at: int, numerator: Decimal | None = None) -> Group | None:
        """``thirds``, ``eighths``; in the singular only after one. Seconds are time, see durations."""
        word, key = self.word(at), self.token(at).key
        if word is None or word.part is not Part.ORDINAL or not word.english or word.value < 3:  # noqa: PLR2004
            return None
        plural = key.endswith("s")
        if not plural and numerator is not None and numerator != 1:
            return None
        return Group(word.value, at + 1)


_MOST_SCALES = 3
"""Scale words in a row: "hundred thousand trillion" is said, four are not."""

_CAPITAL_SCALES = {
    "K": Decimal("1e3"),
    "L": Decimal("1e5"),
    "M": Decimal("1e6"),
    "B": Decimal("1e9"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "Cr": Decimal("1e7"),
}
"""One capital right behind digits: 10K, 5L, 2.1T. Small letters there are measures (5 m, 2 l), but for k."""
