"""Read numbers in one pass: digits, number words, or both together.

English, Hindi in Devanagari and Hindi in Latin letters may be mixed ("5 lakh बीस hazaar"), because they share one
grammar. The grammar is a table of parts (`monitors.facts.quantities.lexicon.NumberPart`) and a few rules. The
reader never goes back more than one group, so it takes linear time. Powers and scientific notation are also
numbers: ``1.3e6``, ``6.23x10^-4``, ``2.5^-1``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from monitors.facts.quantities.groups import ScaleReader
from monitors.facts.quantities.lexicon import DIGIT_ORDINAL_ENDINGS, NumberPart
from monitors.facts.quantities.numerals import EXACT, MAX_VALUE, Group, Lookup, is_multiple, parse_numeral
from monitors.facts.text import END, NUMERAL, SIGN, WORD

_MAX_EXPONENT = 30
"""Maximum exponent of a power that is read. Larger exponents do not occur in quantities."""

_MAX_BASE = Decimal(1_000_000)


def apply_power(lookup: Lookup, value: Decimal, at: int) -> tuple[Decimal, int]:
    """Apply the power at token ``at`` to a value. Return the new value and the index of the next token."""
    token, before = lookup.token(at), lookup.token(at - 1)
    if token.start != before.end:
        return value, at
    if token.key == "e":
        exponent = _read_exponent(lookup, at + 1)
        return (EXACT.scaleb(value, exponent[0]), exponent[1]) if exponent else (value, at)
    if token.key == "x" and lookup.token(at + 1).text == "10" and lookup.token(at + 2).text == "^":
        exponent = _read_exponent(lookup, at + 3)
        return (EXACT.scaleb(value, exponent[0]), exponent[1]) if exponent else (value, at)
    if token.text == "^" and 0 < value < _MAX_BASE:
        exponent = _read_exponent(lookup, at + 1)
        return (EXACT.power(value, exponent[0]), exponent[1]) if exponent else (value, at)
    return value, at


def _read_exponent(lookup: Lookup, at: int) -> tuple[int, int] | None:
    """Read an exponent: signs and digits without spaces between them. If there are two signs, the second counts."""
    negative = False
    for place in range(at, at + 3):
        token = lookup.token(place)
        if token.start != lookup.token(place - 1).end:
            return None
        if token.kind == SIGN and token.text in {"+", "-"}:
            negative = token.text == "-"
        elif token.kind == NUMERAL and token.text.isdecimal() and len(token.text) <= 2:  # noqa: PLR2004 - an exponent has two digits
            exponent = int(token.text)
            return (-exponent if negative else exponent, place + 1) if exponent <= _MAX_EXPONENT else None
        else:
            return None
    return None


# Repeats fields of QuantityReading, because a NamedTuple cannot extend another one.
class NumberSpan(NamedTuple):
    """A number and its position: tokens ``first`` to ``last`` (inclusive), characters ``start`` to ``end``.

    ``bare`` is True for a number in digits only, and ``worded`` for a number in words only (``one``, ``दो``).
    """

    value: Decimal
    first: int
    last: int
    start: int
    end: int
    bare: bool = False
    ordinal: bool = False
    scale: Decimal = Decimal(1)
    worded: bool = False


class NumberReader(ScaleReader):
    """A reader of complete amounts in the tokens of one text."""

    def read_number_spans(self, at: int) -> list[NumberSpan]:
        """Return the amounts that begin at token ``at``. Digits such as 192.168.1.2 are several amounts."""
        token = self.token(at)
        if token.kind == NUMERAL:
            values = parse_numeral(token.text)
            if len(values) != 1:
                return [
                    NumberSpan(value, at, at, token.start + start, token.start + end, bare=True)
                    for value, start, end in values
                ]
            if self._is_complete_number(at):
                return [NumberSpan(values[0][0], at, at, token.start, token.end, bare=True)]
        amount = self._read_number_span(at)
        return [amount] if amount is not None else []

    def _is_complete_number(self, at: int) -> bool:
        """Return whether the token after the digits ends the number. In this case, the grammar is not needed."""
        token, following = self.token(at), self.token(at + 1)
        if following.kind == WORD:
            apart = following.start > token.end and self.find_possible_number_word(at + 1) is None
            return apart and following.key not in _GOES_ON
        return following.kind == SIGN and following.text in _ENDS

    def _read_number_span(self, at: int) -> NumberSpan | None:
        start = at
        negative = self._is_minus(at)
        if negative:
            at += 1
        read = self._read_scaled_groups(at)
        if read is None:
            return None
        value, after, scale = read
        value, after = self._apply_fraction(value, after, scale)
        value, after, ordinal = self._read_ordinal_ending(value, at, after)
        value, after = self._divide_by_denominator(value, after)
        if not ordinal:
            value, after = self._divide_by_hindi_share(value, at, after)
        if after == at + 1 and self.token(at).kind == NUMERAL:
            value, after = apply_power(self, value, after)
        if self.part(after) is NumberPart.DOZEN:
            value, after = EXACT.multiply(value, _DOZEN), after + 1
        if not -MAX_VALUE < value < MAX_VALUE:
            return None
        bare = after == at + 1 and self.token(at).kind == NUMERAL
        return NumberSpan(
            value=-value if negative else value,
            first=start,
            last=after - 1,
            start=self.token(start).start,
            end=self.token(after - 1).end,
            bare=bare,
            ordinal=ordinal,
            scale=scale,
            worded=self.token(at).kind == WORD,
        )

    def _is_minus(self, at: int) -> bool:
        if self.part(at) is NumberPart.MINUS:
            return True
        token, before, following = self.token(at), self.token(at - 1), self.token(at + 1)
        if token.kind != SIGN or token.text != "-" or following.kind != NUMERAL:
            return False
        glued = before.end == token.start and before.text not in _BEFORE_MINUS
        spaced = token.end != following.start
        return not glued and not (spaced and before is not END)

    def _apply_fraction(self, value: Decimal, at: int, scale: Decimal) -> tuple[Decimal, int]:
        """Add ``and a half`` or ``सही एक बटा दो`` to a number. ``A million and a half`` is 1,500,000."""
        mixed = self.token(at).key == "सही"
        if not mixed and self.part(at) is not NumberPart.AND:
            return self._multiply_by_fraction(value, at)
        part = self._read_fraction_in_words(at + 1)
        if part is None:
            return value, at
        more, after = self._read_scale(part.after, Group(value, at))
        if 1 < more < scale:
            return EXACT.fma(part.value, more, value), after
        times = scale if (part.numeral and scale >= _THOUSAND) or scale >= _MILLION else Decimal(1)
        value = EXACT.fma(part.value, times, value)
        if scale == 1 and self.part(part.after) is NumberPart.SCALE:
            return EXACT.multiply(value, more), after
        return value, part.after

    def _read_fraction_in_words(self, at: int) -> Group | None:
        """Read a fraction such as "a half", "two thirds" or "one over two".

        The group of "a half" is marked as ``numeral``, because a scale can multiply this fraction: "half a
        million".
        """
        article = self.part(at) is NumberPart.ARTICLE
        word = self.word(at + 1 if article else at)
        if word is not None and word.part is NumberPart.FRACTION:
            return Group(word.value, at + 2 if article else at + 1, numeral=True)
        if article:
            below = self._read_denominator_word(at + 1)
            return Group(EXACT.divide(Decimal(1), below.value), below.after) if below else None
        above = self._read_group(at)
        if above is None:
            return None
        shared, after = self._divide_by_hindi_share(above.value, at, above.after)
        if after > above.after:
            return Group(shared, after)
        word = self.word(above.after)
        if word is not None and word.part is NumberPart.FRACTION:
            return Group(above.value * word.value, above.after + 1)
        if self.part(above.after) is NumberPart.OVER:
            under = self._read_scaled_groups(above.after + 1)
            return Group(EXACT.divide(above.value, under[0]), under[1]) if under and under[0] else None
        below = self._read_denominator_word(self._skip_hyphen(above.after))
        return Group(EXACT.divide(above.value, below.value), below.after) if below else None

    def _multiply_by_fraction(self, value: Decimal, at: int) -> tuple[Decimal, int]:
        """Multiply a number by the fraction after it: "five eighths" is 5/8, "three quarters" is 3/4.

        Hindi fractions are read too: ``तीन चौथाई``.
        """
        after = self._skip_hyphen(at)
        word = self.word(after)
        if word is not None and word.part is NumberPart.FRACTION:
            value, at = EXACT.multiply(value, word.value), after + 1
        else:
            below = self._read_denominator_word(after, numerator=value)
            if below is None:
                return value, at
            value, at = EXACT.divide(value, below.value), below.after
        more, after = self._read_scale(at, Group(value, at))
        return EXACT.multiply(value, more), after

    def _read_ordinal_ending(self, value: Decimal, first: int, after: int) -> tuple[Decimal, int, bool]:
        """Read the end of an ordinal: ``25th``, ``2रा``, ``twenty fifth``, ``two hundredth``, ``दो सौवीं``."""
        token, before = self.token(after), self.token(after - 1)
        glued = token.kind == WORD and token.start == before.end and before.kind == NUMERAL
        if glued and token.key in _DIGIT_ORDINALS:
            return value, after + 1, True
        at = self._skip_hyphen(after)
        word = self.word(at)
        if word is None or word.part is not NumberPart.ORDINAL or self.token(first).kind == NUMERAL:
            return value, after, False
        if word.value >= 100:  # noqa: PLR2004 - hundredth and above multiply
            return EXACT.multiply(value, word.value), at + 1, True
        room = is_multiple(value, 100) or (word.value < 10 and is_multiple(value, 10))  # noqa: PLR2004 - a unit after tens
        if room and self._is_ordinal_not_seconds(at):
            return value + word.value, at + 1, True
        return value, after, False

    def _is_ordinal_not_seconds(self, at: int) -> bool:
        """Return whether "second" is an ordinal (``twenty second``) and not a time ("a twenty second call")."""
        if self.token(at).key != "second":
            return not self.token(at).key.endswith("seconds")
        following = self.token(at + 1)
        return following.kind != WORD or following.key in {"of", "century"} or self.word(at + 1) is not None

    def _divide_by_hindi_share(self, value: Decimal, first: int, at: int) -> tuple[Decimal, int]:
        """Divide a number by a Hindi share: ``बीस का पांचवां भाग``, ``इक्कीस में से 1``."""
        if self.token(at).key not in _SHARES:
            return value, at
        place = at + 2 if self.token(at + 1).key == "से" else at + 1
        below = self._read_hindi_ordinal(place)
        if below is None or below.value < 3:  # noqa: PLR2004 - thirds and smaller
            return value, at
        named = self.token(below.after).key in _SHARE_WORDS
        alone = self.token(first).kind == WORD and self.token(below.after).kind != WORD
        if not named and not alone:
            return value, at
        return EXACT.divide(value, below.value), below.after + 1 if named else below.after

    def _read_hindi_ordinal(self, at: int) -> Group | None:
        """Read an ordinal in Hindi words: ``पाँचवाँ``, ``दस खरबवां``."""
        word = self.word(at)
        if word is not None and word.part is NumberPart.ORDINAL:
            return None if word.english else Group(word.value, at + 1)
        read = self._read_scaled_groups(at) if word is not None and word.part is NumberPart.SMALL else None
        if read is None:
            return None
        value, after, ordinal = self._read_ordinal_ending(read[0], at, read[1])
        return Group(value, after) if ordinal else None

    def _divide_by_denominator(self, value: Decimal, at: int) -> tuple[Decimal, int]:
        """Divide a number by the words after it: ``one over twenty``, ``पांच बटा आठ``, ``one out of three``."""
        spoken = self.token(at).key == "out" and self.token(at + 1).key == "of"
        if spoken and self.token(at - 1).kind == WORD and self.token(at + 2).kind == WORD:
            at += 1
        elif self.part(at) is not NumberPart.OVER:
            return value, at
        under = self._read_scaled_groups(at + 1)
        after = self.token(under[1]) if under else END
        if under is None or under[0] == 0 or after.key in self._units:
            return value, at - 1 if spoken and self.token(at).key == "of" else at
        return EXACT.divide(value, under[0]), under[1]


_GOES_ON = frozenset({"सही", "का", "के", "की", "में", "out"})
_ENDS = frozenset({"%", ",", ".", ")", ";", ":", "?", "!", "।", "", "]"})
_BEFORE_MINUS = frozenset("([{<>=:$₹€£/^,")
_DIGIT_ORDINALS = DIGIT_ORDINAL_ENDINGS | {"st", "nd", "rd", "th"}
_THOUSAND, _MILLION = Decimal(1000), Decimal(1_000_000)
_DOZEN = Decimal(12)
_SHARES = frozenset({"का", "के", "की", "में"})
_SHARE_WORDS = frozenset({"हिस्सा", "हिस्से", "भाग"})
