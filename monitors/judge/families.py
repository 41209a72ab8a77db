"""Find the family of a model, such as GPT, from its id, and refuse judges of the target's family.

A model gives its own family higher scores. Therefore, a judge of the target's family is refused, and also a judge
of an unknown family. A model may have several families: a distilled or fine-tuned model writes like its teacher and
has the weights of its base model. ``DeepSeek-R1-Distill-Llama-70B`` writes like DeepSeek and was pre-trained as a
Llama. It belongs to both families, and neither of them may judge it.

Each row of the table has a family and its words. A word must match a complete part of the id, and digits may follow
the word. ``gpt`` matches ``gpt-5`` and ``gpt4o``, but not ``gptq``; ``grok`` does not match the host ``groq``. Some
models are built on the weights of another family, but their name does not show it. Such a model is in the rows of
both families.

Sources: the model lists and model cards of the makers, read in November 2026. A comment gives the base of a model
if the name does not contain the base.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from monitors.errors import ConfigError

_WORDS: tuple[tuple[str, str], ...] = (
    ("claude", "claude anthropic"),
    ("gpt", "gpt chatgpt davinci babbage codex"),  # also matches gpt-oss
    ("gemini", r"gemini [a-z0-9]*gemma palm learnlm"),  # Gemma is distilled from Gemini
    ("llama", "llama codellama tinyllama llava vicuna alpaca openhathi phind"),  # the last four: on Llama weights
    ("mistral", "mistral mistralai mixtral ministral magistral codestral devstral pixtral voxtral mathstral"),
    ("mistral", "openhermes zephyr"),  # on Mistral 7B
    ("qwen", "qwen codeqwen qwq qvq"),
    ("deepseek", "deepseek"),
    ("sarvam", "sarvam sarvamai"),
    ("grok", "grok"),
    ("command", "command aya"),
    ("phi", "phi"),
    ("nova", "nova titan"),
    ("glm", "glm chatglm"),
    ("kimi", "kimi moonshot"),
    ("minimax", "minimax abab"),
    ("granite", "granite"),
    ("falcon", "falcon"),
    ("jamba", "jamba"),
    ("nemotron", "nemotron"),
    ("yi", "yi"),
    ("ernie", "ernie"),
    ("hunyuan", "hunyuan"),
    ("doubao", "doubao"),
    ("internlm", "internlm"),
    ("exaone", "exaone"),
    ("olmo", "olmo"),
    ("solar", "solar"),
    ("reka", "reka"),
    ("krutrim", "krutrim"),
)

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("gpt", r"(?:^|[/:])o[1-9](?![a-z0-9])"),  # o1, o3-mini: only at the start of a name, elsewhere it is a version
    ("mistral", r"(?<![a-z])sarvam-m(?![a-z0-9])"),  # built on Mistral Small 3.1
    ("mistral", r"(?<![a-z])krutrim-2(?!\d)"),  # built on Mistral NeMo
    ("llama", r"(?<![a-z])krutrim-spectre"),
)


def _build_family_pattern(words: str) -> str:
    return rf"(?<![a-z])(?:{'|'.join(words.split())})(?=[^a-z]|$)"


FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(pattern))
    for family, pattern in (*((family, _build_family_pattern(words)) for family, words in _WORDS), *_PATTERNS)
)
"""The families. Each has a pattern that finds the family in a lower-case model id."""

NOT_MODELS = re.compile(
    r"llama[._-]?(?:cpp|index|stack|factory|swap|edge)|llamafile|gpt-?(?:j|neo|neox|4all|q|sw3|bot|jt)(?![a-z0-9])"
    r"|gptq|deepseek-ai(?=/)|glm-?ocr"
)
"""Names of tools and formats that look like model names, and publishers that do not identify a family."""

OTHER_NAMES = {
    "anthropic": "claude",
    "openai": "gpt",
    "chatgpt": "gpt",
    "google": "gemini",
    "gemma": "gemini",
    "meta": "llama",
    "mixtral": "mistral",
    "mistralai": "mistral",
    "alibaba": "qwen",
    "xai": "grok",
    "cohere": "command",
    "microsoft": "phi",
    "amazon": "nova",
    "zhipu": "glm",
    "z-ai": "glm",
    "moonshot": "kimi",
    "ibm": "granite",
    "tii": "falcon",
    "baidu": "ernie",
    "tencent": "hunyuan",
    "bytedance": "doubao",
    "nvidia": "nemotron",
    "ai21": "jamba",
}
"""Other names of families: the name of the maker or of the best-known model."""


Additions = Mapping[str, Sequence[str]]
"""Additional families and custom model names: maps a family to patterns, which must match the whole model id.

