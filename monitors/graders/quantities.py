"""Whether the reply states every quantity of the gold, in its role, and what became of each in the reply.

Its reasons write quantities as people read them: ``up to ₹1,50,000``, ``24 months``, ``10 %``.
"""

from __future__ import annotations

from calendar import month_name
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from monitors.domains.pack import Domain
from monitors.facts.quantities.clock import ALWAYS
from monitors.facts.quantities.fact import Bound, FactKind, QuantityReading
from monitors.facts.quantities.locales import PLAIN, Locale, locale_of
from monitors.facts.quantities.numerals import EXACT
from monitors.facts.quantities.other_languages import leaves_unread, may_deny
from monitors.facts.quantities.scan import Scan
from monitors.graders.base import GraderSettings, abstained, judged
from monitors.facts.claims.equality import Match, bounds_agree, compare, differ_in_period, leaves_currency_open
from monitors.graders.golds import FLOOD, is_measured, quantities_of, scanned_gold, scanned_reply
from monitors.graders.statements import (
    LOOK_BACK,
    REFERENCE,
    Names,
    asked_unit,
    denies_limit,
    is_age,
    is_always_denied,
    is_as_near,
    is_denied,
    is_free,
    is_of_another_variant,
    is_one_of_several,
    is_uncovered,
    mentions_before,
    names_in,
    negated,
    overrules,
    roles_in,
    roles_of,
    says_how_often,
    speaks_of_another,
    units_asked,
    variants_in,
)
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span

_SIGNS: Final = {"INR": "₹", "USD": "$", "EUR": "€", "GBP": "£"}
_LIMITS: Final = {Bound.AT_MOST: "up to ", Bound.AT_LEAST: "at least ", Bound.EXACT: ""}
_LAST_GROUP, _INDIAN_GROUP = 3, 2


def measured(reading: QuantityReading) -> str:
    """A quantity in a few words, for a reason or a label. Money in rupees is grouped as India writes it."""
    if reading.kind in {FactKind.DATE, FactKind.TIME}:
        return _day_without_year(reading.date) if reading.date.startswith("--") else reading.date
    value = EXACT.plus(reading.original_value if reading.original_value is not None else reading.value)
    unit = reading.original_unit or reading.unit or ("$" if "USD" in reading.may_be else "")
    if reading.counts:
        return f"{_LIMITS[reading.bound]}{reading.counts} {value}"
    per = f" per {reading.per}" if reading.per else ""
    return f"{_LIMITS[reading.bound]}{_with_unit(reading.kind, value, unit)}{per}"


def _day_without_year(date: str) -> str:
    month, day = date[2:].split("-")
    return f"{int(day)} {month_name[int(month)]}"


def _with_unit(kind: FactKind, value: Decimal, unit: str) -> str:
    amount = _grouped(value, indian=unit == "INR")
    match kind:
        case FactKind.MONEY if unit == "$":
            return f"${amount}, any dollars"
        case FactKind.MONEY if unit in _SIGNS:
            return f"{_SIGNS[unit]}{amount}"
        case FactKind.PERCENT:
            return f"{amount} %"
        case FactKind.DURATION:
            return f"{amount} {unit}" if abs(value) == 1 else f"{amount} {unit}s"
        case _:
            return f"{amount} {unit}".strip()


def _grouped(value: Decimal, *, indian: bool) -> str:
    """Digits in groups; zeros behind the point that say nothing are left out."""
    text = format(value, "f")
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    sign, digits = whole[: whole.startswith("-")], whole.lstrip("-")
    head, tail = digits[:-_LAST_GROUP], digits[-_LAST_GROUP:]
    size = _INDIAN_GROUP if indian else _LAST_GROUP
    groups = [head[max(0, end - size) : end] for end in range(len(head), 0, -size)]
    return sign + ",".join([*reversed(groups), tail]) + (f".{part}" if part else "")


@dataclass(frozen=True)
class Looseness:
    """What the case allows when quantities are compared, and the domain whose words tell their roles."""

    domain: Domain
    month_is_30_days: bool
    tolerance: Decimal
    locale: Locale = PLAIN
    amounts: frozenset[QuantityReading] = frozenset()
    """Amounts of money that any of the accepted golds states: a bare number of the same value is that amount."""


