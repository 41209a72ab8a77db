"""Read the groups of a number. A group is the part before a scale word such as "lakh" or "million".

A group consists of digits, words below a thousand, or their fractions. Groups with scale words form numbers such as
"five crore, twenty lakh, three hundred and two". The end of a line ends a number. After a comma or an "and", a
number continues only with a smaller part ("two lakh, fifty thousand").
"""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.quantities.currencies import MONEY_WORDS, NAMES, SIGNS
from monitors.facts.quantities.lexicon import NUMBER_WORDS, NumberPart, NumberWord
from monitors.facts.quantities.numerals import (
    EXACT,
    MAX_VALUE,
    VULGAR,
    Group,
    Lookup,
    parse_numeral,
    parse_vulgar_fraction,
)
from monitors.facts.text import NUMERAL, SIGN, WORD, split_into_word_keys

_COMMON_FRACTIONS = frozenset((Decimal(above), Decimal(below)) for above, below in ((1, 2), (1, 3), (1, 4), (3, 4)))

_MAX_WORDS = 12
"""Maximum number of tokens between a currency and the end of its amount."""

_GOES_ON = split_into_word_keys(
    "is are was were will shall can may must has have per only for in to at as on by from with or and if a an each "
    "every "
    "है हैं का की के को में से तक hai hain ka ki ke ko mein me se tak"
)
"""Words after an amount that continue the sentence.

They do not name a counted thing: the "is" in "Rs fifty is paid".
"""

_MAX_GROUP_LENGTH = 60
"""Maximum number of digits of a number that is read in groups."""


