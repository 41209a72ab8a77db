"""Numbers as people write and say them, in one pass: digits, words, and both together.

English, Hindi in Devanagari and Hindi in Latin letters may be mixed ("5 lakh बीस hazaar"): one grammar, three tables.
The grammar is a table of parts (`monitors.facts.number_words.Part`) and a handful of rules; it never goes back more
than one group, so it is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from monitors.facts.hindi_numbers import DIGIT_ORDINAL_ENDINGS
from monitors.facts.number_words import NUMBER_WORDS, NumberWord, Part
from monitors.facts.numbers import EXACT, LARGEST, numeral_values
from monitors.facts.tokens import END, NUMERAL, SIGN, WORD, Token

VULGAR = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "1/3", "⅔": "2/3", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625",
    "⅞": "0.875", "⅕": "0.2", "⅖": "0.4", "⅗": "0.6", "⅘": "0.8", "⅙": "1/6", "⅚": "5/6",
}  # fmt: skip
"""Vulgar fractions as Unicode has them."""


class Amount(NamedTuple):
    """A number and where it stands: tokens ``first`` to ``last`` (inclusive), characters ``start`` to ``end``.

    ``bare`` is a numeral and nothing else; ``small_letters`` a word without digits (``one``, ``दो``).
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


_PUNCTUATION = frozenset(".,:;!?()[]{}\"'*_#|•।&@~")


class _Group(NamedTuple):
    """A part of a number below its scale word, with the index of the token after it."""

    value: Decimal
    after: int
    numeral: bool = False
    year: bool = False