@dataclass(frozen=True)
class GoldContext:
    """The question and the gold, and what they are about."""

    question: Scan
    gold: Scan
    wanted: tuple[QuantityReading, ...]
    roles: frozenset[str]
    before: bool
    """Whether either speaks of something before an event: then a look-back is no other role."""
    names: Names
    """What the question names: Nova Gold."""
    variants: frozenset[str]
    domain: Domain


@dataclass(frozen=True)
class QuantityFinding:
    """What became of one quantity of the gold: how it matched, and where."""

    gold: QuantityReading
    match: Match
    said: QuantityReading | None
    other_role: bool = False
    denied: bool = False
    """The reply says that it is not this."""


@dataclass(frozen=True)
class Outcome:
    """What became of one gold text. ``passed`` is ``None`` where it cannot be graded."""

    gold: Scan
    findings: tuple[QuantityFinding, ...]
    passed: bool | None


def compare_quantities(gold: str, question: str, reply: Scan, loose: Looseness) -> Outcome | None:
    """What became of each quantity of ``gold`` in ``reply``; ``None`` when the gold states none."""
    asked = _asked(gold, question, loose)
    if not asked.wanted:
        return None
    findings = tuple(_find(reading, asked, reply, loose) for reading in asked.wanted)
    if all(finding.match is Match.SAME for finding in findings):
        return Outcome(asked.gold, findings, passed=True)
    if all(finding.match in {Match.SAME, Match.VAGUE} for finding in findings):
        return Outcome(asked.gold, findings, passed=None)
    return Outcome(asked.gold, findings, passed=False)


@lru_cache(maxsize=256)
def _asked(gold_text: str, question_text: str, loose: Looseness) -> GoldContext:
    """What a case is about; it is asked as often as its case is graded."""
    gold, question = scanned_gold(gold_text, loose.locale), scanned_gold(question_text, loose.locale)
    return GoldContext(
        question,
        gold,
        tuple(_as_amount(reading, loose.amounts) for reading in quantities_of(gold)),
        roles_in(question.reader, loose.domain),
        mentions_before(question.reader) or mentions_before(gold.reader),
        names_in(question.reader.tokens),
        variants_in(question.reader, loose.domain),
        loose.domain,
    )


def _as_amount(reading: QuantityReading, amounts: frozenset[QuantityReading]) -> QuantityReading:
    """A bare number of the gold in the currency that another accepted gold gives it: "₹5 lakh" or "5 lakh"."""
    if reading.kind is not FactKind.NUMBER or reading.ordinal:
        return reading
    named = [amount for amount in amounts if amount.value == reading.value]
    if len({amount.unit for amount in named}) != 1:
        return reading
    return reading._replace(kind=FactKind.MONEY, unit=named[0].unit, may_be=named[0].may_be)


def _is_unasked(reading: QuantityReading, asked: GoldContext) -> bool:
    """Whether the question does not name this number itself."""
    return all(reading.value != named.value for named in asked.question.readings)


def _find(wanted: QuantityReading, asked: GoldContext, reply: Scan, loose: Looseness) -> QuantityFinding:
    roles = roles_of(asked.gold.reader, wanted, asked.domain) or asked.roles
    best = QuantityFinding(wanted, Match.OTHER, None)
    for said in reply.readings:
        match = _compared(wanted, said, reply, loose)
        if match is Match.SAME and _is_numbered_otherwise(wanted, said, reply):
            continue
        if match <= best.match or (match is Match.DIFFERENT and _is_for_another(wanted, said, asked, reply, loose)):
            continue
        if _elsewhere(said, roles, asked, reply):
            if best.said is None and match is Match.SAME:
                best = QuantityFinding(wanted, Match.OTHER, said, other_role=True)
            continue
        best = QuantityFinding(
            wanted, match, said, denied=match is Match.DIFFERENT and _is_denied(said, reply, loose.domain)
        )
        if match is Match.SAME:
            return _checked(best, roles, asked, reply, loose)
    if best.match is not Match.SAME and says_how_often(reply, asked.question, wanted):
        return QuantityFinding(wanted, Match.SAME, None)
    if best.match is Match.OTHER and wanted.value == 0 and wanted.kind is not FactKind.DATE:
        nothing = is_denied(reply, asked.question, asked.gold) or is_free(reply, wanted)
        return QuantityFinding(wanted, Match.SAME, None) if nothing else best
    if best.match is Match.OTHER and best.said is None and wanted.kind is FactKind.NUMBER and wanted.bare:
        return _in_asked_unit(wanted, roles, asked, reply)
    return best


