"""The words that variants are made with: frames, synonyms, switches, from a file of data."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from monitors.facts.normalise import word_key
from monitors.facts.number_words import NUMBER_WORDS
from monitors.facts.unit_keys import UNIT_KEYS

Pair = tuple[str, str]


class Switches(BaseModel):
    """How a question changes its language: whole patterns, sentences around it, single words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: tuple[Pair, ...]
    any: tuple[str, ...]
    hi: tuple[Pair, ...]
    hinglish: tuple[Pair, ...]


class Wordings(BaseModel):
    """``variants.json``. ``kept`` are words that no typo may touch, besides numbers, units and names.

    Devanagari has no capitals to tell a name by, so there typos stand in the words of ``slipping_hi`` alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    frames: dict[str, tuple[str, ...]]
    greetings: dict[str, tuple[str, ...]]
    synonyms: dict[str, tuple[Pair, ...]]
    switches: Switches
    kept: dict[str, tuple[str, ...]]
    slipping_hi: tuple[str, ...]


@lru_cache(maxsize=1)
def wordings() -> Wordings:
    """The file that comes with the package."""
    text = files("monitors.goldset").joinpath("variants.json").read_text(encoding="utf-8")
    return Wordings.model_validate_json(text)


def is_kept(word: str, language: str) -> bool:
    """Whether a typo in ``word`` could change what is asked: a number, a unit, a word that turns the meaning."""
    key = word_key(word)
    return key in UNIT_KEYS or key in NUMBER_WORDS or word.lower() in wordings().kept.get(language, ())
