"""Find the differences between a run and the last accepted run from recorded facts, the most relevant first.

If one of the two runs did not record a fact, the fact is unknown, and counts neither as "the same" nor as
"changed".

Behaviour (answers, refusals, latency) varies from run to run. A change of behaviour is reported only if it is
large, and significant in an exact test over the cases that both runs answered. If other changes are also recorded,
a change of behaviour is shown as a possible effect of these changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from statistics import median
from typing import Final, NamedTuple

from monitors.explain.first_look import find_shared_causes
from monitors.plural import plural
from monitors.records.base import Language
from monitors.records.comparisons import Comparison
from monitors.records.explanations import Cause
from monitors.records.grades import JudgeLineage
from monitors.records.runs import RunReport
from monitors.records.snapshots import OURS, AnswerMark, ChangeKind, RunChange, RunSnapshot, Values, WhatChanged
from monitors.stats.intervals import compute_median_interval, compute_wilson_interval
from monitors.stats.paired import compute_mcnemar_p_value

ALPHA: Final = 0.01
"""The probability, for each kind of behaviour, that a change is reported although the application is unchanged."""
MIN_PAIRS: Final = 8
"""Minimum number of cases that both runs answered. With fewer cases, no change is significant at `ALPHA`."""
LATENCY_RATIO, LATENCY_MS = 1.5, 200
"""Minimum change of the median latency that is reported: a factor, and also a number of milliseconds.

Load may cause smaller changes.
"""
LENGTH_RATIO, LENGTH_CHARACTERS = 1.3, 40
CONCURRENCY_RATIO: Final = 1.5
REPEATED_SHARE: Final = 0.5
"""Minimum share of identical answers for an application to count as deterministic.

If the application is deterministic, an answer has changed if any of its words changed.
"""
MAX_NAMES: Final = 3
_HASH_CHARACTERS: Final = 12
_PAIRED_SETTINGS: Final = frozenset({"target", "probe", "graders"})
"""The parts of the settings that control how questions are asked and how answers are parsed and graded."""

GATE_PART: Final = "gate"
"""The name of the part of the settings that contains the gate's limits."""
ADDRESS_PART: Final = "address"
"""The name of the part of the settings that contains the target's address."""

_COMPARED_PARTS: Final = ("deploy", "model", "document versions", "page")


def find_run_changes(
    now: RunSnapshot, since: RunReport | None, comparison: Comparison | None = None
) -> WhatChanged:
    """Return the differences between a run and ``since``, the last accepted run.

    If there is no such run, or if it has no snapshot, the result states that the differences are unknown.

    ``comparison`` lists the cases that got worse since its baseline. ``comparison`` is used only if its baseline is
    ``since``.
    """
    if since is None:
        return WhatChanged(missing="no earlier PASS is recorded")
    changed = WhatChanged(since_run_id=since.run_id, since_commit=since.commit, since=since.finished_at)
    before = since.snapshot
    if before is None:
        return changed.with_missing_reason("the last PASS was recorded before Lookout stored snapshots")
    causes = [
        *_find_monitor_changes(before, now),
        *_find_application_changes(before, now),
        *_find_browser_and_lookout_changes(before, now),
    ]
    worse = (
        list(_build_changes_for_worse_answers(comparison))
        if comparison and comparison.baseline_run_id == since.run_id
        else []
    )
    behaviour = list(_find_behaviour_changes(before, now))
    if causes:
        worse, behaviour = ([change.mark_possible_effect() for change in changes] for changes in (worse, behaviour))
    limits = (
        [_build_change(ChangeKind.LIMIT, CHANGED_LIMITS_TEXT)]
        if _has_changed_setting(GATE_PART, before, now)
        else []
    )
    return changed.with_changes((*worse, *causes, *behaviour, *limits), tuple(_list_unrecorded_parts(before, now)))


CHANGED_LIMITS_TEXT: Final = (
    "the gate's limits differ from the last PASS (`[gate]` in lookout.toml, or the command line)"
)


def _has_changed_setting(name: str, before: RunSnapshot, now: RunSnapshot) -> bool:
    """Return whether both runs recorded this part of the settings, but with different values."""
    old, new = before.settings.get(name), now.settings.get(name)
    return old is not None and new is not None and old != new