A pattern may contain ``*`` and ``?``, and ignores letter case: ``acme-*`` matches ``acme-large``. Additions only
extend the built-in table. For example, a configuration cannot move Claude to another family.
"""

NO_ADDITIONS: Additions = {}

_PARTS = re.compile(r"[a-z]+|\d+")


def find_families(model: str, additions: Additions = NO_ADDITIONS) -> frozenset[str]:
    """Return all families whose names occur in a model id. The result is empty if no family is known.

    The id may also contain a provider, a region, a publisher, a date, a version, or a suffix for fine-tuning or
    quantisation: ``us.anthropic.claude-…-v1:0``, ``ft:gpt-…:org::id``, ``TheBloke/Llama-2-7B-GPTQ``.
    """
    name = NOT_MODELS.sub(" ", model.strip().lower())
    named = {family for family, pattern in FAMILIES for _ in pattern.finditer(name)}
    return frozenset(named | {family.lower() for family in additions if _is_in_additions(model, additions[family])})


def list_families(additions: Additions = NO_ADDITIONS) -> tuple[str, ...]:
    """Return the names of all families in alphabetical order."""
    return tuple(sorted({family for family, _ in FAMILIES} | {family.lower() for family in additions}))


def resolve_family(family: str, additions: Additions = NO_ADDITIONS) -> frozenset[str]:
    """Return the families for a family name, a maker's name, or a model id.

    The result is empty if the name is unknown.
    """
    word = family.strip().lower()
    if word in list_families(additions):
        return frozenset({word})
    if word in OTHER_NAMES:
        return frozenset({OTHER_NAMES[word]})
    return find_families(family, additions)


def require_other_family(
    judge_model: str,
    *,
    target: str = "the target",
    target_family: str | None = None,
    target_model: str | None = None,
    additions: Additions = NO_ADDITIONS,
) -> None:
    """Raise `ConfigError` if a judge belongs, or may belong, to the target's family.

    ``target_family`` is the configured family, and ``target_model`` the id of a model that answered for the target.
    At least one of them is required, and both are checked. Call this function for the configured judge model, and
    for the model in the provider's reply.
    """
    judge = find_families(judge_model, additions)
    accepted = ", ".join(list_families(additions))
    if not judge:
        raise ConfigError(
            f"the family of the judge's model {judge_model!r} is unknown, so it may be the target's own family. "
            f"Choose a model of one of these families: {accepted}. Or set the family under [judge.families]: "
            f"{_format_family_setting_example(judge_model)}"
        )
    if target_family is None and target_model is None:
        raise ConfigError(
            f"the model that answers for {target} is unknown, so the judge may belong to the same family. Set "
            f"model_family of {target} to one of {accepted}, or remove the judge"
        )
    asked = {target_family: resolve_family(target_family, additions)} if target_family is not None else {}
    answering = {target_model: find_families(target_model, additions)} if target_model is not None else {}
    for name, families in (*asked.items(), *answering.items()):
        if not families:
            raise ConfigError(
                f"{target} answers with {name!r}, whose family is unknown. Set model_family of {target} to one of "
                f"{accepted}, or set the family under [judge.families]: {_format_family_setting_example(name)}"
            )
        if judge & families:
            raise ConfigError(_describe_conflict(judge_model, target, name, judge & families))


def _describe_conflict(judge_model: str, target: str, name: str, shared: frozenset[str]) -> str:
    others = [name for name in ("claude", "gpt", "gemini", "mistral") if name not in shared]
    return (
        f"the judge {judge_model!r} and {target} ({name!r}) belong to the same model family "
        f"({', '.join(sorted(shared))}). A model grades its own family too generously. Choose a judge from "
        f"another family, for example {', '.join(others[:3])}"
    )


def _is_in_additions(model: str, patterns: Sequence[str]) -> bool:
    name = model.strip().lower()
    return any(fnmatchcase(name, pattern.strip().lower()) for pattern in patterns)


def _format_family_setting_example(model: str) -> str:
    family = "-".join(_PARTS.findall(model.lower())[:1]) or "house"
    return f"{family} = [{model.strip().lower()!r}]".replace("'", '"')
