"""What became of each quantity of a gold text in a reply."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from monitors.facts.fact import Bound, FactKind
from monitors.facts.reading import Reading
from monitors.facts.scan import Scan
from monitors.graders.equality import Match, bounds_agree, compare
from monitors.graders.gold_kinds import quantities_of
from monitors.graders.roles import Role, denies_limit, mentions_before, negated, roles_in, roles_of
from monitors.graders.scanned import scanned_gold
from monitors.graders.statements import (
    Names,
    is_denied,
    is_one_of_several,
    is_uncovered,
    names_in,
    overrules,
    says_how_often,
    speaks_of_another,
)


@dataclass(frozen=True)
class Looseness:
    """What the case allows when quantities are compared."""

    month_is_30_days: bool
    tolerance: Decimal


@dataclass(frozen=True)
class Asked:
    """The question and the gold, and what they are about."""

    question: Scan
    gold: Scan
    wanted: tuple[Reading, ...]
    roles: frozenset[Role]
    before: bool
    """Whether either speaks of something before an event: then a look-back is no other role."""
    names: Names
    """What the question names: Nova Gold."""


@dataclass(frozen=True)
class Finding:
    """What became of one quantity of the gold: how it matched, and where."""

    gold: Reading
    match: Match
    said: Reading | None
    other_role: bool = False
    denied: bool = False
    """The reply says that it is not this."""


@dataclass(frozen=True)
class Outcome:
    """What became of one gold text. ``passed`` is ``None`` where nothing can be told."""

    gold: Scan
    findings: tuple[Finding, ...]
    passed: bool | None


def weigh(gold: str, question: str, reply: Scan, loose: Looseness) -> Outcome | None:
    """What became of each quantity of ``gold`` in ``reply``; ``None`` when the gold states none."""
    asked = _asked(gold, question)
    if not asked.wanted:
        return None
    findings = tuple(_find(reading, asked, reply, loose) for reading in asked.wanted)
    if all(finding.match is Match.SAME for finding in findings):
        return Outcome(asked.gold, findings, passed=True)
    if all(finding.match in {Match.SAME, Match.VAGUE} for finding in findings):
        return Outcome(asked.gold, findings, passed=None)
    return Outcome(asked.gold, findings, passed=False)


@lru_cache(maxsize=256)
def _asked(gold_text: str, question_text: str) -> Asked:
    """What a case is about; it is asked as often as its case is graded."""
    gold, question = scanned_gold(gold_text), scanned_gold(question_text)
    return Asked(
        question,
        gold,
        tuple(quantities_of(gold)),
        roles_in(question.reader),
        mentions_before(question.reader) or mentions_before(gold.reader),
        names_in(question.reader.tokens),
    )


def _find(wanted: Reading, asked: Asked, reply: Scan, loose: Looseness) -> Finding:
    roles = roles_of(asked.gold.reader, wanted) or asked.roles
    best = Finding(wanted, Match.OTHER, None)
    for said in reply.readings:
        match = _compared(wanted, said, reply, loose)
        if match <= best.match or (match is Match.DIFFERENT and _is_for_another(wanted, said, asked, reply, loose)):
            continue
        if _elsewhere(said, roles, asked, reply):
            if best.said is None and match is Match.SAME:
                best = Finding(wanted, Match.OTHER, said, other_role=True)
            continue
        best = Finding(wanted, match, said, denied=match is Match.DIFFERENT and _is_denied(said, reply))
        if match is Match.SAME:
            return _checked(best, roles, asked, reply, loose)
    if best.match is not Match.SAME and says_how_often(reply, asked.question, wanted):
        return Finding(wanted, Match.SAME, None)
    if best.match is Match.OTHER and wanted.value == 0 and wanted.kind is not FactKind.DATE:
        return Finding(wanted, Match.SAME, None) if is_denied(reply, asked.question, asked.gold) else best
    return best


def _is_for_another(wanted: Reading, said: Reading, asked: Asked, reply: Scan, loose: Looseness) -> bool:
    """Whether a figure is right for another quantity of the gold: then it is not wrong for this one."""
    others = (other for other in asked.wanted if other is not wanted)
    return any(_compared(other, said, reply, loose) is Match.SAME for other in others)


def _compared(wanted: Reading, said: Reading, reply: Scan, loose: Looseness) -> Match:
    match = compare(wanted, said, month_is_30_days=loose.month_is_30_days, tolerance=loose.tolerance)
    if said.ordinal and not wanted.ordinal and not _stands_for(said, match):
        return Match.OTHER
    if match is Match.SAME and (_is_denied(said, reply) or not bounds_agree(wanted.bound, said.bound)):
        return Match.DIFFERENT
    if match is Match.SAME and wanted.bound is not Bound.EXACT and denies_limit(reply.reader, said):
        return Match.DIFFERENT
    return match


def _is_denied(said: Reading, reply: Scan) -> bool:
    """Whether the reply says that it is not this, or not covered up to this; a time may be one of waiting."""
    limit = said.kind in {FactKind.MONEY, FactKind.PERCENT, FactKind.NUMBER}
    return negated(reply.reader, said) or (limit and is_uncovered(reply, said))


def _stands_for(said: Reading, match: Match) -> bool:
    """An ordinal says a plain number only if it is no mere "first": ``seeded 12th``; ``16th century`` is vague."""
    if match is Match.VAGUE:
        return True
    return match is Match.SAME and (said.value > 3 or not said.worded)  # noqa: PLR2004


def _elsewhere(said: Reading, roles: frozenset[Role], asked: Asked, reply: Scan) -> bool:
    """Whether a quantity of the reply is about something else than the gold's."""
    said_roles = roles_of(reply.reader, said)
    if Role.REFERENCE in said_roles:
        return True
    if Role.LOOK_BACK in said_roles:
        return not asked.before
    if roles and said_roles and not roles & said_roles:
        return True
    return bool(asked.names) and speaks_of_another(reply, said, asked.names)


def _checked(found: Finding, roles: frozenset[Role], asked: Asked, reply: Scan, loose: Looseness) -> Finding:
    """A match that the reply takes back, or offers as one of several, is none."""
    said = found.said
    if said is None or found.gold.kind in {FactKind.NUMBER, FactKind.DATE}:
        return found
    for other in reply.readings:
        if other.kind is not said.kind or other is said:
            continue
        if any(_compared(gold, other, reply, loose) is not Match.DIFFERENT for gold in asked.wanted):
            continue
        if is_one_of_several(reply, said, other):
            return Finding(found.gold, Match.VAGUE, said)
        if not _elsewhere(other, roles, asked, reply) and overrules(reply, said, other, asked.question, asked.gold):
            return Finding(found.gold, Match.DIFFERENT, other)
    return found