class GroupReader(Lookup):
    """Read single groups of a number, such as the "12 thousand" in "12 thousand 300".

    `monitors.facts.quantities.number_reader.NumberReader` combines the groups into numbers.
    """

    def _read_group(self, at: int) -> Group | None:
        token = self.token(at)
        if token.kind == NUMERAL:
            return self._read_numeral_group(at)
        if token.kind == SIGN:
            return Group(parse_vulgar_fraction(token.text), at + 1) if token.text in VULGAR else None
        word = self.word(at)
        return None if word is None else self._read_worded_group(at, word)

    def _read_worded_group(self, at: int, word: NumberWord) -> Group | None:
        match word.part:
            case NumberPart.SMALL:
                return self._read_spoken_decimals(self._read_hundreds(self._read_small_number_words(at, word)))
            case NumberPart.HUNDRED:
                return self._read_spoken_decimals(self._read_hundreds(Group(Decimal(1), at)))
            case NumberPart.QUARTERED:
                return self._read_spoken_decimals(self._read_hundreds(self._read_hindi_quarter_number(at, word)))
            case NumberPart.FIXED:
                return self._read_spoken_decimals(self._read_hundreds(Group(word.value, at + 1)))
            case NumberPart.FRACTION:
                return self._read_fraction_group(at, word)
            case NumberPart.ARTICLE:
                return self._read_number_after_article(at)
            case NumberPart.POINT:
                pointed = self._read_spoken_decimals(Group(Decimal(0), at))
                return pointed if pointed.after > at else None
            case _:
                return None

    def _read_numeral_group(self, at: int) -> Group | None:
        values = parse_numeral(self.token(at).text)
        if len(values) != 1:
            return None
        group = Group(values[0][0], at + 1, numeral=True)
        if self.token(at + 1).text in VULGAR:
            return Group(group.value + parse_vulgar_fraction(self.token(at + 1).text), at + 2, numeral=True)
        spaced = self._join_spaced_groups(at, group)
        mixed = self._read_slash_fraction(spaced)
        return self._read_spoken_decimals(self._read_hundreds(mixed))

    def _join_spaced_groups(self, at: int, group: Group) -> Group:
        """Join groups of three digits with one space between them: ``40 000``, ``1 234 567.89``."""
        first = self.token(at)
        if not first.text.isdecimal() or len(first.text) > 3 or first.text.startswith("0"):  # noqa: PLR2004 - a group has three digits
            return group
        digits, after, previous = first.text, at + 1, first
        while True:
            token = self.token(after)
            near = token.kind == NUMERAL and token.start - previous.end == 1 and after not in self._breaks
            if (
                not near
                or len(digits) > _MAX_GROUP_LENGTH
                or len(token.text.split(".")[0]) != 3  # noqa: PLR2004 - a group has three digits
                or "," in token.text
            ):
                break
            digits, previous, after = digits + token.text, token, after + 1
            if "." in token.text:
                break
        many = after > at + 2 or (after == at + 2 and previous.text.endswith("000"))
        return Group(Decimal(digits), after, numeral=True) if many and digits.count(".") <= 1 else group

    def _read_slash_fraction(self, group: Group) -> Group:
        """Read ``2 1/4`` or ``3/4``. A fraction of 1 or more, such as 24/7, is read as two numbers."""
        at = group.after
        if self.token(at).text == "/" and group.value.as_tuple().exponent == 0:
            below = self._read_denominator(at + 1)
            listed = self.token(at - 2).text == "/" or self._is_pair_of_alternatives(group.value, below)
            if below is not None and group.value < below.value and not listed:
                return Group(EXACT.divide(group.value, below.value), below.after, numeral=True)
            return group
        above = self.token(at)
        spaced = above.kind == NUMERAL and above.text.isdecimal() and at not in self._breaks
        if spaced and self.token(at + 1).text == "/":
            below = self._read_denominator(at + 2)
            if below is not None and below.value > 0 and len(above.text) <= 6:  # noqa: PLR2004 - no date, no id
                return Group(
                    group.value + EXACT.divide(Decimal(above.text), below.value), below.after, numeral=True
                )
        return group

    def _is_pair_of_alternatives(self, above: Decimal, below: Group | None) -> bool:
        """Return whether two numbers are alternatives (``24/36 months``) and not a fraction."""
        if below is None or (above, below.value) in _COMMON_FRACTIONS:
            return False
        return below.value <= 1 or self.token(below.after).key in self._units or self.token(below.after).text == "%"

    def _read_denominator(self, at: int) -> Group | None:
        token = self.token(at)
        if token.kind != NUMERAL or not token.text.isdecimal() or len(token.text) > 20:  # noqa: PLR2004 - more digits are an identifier
            return None
        if self.token(at + 1).text == "/":
            return None
        after = at + 2 if self.token(at + 1).key in {"rd", "th", "nd"} else at + 1
        return Group(Decimal(token.text), after)

    def _read_small_number_words(self, at: int, word: NumberWord) -> Group:
        """Read ``twenty two``, ``one twenty two`` (122), ``nineteen oh five`` (a year)."""
        first = self._read_tens_and_units(at, word)
        following = self.word(first.after)
        if following is None or following.part is not NumberPart.SMALL or first.after in self._breaks:
            return first
        if not word.english or not following.english:
            return first
        if 0 < first.value < 10 and following.tens:  # noqa: PLR2004 - one digit before tens: one twenty two
            rest = self._read_tens_and_units(first.after, following)
            return Group(first.value * 100 + rest.value, rest.after)
        return self._read_year_words(first, following)

    def _read_tens_and_units(self, at: int, word: NumberWord) -> Group:
        """Read ``twenty two``, ``twenty-two``, or ``twenty and two`` before a unit.

        Any other number word is returned as a separate group.
        """
        if not word.tens:
            return Group(word.value, at + 1)
        after = at + 2 if self._is_continued_after_and(at) else self._skip_hyphen(at + 1)
        following = self.find_possible_number_word(after)
        unit = following is not None and following.part is NumberPart.SMALL and following.english
        near = unit and not self.has_line_break_between(at, after)
        if near and following is not None and 0 < following.value < 10:  # noqa: PLR2004 - a unit has one digit
            return Group(word.value + following.value, after + 1)
        return Group(word.value, at + 1)

    def _is_continued_after_and(self, at: int) -> bool:
        """Return whether "and" continues a number: a unit follows the next word (``twenty and four hours``)."""
        joined = self.part(at + 1) is NumberPart.AND and self.token(at - 1).key != "between"
        return joined and self.token(at + 3).key in self._units

    def _read_year_words(self, first: Group, following: NumberWord) -> Group:
        if not 10 <= first.value <= 99:  # noqa: PLR2004 - a century has two digits
            return first
        if following.value >= 10:  # noqa: PLR2004 - two digits after the century
            rest = self._read_tens_and_units(first.after, following)
            return Group(first.value * 100 + rest.value, rest.after, year=True)
        units = self.word(first.after + 1) if self.token(first.after).key in {"oh", "o"} else None
        if units is not None and units.part is NumberPart.SMALL and 0 < units.value < 10:  # noqa: PLR2004 - oh five: one digit
            return Group(first.value * 100 + units.value, first.after + 2, year=True)
        return first

    def _skip_hyphen(self, at: int) -> int:
        return at + 1 if self.token(at).text in {"-", "—", "–"} and self.token(at + 1).kind == WORD else at

    def _read_hundreds(self, group: Group) -> Group:
        """Read ``three hundred and two``, ``सौ``, ``3 सौ और 21``."""
        if not self._is_hundred(group.after) or group.year:
            return group
        value, after = group.value * 100, group.after + 1
        joined = self.part(after) is NumberPart.AND
        at = after + 1 if joined else after
        if self.has_line_break_between(after - 1, at):
            return Group(value, after)
        word = self.word(at)
        if word is not None and word.part is NumberPart.SMALL:
            rest = self._read_small_number_words(at, word)
            below = rest.value < 100 and not self._is_hundred(rest.after)  # noqa: PLR2004 - below a hundred
            if (
                below
                and not self._has_fraction_word_at(rest.after)
                and not self._is_counted_separately(after, rest.after)
            ):
                return Group(value + rest.value, rest.after)
        token = self.token(at)
        if (
            joined
            and group.numeral
            and self._has_final_digits_at(at)
            and not self._is_counted_separately(after, at + 1)
        ):
            return Group(value + Decimal(token.text), at + 1)
        return Group(value, after)

    def _is_hundred(self, at: int) -> bool:
        """Return whether a word means a hundred: "sau" in "paanch sau". Alone, "sau" is not read as a number."""
        if self.part(at) is NumberPart.HUNDRED:
            return True
        word, before = self.find_possible_number_word(at), self.part(at - 1)
        return (
            word is not None
            and word.part is NumberPart.HUNDRED
            and before in {NumberPart.SMALL, NumberPart.QUARTERED, NumberPart.FIXED}
        )

    def _is_counted_separately(self, joint: int, after: int) -> bool:
        """Return whether a small number (tokens ``joint`` to ``after``) is separate from the number before it.

        Return True in three cases:

        - The words are "one of" something.
        - The small number follows a Hindi "and", and the number before it is in words.
        - The number before it has a currency, and a unit or noun follows: "Rs two hundred and three years".
        """
        following = self.token(after)
        if following.key == "of":
            return True
        word = self.word(joint)
        hindi = word is not None and word.part is NumberPart.AND and not word.english
        if hindi and self.token(joint - 2).kind != NUMERAL:
            return True
        if following.key in MONEY_WORDS or (following.kind != WORD and following.text != "%"):
            return False
        return following.key not in _GOES_ON and self._has_currency_before(joint)

    def _has_currency_before(self, at: int) -> bool:
        """Return whether a currency precedes the number that token ``at`` may continue."""
        for place in range(at - 1, max(-1, at - _MAX_WORDS), -1):
            token = self.token(place)
            if token.text in SIGNS or token.key in NAMES:
                return True
            dot = token.text == "."
            if not dot and token.kind != NUMERAL and self.find_possible_number_word(place) is None:
                return False
        return False

    def _has_final_digits_at(self, at: int) -> bool:
        """Return whether one or two digits end a number: the 21 in "3 hundred and 21"."""
        token = self.token(at)
        fits = token.kind == NUMERAL and token.text.isdecimal() and len(token.text) <= 2  # noqa: PLR2004 - two digits, see the docstring
        return fits and int(token.text) > 0 and self.part(at + 1) not in {NumberPart.HUNDRED, NumberPart.SCALE}

    def _has_fraction_word_at(self, at: int) -> bool:
        return self.part(at) is NumberPart.FRACTION

    def _read_hindi_quarter_number(self, at: int, word: NumberWord) -> Group:
        """Read सवा दो = 2.25, साढ़े तीन = 3.5, पौने चार = 3.75. Before a scale word, सवा is 1.25 and पौने 0.75."""
        inner = self.token(at + 1)
        if inner.kind == NUMERAL:
            values = parse_numeral(inner.text)
            if len(values) == 1:
                return Group(values[0][0] + word.value, at + 2)
        number = self.find_possible_number_word(at + 1)
        if number is not None and number.part is NumberPart.SMALL:
            return Group(number.value + word.value, at + 2)
        alone = word.value if word.value == Decimal("0.5") else 1 + word.value
        return Group(alone, at + 1)

    def _read_fraction_group(self, at: int, word: NumberWord) -> Group | None:
        """Read ``half a million``, ``quarter million``, ``आधा``. The English word "half" alone is not a number."""
        after = at + 1
        if word.english and self.token(after).key == "of" and self.token(after + 2).key in self._units:
            after += 1  # "a quarter of an hour"
        if word.english and self.part(after) is NumberPart.ARTICLE:
            after += 1
        if (
            not word.english
            or self.part(after) in {NumberPart.SCALE, NumberPart.DOZEN}
            or self.token(after).key in self._units
        ):
            return Group(word.value, after)
        return None

    def _read_number_after_article(self, at: int) -> Group | None:
        """Read a number that begins with an article: ``a hundred``, ``a dozen``, ``a couple``, ``a quarter``."""
        following = self.word(at + 1)
        if following is None:
            return None
        of_unit = self.token(at + 2).key == "of" or self.token(at + 2).key in self._units
        if following.part is NumberPart.FRACTION and following.english and of_unit:
            return self._read_fraction_group(at + 1, following)
        if following.part is NumberPart.ORDINAL and following.english and following.value >= 3:  # noqa: PLR2004 - thirds and smaller
            after = at + 4 if self.part(at + 3) is NumberPart.ARTICLE else at + 3
            if self.token(at + 2).key == "of" and self.token(after).key in self._units:
                return Group(EXACT.divide(Decimal(1), following.value), after)  # "a third of an hour"
        if following.part in {NumberPart.HUNDRED, NumberPart.SCALE, NumberPart.DOZEN}:
            return self._read_hundreds(Group(Decimal(1), at + 1))
        if following.part is NumberPart.ORDINAL and following.english and following.value >= 100:  # noqa: PLR2004 - hundredth and above
            return Group(EXACT.divide(Decimal(1), following.value), at + 2)
        if self.token(at + 1).key in {"couple", "pair"}:
            after = at + 3 if self.token(at + 2).key == "of" else at + 2
            return Group(Decimal(2), after)
        return None

    def _read_spoken_decimals(self, group: Group) -> Group:
        """Read decimals in words: ``point two five``, ``दशमलव सात पाँच``, ``1 point 1``."""
        if self.part(group.after) is not NumberPart.POINT:
            return group
        digits, at = "", group.after + 1
        while len(digits) < 40:  # noqa: PLR2004 - no one says more decimals
            token, word = self.token(at), self.word(at)
            if word is not None and word.part is NumberPart.SMALL:
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


