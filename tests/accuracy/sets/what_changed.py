"""Measures whether Lookout names the single change between two real runs over the demo.

The set also contains pairs of runs without a change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deployments.demo.policies import Policy, load_policies
from monitors.explain.what_changed import find_run_changes
from monitors.records.grades import JudgeLineage
from monitors.records.snapshots import ChangeKind, WhatChanged
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.monitors.explain.changed_demo import (
    Setup,
    Variant,
    hash_of,
    other_amounts,
    recorded_run,
    with_policy,
)

NAME = "what changed"
CONTROLS = 10
"""Number of pairs without a change, for an application that repeats its answers.

The same number of pairs is made for an application that rewords its answers.
"""
BOOK = load_policies()
PLAIN = Variant(model="small-2026-01", more={"system_fingerprint": "fp_44"}, headers={"X-App-Version": "1.4.2"})
WORDED = replace(PLAIN, wording=True)
SILENT = Variant()
HASHED = replace(PLAIN, versions=hash_of)
AS_IT_IS = Setup()
PAGE = Setup(cases=12, driver="browser", concurrency=2)
JUDGE = JudgeLineage(model="judge-a", prompt_sha256="3f" * 32, rubric_version="1")
JUDGED = Setup(judge=JUDGE)
APPLICATION, MODEL, CONTENT, MONITOR = "application", "model", "content", "monitor"


NOTE = """\
Each row compares two real runs of the demo's bot: 64 cases of its suite over HTTP, or 12 cases on a real page. The test makes
one change between the two runs, and Lookout must name the side of this change: the application, its model, its content or the
monitor. If the page changed, Lookout must name the side `page`. If the suite changed, it must name the side `suite`. An
installation has only one version of each grader, of the browser and of Lookout. Therefore the test changes these versions only
in the snapshot of the second run."""


@dataclass(frozen=True)
class Planted:
    """Two runs with a planted change between them, and the kind of change that Lookout must name."""

    name: str
    group: str
    before: Variant = PLAIN
    now: Variant = PLAIN
    setup: Setup = AS_IT_IS
    setup_now: Setup | None = None
    side: ChangeKind | None = None

    @property
    def expected(self) -> ChangeKind:
        """Return the kind of change that must be named."""
        return self.side or ChangeKind(self.group)


def _build_applications() -> Iterator[Planted]:
    newer = Setup(commit="bbb")
    yield Planted("another commit", APPLICATION, setup_now=newer)
    yield Planted("another commit, reworded", APPLICATION, WORDED, WORDED, setup_now=newer)
    yield Planted("version header", APPLICATION, now=replace(PLAIN, headers={"X-App-Version": "1.5.0"}))
    yield Planted("server header", APPLICATION, SILENT, replace(SILENT, headers={"Server": "gunicorn"}))
    yield Planted("400 ms slower", APPLICATION, now=replace(PLAIN, delay_ms=460))
    yield Planted("six times slower, reworded", APPLICATION, WORDED, replace(WORDED, delay_ms=400))
    long = " This is general information about our products and no offer; ask our service desk for advice."
    yield Planted("a sentence behind each answer", APPLICATION, WORDED, replace(WORDED, suffix=long))
    yield Planted("no citations", APPLICATION, now=replace(PLAIN, cites=False))
    script = replace(PLAIN, page={"script": "app-9f8e.js"})
    yield Planted("another bundle", APPLICATION, now=script, setup=PAGE, side=ChangeKind.PAGE)
    framework = replace(PLAIN, page={"framework": "DemoChat 2.0"})
    yield Planted("another framework", APPLICATION, now=framework, setup=PAGE, side=ChangeKind.PAGE)


def _build_models() -> Iterator[Planted]:
    other = {"model": "small-2026-03"}
    yield Planted("another model", MODEL, now=replace(PLAIN, **other))
    yield Planted("another model, reworded", MODEL, WORDED, replace(WORDED, **other))
    nested = ({"meta": {"model": name}} for name in ("a-1", "a-2"))
    yield Planted("deeper in the payload", MODEL, *(replace(SILENT, more=more) for more in nested))
    yield Planted("fingerprint", MODEL, now=replace(PLAIN, more={"system_fingerprint": "fp_71"}))
    headers = ({"X-Model": name} for name in ("a-1", "a-2"))
    yield Planted("model header", MODEL, *(replace(SILENT, headers=one) for one in headers))
    paths = ({"brain": name} for name in ("large", "small"))
    by_path = Setup(probe={"app_path": "brain"})
    yield Planted("path that answered", MODEL, *(replace(SILENT, more=one) for one in paths), setup=by_path)
    rollout = replace(PLAIN, newer_model="small-2026-03", newer=0.3)
    yield Planted("a rollout of 30 %", MODEL, now=rollout)
    yield Planted("declines a third", MODEL, SILENT, replace(SILENT, declines=0.35))
    silent_worded = replace(SILENT, wording=True)
    yield Planted("declines a third, reworded", MODEL, silent_worded, replace(silent_worded, declines=0.35))
    yield Planted("another model, and slower", MODEL, now=replace(PLAIN, delay_ms=460, **other))


def _build_contents() -> Iterator[Planted]:
    def renamed(policy: Policy) -> Policy:
        return policy.model_copy(update={"name": f"{policy.name} 2027"})

    first, second = with_policy(BOOK, 0, other_amounts), with_policy(BOOK, 1, other_amounts)
    yield Planted("hash of a source", CONTENT, HASHED, replace(HASHED, book=first))
    hashed = replace(HASHED, wording=True)
    yield Planted("hash of a source, reworded", CONTENT, hashed, replace(hashed, book=second))
    dated = [
        replace(PLAIN, versions=lambda _policy, on=on: on, version_key="updated_at") for on in ("2026", "2027")
    ]
    yield Planted("date of all sources", CONTENT, *dated)
    yield Planted("figures of a document", CONTENT, now=replace(PLAIN, book=first))
    yield Planted("figures of a document, reworded", CONTENT, WORDED, replace(WORDED, book=second))
    yield Planted("a document is gone", CONTENT, now=replace(PLAIN, book=with_policy(BOOK, 0, lambda _one: None)))
    gone = with_policy(BOOK, 2, lambda _one: None)
    yield Planted("a document is gone, reworded", CONTENT, WORDED, replace(WORDED, book=gone))
    yield Planted("a document is renamed", CONTENT, now=replace(PLAIN, book=with_policy(BOOK, 0, renamed)))
    some = with_policy(BOOK, 1, lambda policy: other_amounts(policy, most=6))
    yield Planted("six facts of a document", CONTENT, now=replace(PLAIN, book=some))
    one = with_policy(BOOK, 0, lambda policy: other_amounts(policy, most=1))
    yield Planted("one fact of a document", CONTENT, now=replace(PLAIN, book=one))


def _build_monitors() -> Iterator[Planted]:
    def regolded(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [lines[0] | {"gold": "12 months"}, *lines[1:]]

    def set_up(**changes: Any) -> Mapping[str, Setup]:
        return {"setup_now": replace(AS_IT_IS, **changes)}

    suite = {"side": ChangeKind.SUITE}
    yield Planted("a case more in the suite", MONITOR, **set_up(cases=65), **suite)
    yield Planted("another gold in the suite", MONITOR, **set_up(edit=regolded), **suite)
    yield Planted("another version of a grader", MONITOR, **set_up(grader_version="6"))
    yield Planted("other settings of graders", MONITOR, **set_up(config={"graders.citation_required": False}))
    yield Planted("another gate", MONITOR, **set_up(config={"gate.min_weighted_score": 0.99}))
    for name, change in (("another judge", {"model": "judge-b"}), ("another prompt", {"prompt_sha256": "9a" * 32})):
        judge = JUDGE.model_copy(update=change)
        yield Planted(name, MONITOR, setup=JUDGED, setup_now=replace(JUDGED, judge=judge))
    yield Planted("another browser", MONITOR, setup=PAGE, setup_now=replace(PAGE, tool={"browser": "Chromium 157"}))
    yield Planted("another Lookout", MONITOR, **set_up(tool={"lookout": "0.2.0"}))
    yield Planted("other settings of the probe", MONITOR, **set_up(concurrency=2))


def measure(data: Path) -> Measured:
    """Measure which kind of change is named first for each planted change.

    Also measure what is claimed for pairs without a change.
    """
    del data  # the demo itself is what is asked
    planted = [*_build_applications(), *_build_models(), *_build_contents(), *_build_monitors()]
    with tempfile.TemporaryDirectory() as folder:
        found = [(one, _compare(Path(folder) / f"{n}", one, n)) for n, one in enumerate(planted)]
        plain, worded = (
            [_compare(Path(folder) / f"{name}-{n}", one, 100 + n) for n in range(CONTROLS)]
            for name, one in (("plain", Planted("", MODEL)), ("worded", Planted("", MODEL, WORDED, WORDED)))
        )
    figures = [
        *_build_figures(found),
        _build_control_figure("answers repeat", plain),
        _build_control_figure("answers are reworded", worded),
    ]
    errors = [
        TellingError(
            NAME,
            one.name,
            f"expected {one.expected}, got {_list_causes(changed)}",
            "; ".join(_format_lines(changed)),
        )
        for one, changed in found
        if not _is_right(one, changed)
    ]
    return Measured(tuple(figures), tuple(errors), (NOTE,))


def _compare(folder: Path, one: Planted, seed: int) -> WhatChanged:
    before = recorded_run(folder / "before", one.before, one.setup, 2 * seed)
    now = recorded_run(folder / "now", one.now, one.setup_now or one.setup, 2 * seed + 1)
    if now.snapshot is None:
        raise AssertionError("a run has a snapshot")
    return find_run_changes(now.snapshot, before)


def _list_causes(changed: WhatChanged) -> str:
    return ", ".join(sorted(changed.primary_change_kinds)) or "unknown"


def _format_lines(changed: WhatChanged) -> list[str]:
    return [change.evidence for change in changed.changes] or ["no property that Lookout records changed"]


def _is_right(one: Planted, changed: WhatChanged) -> bool:
    first = next((change.kind for change in changed.changes if not change.follows), None)
    return first is one.expected and not _is_wrong(one, changed)


def _is_wrong(one: Planted, changed: WhatChanged) -> bool:
    """Return whether Lookout names a kind of change that is neither the expected kind nor unknown."""
    return bool(changed.primary_change_kinds - {one.expected, ChangeKind.UNKNOWN})


def _build_figures(found: list[tuple[Planted, WhatChanged]]) -> Iterator[Figure]:
    right, wrong = (sum(test(*one) for one in found) for test in (_is_right, _is_wrong))
    yield build_share(NAME, "planted changes: the right side named", right, len(found), target=0.90)
    yield build_share(NAME, "planted changes: a wrong side named", wrong, len(found), target=0.05, at_most=True)
    for group in (APPLICATION, MODEL, CONTENT, MONITOR):
        of_it = [one for one in found if one[0].group == group]
        yield build_share(NAME, f"{group}: the right side named", sum(_is_right(*one) for one in of_it), len(of_it))


def _build_control_figure(what: str, found: list[WhatChanged]) -> Figure:
    claimed = sum(bool(one.changes) for one in found)
    return build_share(
        NAME, f"nothing changed, {what}: a change named", claimed, len(found), target=0.05, at_most=True
    )
