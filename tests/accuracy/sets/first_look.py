"""Measures whether Lookout names the attributes that the failed cases of a suite have in common.

If the failed cases have nothing in common, Lookout should make no claim.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from monitors.explain.first_look import find_shared_causes
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.rows import read_rows
from tests.monitors.explain.planted import Planted, planted_suite
from tests.monitors.explain.planted_otherwise import nested_suite, sessions_suite

NAME = "first look"
RANDOM = "nothing in common"
OWN_SUITES = 40
"""The number of suites that this project generates for each kind in `MAKERS` and each number of causes.

For each kind, the project also generates twice this number of suites without a cause.
"""
MAKERS: Final = {"own suites": planted_suite, "nested suites": nested_suite, "sessions": sessions_suite}


def measure(data: Path) -> Measured:
    """Measure how often Lookout names a cause, claims a wrong cause, and claims a cause where there is none.

    The set's suites are measured first, then the project's own suites.
    """
    figures: list[Figure] = []
    errors: list[TellingError] = []
    rows = list(read_rows(data / "first_look" / "planted_suites.jsonl"))
    found = [(row, _build_suite(row)) for row in rows]
    said = [_build_claims(suite) for _, suite in found]
    with_causes = [(suite, one) for (row, suite), one in zip(found, said, strict=True) if row["kind"] != RANDOM]
    figures += _build_figures("planted suites", with_causes, targets=True)
    silent = [one for (row, _), one in zip(found, said, strict=True) if row["kind"] == RANDOM]
    figures.append(
        build_share(
            NAME, "random suites with a claim", sum(map(bool, silent)), len(silent), target=0.05, at_most=True
        )
    )
    for (row, suite), one in zip(found, said, strict=True):
        if suite.wrong(one):
            errors.append(
                TellingError(
                    NAME,
                    row["id"],
                    f"{row['kind']}: a claim is wrong",
                    "only a few cases distinguish the two causes",
                )
            )
    for own, made in MAKERS.items():
        for causes in (1, 2, 3):
            suites = [made(seed, causes) for seed in range(1_000, 1_000 + OWN_SUITES)]
            figures += _build_figures(
                f"{own}, {causes} planted", [(suite, _build_claims(suite)) for suite in suites], targets=False
            )
        suites = [made(seed, 0) for seed in range(1_000, 1_000 + 2 * OWN_SUITES)]
        claimed = sum(bool(_build_claims(suite)) for suite in suites)
        figures.append(
            build_share(NAME, f"{own}, random, with a claim", claimed, len(suites), target=0.05, at_most=True)
        )
    return Measured(tuple(figures), tuple(errors))


def _build_suite(row: dict[str, Any]) -> Planted:
    cases = [dict(zip(row["attributes"], case, strict=False)) for case in row["cases"]]
    causes = [[cause, *also] for cause, also in zip(row["causes"], row["also_right"], strict=True)]
    return Planted(cases, [bool(case[-1]) for case in row["cases"]], causes)


def _build_claims(suite: Planted) -> list[dict[str, object]]:
    return [dict(cause.conditions) for cause in find_shared_causes(suite.cases, suite.failed).causes]


def _build_figures(
    what: str, said: list[tuple[Planted, list[dict[str, object]]]], *, targets: bool
) -> list[Figure]:
    causes, claims = sum(len(suite.causes) for suite, _ in said), sum(len(one) for _, one in said)
    named, wrong = (sum(suite.named(one) for suite, one in said), sum(suite.wrong(one) for suite, one in said))
    return [
        build_share(
            NAME,
            f"{what}: causes named",
            named,
            causes,
            target=0.95 if targets else None,
            baseline=0.90 if targets else None,
        ),
        build_share(
            NAME,
            f"{what}: wrong claims",
            wrong,
            claims,
            target=0.03 if targets else None,
            at_most=True,
            baseline=0.03 if targets else None,
        ),
    ]