def _is_numbered_otherwise(wanted: QuantityReading, said: QuantityReading, reply: Scan) -> bool:
    """Whether a number without a noun agrees where the gold's noun has another number: Terminal 1, gate A2."""
    if not wanted.counts or said.counts:
        return False
    return any(other.counts == wanted.counts and other.value != wanted.value for other in reply.readings)


def _in_asked_unit(
    wanted: QuantityReading, roles: frozenset[str], asked: GoldContext, reply: Scan
) -> QuantityFinding:
    """A gold of bare digits against another number of what is asked: "79" and "69 years" of an oldest age."""
    units = units_asked(asked.question.reader)
    for said in reply.readings:
        if asked_unit(said) in units and _is_unasked(said, asked) and not _elsewhere(said, roles, asked, reply):
            return QuantityFinding(wanted, Match.DIFFERENT, said)
    return QuantityFinding(wanted, Match.OTHER, None)


def _is_for_another(
    wanted: QuantityReading, said: QuantityReading, asked: GoldContext, reply: Scan, loose: Looseness
) -> bool:
    """Whether a figure is right for another quantity of the gold: then it is not wrong for this one."""
    others = (other for other in asked.wanted if other is not wanted)
    return any(_compared(other, said, reply, loose) is Match.SAME for other in others)


def _compared(wanted: QuantityReading, said: QuantityReading, reply: Scan, loose: Looseness) -> Match:
    match = compare(
        wanted,
        said,
        month_is_30_days=loose.month_is_30_days,
        tolerance=loose.tolerance,
        currency=loose.locale.currency,
    )
    if match is Match.VAGUE and wanted.original_unit == "year" and is_age(reply.reader, said):
        match = Match.SAME
    in_a_row = bool(wanted.counts and said.counts)
    if said.ordinal and not wanted.ordinal and not in_a_row and not _stands_for(said, match):
        return Match.OTHER
    if match is Match.SAME and (
        _is_denied(said, reply, loose.domain) or not bounds_agree(wanted.bound, said.bound)
    ):
        return Match.DIFFERENT
    if match is Match.SAME and wanted.bound is not Bound.EXACT and denies_limit(reply.reader, said):
        return Match.DIFFERENT
    return match


def _is_denied(said: QuantityReading, reply: Scan, domain: Domain) -> bool:
    """Whether the reply says that it is not this, or not covered up to this; a time may be one of waiting."""
    limit = said.kind in {FactKind.MONEY, FactKind.PERCENT, FactKind.NUMBER}
    if said.date == ALWAYS and is_always_denied(reply.reader, said):
        return True
    return negated(reply.reader, said) or (limit and is_uncovered(reply, said, domain))


def _stands_for(said: QuantityReading, match: Match) -> bool:
    """An ordinal says a plain number only if it is no mere "first": ``seeded 12th``; ``16th century`` is vague."""
    if match is Match.VAGUE:
        return True
    return match is Match.SAME and (said.value > 3 or not said.worded)  # noqa: PLR2004


def _elsewhere(said: QuantityReading, roles: frozenset[str], asked: GoldContext, reply: Scan) -> bool:
    """Whether a quantity of the reply is about something else than the gold's."""
    said_roles = roles_of(reply.reader, said, asked.domain)
    if REFERENCE in said_roles:
        return True
    if LOOK_BACK in said_roles:
        return not asked.before
    if roles and said_roles and not roles & said_roles:
        return True
    if asked.variants and is_of_another_variant(reply, said, asked.variants, asked.domain):
        return True
    return bool(asked.names) and speaks_of_another(reply, said, asked.names)


