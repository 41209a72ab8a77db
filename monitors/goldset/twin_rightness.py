"""Could a reply pass for an accepted answer? Asked of every twin before it is called wrong.

It errs on the side of "yes": a twin that is not made costs little, one that is right after all makes good graders
look bad.
"""

from __future__ import annotations

import re
from decimal import Decimal

from monitors.facts.fact import Bound, FactKind
from monitors.facts.reading import Reading
from monitors.facts.scan import scan
from monitors.goldset.overlap import folded
from monitors.goldset.twin_polarity import Stance, stance_of
from monitors.records.cases import GoldCase

_CALENDAR = Decimal("0.02")
"""365 days are twelve months, thirty days a month to many: durations this close are called the same."""
_DAYS_PER_MONTH = Decimal("30.4375")
"""365.25 days in twelve months."""
_BARE = 3
"""Words of a gold that is a duration and nothing else."""
_LOOK_BACK = re.compile(r"(?i)\b(?:before|prior|preceding|look.?back|diagnosed|pre-hospital\w*)\b")


def is_still_right(text: str, case: GoldCase) -> bool:
    """Whether ``text`` says what the gold or an alternative says, as far as that can be told."""
    return any(_says(text, accepted, case) for accepted in (case.gold, *case.alternatives))


def _says(text: str, accepted: str, case: GoldCase) -> bool:
    if folded(text) == folded(accepted):
        return True
    wanted, said = _quantities(accepted), _quantities(text)
    if wanted and not all(any(_same(one, other, case) for other in said) for one in wanted):
        return False
    stance, other = stance_of(accepted), stance_of(text)
    if stance is not other and Stance.NO in {stance, other}:
        return False
    # Neither quantity nor stance tells them apart: a text that holds all of the accepted words is taken for it.
    return bool(wanted) or stance is other is not Stance.OPEN or folded(accepted) in folded(text)


def _quantities(text: str) -> list[Reading]:
    return [one for one in scan(text).readings if not one.ordinal and not one.attached]


def _same(wanted: Reading, said: Reading, case: GoldCase) -> bool:
    if {wanted.bound, said.bound} == {Bound.AT_MOST, Bound.AT_LEAST}:
        return False
    if wanted.kind is not said.kind:  # a bare "24", "5 lakh" among the accepted texts leaves the unit open
        return FactKind.NUMBER in {wanted.kind, said.kind} and _said(wanted) == _said(said)
    if wanted.kind is FactKind.DATE:
        return wanted.date == said.date
    if wanted.kind is FactKind.DURATION:
        slack = _CALENDAR if _unit(wanted) != _unit(said) else Decimal(0)
        return _near(_days(wanted), _days(said), max(slack, case.relative_tolerance))
    if wanted.unit != said.unit:
        return False
    return _near(wanted.value, said.value, case.relative_tolerance)


def _said(one: Reading) -> Decimal:
    return one.value if one.original_value is None else one.original_value


def _unit(one: Reading) -> str | None:
    return one.original_unit


def _days(one: Reading) -> Decimal:
    return one.months * _DAYS_PER_MONTH + one.days


def _near(first: Decimal, second: Decimal, share: Decimal) -> bool:
    return abs(first - second) <= share * abs(first)


_LEADS = re.compile(r"(?i)\s*(?:yes|no|haan|nahi|नहीं|हाँ|हां)\b\s*[,.।]?")


def answers_alike(first: str, second: str) -> bool:
    """Whether two golds are answers of one sort: the same kinds of quantity, and both or neither a yes or no.

    An amount and "there is no co-payment" are answers of one sort too.
    """
    kinds, others = (sorted(one.kind for one in _quantities(text)) for text in (first, second))
    if bool(kinds) != bool(others) and not any(_LEADS.match(text) for text in (first, second)):
        return any(stance_of(text) is Stance.NO for text in (first, second))
    open_ones = [stance_of(text) is Stance.OPEN for text in (first, second)]
    return kinds == others and open_ones[0] == open_ones[1] and (bool(kinds) or not open_ones[0])


def states_one_duration(case: GoldCase) -> bool:
    """Whether the gold is one duration and the question is not about a time before something."""
    found = _quantities(case.gold)
    one = len(found) == 1 and found[0].kind is FactKind.DURATION and found[0].bound is Bound.EXACT
    return one and not _LOOK_BACK.search(f"{case.question} {case.gold}") and len(case.gold.split()) <= _BARE