class Reader:
    """Reads amounts from one text's tokens. ``units`` are the words before which a shy number word is a number."""

    def __init__(self, tokens: Sequence[Token], *, units: frozenset[str], starts: frozenset[str]) -> None:
        self._tokens = tokens
        self._starts = starts
        self._words = [NUMBER_WORDS.get(token.key) if token.kind == WORD else None for token in tokens]
        self._units = units
        self._size = len(tokens)

    def word(self, at: int) -> NumberWord | None:
        """The number word at a token, if it is one and may be one here."""
        if not 0 <= at < self._size:
            return None
        word = self._words[at]
        if word is not None and word.shy and not self._before_unit(at):
            return None
        return word

    def token(self, at: int) -> Token:
        """The token at ``at``, or an empty one beyond either end."""
        return self._tokens[at] if 0 <= at < self._size else END

    def _before_unit(self, at: int) -> bool:
        following = self.token(at + 1)
        if following.key in self._units:
            return True
        word = self._words[at + 1] if at + 1 < self._size else None
        if word is None:
            return False
        return word.part in {Part.HUNDRED, Part.SCALE} or (
            word.part is Part.SMALL and not word.shy and not word.english
        )

    def _part(self, at: int) -> Part | None:
        word = self.word(at)
        return None if word is None else word.part

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._size

    def interesting(self) -> list[int]:
        """The tokens where a quantity could begin: digits, number words, units, signs; the rest is passed over."""
        return [
            at
            for at, (token, word) in enumerate(zip(self._tokens, self._words, strict=True))
            if token.kind == NUMERAL
            or word is not None
            or (token.kind == WORD and token.key in self._starts)
            or (token.kind == SIGN and token.text not in _PUNCTUATION)
        ]

    # --- the whole amount -----------------------------------------------------------------------------------

    def read(self, at: int) -> list[Amount]:
        """The amounts that begin at token ``at``: none, one, or several (an address such as 192.168.1.2)."""
        token = self.token(at)
        if token.kind == NUMERAL:
            values = numeral_values(token.text)
            if len(values) != 1:
                return [
                    Amount(value, at, at, token.start + start, token.start + end, bare=True)
                    for value, start, end in values
                ]
        amount = self._amount(at)
        return [amount] if amount is not None else []

    def _amount(self, at: int) -> Amount | None:
        start = at
        negative = self._is_minus(at)
        if negative:
            at += 1
        read = self._scaled(at)
        if read is None:
            return None
        value, after, scale = read
        value, after = self._added_fraction(value, after, scale)
        value, after, ordinal = self._ending(value, at, after)
        value, after = self._over(value, after)
        if self._part(after) is Part.DOZEN:
            value, after = value * 12, after + 1
        if not -LARGEST < value < LARGEST:
            return None
        bare = after == at + 1 and self.token(at).kind == NUMERAL
        return Amount(
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
        if self._part(at) is Part.MINUS:
            return True
        token, before, following = self.token(at), self.token(at - 1), self.token(at + 1)
        if token.kind != SIGN or token.text != "-" or following.kind != NUMERAL:
            return False
        glued = before.end == token.start and before.kind != SIGN
        spaced = token.end != following.start
        return not glued and not (spaced and before is not END)

    def _scaled(self, at: int) -> tuple[Decimal, int, Decimal] | None:
        """Groups with falling scales: five crore | twenty lakh | three hundred and two. Value, next token, last scale."""
        total, limit, end = Decimal(0), LARGEST, at
        last_scale = Decimal(1)
        while True:
            group = self._group(at)
            first = end == at and total == 0
            if group is None:
                if not first or self._part(at) is not Part.SCALE:
                    break
                group = _Group(Decimal(1), at)
            scale, after = self._scale(group.after, group)
            if not first and not self._continues(group, scale, limit, at):
                break
            total = EXACT.fma(group.value, scale, total)
            end, last_scale = after, scale
            if scale == 1 or total >= LARGEST:
                break
            limit = scale
            at = self._past_joint(after)
        return (
            None
            if end == at and total == 0 and last_scale == 1 and not self._is_zero(at)
            else (total, end, last_scale)
        )

    def _is_zero(self, at: int) -> bool:
        return False if self._group(at) is None else True

    def _continues(self, group: _Group, scale: Decimal, limit: Decimal, at: int) -> bool:
        """Whether a group belongs to the number before it: smaller, and not a number of its own."""
        if group.year or scale >= limit or group.value * scale >= limit:
            return False
        if not group.numeral or scale > 1:
            return True
        joined = self._part(at - 1) is Part.AND
        return joined and group.value == group.value.to_integral_value()

    def _past_joint(self, at: int) -> int:
        """Over an "and" or a comma between two groups, when a number word or digits follow."""
        if self._part(at) is Part.AND and self._begins_group(at + 1):
            return at + 1
        comma = self.token(at).text == "," and self.token(at + 1).kind == WORD
        return at + 1 if comma and self._begins_group(at + 1) else at

    def _begins_group(self, at: int) -> bool:
        if self.token(at).kind == NUMERAL:
            return True
        return self._part(at) in {Part.SMALL, Part.HUNDRED, Part.QUARTERED, Part.FIXED}

    def _scale(self, at: int, group: _Group) -> tuple[Decimal, int]:
        """All scale words from ``at`` on, multiplied: lakh crore, k, cr, bn."""
        scale = Decimal(1)
        while self._part(at) is Part.SCALE and scale < LARGEST:
            scale *= self._words[at].value  # pyright: ignore[reportOptionalMemberAccess] - _part saw it
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
        word = self._words[at]
        if word is not None and word.part is Part.SUFFIX_SCALE:
            if token.key == "g" and not (token.text == "G" and (glued or "." in before.text)):
                return Decimal(1), at
            return word.value, at + 1
        return Decimal(1), at

    # --- one group ------------------------------------------------------------------------------------------

    def _group(self, at: int) -> _Group | None:
        token = self.token(at)
        if token.kind == NUMERAL:
            return self._numeral_group(at)
        if token.kind == SIGN:
            return _Group(vulgar(token.text), at + 1) if token.text in VULGAR else None
        word = self.word(at)
        if word is None:
            return None
        match word.part:
            case Part.SMALL:
                return self._decimals(self._hundreds(self._smalls(at, word)))
            case Part.HUNDRED:
                return self._decimals(self._hundreds(_Group(Decimal(1), at)))
            case Part.QUARTERED:
                return self._decimals(self._hundreds(self._quartered(at, word)))
            case Part.FIXED:
                return self._decimals(self._hundreds(_Group(word.value, at + 1)))
            case Part.FRACTION:
                return self._fraction_group(at, word)
            case Part.ARTICLE:
                return self._article_group(at)
            case Part.POINT:
                pointed = self._decimals(_Group(Decimal(0), at))
                return pointed if pointed.after > at else None
            case _:
                return None

    def _numeral_group(self, at: int) -> _Group | None:
        values = numeral_values(self.token(at).text)
        if len(values) != 1:
            return None
        group = _Group(values[0][0], at + 1, numeral=True)
        if self.token(at + 1).text in VULGAR:
            return _Group(group.value + vulgar(self.token(at + 1).text), at + 2, numeral=True)
        spaced = self._space_groups(at, group)
        mixed = self._mixed_fraction(spaced)
        return self._decimals(self._hundreds(mixed))

    def _space_groups(self, at: int, group: _Group) -> _Group:
        """``40 000`` and ``1 234 567.89``: groups of three after one to three digits, one space apart."""
        first = self.token(at)
        if not first.text.isdecimal() or len(first.text) > 3 or first.text.startswith("0"):  # noqa: PLR2004
            return group
        digits, after, previous = first.text, at + 1, first
        while True:
            token = self.token(after)
            near = token.kind == NUMERAL and token.start - previous.end == 1
            if not near or len(token.text.split(".")[0]) != 3 or "," in token.text:  # noqa: PLR2004
                break
            digits, previous, after = digits + token.text, token, after + 1
            if "." in token.text:
                break
        many = after > at + 2 or (after == at + 2 and previous.text.endswith("000"))
        return _Group(Decimal(digits), after, numeral=True) if many and digits.count(".") <= 1 else group

    def _mixed_fraction(self, group: _Group) -> _Group:
        """``2 1/4``, and ``3/4`` by itself; a fraction that is at least one (24/7) is two numbers."""
        at = group.after
        if self.token(at).text == "/" and group.value.as_tuple().exponent == 0:
            below = self._denominator(at + 1)
            if below is not None and group.value < below.value and below.value > 1:
                return _Group(EXACT.divide(group.value, below.value), below.after, numeral=True)
            return group
        above = self.token(at)
        if above.kind == NUMERAL and above.text.isdecimal() and self.token(at + 1).text == "/":
            below = self._denominator(at + 2)
            if below is not None and below.value > 0 and len(above.text) <= 6:  # noqa: PLR2004 - no date, no id
                return _Group(
                    group.value + EXACT.divide(Decimal(above.text), below.value), below.after, numeral=True
                )
        return group

    def _denominator(self, at: int) -> _Group | None:
        token = self.token(at)
        if token.kind != NUMERAL or not token.text.isdecimal() or len(token.text) > 20:  # noqa: PLR2004
            return None
        if self.token(at + 1).text == "/":
            return None
        after = at + 2 if self.token(at + 1).key in {"rd", "th", "nd"} else at + 1
        return _Group(Decimal(token.text), after)

    def _smalls(self, at: int, word: NumberWord) -> _Group:
        """``twenty two``, ``twenty-two``, ``one twenty two`` (122), ``nineteen eighty four`` (a year)."""
        after = self._past_hyphen(at + 1) if word.tens else at + 1
        following = self.word(after)
        if following is None or following.part is not Part.SMALL or not word.english or not following.english:
            return _Group(word.value, at + 1)
        if word.tens and 0 < following.value < 10:  # noqa: PLR2004
            first = _Group(word.value + following.value, after + 1)
            return self._year(first)
        if 0 < word.value < 10 and following.tens:  # noqa: PLR2004
            rest = self._smalls(after, following)
            return _Group(word.value * 100 + rest.value, rest.after)
        return self._year(_Group(word.value, at + 1))

    def _year(self, first: _Group) -> _Group:
        following = self.word(first.after)
        if following is None or following.part is not Part.SMALL or not 10 <= first.value <= 99:  # noqa: PLR2004
            return first
        if following.value >= 10 and following.english:  # noqa: PLR2004
            rest = self._smalls(first.after, following)
            if rest.year:
                return first
            return _Group(first.value * 100 + rest.value, rest.after, year=True)
        if self.token(first.after).key in {"oh", "o"}:
            units = self.word(first.after + 1)
            if units is not None and units.part is Part.SMALL and 0 < units.value < 10:  # noqa: PLR2004
                return _Group(first.value * 100 + units.value, first.after + 2, year=True)
        return first

    def _past_hyphen(self, at: int) -> int:
        return at + 1 if self.token(at).text in {"-", "—", "–"} and self.token(at + 1).kind == WORD else at

    def _hundreds(self, group: _Group) -> _Group:
        """``three hundred and two``, ``सौ``, ``3 सौ और 21``."""
        if self._part(group.after) is not Part.HUNDRED or group.year:
            return group
        value, after = group.value * 100, group.after + 1
        joined = self._part(after) is Part.AND
        at = after + 1 if joined else after
        word = self.word(at)
        if word is not None and word.part is Part.SMALL:
            rest = self._smalls(at, word)
            if (
                rest.value < 100
                and self._part(rest.after) is not Part.HUNDRED
                and not self._is_fraction(rest.after)
            ):  # noqa: PLR2004
                return _Group(value + rest.value, rest.after)
        token = self.token(at)
        if joined and group.numeral and self._is_rest(at):
            return _Group(value + Decimal(token.text), at + 1)
        return _Group(value, after)

    def _is_rest(self, at: int) -> bool:
        """One or two digits that end a number: the 21 of "3 hundred and 21"."""
        token = self.token(at)
        fits = token.kind == NUMERAL and token.text.isdecimal() and len(token.text) <= 2  # noqa: PLR2004
        return fits and int(token.text) > 0 and self._part(at + 1) not in {Part.HUNDRED, Part.SCALE}

    def _is_fraction(self, at: int) -> bool:
        return self._part(at) is Part.FRACTION

    def _quartered(self, at: int, word: NumberWord) -> _Group:
        """सवा दो = 2.25, साढ़े तीन = 3.5, पौने चार = 3.75; before a scale alone सवा is 1.25 and पौने 0.75."""
        inner = self.token(at + 1)
        if inner.kind == NUMERAL:
            values = numeral_values(inner.text)
            if len(values) == 1:
                return _Group(values[0][0] + word.value, at + 2)
        number = self.word(at + 1)
        if number is not None and number.part is Part.SMALL:
            return _Group(number.value + word.value, at + 2)
        alone = word.value if word.value == Decimal("0.5") else 1 + word.value
        return _Group(alone, at + 1)

    def _fraction_group(self, at: int, word: NumberWord) -> _Group | None:
        """``half a million``, ``quarter million``, ``आधा``; an English half or quarter by itself is no number."""
        after = at + 1
        if word.english and self._part(after) is Part.ARTICLE:
            after += 1
        if (
            not word.english
            or self._part(after) in {Part.SCALE, Part.DOZEN}
            or self.token(after).key in self._units
        ):
            return _Group(word.value, after)
        return None

    def _article_group(self, at: int) -> _Group | None:
        """``a hundred``, ``a million``, ``a dozen``, ``a couple``, ``a quarter``, ``a half``."""
        following = self.word(at + 1)
        if following is None:
            return None
        if following.part in {Part.HUNDRED, Part.SCALE, Part.DOZEN}:
            return self._hundreds(_Group(Decimal(1), at + 1))
        if self.token(at + 1).key in {"couple", "pair"}:
            after = at + 3 if self.token(at + 2).key == "of" else at + 2
            return _Group(Decimal(2), after)
        return None

    def _decimals(self, group: _Group) -> _Group:
        """``point two five``, ``दशमलव सात पाँच``, ``1 point 1``."""
        if self._part(group.after) is not Part.POINT:
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

    # --- what may follow ------------------------------------------------------------------------------------

    def _added_fraction(self, value: Decimal, at: int, scale: Decimal) -> tuple[Decimal, int]:
        """``and a half``, ``and three quarters``, ``सही एक बटा दो``; ``million and a half`` is half a million more."""
        mixed = self.token(at).key == "सही"
        if not mixed and self._part(at) is not Part.AND:
            return self._fraction_of(value, at)
        part = self._proper_fraction(at + 1)
        if part is None:
            return value, at
        times = scale if part.numeral and scale > 100 else Decimal(1)  # noqa: PLR2004
        value += part.value * times
        if scale == 1 and self._part(part.after) is Part.SCALE:
            more, after = self._scale(part.after, _Group(value, at))
            return value * more, after
        return value, part.after

    def _proper_fraction(self, at: int) -> _Group | None:
        """A half, three quarters, two thirds, one over two. ``numeral`` marks "a half", which a scale multiplies."""
        article = self._part(at) is Part.ARTICLE
        word = self.word(at + 1 if article else at)
        if word is not None and word.part is Part.FRACTION:
            return _Group(word.value, at + 2 if article else at + 1, numeral=True)
        if article:
            below = self._denominator_word(at + 1)
            return _Group(EXACT.divide(Decimal(1), below.value), below.after) if below else None
        above = self._group(at)
        if above is None:
            return None
        word = self.word(above.after)
        if word is not None and word.part is Part.FRACTION:
            return _Group(above.value * word.value, above.after + 1)
        if self._part(above.after) is Part.OVER:
            under = self._scaled(above.after + 1)
            return _Group(EXACT.divide(above.value, under[0]), under[1]) if under and under[0] else None
        below = self._denominator_word(self._past_hyphen(above.after))
        return _Group(EXACT.divide(above.value, below.value), below.after) if below else None

    def _fraction_of(self, value: Decimal, at: int) -> tuple[Decimal, int]:
        """``three quarters``, ``two thirds``, ``five eighths``, ``तीन चौथाई``, ``three quarters billion``."""
        after = self._past_hyphen(at)
        word = self.word(after)
        if word is not None and word.part is Part.FRACTION:
            value, at = value * word.value, after + 1
        else:
            below = self._denominator_word(after, numerator=value)
            if below is None:
                return value, at
            value, at = EXACT.divide(value, below.value), below.after
        more, after = self._scale(at, _Group(value, at))
        return value * more, after

    def _denominator_word(self, at: int, numerator: Decimal | None = None) -> _Group | None:
        """``thirds``, ``eighths``; in the singular only after one. Seconds are time, see durations."""
        word, key = self.word(at), self.token(at).key
        if word is None or word.part is not Part.ORDINAL or not word.english or word.value < 3:  # noqa: PLR2004
            return None
        plural = key.endswith("s")
        if not plural and numerator is not None and numerator != 1:
            return None
        return _Group(word.value, at + 1)

    def _ending(self, value: Decimal, first: int, after: int) -> tuple[Decimal, int, bool]:
        """Ordinals: ``25th``, ``2रा``, ``twenty fifth``, ``two hundredth``, ``दो सौवीं``."""
        token, before = self.token(after), self.token(after - 1)
        if token.kind == WORD and token.start == before.end and before.kind == NUMERAL:
            if token.key in {"st", "nd", "rd", "th"} or token.key in DIGIT_ORDINAL_ENDINGS:
                return value, after + 1, True
        at = self._past_hyphen(after)
        word = self.word(at)
        if word is None or word.part is not Part.ORDINAL or self.token(first).kind == NUMERAL:
            return value, after, False
        if word.value >= 100:  # noqa: PLR2004 - hundredth and above multiply
            return value * word.value, at + 1, True
        room = value % 100 == 0 or (word.value < 10 and value % 10 == 0)  # noqa: PLR2004
        if room and self._is_ordinal_here(at, word):
            return value + word.value, at + 1, True
        return value, after, False

    def _is_ordinal_here(self, at: int, word: NumberWord) -> bool:
        """``twenty second`` is 22nd unless time is meant: "a twenty second call"."""
        if self.token(at).key != "second":
            return not self.token(at).key.endswith("seconds")
        following = self.token(at + 1)
        return following.kind != WORD or following.key in {"of", "century"} or self.word(at + 1) is not None

    def _over(self, value: Decimal, at: int) -> tuple[Decimal, int]:
        """``one over twenty``, ``पांच बटा आठ``."""
        if self._part(at) is not Part.OVER:
            return value, at
        under = self._scaled(at + 1)
        after = self.token(under[1]) if under else END
        if under is None or under[0] == 0 or after.key in self._units:
            return value, at
        return EXACT.divide(value, under[0]), under[1]


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


def vulgar(sign: str) -> Decimal:
    """The value of a vulgar fraction."""
    above, _, below = VULGAR[sign].partition("/")
    return EXACT.divide(Decimal(above), Decimal(below or 1))