def _checked(
    found: QuantityFinding, roles: frozenset[str], asked: GoldContext, reply: Scan, loose: Looseness
) -> QuantityFinding:
    """A match that the reply takes back, or offers as one of several, does not count."""
    said = found.said
    if said is None:
        return found
    plain = found.gold.kind in {FactKind.NUMBER, FactKind.DATE}
    for other in reply.readings:
        if other.kind is not said.kind or other is said or differ_in_period(said, other):
            continue
        if plain and not (said.bare and other.bare and _is_unasked(other, asked)):
            continue
        if any(_compared(gold, other, reply, loose) is not Match.DIFFERENT for gold in asked.wanted):
            continue
        if is_one_of_several(reply, said, other):
            return QuantityFinding(found.gold, Match.VAGUE, said)
        if (
            not plain
            and not _elsewhere(other, roles, asked, reply)
            and overrules(reply, said, other, asked.question, asked.gold)
        ):
            return QuantityFinding(found.gold, Match.DIFFERENT, other)
    if any(_rivals(found, other, asked, reply, loose) for other in reply.readings):
        return QuantityFinding(found.gold, Match.VAGUE, said)
    return found


def _rivals(
    found: QuantityFinding,
    other: QuantityReading,
    asked: GoldContext,
    reply: Scan,
    loose: Looseness,
) -> bool:
    """Whether another amount stands before the right one and is as near to the question: either may be the answer.

    "Up to €1,200 in total; with the Plus plan it's €2,500". Durations are left out: a text states many.
    """
    said = found.said
    if said is None or said.kind not in _SIGNED or other.kind is not said.kind or other.first >= said.first:
        return False
    if (other.unit, other.per, other.bound) != (said.unit, said.per, found.gold.bound):
        return False
    if any(_compared(gold, other, reply, loose) is not Match.DIFFERENT for gold in asked.wanted):
        return False
    roles = roles_of(asked.gold.reader, found.gold, asked.domain) or asked.roles
    if not _is_unasked(other, asked) or _elsewhere(other, roles, asked, reply):
        return False
    return not _is_denied(other, reply, loose.domain) and is_as_near(reply, other, said, asked.question)


NO_QUANTITY = "the gold states no quantity"
"""Why the grader abstains where there is nothing for it to do."""

UNREAD = "numbers and units are not read in the language of this case"
"""Why the grader abstains where words of a language that is not read may say what the digits do not."""

UNREAD_ROLES = "which of its amounts the reply means, or denies, is not read in the language of this case"
"""Why the grader abstains where the right amount stands in a reply that may say something else of it."""