class ScaleReader(GroupReader):
    """Read the groups of a number in which each scale is smaller than the scale before it.

    `monitors.facts.quantities.number_reader.NumberReader` also reads the text that may follow the groups.
    """

    def _read_scaled_groups(self, at: int) -> tuple[Decimal, int, Decimal] | None:
        """Read groups in which each scale is smaller than the scale before it: "five crore, twenty lakh, two".

        Return the value, the index of the next token and the last scale. Return ``None`` if there is no number.
        """
        total, limit, begin, end = Decimal(0), MAX_VALUE, at, at
        last_scale = Decimal(1)
        while True:
            group = self._read_group(at)
            first = end == begin
            if group is None:
                if not first or self.part(at) is not NumberPart.SCALE:
                    break
                group = Group(Decimal(1), at)
            scale, after = self._read_scale(group.after, group)
            if not first and not self._is_part_of_number(group, scale, limit, at):
                break
            total = EXACT.fma(group.value, scale, total)
            end, last_scale = after, scale
            if scale == 1 or total >= MAX_VALUE:
                break
            limit = scale
            at = self._skip_joint(after)
            if self.has_line_break_between(after - 1, at):
                break
        return None if end == begin else (total, end, last_scale)

    def _is_part_of_number(self, group: Group, scale: Decimal, limit: Decimal, at: int) -> bool:
        """Return whether a group belongs to the number before it.

        The group must be smaller than the last scale of this number, and must not be a separate number.
        """
        if (
            group.year
            or scale >= limit
            or group.value * scale >= limit
            or self._has_fraction_or_denominator_at(group.after)
        ):
            return False
        if scale > 1 or (group.value >= _HUNDRED and not group.numeral):
            return True
        joint = self.token(at - 1).text == ","
        return not joint and self._is_last_part_of_number(group, limit, at)

    def _is_last_part_of_number(self, group: Group, limit: Decimal, at: int) -> bool:
        """Return whether a number without a scale is the last part of the number before it: "one thousand and one".

        The result is False in these cases:

        - One number is in digits and the other in words ("2 lakh, two claims").
        - The second number has its own unit, or is "one of" something.
        - The first number is a lakh or more, and a noun follows the second number ("two lakh and two claims").
        """
        joined = self.part(at - 1) is NumberPart.AND
        joint = at - 1 if joined else at
        words = self.token(joint - 1).kind == WORD and self.token(at).kind == WORD
        if self._is_counted_separately(joint, group.after):
            return False
        following = self.token(group.after)
        if group.numeral:
            whole = group.value == group.value.to_integral_value()
            return joined and whole and (following.kind != WORD or following.key in MONEY_WORDS)
        if joined:
            word = self.word(joint)
            if word is not None and not word.english:
                return False
        noun = following.kind == WORD and following.key not in self._units
        return words and not self._has_digits_before_joint(joint) and (limit < _LAKH or not joined or not noun)

    def _has_digits_before_joint(self, joint: int) -> bool:
        """Return whether the group before an "and" or comma consists of digits and a scale word: 2 lakh."""
        return self.token(joint - 2).kind == NUMERAL

    def _has_fraction_or_denominator_at(self, at: int) -> bool:
        """Return whether the next words form a fraction with the previous group: "… and three quarters"."""
        at = self._skip_hyphen(at)
        return self._has_fraction_word_at(at) or self._read_denominator_word(at, numerator=Decimal(0)) is not None

    def _skip_joint(self, at: int) -> int:
        """Return the token after an "and" or a comma between two groups."""
        if self.part(at) is NumberPart.AND and self._is_group_start(at + 1):
            return at + 1
        comma = self.token(at).text == "," and self.token(at + 1).kind == WORD
        return at + 1 if comma and self._is_group_start(at + 1) else at

    def _is_group_start(self, at: int) -> bool:
        if self.token(at).kind == NUMERAL:
            return True
        return self.part(at) in {NumberPart.SMALL, NumberPart.HUNDRED, NumberPart.QUARTERED, NumberPart.FIXED}

    def _read_scale(self, at: int, group: Group) -> tuple[Decimal, int]:
        """Return the product of all scale words from token ``at`` on, and the index of the next token.

        Scale words are, for example, "lakh crore", "k", "cr" and "bn".
        """
        scale, first = Decimal(1), at
        while self.part(at) is NumberPart.SCALE and at < first + _MAX_SCALES:
            scale = EXACT.multiply(scale, NUMBER_WORDS[self.token(at).key].value)
            at += 1
        if scale == 1 and group.numeral:
            return self._read_suffix_scale(at)
        return scale, at

    def _read_suffix_scale(self, at: int) -> tuple[Decimal, int]:
        token, before = self.token(at), self.token(at - 1)
        if token.kind != WORD:
            return Decimal(1), at
        glued = before.end == token.start
        if glued and token.text in _CAPITAL_SCALES:
            return _CAPITAL_SCALES[token.text], at + 1
        word = NUMBER_WORDS.get(token.key)
        if word is not None and word.part is NumberPart.SUFFIX_SCALE:
            if token.key == "g" and not (token.text == "G" and (glued or "." in before.text)):
                return Decimal(1), at
            return word.value, at + 1
        return Decimal(1), at

    def _read_denominator_word(self, at: int, numerator: Decimal | None = None) -> Group | None:
        """Read a denominator: ``thirds``, ``eighths``, or ``third`` after "one".

        "Seconds" is always a unit of time.
        """
        word, key = self.word(at), self.token(at).key
        if word is None or word.part is not NumberPart.ORDINAL or not word.english or word.value < 3:  # noqa: PLR2004 - thirds and smaller
            return None
        plural = key.endswith("s")
        if not plural and numerator is not None and numerator != 1:
            return None
        return Group(word.value, at + 1)


_HUNDRED, _LAKH = Decimal(100), Decimal(100_000)
_MAX_SCALES = 3
"""Maximum number of scale words in a row. People say "hundred thousand trillion", but never four scale words."""

_CAPITAL_SCALES = {
    "K": Decimal("1e3"),
    "L": Decimal("1e5"),
    "M": Decimal("1e6"),
    "B": Decimal("1e9"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "Cr": Decimal("1e7"),
}
"""Scales with a capital letter that directly follow digits: 10K, 5L, 2.1T, 3Cr.

Lower-case letters are units (5 m, 2 l), except k.
"""
