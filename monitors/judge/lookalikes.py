"""Letters of other alphabets that look like Latin ones, and characters that nobody sees. Data.

Lookalikes are single characters of Unicode's confusables table (UTS 39) whose skeleton is one Latin letter, for
Cyrillic, Greek and Armenian; Greek small letters that stand for quantities (alpha, nu, mu …) are left out.
Invisible characters are those of Unicode's property Default_Ignorable_Code_Point (UAX 44), and a few more
that are shown as nothing.
"""

from __future__ import annotations

LOOKALIKES: dict[str, str] = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХҮԌԚԜԐаеоорсухѕіјһԁԛԝѵӏԍ"  # Cyrillic
        "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"  # Greek
        "օոսհցՕՍ"  # Armenian
        "ɑɡ",  # Latin letters of phonetic writing
        "ABESIJKMHOPCTYXYGQWEaeoopcyxsijhdqwvlgABEZHIKMNOPTYXoonuhgOUag",
        strict=True,
    )
)
"""What each stands for when a reader takes it for Latin."""

_INVISIBLE_RANGES = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200D),
    (0x2060, 0x2065),
    (0x206A, 0x206F),
    (0x2800, 0x2800),  # a Braille pattern without dots
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),  # with the marks of interlinear notes
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0080, 0xE0FFF),
)

INVISIBLE = frozenset(chr(code) for first, last in _INVISIBLE_RANGES for code in range(first, last + 1))
"""Joiners and variation selectors are among them: some are kept, see `plain_text`."""

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the order in which text is shown, as the inside of a character class."""

TAGS = "\U000e0000-\U000e007f"
"""Invisible copies of ASCII, as the inside of a character class."""
