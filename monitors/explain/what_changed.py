"""What differs between a run and the last accepted one: recorded facts, most telling first, and no guess.

A fact that one of the two runs does not have is unknown: it is never "the same", and never "changed". Behaviour
(answers, refusals, latency) differs from run to run by itself, so a shift is named only beyond chance: exact tests
over the cases that both runs answered, and a size below which two runs of an unchanged application differ too.
Behaviour has a cause: where anything else is recorded to have changed, it is shown as what followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from statistics import median
from typing import Final, NamedTuple

from monitors.explain.first_look import first_look
from monitors.plural import plural
from monitors.records.explanations import Cause
from monitors.records.grades import JudgeLineage
from monitors.records.runs import RunReport
from monitors.records.snapshots import OURS, AnswerMark, ChangeKind, RunChange, RunSnapshot, Values, WhatChanged
from monitors.stats.intervals import median_interval, wilson
from monitors.stats.paired import mcnemar

ALPHA: Final = 0.01
"""How often an unchanged application may be said to behave otherwise, for each kind of behaviour."""
FEWEST_PAIRS: Final = 8
"""With fewer cases that both runs answered nothing can be told from chance at `ALPHA`."""
LATENCY_RATIO, LATENCY_MS = 1.5, 200
"""Medians nearer to each other differ by the hour of the day and by what else a machine does."""
LENGTH_RATIO, LENGTH_CHARACTERS = 1.3, 40
CONCURRENCY_RATIO: Final = 1.5
REPEATED_SHARE: Final = 0.5
"""With so many answers word for word the same, the application repeats itself: then each other word counts."""
MOST_NAMED: Final = 3
_SHOWN: Final = 12
_PAIRED: Final = frozenset({"target", "probe", "graders"})
"""Parts of the configuration by which answers are got and read."""

ADDRESS: Final = "address"
"""The part of the target's settings that says where it is asked; the whole has what it is called, too."""

_SIDES: Final = ("deploy", "model", "document versions", "page")


def what_changed(now: RunSnapshot, since: RunReport | None) -> WhatChanged:
    """What differs from ``since``, the last accepted run; where it has no snapshot, why that cannot be said."""
    if since is None:
        return WhatChanged(missing="no earlier PASS is recorded")
    known = WhatChanged(since_run_id=since.run_id, since_commit=since.commit, since=since.finished_at)
    before = since.snapshot
    if before is None:
        return known.refuse("the last PASS was recorded before Lookout noted such things")
    causes = [*_ours(before, now), *_apps(before, now), *_tools(before, now)]
    behaviour = list(_behaviour(before, now))
    if causes:
        behaviour = [change.follow() for change in behaviour]
    return known.add_changes((*causes, *behaviour), tuple(_not_known(before, now)))


def our_settings_alone(now: RunSnapshot, since: RunReport) -> tuple[str, ...]:
    """What of where and how the target is asked (`ADDRESS`, ``probe``) differs from run ``since``.

    Empty where something of the application is known to differ, and where another version of Lookout ran: it may
    have settings of its own that nobody wrote.
    """
    before = since.snapshot
    if before is None or before.lookout != now.lookout:
        return ()
    if not what_changed(now, since).claimed <= OURS:
        return ()
    known = before.settings.keys() & now.settings.keys() & {ADDRESS, "probe"}
    return tuple(name for name in sorted(known) if before.settings[name] != now.settings[name])


# --- Lookout's own side ----------------------------------------------------------------------------------------


