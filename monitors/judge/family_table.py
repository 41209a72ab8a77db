"""The families of language models, as data: which words in a model id name which family.

A row is a family and the words that name it. A word must stand alone among the id's parts (between the start, the
end and anything that is not a letter), digits may follow it: ``gpt`` fits ``gpt-5`` and ``gpt4o``, not ``gptq``;
``grok`` does not fit the host ``groq``. A family may have several rows: models that were built on another family's
weights without saying so in their name are rows of both.

Sources: the makers' own model lists and model cards, read in November 2026; what a model was built on is said where
it is not in the name.
"""

from __future__ import annotations

import re

_WORDS: tuple[tuple[str, str], ...] = (
    ("claude", "claude anthropic"),
    ("gpt", "gpt chatgpt davinci babbage codex"),  # gpt-oss too
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


def _row(words: str) -> str:
    return rf"(?<![a-z])(?:{'|'.join(words.split())})(?=[^a-z]|$)"


FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(pattern))
    for family, pattern in (*((family, _row(words)) for family, words in _WORDS), *_PATTERNS)
)
"""Families with the patterns that find them in a model id in lower case."""

NOT_MODELS = re.compile(
    r"llama[._-]?(?:cpp|index|stack|factory|swap|edge)|llamafile|gpt-?(?:j|neo|neox|4all|q|sw3|bot|jt)(?![a-z0-9])"
    r"|gptq|deepseek-ai(?=/)|glm-?ocr"
)
"""Tools and formats whose names look like a model's, and publishers that say nothing of a model by themselves."""

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
"""What people call a family besides its name: its maker, or its best-known model."""
