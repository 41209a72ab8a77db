"""JSON as it comes from outside: byte order marks, zero bytes, NaN and half characters do not stop the reading."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import from_json

_BLANK: Final = b" \t\r\n\0"
_BOM: Final = b"\xef\xbb\xbf"


def bare(raw: bytes) -> bytes:
    """Without what stands around a text and is no part of it."""
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def parsed(raw: bytes) -> Any:
    """The value; ``ValueError`` says what is wrong and where, and never quotes it.

    NaN and infinities are let through, and a lone half of a character: readers of values pass them over.
    """
    text = bare(raw)
    try:
        return from_json(text)
    except ValueError as error:
        first = error
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from None
    try:
        return json.loads(decoded)  # takes escapes of half a character, which the quick reader refuses
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {str(first).splitlines()[0][:120]}") from None


def looks_like_html(raw: bytes) -> bool:
    """Whether it begins as a web page does: a login, an error page of a proxy."""
    return bare(raw[:200]).startswith(b"<")