class QuantitiesGrader:
    """Every quantity of the gold must be in the reply, in its role: kind, value, bound, what it is about.

    Any of the case's alternatives is as good as its gold. A different quantity in the same role is a wrong fact,
    none at all a missing one. It abstains when the gold states no quantity, or when the reply is compatible but
    less precise (a year for a whole date).

    In a language that is not read only amounts and percentages are compared, and a verdict needs a reply that says
    nothing else about them: words may state, deny or assign what the digits do not.
    """

    name = "quantities"
    version = "8"
    aspect = Aspect.FACTUAL_MATCH

    def __init__(self, settings: GraderSettings, domain: Domain) -> None:
        self._settings = settings
        self._domain = domain

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the graded text against gold and alternatives; spans point into it and into the gold."""
        locale = locale_of(case.language, self._settings.locale, self._settings.currency)
        reply = scanned_reply(exchange.graded_text, locale)
        accepted = (case.gold, *case.alternatives)
        loose = Looseness(
            self._domain, case.month_is_30_days, case.relative_tolerance, locale, _amounts(accepted, locale)
        )
        if locale.is_unread and any(_needs_words(text, locale) for text in accepted):
            return abstained(self, UNREAD)
        incomplete = locale.is_unread and leaves_unread(reply.reader, reply.readings)
        whole, reply = reply, reply._replace(readings=[reading for reading in reply.readings if not reading.unread])
        outcomes = [
            outcome
            for text in accepted
            if is_measured(text, locale)
            and (outcome := compare_quantities(text, case.question, reply, loose)) is not None
        ]
        if not outcomes:
            return abstained(self, NO_QUANTITY)
        if reply.cut:
            return abstained(self, FLOOD)
        passed = next((outcome for outcome in outcomes if outcome.passed), None)
        if passed is not None and locale.is_unread and _may_mean_another(passed, whole):
            return abstained(self, UNREAD_ROLES)
        if passed is not None:
            return self._judged(passed, reply, exchange.graded_channel)
        if any(outcome.passed is None for outcome in outcomes):
            return abstained(self, "the reply is compatible with the gold, but less precise or one of several")
        worst = next((outcome for outcome in outcomes if _kind(outcome) is FailureKind.WRONG_FACT), outcomes[0])
        if locale.is_unread and (incomplete or _kind(worst) is FailureKind.MISSING_FACT):
            return abstained(self, UNREAD)
        return self._judged(worst, reply, exchange.graded_channel)

    def _judged(self, outcome: Outcome, reply: Scan, channel: Channel) -> Judged:
        return judged(
            self, None if outcome.passed else _kind(outcome), _reason(outcome), _evidence(outcome, reply, channel)
        )


def _needs_words(gold: str, locale: Locale) -> bool:
    """Whether a gold states more than amounts, percentages and always: units and scales are words of a language."""
    readings = scanned_gold(gold, locale).readings
    return any((reading.kind not in _SIGNED and reading.date != ALWAYS) or reading.unread for reading in readings)


def _may_mean_another(outcome: Outcome, reply: Scan) -> bool:
    """Whether a reply in a language that is not read states other amounts as well, or may deny the right one."""
    met = {(finding.said.kind, finding.said.value) for finding in outcome.findings if finding.said is not None}
    others = any(said.kind in _SIGNED and (said.kind, said.value) not in met for said in reply.readings)
    return others or may_deny(reply.reader)


_SIGNED = frozenset({FactKind.MONEY, FactKind.PERCENT})


def _amounts(golds: tuple[str, ...], locale: Locale) -> frozenset[QuantityReading]:
    if len(golds) == 1:
        return frozenset()
    readings = (reading for gold in golds for reading in scanned_gold(gold, locale).readings)
    return frozenset(reading for reading in readings if reading.kind is FactKind.MONEY)


# --- reporting it ---------------------------------------------------------------------------------------------


def _kind(outcome: Outcome) -> FailureKind:
    wrong = any(finding.match is Match.DIFFERENT for finding in outcome.findings)
    return FailureKind.WRONG_FACT if wrong else FailureKind.MISSING_FACT


def _reason(outcome: Outcome) -> str:
    parts = [_sentence(finding) for finding in outcome.findings if outcome.passed or finding.match < Match.SAME]
    return "; ".join(parts[:4])


def _sentence(finding: QuantityFinding) -> str:
    gold = measured(finding.gold)
    if finding.match is Match.SAME:
        opened = finding.said is not None and leaves_currency_open(finding.gold, finding.said)
        return f"states {gold}, its currency left open" if opened else f"states {gold}"
    if finding.other_role:
        return f"states {gold} only about something else"
    if finding.denied:
        return f"expected {gold}, the reply denies {measured(finding.said) if finding.said else gold}"
    if finding.said is not None and finding.match is Match.DIFFERENT:
        return f"expected {gold}, found {measured(finding.said)}"
    return f"does not state {gold}"


def _evidence(outcome: Outcome, reply: Scan, channel: Channel) -> tuple[Span, ...]:
    spans: list[Span] = []
    for finding in outcome.findings[:8]:
        start, end = outcome.gold.normalised.original_span(finding.gold.start, finding.gold.end)
        spans.append(Span(where="gold", start=start, end=end, label=measured(finding.gold)))
        if finding.said is not None:
            start, end = reply.normalised.original_span(finding.said.start, finding.said.end)
            spans.append(Span(where=channel, start=start, end=end, label=measured(finding.said)))
    return tuple(spans)