def _ours(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """What decides verdicts: the suite, graders, judges and settings."""
    if before.suite_sha256 != now.suite_sha256:
        was, is_now = (f"{one.suite_sha256[:_SHOWN]} ({plural(one.cases, 'case')})" for one in (before, now))
        yield _change(ChangeKind.SUITE, f"the suite was {was}, is {is_now}")
    for name in sorted(before.graders.keys() | now.graders.keys() if before.graders and now.graders else ()):
        was, is_now = (f"version {one.graders[name]}" if name in one.graders else "none" for one in (before, now))
        if was != is_now:
            yield _change(ChangeKind.MONITOR, f"the grader {name} was {was}, is {is_now}")
    if before.judges and now.judges and set(before.judges) != set(now.judges):
        yield _change(ChangeKind.MONITOR, f"the judge was {_judges(before.judges)}, is {_judges(now.judges)}")
    for name in sorted(before.settings.keys() & now.settings.keys() - {ADDRESS}):
        if before.settings[name] != now.settings[name]:
            yield _change(ChangeKind.MONITOR, f"lookout.toml has other settings for {name}")


def _tools(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """What asks and reads: it seldom decides a verdict."""
    for name, was, is_now in (("browser", before.browser, now.browser), ("Lookout", before.lookout, now.lookout)):
        if was and is_now and was != is_now:
            article = "" if name == "Lookout" else "the "
            yield _change(ChangeKind.MONITOR, f"{article}{name} was {was}, is {is_now}")


def _judges(judges: Sequence[JudgeLineage]) -> str:
    named = (f"{one.model} (prompt {one.prompt_sha256[:8]}, rubric {one.rubric_version})" for one in judges)
    return " and ".join(sorted(named))


# --- the application's side ------------------------------------------------------------------------------------


def _apps(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    if before.commit and now.commit and before.commit != now.commit:
        when = f", deployed {now.deployed_at:%Y-%m-%d %H:%M} UTC" if now.deployed_at else ""
        yield _change(ChangeKind.APPLICATION, f"the deploy was {before.commit}, is {now.commit}{when}")
    yield from _values(ChangeKind.MODEL, "the model", before.models, now.models)
    yield from _values(ChangeKind.MODEL, "the model's fingerprint", before.fingerprints, now.fingerprints)
    for name in sorted(before.versions.keys() & now.versions.keys()):
        yield from _values(ChangeKind.APPLICATION, f"its {name}", before.versions[name], now.versions[name])
    yield from _document_versions(before, now)
    yield from _page(before, now)


def _document_versions(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    both = sorted(before.document_versions.keys() & now.document_versions.keys())
    changed = [
        change
        for name in both
        for change in _values(
            ChangeKind.CONTENT,
            f"the document {name}",
            before.document_versions[name],
            now.document_versions[name],
        )
    ]
    yield from changed[:MOST_NAMED]
    if len(changed) > MOST_NAMED:
        more = plural(len(changed) - MOST_NAMED, "other document")
        yield _change(ChangeKind.CONTENT, f"{more} changed too, of {len(both):,} with a version")


def _page(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    found = [
        *_values(ChangeKind.PAGE, "the page's title", before.titles, now.titles),
        *_values(ChangeKind.PAGE, "the page's framework", before.frameworks, now.frameworks),
        *_bundles(before, now),
    ]
    yield from found or _values(ChangeKind.PAGE, "the page's HTML", before.shells, now.shells)


def _bundles(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Scripts and styles that every load of the page had, and no load has in the other run."""
    if not (before.bundles and now.bundles):
        return
    gone = [name for name, count in before.bundles.items() if count == before.pages and name not in now.bundles]
    new = [name for name, count in now.bundles.items() if count == now.pages and name not in before.bundles]
    if gone or new:
        yield _change(
            ChangeKind.PAGE,
            f"the page's scripts and styles: {_named(gone) or 'none'} gone, {_named(new) or 'none'} new",
        )


def _values(kind: ChangeKind, what: str, before: Values, now: Values) -> Iterator[RunChange]:
    if _differ(before, now):
        yield _change(kind, f"{what} was {_counted(before)}, is {_counted(now)}")


def _differ(before: Values, now: Values) -> bool:
    """Whether other values were seen: one in place of one, or so many new or gone that it is no chance.

    A value that nearly every answer has to itself is an id, and says nothing.
    """
    if not before or not now or any(_is_an_id(values) for values in (before, now)):
        return False
    if len(before) == len(now) == 1:
        return before.keys() != now.keys()
    new = sum(count for value, count in now.items() if value not in before)
    gone = sum(count for value, count in before.items() if value not in now)
    total, total_now = sum(before.values()) + sum(now.values()), sum(now.values())
    return min(_all_on_one_side(new, total_now, total), _all_on_one_side(gone, total - total_now, total)) < ALPHA


def _is_an_id(values: Values) -> bool:
    total = sum(values.values())
    return total > 2 and 2 * len(values) > total  # noqa: PLR2004 - of two nobody can say


def _all_on_one_side(count: int, side: int, total: int) -> float:
    """Fisher's exact test: the probability that ``count`` answers all fall on one side by chance."""
    return comb(side, count) / comb(total, count)


def _counted(values: Values) -> str:
    if len(values) == 1:
        return next(iter(values))
    most = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    return _named([f"{value} ({count:,})" for value, count in most])


# --- behaviour -------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    before: AnswerMark
    now: AnswerMark

    @property
    def document(self) -> str | None:
        """What the case is about; where the suite does not say, what was cited before."""
        return self.before.document or self.now.document

    @property
    def has_other_figures(self) -> bool:
        """Whether figures of either answer are replaced in the other, or only one of them states any."""
        before, now = set(self.before.figures), set(self.now.figures)
        return bool(before) != bool(now) or (bool(before - now) and bool(now - before))

    @property
    def answered(self) -> bool:
        """Whether neither refused."""
        return not (self.before.refused or self.now.refused)


def _behaviour(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Only over the same questions, got and read in the same way."""
    if before.suite_sha256 != now.suite_sha256 or before.lookout != now.lookout:
        return
    if any(before.settings.get(name) != now.settings.get(name) for name in _PAIRED):
        return
    earlier = {mark.case_id: mark for mark in before.answers}
    shared = sorted((mark for mark in now.answers if mark.case_id in earlier), key=lambda mark: mark.case_id)
    pairs = [_Pair(earlier[mark.case_id], mark) for mark in shared]
    if len(pairs) < FEWEST_PAIRS:
        return
    about = _changed_documents(pairs)
    yield from (_document_change(cause, now) for cause in about)
    named = {cause.conditions["document"] for cause in about}
    rest = [pair for pair in pairs if pair.document not in named]  # what the documents do not explain
    found = [*_refusals(rest), *_uncited(rest)]
    if not (about or found):
        yield from _cited_documents(before, now)
    yield from found
    yield from _latency(rest, before, now)
    yield from _lengths(rest)


def _changed_documents(pairs: Sequence[_Pair]) -> list[Cause]:
    """Documents whose answers changed beyond what those of the others did."""
    documents = [{"document": pair.document} for pair in pairs]
    causes = first_look(documents, _changed(pairs)).causes
    return [cause for cause in causes if cause.conditions["document"] is not None]


def _document_change(cause: Cause, now: RunSnapshot) -> RunChange:
    name = str(cause.conditions["document"])
    gone = "" if name in now.documents else "; no answer names it any more"
    others = f"{cause.elsewhere_failed:,} of {plural(cause.elsewhere, 'other')}"
    return _change(
        ChangeKind.CONTENT,
        f"answers about {name} are not what they were: {cause.failed:,} of {cause.cases:,}, and {others}{gone}",
    )


def _changed(pairs: Sequence[_Pair]) -> list[bool]:
    """Whether each answer says something else: by its words where most are repeated, else by its figures.

    A figure more or less is another way to say it; others in place of those before, or none, are another answer.
    """
    same = sum(pair.before.text == pair.now.text for pair in pairs)
    if same >= REPEATED_SHARE * len(pairs):
        return [pair.before.text != pair.now.text for pair in pairs]
    return [pair.before.refused != pair.now.refused or pair.has_other_figures for pair in pairs]


def _refusals(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    more = sum(pair.now.refused and not pair.before.refused for pair in pairs)
    fewer = sum(pair.before.refused and not pair.now.refused for pair in pairs)
    if mcnemar(more, fewer) >= ALPHA:
        return
    was, is_now = (sum(getattr(pair, side).refused for pair in pairs) for side in ("before", "now"))
    yield _change(
        ChangeKind.MODEL,
        f"it refuses {'more' if more > fewer else 'less'}: {_share(is_now, len(pairs))} of the questions, "
        f"{_share(was, len(pairs))} before",
    )


def _share(count: int, total: int) -> str:
    low, high = wilson(count, total)
    return f"{count:,} of {total:,} (95 % CI {100 * low:.0f} to {100 * high:.0f} %)"


def _uncited(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    answered = [pair for pair in pairs if pair.answered]
    dropped = sum(bool(pair.before.cited) and not pair.now.cited for pair in answered)
    added = sum(bool(pair.now.cited) and not pair.before.cited for pair in answered)
    if answered and mcnemar(dropped, added) < ALPHA:
        was, is_now = (sum(bool(getattr(pair, side).cited) for pair in answered) for side in ("before", "now"))
        yield _change(
            ChangeKind.APPLICATION, f"{is_now:,} of {plural(len(answered), 'answer')} name a source, {was:,} before"
        )


def _cited_documents(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Documents that only one of the runs cites."""
    total_before, total_now = len(before.answers), len(now.answers)
    gone = _only(before.documents, now.documents, total_before, total_now)
    new = _only(now.documents, before.documents, total_now, total_before)
    if gone or new:
        sides = ((gone, "no longer cited"), (new, "newly cited"))
        yield _change(ChangeKind.CONTENT, "; ".join(f"{how}: {_named(names)}" for names, how in sides if names))


def _only(here: Values, there: Values, total_here: int, total_there: int) -> list[str]:
    total = total_here + total_there
    return [
        name
        for name, count in sorted(here.items())
        if name not in there and _all_on_one_side(min(count, total_here), total_here, total) < ALPHA
    ]


def _latency(pairs: Sequence[_Pair], before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Shifted medians.

    Where more or fewer questions were under way at once, cause and effect cannot be separated: more at once take
    longer, and of an application that takes longer more are under way.
    """
    was, is_now = ([getattr(pair, side).total_ms for pair in pairs] for side in ("before", "now"))
    way = _shift(was, is_now, ratio=LATENCY_RATIO, least=LATENCY_MS)
    if way is None:
        return
    text = f"answers take {'longer' if way > 0 else 'less time'}: median {_seconds(is_now)}, {_seconds(was)} before"
    at_once, earlier = now.concurrency, before.concurrency
    if at_once and earlier and max(at_once / earlier, earlier / at_once) >= CONCURRENCY_RATIO:
        yield _change(ChangeKind.UNKNOWN, f"{text}; up to {at_once} were asked at once, {earlier} before")
    else:
        yield _change(ChangeKind.APPLICATION, text)


def _lengths(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    answered = [pair for pair in pairs if pair.answered]
    was, is_now = ([getattr(pair, side).characters for pair in answered] for side in ("before", "now"))
    way = _shift(was, is_now, ratio=LENGTH_RATIO, least=LENGTH_CHARACTERS)
    if way is not None:
        yield _change(
            ChangeKind.APPLICATION,
            f"answers are {'longer' if way > 0 else 'shorter'}: median {median(is_now):,.0f} characters, "
            f"{median(was):,.0f} before",
        )


def _shift(was: Sequence[int], is_now: Sequence[int], *, ratio: float, least: float) -> int | None:
    """1 where values went up, -1 where they went down, each pair by itself and by a median that matters."""
    if len(was) < FEWEST_PAIRS:
        return None
    steps = list(zip(was, is_now, strict=True))
    up, down = sum(b > a for a, b in steps), sum(b < a for a, b in steps)
    low, high = sorted((max(median(was), 1), max(median(is_now), 1)))
    if mcnemar(up, down) >= ALPHA or high < ratio * low or high - low < least:
        return None
    return 1 if median(is_now) > median(was) else -1


def _seconds(values: Sequence[int]) -> str:
    low, high = median_interval(values)
    return f"{median(values) / 1000:.1f} s (95 % CI {low / 1000:.1f} to {high / 1000:.1f})"


# --- words -----------------------------------------------------------------------------------------------------


def _not_known(before: RunSnapshot, now: RunSnapshot) -> Iterator[str]:
    """What could not be compared, because a run does not have it."""
    sides: Mapping[str, tuple[object, object]] = {
        "deploy": (before.commit, now.commit),
        "model": (before.models, now.models),
        "document versions": (before.document_versions, now.document_versions),
        "page": (before.pages, now.pages),
    }
    yield from (name for name in _SIDES if not all(sides[name]))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _change(kind: ChangeKind, evidence: str) -> RunChange:
    return RunChange(kind=kind, evidence=evidence)