def _build_changes_for_worse_answers(comparison: Comparison) -> Iterator[RunChange]:
    """Yield a change for each way in which answers to the same cases got worse since the baseline."""
    rated, failing = comparison.rubric, comparison.newly_failing
    if comparison.refused:
        return
    if rated is not None and rated.change < 0:
        evidence = (
            f"the reports on {plural(rated.shared, 'shared issue')} are rated lower: "
            f"{rated.now:.2f} on average, {rated.before:.2f} before"
        )
        yield _build_change(ChangeKind.UNKNOWN, evidence)
    if failing:
        more = f" and {len(failing) - MAX_NAMES:,} more" if len(failing) > MAX_NAMES else ""
        evidence = (
            f"{plural(len(failing), 'case')} changed from right to wrong: {', '.join(failing[:MAX_NAMES])}{more}"
        )
        yield _build_change(ChangeKind.UNKNOWN, evidence)


def list_solely_changed_probe_settings(now: RunSnapshot, since: RunReport) -> tuple[str, ...]:
    """Return which of the settings `ADDRESS_PART` and ``probe`` changed since the run ``since``.

    The result is empty if the application also changed, or if another version of Lookout ran, because that version
    may have other defaults.
    """
    before = since.snapshot
    if before is None or before.lookout != now.lookout:
        return ()
    if not find_run_changes(now, since).primary_change_kinds <= OURS:
        return ()
    shared_settings = before.settings.keys() & now.settings.keys() & {ADDRESS_PART, "probe"}
    return tuple(name for name in sorted(shared_settings) if before.settings[name] != now.settings[name])


# --- Lookout's own side ----------------------------------------------------------------------------------------


def _find_monitor_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield changes of the inputs of verdicts: the suite, graders, judges and settings."""
    if before.suite_sha256 != now.suite_sha256:
        old, new = (
            f"{snapshot.suite_sha256[:_HASH_CHARACTERS]} ({plural(snapshot.cases, 'case')})"
            for snapshot in (before, now)
        )
        yield _build_change(ChangeKind.SUITE, f"the suite changed from {old} to {new}")
    for name in sorted(before.graders.keys() | now.graders.keys() if before.graders and now.graders else ()):
        old, new = (
            f"version {snapshot.graders[name]}" if name in snapshot.graders else "none"
            for snapshot in (before, now)
        )
        if old != new:
            yield _build_change(ChangeKind.MONITOR, f"the grader {name} changed from {old} to {new}")
    if before.judges and now.judges and set(before.judges) != set(now.judges):
        yield _build_change(
            ChangeKind.MONITOR,
            (f"the judge changed from {_format_judges(before.judges)} to {_format_judges(now.judges)}"),
        )
    for name in sorted(before.settings.keys() - {ADDRESS_PART, GATE_PART}):
        if _has_changed_setting(name, before, now):
            yield _build_change(ChangeKind.MONITOR, f"lookout.toml has other settings for {name}")


def _find_browser_and_lookout_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield changes of the browser and of Lookout, which rarely change a verdict."""
    for name, old, new in (("browser", before.browser, now.browser), ("Lookout", before.lookout, now.lookout)):
        if old and new and old != new:
            article = "" if name == "Lookout" else "the "
            yield _build_change(ChangeKind.MONITOR, f"{article}{name} changed from {old} to {new}")


def _format_judges(judges: Sequence[JudgeLineage]) -> str:
    judge_texts = (
        f"{judge.model} (prompt {judge.prompt_sha256[:8]}, rubric {judge.rubric_version})" for judge in judges
    )
    return " and ".join(sorted(judge_texts))


# --- the application's side ------------------------------------------------------------------------------------


def _find_application_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    if before.commit and now.commit and before.commit != now.commit:
        when = f", deployed {now.deployed_at:%Y-%m-%d %H:%M} UTC" if now.deployed_at else ""
        yield _build_change(
            ChangeKind.APPLICATION, (f"the deploy changed from {before.commit} to {now.commit}{when}")
        )
    yield from _find_significant_value_change(ChangeKind.MODEL, "the model", before.models, now.models)
    yield from _find_significant_value_change(
        ChangeKind.MODEL, "the model's fingerprint", before.fingerprints, now.fingerprints
    )
    for name in sorted(before.versions.keys() & now.versions.keys()):
        yield from _find_significant_value_change(
            ChangeKind.APPLICATION, f"its {name}", before.versions[name], now.versions[name]
        )
    yield from _find_document_version_changes(before, now)
    yield from _find_page_changes(before, now)


def _find_document_version_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    both = sorted(before.document_versions.keys() & now.document_versions.keys())
    changed = [
        change
        for name in both
        for change in _find_significant_value_change(
            ChangeKind.CONTENT,
            f"the document {name}",
            before.document_versions[name],
            now.document_versions[name],
        )
    ]
    yield from changed[:MAX_NAMES]
    if len(changed) > MAX_NAMES:
        more = plural(len(changed) - MAX_NAMES, "other document")
        yield _build_change(ChangeKind.CONTENT, f"{more} changed too (of {len(both):,} compared documents)")


