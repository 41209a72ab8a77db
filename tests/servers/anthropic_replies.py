"""Build replies of the Messages API, including invalid replies with status 200."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.servers.anthropic_rules import Refusal
from tests.servers.anthropic_tokens import PromptCache
from tests.servers.anthropic_verdicts import RuleJudge, as_text

Spoil = Callable[[dict[str, Any]], str]


def _with(**changes: Any) -> Spoil:
    return lambda verdict: as_text(verdict | changes)


def _with_criterion(name: str, **changes: Any) -> Spoil:
    """Return a function that changes the criterion ``name`` of a verdict, or removes it if ``changes`` is empty."""

    def spoil(verdict: dict[str, Any]) -> str:
        others = {key: answer for key, answer in verdict["criteria"].items() if key != name}
        changed = {name: verdict["criteria"][name] | changes} if changes else {}
        return as_text(verdict | {"criteria": others | changed})

    return spoil


SPOILED: dict[str, Spoil] = {
    "malformed": lambda verdict: as_text(verdict)[:-1] + ",}",
    "prose": lambda verdict: f"Sure! Here is my verdict: the score is {verdict.get('score')}.",
    "fenced": lambda verdict: f"```json\n{as_text(verdict)}\n```",
    "nan": lambda verdict: as_text(verdict).replace(f'"score": {verdict["score"]}', '"score": NaN'),
    "infinite": lambda verdict: as_text(verdict).replace(f'"score": {verdict["score"]}', '"score": 1e999'),
    "deep": lambda _verdict: "[" * 100_000,
    "list": lambda verdict: json.dumps([verdict]),
    "twice": lambda verdict: as_text(verdict) + as_text(verdict),
    "out_of_range": _with(score=1.7, rubric=9),
    "negative": _with(score=-0.2),
    "rubric_0": _with(rubric=0),
    "rubric_float": _with(rubric=3.5),
    "text_for_bool": _with(factual_match="true"),
    "unknown_kind": _with(failure_kinds=["made_up"]),
    "extra_key": _with(severity=1),
    "false_quote": _with(quotes=["words that nobody wrote in this answer at all"]),
    "empty_quote": _with(quotes=[""]),
    "blank_quote": _with(quotes=[" \u200b "]),
    "punctuation_quote": _with(quotes=["."]),
    "letter_quote": _with(quotes=["e"]),
    "missing_key": lambda verdict: as_text({k: v for k, v in verdict.items() if k != "factual_match"}),
    "contradiction": _with(factual_match=True, score=0.0, failure_kinds=["wrong_fact"]),
    "surrogate": lambda verdict: as_text(verdict).replace('"reason": "', '"reason": "\\ud800'),
}
"""Functions that make a verdict invalid, keyed by the name of the fault. Lookout must reject such a verdict."""

SPOILED_CRITERIA: dict[str, Spoil] = {
    "no_criteria": lambda verdict: as_text({k: v for k, v in verdict.items() if k != "criteria"}),
    "criteria_list": _with(criteria=[1, 1, 1]),
    "criterion_missing": _with_criterion("accuracy"),
    "criterion_2": _with_criterion("completeness", score=2),
    "criterion_true": _with_criterion("helpfulness", score=True),
    "criterion_extra_key": _with_criterion("helpfulness", confidence=1),
    "criterion_false_quote": _with_criterion("helpfulness", quote="words that nobody wrote in this report"),
    "criterion_blank_quote": _with_criterion("accuracy", score=0, quote=" ", reason="no cause"),
    "criterion_punctuation_quote": _with_criterion("accuracy", quote="."),
    "criterion_1_without_quote": _with_criterion("completeness", score=1, quote="", reason="all is there"),
    "criterion_0_without_reason": _with_criterion("completeness", score=0, quote="", reason=" "),
}
"""Functions that make only the criteria of a rating invalid, keyed by the name of the fault."""


MISCOUNTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "usage_missing": lambda _usage: None,
    "usage_text": lambda usage: usage | {"input_tokens": "many"},
    "usage_negative": lambda usage: usage | {"output_tokens": -5},
    "usage_huge": lambda usage: usage | {"input_tokens": 10**30},
    "usage_fraction": lambda usage: usage | {"cache_creation_input_tokens": "1.5"},
}
"""Functions that replace the token counts with invalid ones, keyed by the name of the fault."""


class Replies:
    """Builds the replies of the Messages API, with the verdicts of ``judge`` and the token counts of ``cache``."""

    def __init__(self, judge: RuleJudge, cache: PromptCache) -> None:
        self.judge = judge
        self.cache = cache
        self._count = 0

    def message(self, body: dict[str, Any], fault: str | None = None, *, batch: bool = False) -> dict[str, Any]:
        """Return the reply to the valid request ``body``, with the planned ``fault`` if there is one."""
        name, _, argument = (fault or "").partition(":")
        text, stop = self._written(body, name)
        content = [{"type": "text", "text": text}] if text is not None else []
        if name == "thinking":
            content.insert(0, {"type": "thinking", "thinking": "let me see", "signature": "c2ln"})
        self._count += 1
        usage = self.cache.usage(body, text or "", batch=batch)
        return {
            "id": f"msg_test_{self._count}",
            "type": "message",
            "role": "assistant",
            "model": argument if name == "wrong_model" else body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": {"type": "refusal", "category": None, "explanation": None}
            if stop == "refusal"
            else None,
            "usage": MISCOUNTED[name](usage) if name in MISCOUNTED else usage,
        }

    def _written(self, body: dict[str, Any], fault: str) -> tuple[str | None, str]:
        if fault == "empty":
            return None, "end_turn"
        if fault == "refusal":
            return "", "refusal"
        text = self._text(body, fault)
        if fault == "truncated" or len(text.encode()) // 4 > body["max_tokens"]:
            return text[: min(len(text) // 2, body["max_tokens"] * 4)], "max_tokens"
        return text, "end_turn"

    def _text(self, body: dict[str, Any], fault: str) -> str:
        form = (body.get("output_config") or {}).get("format")
        if form is None:
            return "I have no schema to answer in."
        verdict = self.judge.verdict(user_text(body), form["schema"].get("properties", {}))
        return (SPOILED | SPOILED_CRITERIA).get(fault, as_text)(verdict)


def user_text(body: dict[str, Any]) -> str:
    """Return the text of all user messages."""
    texts: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        texts += [content] if isinstance(content, str) else [block.get("text", "") for block in content]
    return "\n".join(texts)


OVERLOADED = Refusal("overloaded_error", "Overloaded").body()
"""The body of an overload error. A proxy, or a stream that has already begun, sends it with status 200."""
