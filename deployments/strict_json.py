"""JSON from outside: what has two meanings or none is refused, never guessed."""

from __future__ import annotations

import json
import math
from typing import NoReturn


class NotStrict(ValueError):
    """The text is not JSON as everybody reads it. Never holds the text itself."""


def read_strict_json(text: str) -> object:
    """Parse JSON: no NaN or Infinity (``1e999`` included), no key twice, no bottomless nesting, no lone surrogate.

    Raises `NotStrict`.
    """
    try:
        value: object = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_without_repeats
        )
        text_of(value)
    except NotStrict:
        raise
    except RecursionError:
        raise NotStrict("the JSON is nested too deeply") from None
    except ValueError:
        raise NotStrict("the JSON is broken") from None
    return value


def text_of(value: object) -> bytes:
    """``value`` as UTF-8; a lone surrogate raises ``UnicodeEncodeError``."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _refuse(_constant: str) -> NoReturn:
    raise NotStrict("the JSON holds NaN or Infinity")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotStrict("the JSON holds a number that is not finite")
    return value


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("the JSON holds a key twice")
    return found