def _find_page_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    page_changes = [
        *_find_significant_value_change(ChangeKind.PAGE, "the page's title", before.titles, now.titles),
        *_find_significant_value_change(ChangeKind.PAGE, "the page's framework", before.frameworks, now.frameworks),
        *_find_bundle_changes(before, now),
    ]
    yield from page_changes or _find_significant_value_change(
        ChangeKind.PAGE, "the page's HTML", before.shells, now.shells
    )


def _find_bundle_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield scripts and styles that all page loads of one run had and no page load of the other run had."""
    if not (before.bundles and now.bundles):
        return
    gone = [name for name, count in before.bundles.items() if count == before.pages and name not in now.bundles]
    new = [name for name, count in now.bundles.items() if count == now.pages and name not in before.bundles]
    if gone or new:
        yield _build_change(
            ChangeKind.PAGE,
            f"the page's scripts and styles: {_join_names_up_to_limit(gone) or 'none'} gone, "
            f"{_join_names_up_to_limit(new) or 'none'} new",
        )


def _find_significant_value_change(
    kind: ChangeKind, subject: str, before: Values, now: Values
) -> Iterator[RunChange]:
    if _has_values_changed_beyond_chance(before, now):
        yield _build_change(kind, f"{subject} changed from {_format_counts(before)} to {_format_counts(now)}")


def _has_values_changed_beyond_chance(before: Values, now: Values) -> bool:
    """Return whether the values of a fact changed by more than chance explains.

    Return True if the only value was replaced by another value, or if more values are new or missing than chance
    explains. Return False if nearly every answer has its own value, because such values are probably ids.
    """
    if not before or not now or any(_has_mostly_unique_values(values) for values in (before, now)):
        return False
    if len(before) == len(now) == 1:
        return before.keys() != now.keys()
    new = sum(count for value, count in now.items() if value not in before)
    gone = sum(count for value, count in before.items() if value not in now)
    total, total_now = sum(before.values()) + sum(now.values()), sum(now.values())
    return (
        min(
            _compute_probability_all_on_one_side(new, total_now, total),
            _compute_probability_all_on_one_side(gone, total - total_now, total),
        )
        < ALPHA
    )


def _has_mostly_unique_values(values: Values) -> bool:
    total = sum(values.values())
    return total > 2 and 2 * len(values) > total  # noqa: PLR2004 - two answers prove nothing


def _compute_probability_all_on_one_side(count: int, side: int, total: int) -> float:
    """Return the probability that ``count`` answers all belong to the same run by chance (Fisher's exact test).

    ``side`` is the number of answers of that run, and ``total`` is the number of answers of both runs.
    """
    return comb(side, count) / comb(total, count)


def _format_counts(values: Values) -> str:
    if len(values) == 1:
        return next(iter(values))
    most_frequent = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    return _join_names_up_to_limit([f"{value} ({count:,})" for value, count in most_frequent])


# --- behaviour -------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    before: AnswerMark
    now: AnswerMark

    @property
    def document(self) -> str | None:
        """Return the document of the case in the suite.

        If the case has no document, return the first document that the earlier answer cites, or else the later
        answer.
        """
        return self.before.document or self.now.document

    @property
    def has_other_figures(self) -> bool:
        """Return whether some figures were replaced by others, or if only one of the two answers has figures."""
        before, now = set(self.before.figures), set(self.now.figures)
        return bool(before) != bool(now) or (bool(before - now) and bool(now - before))

    @property
    def has_other_language(self) -> bool:
        """Return whether the languages of both answers are known and differ."""
        return None not in (self.before.language, self.now.language) and self.before.language != self.now.language

    @property
    def has_only_other_language(self) -> bool:
        """Return whether the answer is in another language but otherwise the same.

        Only the recorded facts of the two answers can be compared.
        """
        return self.has_other_language and self.before.refused == self.now.refused and not self.has_other_figures

    @property
    def has_no_refusal(self) -> bool:
        """Return whether neither answer is a refusal."""
        return not (self.before.refused or self.now.refused)


def _find_behaviour_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield changes of behaviour in cases that both runs asked, and whose answers they parsed, in the same way."""
    if before.suite_sha256 != now.suite_sha256 or before.lookout != now.lookout:
        return
    if any(before.settings.get(name) != now.settings.get(name) for name in _PAIRED_SETTINGS):
        return
    earlier = {mark.case_id: mark for mark in before.answers}
    shared = sorted((mark for mark in now.answers if mark.case_id in earlier), key=lambda mark: mark.case_id)
    pairs = [_Pair(earlier[mark.case_id], mark) for mark in shared]
    if len(pairs) < MIN_PAIRS:
        return
    yield from _find_language_change(pairs)
    pairs = [pair for pair in pairs if not pair.has_only_other_language]
    causes = _find_documents_with_changed_answers(pairs)
    yield from (_build_document_answers_change(cause, now) for cause in causes)
    explained = {cause.conditions["document"] for cause in causes}
    unexplained = [pair for pair in pairs if pair.document not in explained]  # not explained by the documents
    changes = [*_find_refusal_change(unexplained), *_find_citation_change(unexplained)]
    if not (causes or changes):
        yield from _find_cited_document_changes(before, now)
    yield from changes
    yield from _find_latency_change(unexplained, before, now)
    yield from _find_length_change(unexplained)


def _find_documents_with_changed_answers(pairs: Sequence[_Pair]) -> list[Cause]:
    """Find the documents whose answers changed more often than the answers about other documents."""
    documents = [{"document": pair.document} for pair in pairs]
    causes = find_shared_causes(documents, _flag_changed_answers(pairs)).causes
    return [cause for cause in causes if cause.conditions["document"] is not None]


def _build_document_answers_change(cause: Cause, now: RunSnapshot) -> RunChange:
    name = str(cause.conditions["document"])
    gone = "" if name in now.documents else "; no answer cites this document any more"
    others = f"{cause.elsewhere_failed:,} of {plural(cause.elsewhere, 'other answer')}"
    return _build_change(
        ChangeKind.CONTENT,
        f"answers about {name} changed: {cause.failed:,} of {cause.cases:,}, and {others}{gone}",
    )


def _flag_changed_answers(pairs: Sequence[_Pair]) -> list[bool]:
    """Return for each answer whether it changed.

    If at least half of the answers have the same words in both runs, every answer with other words has changed.
    Otherwise, an answer has changed if only one of its two versions is a refusal, if figures were replaced, or if
    only one version has figures. A single added or missing figure may be a rewording.
    """
    same = sum(pair.before.text == pair.now.text for pair in pairs)
    if same >= REPEATED_SHARE * len(pairs):
        return [pair.before.text != pair.now.text for pair in pairs]
    return [pair.before.refused != pair.now.refused or pair.has_other_figures for pair in pairs]


def _find_language_change(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    """Yield the most frequent change of language, if it is significantly more frequent than the reverse change."""
    moves = Counter((pair.before.language, pair.now.language) for pair in pairs if pair.has_other_language)
    for (old, new), count in moves.most_common(1):
        if old is None or new is None or compute_mcnemar_p_value(count, moves[new, old]) >= ALPHA:
            return
        total = sum(pair.before.language is old for pair in pairs)
        yield _build_change(
            ChangeKind.MODEL,
            f"the application now answers in {_LANGUAGE_NAMES[new]}: {count:,} of {plural(total, 'answer')} that "
            f"{'was' if total == 1 else 'were'} in {_LANGUAGE_NAMES[old]} before",
        )


_LANGUAGE_NAMES: Final = {
    Language.ENGLISH: "English",
    Language.HINDI: "Hindi",
    Language.HINGLISH: "Hinglish",
    Language.GERMAN: "German",
    Language.FRENCH: "French",
    Language.SPANISH: "Spanish",
    Language.OTHER: "another language",
}


def _find_refusal_change(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    more = sum(pair.now.refused and not pair.before.refused for pair in pairs)
    fewer = sum(pair.before.refused and not pair.now.refused for pair in pairs)
    if compute_mcnemar_p_value(more, fewer) >= ALPHA:
        return
    old, new = (sum(getattr(pair, side).refused for pair in pairs) for side in ("before", "now"))
    yield _build_change(
        ChangeKind.MODEL,
        f"the application refuses {'more' if more > fewer else 'less'}: "
        f"{_format_count_with_interval(new, len(pairs))} of the questions, "
        f"{_format_count_with_interval(old, len(pairs))} before",
    )


def _format_count_with_interval(count: int, total: int) -> str:
    low, high = compute_wilson_interval(count, total)
    return f"{count:,} of {total:,} (95 % CI {100 * low:.0f} to {100 * high:.0f} %)"


def _find_citation_change(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    answered = [pair for pair in pairs if pair.has_no_refusal]
    dropped = sum(bool(pair.before.cited) and not pair.now.cited for pair in answered)
    added = sum(bool(pair.now.cited) and not pair.before.cited for pair in answered)
    if answered and compute_mcnemar_p_value(dropped, added) < ALPHA:
        old, new = (sum(bool(getattr(pair, side).cited) for pair in answered) for side in ("before", "now"))
        yield _build_change(
            ChangeKind.APPLICATION,
            (f"{new:,} of {plural(len(answered), 'answer')} cite a source, {old:,} before"),
        )


def _find_cited_document_changes(before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield documents that only one of the runs cites."""
    total_before, total_now = len(before.answers), len(now.answers)
    gone = _list_significant_values_of_one_run(before.documents, now.documents, total_before, total_now)
    new = _list_significant_values_of_one_run(now.documents, before.documents, total_now, total_before)
    if gone or new:
        sides = ((gone, "no longer cited"), (new, "newly cited"))
        yield _build_change(
            ChangeKind.CONTENT,
            "; ".join(f"{label}: {_join_names_up_to_limit(names)}" for names, label in sides if names),
        )


def _list_significant_values_of_one_run(
    values: Values, other_values: Values, answers: int, other_answers: int
) -> list[str]:
    total = answers + other_answers
    return [
        name
        for name, count in sorted(values.items())
        if name not in other_values
        and _compute_probability_all_on_one_side(min(count, answers), answers, total) < ALPHA
    ]


def _find_latency_change(pairs: Sequence[_Pair], before: RunSnapshot, now: RunSnapshot) -> Iterator[RunChange]:
    """Yield a change of the median latency.

    If the concurrency also changed, cause and effect cannot be separated: more concurrent questions take longer,
    and a slower application has more questions open at a time.
    """
    old, new = ([getattr(pair, side).total_ms for pair in pairs] for side in ("before", "now"))
    direction = _find_shift_direction(old, new, ratio=LATENCY_RATIO, min_difference=LATENCY_MS)
    if direction is None:
        return
    text = (
        f"answers take {'longer' if direction > 0 else 'less time'}: "
        f"median {_format_median_and_interval_s(new)}, {_format_median_and_interval_s(old)} before"
    )
    concurrency, earlier = now.concurrency, before.concurrency
    if concurrency and earlier and max(concurrency / earlier, earlier / concurrency) >= CONCURRENCY_RATIO:
        yield _build_change(
            ChangeKind.UNKNOWN, f"{text}; Lookout asked up to {concurrency} questions at once, {earlier} before"
        )
    else:
        yield _build_change(ChangeKind.APPLICATION, text)


def _find_length_change(pairs: Sequence[_Pair]) -> Iterator[RunChange]:
    answered = [pair for pair in pairs if pair.has_no_refusal]
    old, new = ([getattr(pair, side).characters for pair in answered] for side in ("before", "now"))
    direction = _find_shift_direction(old, new, ratio=LENGTH_RATIO, min_difference=LENGTH_CHARACTERS)
    if direction is not None:
        yield _build_change(
            ChangeKind.APPLICATION,
            f"answers are {'longer' if direction > 0 else 'shorter'}: median {median(new):,.0f} characters, "
            f"{median(old):,.0f} before",
        )


def _find_shift_direction(
    old: Sequence[int], new: Sequence[int], *, ratio: float, min_difference: float
) -> int | None:
    """Return 1 if values rose, -1 if they fell, ``None`` if there is no relevant and significant shift."""
    if len(old) < MIN_PAIRS:
        return None
    steps = list(zip(old, new, strict=True))
    up, down = sum(b > a for a, b in steps), sum(b < a for a, b in steps)
    low, high = sorted((max(median(old), 1), max(median(new), 1)))
    if compute_mcnemar_p_value(up, down) >= ALPHA or high < ratio * low or high - low < min_difference:
        return None
    return 1 if median(new) > median(old) else -1


def _format_median_and_interval_s(values: Sequence[int]) -> str:
    low, high = compute_median_interval(values)
    return f"{median(values) / 1000:.1f} s (95 % CI {low / 1000:.1f} to {high / 1000:.1f})"


# --- words -----------------------------------------------------------------------------------------------------


def _list_unrecorded_parts(before: RunSnapshot, now: RunSnapshot) -> Iterator[str]:
    """Yield the names of the parts that at least one of the two runs did not record."""
    sides: Mapping[str, tuple[object, object]] = {
        "deploy": (before.commit, now.commit),
        "model": (before.models, now.models),
        "document versions": (before.document_versions, now.document_versions),
        "page": (before.pages, now.pages),
    }
    yield from (name for name in _COMPARED_PARTS if not all(sides[name]))


def _join_names_up_to_limit(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _build_change(kind: ChangeKind, evidence: str) -> RunChange:
    return RunChange(kind=kind, evidence=evidence)
