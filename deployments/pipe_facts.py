"""What ``lookout facts`` answers to one line."""

from __future__ import annotations

from deployments.pipe_fields import language_of, text_of
from deployments.pipe_lines import Fields
from monitors.facts.fact import Fact, FactKind
from monitors.facts.scan import read_facts


def facts_of(fields: Fields) -> Fields:
    """All quantities of ``text`` in order of place; ``language`` is checked, the rules read all three at once."""
    language_of(fields)
    return {"facts": [_shown(fact) for fact in read_facts(text_of(fields, "text"))]}


def _shown(fact: Fact) -> Fields:
    shown: Fields = {
        "kind": fact.kind.value,
        "value": fact.value,
        "unit": fact.unit,
        "span": [fact.start, fact.end],
        "text": fact.text,
        "bound": fact.bound.value,
    }
    if fact.kind is FactKind.DURATION:
        shown |= {"original_value": fact.original_value, "original_unit": fact.original_unit}
    return shown
