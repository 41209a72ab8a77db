"""Load domain packs: the vocabulary of an application's domain. A pack is a folder with TOML files.

``vocabulary.toml`` lists the subjects of amounts and the words for yes and no. ``schema.toml`` and
``templates.toml`` are used to build a gold set from facts (`monitors.goldset.build`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from monitors.errors import ConfigError
from monitors.facts.text import normalise, to_word_key
from monitors.problems import explain_validation_error, format_did_you_mean_hint
from monitors.records.base import Record

SHIPPED_PACKS: Final = Path(__file__).parent
"""The folder with the packs that are part of Lookout. Each pack has its own folder."""
DEFAULT_DOMAINS: Final = ("general",)
"""The packs for a target whose configuration names no packs."""
INSURANCE: Final = "health_insurance"
"""The default domain pack of `gold build` and of the commands in `deployments/cli/pipes`.

Do not change this name, because scripts depend on it.
"""
VOCABULARY: Final = "vocabulary.toml"
SCHEMA: Final = "schema.toml"
TEMPLATES: Final = "templates.toml"

PackFile = TypeVar("PackFile", bound=Record)


def get_word_keys(phrase: str) -> tuple[str, ...]:
    """Return the lookup keys of the words in a phrase. A hyphen counts as a word: "co-pay" has three words."""
    return tuple(to_word_key(normalise(word).text) for word in phrase.replace("-", " - ").split())


def _require_at_least_one_word(text: str) -> str:
    if not get_word_keys(text):
        raise ValueError("a word, or several words with spaces between them")
    return text


def _require_single_word(text: str) -> str:
    if len(get_word_keys(text)) != 1:
        raise ValueError("one word, without spaces or hyphens")
    return text


Phrase = Annotated[str, AfterValidator(_require_at_least_one_word)]
Lexicon = tuple[Annotated[str, AfterValidator(_require_single_word)], ...]


class DomainVocabulary(Record):
    """The content of ``vocabulary.toml``: the words of one domain, in each language in which answers are graded."""

    roles: dict[Annotated[str, Field(min_length=1)], Annotated[tuple[Phrase, ...], Field(min_length=1)]] = Field(
        description="the roles that an amount can have, each with its phrases. Lookout never compares amounts with "
        "different roles"
    )
    percent_of: tuple[str, ...] = Field(
        default=(),
        description='roles of amounts to which percentages refer. With the role `price` in this list, "10 % of '
        'the price" does not get the role `price`',
    )
    events: Lexicon = Field(
        default=(),
        description='words for events. "3 days before" such an event is an ordinary time, not a look-back period',
    )
    variants: Lexicon = Field(
        default=(), description='words that follow the name of a variant, such as "plan" in "the Pro plan"'
    )
    yes: Lexicon = Field(default=(), description="words that answer any question with yes")
    no: Lexicon = Field(default=(), description="words that answer any question with no")
    yes_unless: dict[str, Lexicon] = Field(
        default={},
        description="for each word, the words of `yes` that do not mean yes in a clause with this word",
    )
    predicates: dict[str, Annotated[Lexicon, Field(min_length=1)]] = Field(
        default={},
        description="groups of words that mean yes if the question has a word of the same group",
    )
    common: Lexicon = Field(default=(), description="words that are too frequent in questions to identify a topic")

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        strange = next((role for role in self.percent_of if role not in self.roles), None)
        if strange is not None:
            raise ValueError(
                f"percent_of: {strange!r} is not a role of this pack; accepted: {', '.join(self.roles)}"
            )
        named: dict[tuple[str, ...], str] = {}
        for role, phrases in self.roles.items():
            for phrase in phrases:
                other_role = named.setdefault(get_word_keys(phrase), role)
                if other_role != role:
                    raise ValueError(
                        f"roles.{role}: {phrase!r} is also a phrase of {other_role!r}; give each phrase one role"
                    )
        return self


NamedRole = tuple[tuple[str, ...], str]
"""The lookup keys of the words in a phrase, and the role that the phrase gives to an amount."""


# The fields are not in a base class with DomainVocabulary, because a Domain merges several vocabularies.
@dataclass(frozen=True, eq=False)
class Domain:
    """The merged vocabularies of a target's packs. Words are stored by their lookup keys (`get_word_keys`)."""

    roles: Mapping[str, Sequence[NamedRole]]
    """The phrases with their roles, grouped by the first word of the phrase.

    In a group, the longest phrase comes first.
    """
    percent_of: frozenset[str]
    events: frozenset[str]
    variants: frozenset[str]
    yes: frozenset[str]
    no: frozenset[str]
    yes_unless: Mapping[str, frozenset[str]]
    predicates: Sequence[frozenset[str]]
    common: frozenset[str]


