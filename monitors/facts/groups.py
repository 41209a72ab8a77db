"""One group of a number: what stands before its scale word. Digits, words below a thousand, their fractions."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.lookup import VULGAR, Group, Lookup, vulgar
from monitors.facts.number_words import NumberWord, Part
from monitors.facts.numbers import EXACT, numeral_values
from monitors.facts.tokens import NUMERAL, SIGN, WORD

_COMMON_FRACTIONS = frozenset((Decimal(above), Decimal(below)) for above, below in ((1, 2), (1, 3), (1, 4), (3, 4)))

_LONGEST = 60
"""Digits; no one writes a longer number in groups."""


class GroupReader(Lookup):
    """Reads groups; `monitors.facts.words.Reader` puts them together."""

    def _group(self, at: int) -> Group | None:
        token = self.token(at)
        if token.kind == NUMERAL:
            return self._numeral_group(at)
        if token.kind == SIGN:
            return Group(vulgar(token.text), at + 1) if token.text in VULGAR else None
        word = self.word(at)
        return None if word is None else self._worded_group(at, word)

    def _worded_group(self, at: int, word: NumberWord) -> Group | None:
        match word.part:
            case Part.SMALL:
                return self._decimals(self._hundreds(self._smalls(at, word)))
            case Part.HUNDRED:
                return self._decimals(self._hundreds(Group(Decimal(1), at)))
            case Part.QUARTERED:
                return self._decimals(self._hundreds(self._quartered(at, word)))
            case Part.FIXED:
                return self._decimals(self._hundreds(Group(word.value, at + 1)))
            case Part.FRACTION:
                return self._fraction_group(at, word)
            case Part.ARTICLE:
                return self._article_group(at)
            case Part.POINT:
                pointed = self._decimals(Group(Decimal(0), at))
                return pointed if pointed.after > at else None
            case _:
                return None

    def _numeral_group(self, at: int) -> Group | None:
        values = numeral_values(self.token(at).text)
        if len(values) != 1:
            return None
        group = Group(values[0][0], at + 1, numeral=True)
        if self.token(at + 1).text in VULGAR:
            return Group(group.value + vulgar(self.token(at + 1).text), at + 2, numeral=True)
        spaced = self._space_groups(at, group)
        mixed = self._mixed_fraction(spaced)
        return self._decimals(self._hundreds(mixed))

    def _space_groups(self, at: int, group: Group) -> Group:
        """``40 000`` and ``1 234 567.89``: groups of three after one to three digits, one space apart."""
        first = self.token(at)
        if not first.text.isdecimal() or len(first.text) > 3 or first.text.startswith("0"):  # noqa: PLR2004
            return group
        digits, after, previous = first.text, at + 1, first
        while True:
            token = self.token(after)
            near = token.kind == NUMERAL and token.start - previous.end == 1
            if not near or len(digits) > _LONGEST or len(token.text.split(".")[0]) != 3 or "," in token.text:  # noqa: PLR2004
                break
            digits, previous, after = digits + token.text, token, after + 1
            if "." in token.text:
                break
        many = after > at + 2 or (after == at + 2 and previous.text.endswith("000"))
        return Group(Decimal(digits), after, numeral=True) if many and digits.count(".") <= 1 else group

    def _mixed_fraction(self, group: Group) -> Group:
        """``2 1/4``, and ``3/4`` by itself; a fraction that is at least one (24/7) is two numbers."""
        at = group.after
        if self.token(at).text == "/" and group.value.as_tuple().exponent == 0:
            below = self._denominator(at + 1)
            listed = self.token(at - 2).text == "/" or self._is_list(group.value, below)
            if below is not None and group.value < below.value and not listed:
                return Group(EXACT.divide(group.value, below.value), below.after, numeral=True)
            return group
        above = self.token(at)
        if above.kind == NUMERAL and above.text.isdecimal() and self.token(at + 1).text == "/":
            below = self._denominator(at + 2)
            if below is not None and below.value > 0 and len(above.text) <= 6:  # noqa: PLR2004 - no date, no id
                return Group(
                    group.value + EXACT.divide(Decimal(above.text), below.value), below.after, numeral=True
                )
        return group

    def _is_list(self, above: Decimal, below: Group | None) -> bool:
        """``24/36 months``: one or the other, unless it is a half, a third or a quarter."""
        if below is None or (above, below.value) in _COMMON_FRACTIONS:
            return False
        return below.value <= 1 or self.token(below.after).key in self._units or self.token(below.after).text == "%"

    def _denominator(self, at: int) -> Group | None:
        token = self.token(at)
        if token.kind != NUMERAL or not token.text.isdecimal() or len(token.text) > 20:  # noqa: PLR2004
            return None
        if self.token(at + 1).text == "/":
            return None
        after = at + 2 if self.token(at + 1).key in {"rd", "th", "nd"} else at + 1
        return Group(Decimal(token.text), after)

    def _smalls(self, at: int, word: NumberWord) -> Group:
        """``twenty two``, ``one twenty two`` (122), ``nineteen eighty four`` and ``nineteen oh five`` (years)."""
        first = self._two_digits(at, word)
        following = self.word(first.after)
        if following is None or following.part is not Part.SMALL or not word.english or not following.english:
            return first
        if 0 < first.value < 10 and following.tens:  # noqa: PLR2004
            rest = self._two_digits(first.after, following)
            return Group(first.value * 100 + rest.value, rest.after)
        return self._year(first, following)

    def _two_digits(self, at: int, word: NumberWord) -> Group:
        """``twenty two``, ``twenty-two``, ``twenty and two`` before a unit; any other word by itself."""
        if not word.tens:
            return Group(word.value, at + 1)
        after = at + 2 if self._counts_on(at) else self._past_hyphen(at + 1)
        following = self.raw_word(after)
        unit = following is not None and following.part is Part.SMALL and following.english
        if unit and following is not None and 0 < following.value < 10:  # noqa: PLR2004
            return Group(word.value + following.value, after + 1)
        return Group(word.value, at + 1)

    def _counts_on(self, at: int) -> bool:
        """``twenty and four hours``: only right before a unit."""
        joined = self.part(at + 1) is Part.AND and self.token(at - 1).key != "between"
        return joined and self.token(at + 3).key in self._units

    def _year(self, first: Group, following: NumberWord) -> Group:
        if not 10 <= first.value <= 99:  # noqa: PLR2004
            return first
        if following.value >= 10:  # noqa: PLR2004
            rest = self._two_digits(first.after, following)
            return Group(first.value * 100 + rest.value, rest.after, year=True)
        units = self.word(first.after + 1) if self.token(first.after).key in {"oh", "o"} else None
        if units is not None and units.part is Part.SMALL and 0 < units.value < 10:  # noqa: PLR2004
            return Group(first.value * 100 + units.value, first.after + 2, year=True)
        return first

    def _past_hyphen(self, at: int) -> int:
        return at + 1 if self.token(at).text in {"-", "—", "–"} and self.token(at + 1).kind == WORD else at

    def _hundreds(self, group: Group) -> Group:
        """``three hundred and two``, ``सौ``, ``3 सौ और 21``."""
        if self.part(group.after) is not Part.HUNDRED or group.year:
            return group
        value, after = group.value * 100, group.after + 1
        joined = self.part(after) is Part.AND
        at = after + 1 if joined else after
        word = self.word(at)
        if word is not None and word.part is Part.SMALL:
            rest = self._smalls(at, word)
            if rest.value < 100 and self.part(rest.after) is not Part.HUNDRED and not self._is_fraction(rest.after):  # noqa: PLR2004
                return Group(value + rest.value, rest.after)
        token = self.token(at)
        if joined and group.numeral and self._is_rest(at):
            return Group(value + Decimal(token.text), at + 1)
        return Group(value, after)

    def _is_rest(self, at: int) -> bool:
        """One or two digits that end a number: the 21 of "3 hundred and 21"."""
        token = self.token(at)
        fits = token.kind == NUMERAL and token.text.isdecimal() and len(token.text) <= 2  # noqa: PLR2004
        return fits and int(token.text) > 0 and self.part(at + 1) not in {Part.HUNDRED, Part.SCALE}

    def _is_fraction(self, at: int) -> bool:
        return self.part(at) is Part.FRACTION

    def _quartered(self, at: int, word: NumberWord) -> Group:
        """सवा दो = 2.25, साढ़े तीन = 3.5, पौने चार = 3.75; before a scale alone सवा is 1.25 and पौने 0.75."""
        inner = self.token(at + 1)
        if inner.kind == NUMERAL:
            values = numeral_values(inner.text)
            if len(values) == 1:
                return Group(values[0][0] + word.value, at + 2)
        number = self.word(at + 1)
        if number is not None and number.part is Part.SMALL:
            return Group(number.value + word.value, at + 2)
        alone = word.value if word.value == Decimal("0.5") else 1 + word.value
        return Group(alone, at + 1)

    def _fraction_group(self, at: int, word: NumberWord) -> Group | None:
        """``half a million``, ``quarter million``, ``आधा``; an English half or quarter by itself is no number."""
        after = at + 1
        if word.english and self.part(after) is Part.ARTICLE:
            after += 1
        if not word.english or self.part(after) in {Part.SCALE, Part.DOZEN} or self.token(after).key in self._units:
            return Group(word.value, after)
        return None

    def _article_group(self, at: int) -> Group | None:
        """``a hundred``, ``a million``, ``a dozen``, ``a couple``, ``a quarter``, ``a half``."""
        following = self.word(at + 1)
        if following is None:
            return None
        if following.part in {Part.HUNDRED, Part.SCALE, Part.DOZEN}:
            return self._hundreds(Group(Decimal(1), at + 1))
        if following.part is Part.ORDINAL and following.english and following.value >= 100:  # noqa: PLR2004
            return Group(EXACT.divide(Decimal(1), following.value), at + 2)
        if self.token(at + 1).key in {"couple", "pair"}:
            after = at + 3 if self.token(at + 2).key == "of" else at + 2
            return Group(Decimal(2), after)
        return None

    def _decimals(self, group: Group) -> Group:
        """``point two five``, ``दशमलव सात पाँच``, ``1 point 1``."""
        if self.part(group.after) is not Part.POINT:
            return group
        digits, at = "", group.after + 1
        while len(digits) < 40:  # noqa: PLR2004 - no one says more decimals
            token, word = self.token(at), self.word(at)
            if word is not None and word.part is Part.SMALL:
                digits += str(word.value)
            elif token.key == "o":
                digits += "0"
            elif token.kind == NUMERAL and token.text.isdecimal() and not digits:
                digits += token.text[:40]
                at += 1
                break
            else:
                break
            at += 1
        return group._replace(value=group.value + Decimal(f"0.{digits}"), after=at) if digits else group
