"""Which family a model belongs to, read from its id, and that a judge is of another one than the target.

A model that grades its own family inflates scores, so the question is asked before anything else, and "unknown" is
refused like "same". Families are sets: a distilled or fine-tuned model has the manners of its teacher and the
weights of its base. ``DeepSeek-R1-Distill-Llama-70B`` writes like DeepSeek and was pre-trained as a Llama, so it is
both, and neither of the two may judge it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from monitors.errors import ConfigError
from monitors.judge.family_table import FAMILIES, NOT_MODELS, OTHER_NAMES
from monitors.records.base import Finding

Additions = Mapping[str, Sequence[str]]
"""Families of your own, or of models with names of your own: family → patterns over the whole model id.

A pattern is matched without case, with ``*`` and ``?``; ``acme-*`` fits ``acme-large``. They add to what the table
says and take nothing away, so that no configuration can call a Claude something else.
"""

NO_ADDITIONS: Additions = {}

_PARTS = re.compile(r"[a-z]+|\d+")


def families_of(model: str, additions: Additions = NO_ADDITIONS) -> frozenset[str]:
    """All families that a model id names; empty when none is known.

    Prefixes of providers and regions, publishers, dates, versions, fine-tune and quantisation suffixes may stand
    around the name: ``us.anthropic.claude-…-v1:0``, ``ft:gpt-…:org::id``, ``TheBloke/Llama-2-7B-GPTQ``.
    """
    name = NOT_MODELS.sub(" ", model.strip().lower())
    named = {family for family, pattern in FAMILIES for _ in pattern.finditer(name)}
    return frozenset(named | {family.lower() for family in additions if _is_added(model, additions[family])})


def known_families(additions: Additions = NO_ADDITIONS) -> tuple[str, ...]:
    """Names of all families there are, in alphabetical order."""
    return tuple(sorted({family for family, _ in FAMILIES} | {family.lower() for family in additions}))


def family_named(family: str, additions: Additions = NO_ADDITIONS) -> frozenset[str]:
    """What a person may have meant by a family: its name, its maker's, or a model id. Empty when unknown."""
    word = family.strip().lower()
    if word in known_families(additions):
        return frozenset({word})
    if word in OTHER_NAMES:
        return frozenset({OTHER_NAMES[word]})
    return families_of(family, additions)


def compare_families(one: str, other: str, additions: Additions = NO_ADDITIONS) -> Finding:
    """Whether two model ids share a family: yes, no, or untold when either is unknown."""
    first, second = families_of(one, additions), families_of(other, additions)
    if not first or not second:
        return Finding.UNTOLD
    return Finding.YES if first & second else Finding.NO


def require_other_family(
    judge_model: str,
    *,
    target: str = "the target",
    target_family: str | None = None,
    target_model: str | None = None,
    additions: Additions = NO_ADDITIONS,
) -> None:
    """Refuse a judge that is, or may be, of the target's family. `ConfigError` says how to mend it.

    ``target_family`` is what the configuration says, ``target_model`` a model id that was seen to answer; what is
    given is checked, and one of the two must be. The judge's model should be checked twice: as it was configured,
    and as the provider's reply names it.
    """
    judge = families_of(judge_model, additions)
    accepted = ", ".join(known_families(additions))
    if not judge:
        raise ConfigError(
            f"the judge's model {judge_model!r} is of no known family, it could be the target's own; choose one of"
            f" {accepted}, or name its family under [judge.families]: {_example(judge_model)}"
        )
    if target_family is None and target_model is None:
        raise ConfigError(
            f"{target} does not say which model answers, so a judge could be of its family; set model_family of"
            f" {target} to one of {accepted}, or leave the judge off"
        )
    asked = {target_family: family_named(target_family, additions)} if target_family is not None else {}
    seen = {target_model: families_of(target_model, additions)} if target_model is not None else {}
    for said, families in (*asked.items(), *seen.items()):
        if not families:
            raise ConfigError(
                f"{target} answers with {said!r}, which is of no known family; set its model_family to one of"
                f" {accepted}, or name the family under [judge.families]: {_example(said)}"
            )
        if judge & families:
            raise ConfigError(_too_close(judge_model, target, said, judge & families))


def _too_close(judge_model: str, target: str, said: str, shared: frozenset[str]) -> str:
    others = [name for name in ("claude", "gpt", "gemini", "mistral") if name not in shared]
    return (
        f"the judge {judge_model!r} and {target} ({said!r}) are of one family, {', '.join(sorted(shared))}:"
        f" a model is too kind to its own; choose a judge of another, such as {', '.join(others[:3])}"
    )


def _is_added(model: str, patterns: Sequence[str]) -> bool:
    name = model.strip().lower()
    return any(fnmatchcase(name, pattern.strip().lower()) for pattern in patterns)


def _example(model: str) -> str:
    family = "-".join(_PARTS.findall(model.lower())[:1]) or "house"
    return f"{family} = [{model.strip().lower()!r}]".replace("'", '"')