def list_shipped_packs() -> tuple[str, ...]:
    """Return the names of the packs that are part of Lookout, in alphabetical order."""
    return tuple(sorted(folder.parent.name for folder in SHIPPED_PACKS.glob(f"*/{VOCABULARY}")))


def load_domain(packs: tuple[str, ...] = DEFAULT_DOMAINS) -> Domain:
    """Return the merged vocabularies of ``packs``. Each combination of packs is loaded once per process.

    Each element of ``packs`` is the name of a pack that is part of Lookout, or the path of a folder (a string with
    a slash). If two packs give a phrase different roles, the first pack has priority. Raises a `ConfigError` with
    the file, the key and the accepted values.
    """
    return _load_domain(packs)


@lru_cache(maxsize=32)
def _load_domain(packs: tuple[str, ...]) -> Domain:
    vocabularies = [read_pack_file(find_pack_folder(pack) / VOCABULARY, DomainVocabulary) for pack in packs]
    percent_of = {role for vocabulary in vocabularies for role in vocabulary.percent_of}
    unless = [
        (get_word_keys(word)[0], silent)
        for vocabulary in vocabularies
        for word, silent in vocabulary.yes_unless.items()
    ]
    return Domain(
        roles=_group_roles_by_first_word(vocabularies),
        percent_of=frozenset(percent_of),
        events=_collect_keys(vocabulary.events for vocabulary in vocabularies),
        variants=_collect_keys(vocabulary.variants for vocabulary in vocabularies),
        yes=_collect_keys(vocabulary.yes for vocabulary in vocabularies),
        no=_collect_keys(vocabulary.no for vocabulary in vocabularies),
        yes_unless={word: _collect_keys(silent for key, silent in unless if key == word) for word, _ in unless},
        predicates=tuple(
            _collect_keys([group]) for vocabulary in vocabularies for group in vocabulary.predicates.values()
        ),
        common=_collect_keys(vocabulary.common for vocabulary in vocabularies),
    )


def find_pack_folder(pack: str) -> Path:
    """Return the folder of a pack. If the folder does not exist, raise a `ConfigError` that lists the packs."""
    if "/" in pack:
        return Path(pack)
    shipped = list_shipped_packs()
    if pack not in shipped:
        raise ConfigError(
            f"domain pack {pack!r} does not exist{format_did_you_mean_hint(pack, shipped)}; accepted: "
            f"{', '.join(shipped)}, or the path of your own folder, such as ./my_domain"
        )
    return SHIPPED_PACKS / pack


def read_pack_file(path: Path, form: type[PackFile], problem: type[ConfigError] = ConfigError) -> PackFile:
    """Return the validated content of one file of a pack.

    Raises ``problem`` with the file, the key, the value and the accepted values.
    """
    try:
        return form.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise problem(f"{path}: Lookout cannot read this file as UTF-8 text: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise problem(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        lines = [explain_validation_error(form, dict(detail)) for detail in error.errors()]
        raise problem("\n".join(f"{path}: {line}" for line in lines)) from None


def _collect_keys(lists: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(get_word_keys(word)[0] for lexicon in lists for word in lexicon)


def _group_roles_by_first_word(vocabularies: Iterable[DomainVocabulary]) -> dict[str, list[NamedRole]]:
    named: dict[tuple[str, ...], str] = {}
    for vocabulary in vocabularies:
        for role, phrases in vocabulary.roles.items():
            for phrase in phrases:
                named.setdefault(get_word_keys(phrase), role)
    by_first: dict[str, list[NamedRole]] = {}
    for phrase, role in sorted(named.items(), key=lambda named_role: -len(named_role[0])):
        by_first.setdefault(phrase[0], []).append((phrase, role))
    return by_first
