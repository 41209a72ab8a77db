"""Drawn replies of live traffic with what a night said of their facts, and the strata that they were drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from warehouse.store import READ_WAIT_S, Parameter, Store

StratumKey = tuple[str, str]
"""A night's run and the stratum: that of another night was drawn by itself."""


class Span(NamedTuple):
    """Conversations of a target that nights ``runs`` took, completed from ``since`` (included) to ``until``."""

    target: str
    since: datetime
    until: datetime
    runs: Sequence[str]

    @property
    def values(self) -> dict[str, Parameter]:
        """To be bound. Ids of runs hold no space."""
        since, until = self.since.isoformat(), self.until.isoformat()
        return {"target": self.target, "since": since, "until": until, "runs": " ".join(self.runs)}


class DrawnReply(NamedTuple):
    """A drawn reply, as it was stored, and what the night said of its facts: yes, no or untold."""

    stratum: StratumKey
    conversation: tuple[str, str]
    case_id: str
    completed_at: datetime
    user_text: str
    reply_text: str
    facts: str
    inclusion_probability: float


def drawn_replies(store: Store, span: Span, *, wait_s: float = READ_WAIT_S) -> Sequence[DrawnReply]:
    """All replies of the drawn conversations, in the order in which these were completed."""
    found = store.query(
        """
        select c.run_id, c.stratum, c.source, c.id, a.case_id, c.completed_at,
          coalesce(r.turns[-1], ''), coalesce(r.visible_text, ''), a.factual_match, c.inclusion_probability
        from conversations c
        join assessments a on a.run_id = c.run_id and a.cluster = coalesce(c.record->>'$.id', c.id)
        left join results r on r.run_id = a.run_id and r.case_id = a.case_id and r.repeat = a.repeat
        where c.target = $target and c.inclusion_probability is not null
          and c.completed_at >= $since::timestamptz and c.completed_at < $until::timestamptz
          and list_contains(string_split($runs, ' '), c.run_id)
        order by c.completed_at, c.source, c.id, a.case_id
        """,
        span.values,
        wait_s=wait_s,
    )
    return tuple(_reply(row) for row in found.rows)


def _reply(row: Sequence[object]) -> DrawnReply:
    run, stratum, source, key, case_id, completed_at, asked, replied, facts, probability = row
    assert isinstance(completed_at, datetime)
    assert isinstance(probability, float)
    return DrawnReply(
        stratum=(str(run), str(stratum)),
        conversation=(str(source), str(key)),
        case_id=str(case_id),
        completed_at=completed_at,
        user_text=str(asked),
        reply_text=str(replied),
        facts=str(facts),
        inclusion_probability=probability,
    )


def seen_by_stratum(
    store: Store, span: Span, *, wait_s: float = READ_WAIT_S
) -> Mapping[StratumKey, tuple[int, int]]:
    """How many conversations each stratum of each night had in the span, and how many of them were drawn."""
    found = store.query(
        """
        select run_id, stratum, count(*), count(inclusion_probability) from conversations
        where target = $target and completed_at >= $since::timestamptz and completed_at < $until::timestamptz
          and list_contains(string_split($runs, ' '), run_id)
        group by run_id, stratum order by run_id, stratum
        """,
        span.values,
        wait_s=wait_s,
    )
    return {
        (str(run), str(stratum)): (int(str(there)), int(str(drawn))) for run, stratum, there, drawn in found.rows
    }
