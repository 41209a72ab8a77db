"""The page that `make accuracy` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.accuracy.figure import Figure, Measured, TellingError

MAX_TELLING_ERRORS = 20

INTRODUCTION = """# Accuracy of the graders

Each section of this page has the figures of one set of labelled rows. Other people wrote and labelled most of these rows. Their
rows are in the data folder beside the project, and are not part of the project. The project itself generates the rows of the
sets `bisect`, `shrink` and `what changed`, and a part of the rows of other sets, such as "own rows".

`make accuracy` measures all figures again and rewrites this page. The table at the end describes errors in our own words, with
the id of the row.

- **95 %** is Wilson's 95 % interval of the value. For F1, it is the interval of the share found / (found + half of the errors).
- **baseline** is the result of a simple method, or of another tool, on the same rows.
- **agreement where decided** counts only the rows on which a grader decided. It does not count the rows on which the grader
  abstained.
"""


def render_page(measured: dict[str, Measured], *, date: str, commit: str) -> str:
    """Render the whole page as Markdown. ``measured`` maps the names of sets to their results."""
    parts = [INTRODUCTION, f"Date {date}, commit `{commit}`.\n", _format_targets(_list_figures(measured))]
    for name, result in measured.items():
        parts.append(f"## {name}\n\n{_format_table(result.figures)}")
        parts.extend(f"{note}\n" for note in result.notes)
    parts.append(_format_errors([error for result in measured.values() for error in result.errors]))
    return "\n".join(parts)


def _list_figures(measured: dict[str, Measured]) -> list[Figure]:
    return [figure for result in measured.values() for figure in result.figures]


def _format_targets(figures: Iterable[Figure]) -> str:
    aimed = [figure for figure in figures if figure.target is not None]
    missed = [figure for figure in aimed if not figure.met]
    if not missed:
        return f"All {len(aimed)} targets are met.\n"
    lines = [f"{len(aimed) - len(missed)} of {len(aimed)} targets are met. Missed:\n"]
    lines += [f"- {f.set}, {f.what}: {f.value:.3f}, {_format_target(f)}" for f in missed]
    return "\n".join(lines) + "\n"


def _format_table(figures: Iterable[Figure]) -> str:
    head = (
        "| what | value | 95 % | rows | target | met | baseline |\n| --- | ---: | --- | ---: | --- | --- | ---: |\n"
    )
    return head + "".join(_format_row(figure) for figure in figures)


def _format_row(figure: Figure) -> str:
    met = {None: "", True: "yes", False: "**no**"}[figure.met]
    baseline = "" if figure.baseline is None else f"{figure.baseline:.3f}"
    interval = f"{figure.low:.3f} to {figure.high:.3f}"
    cells = (figure.what, f"{figure.value:.3f}", interval, str(figure.count), _format_target(figure), met, baseline)
    return "| " + " | ".join(cells) + " |\n"


def _format_target(figure: Figure) -> str:
    if figure.target is None:
        return ""
    return f"{'at most' if figure.at_most else 'at least'} {figure.target:.2f}"


def _format_errors(errors: Sequence[TellingError]) -> str:
    """Format a table with at most `MAX_TELLING_ERRORS` errors.

    One error is taken from each set in turn, so that no set fills the whole table.
    """
    by_set: dict[str, list[TellingError]] = {}
    for error in errors:
        by_set.setdefault(error.set, []).append(error)
    chosen: list[TellingError] = []
    while by_set and len(chosen) < MAX_TELLING_ERRORS:
        for name in list(by_set):
            chosen.append(by_set[name].pop(0))
            if not by_set[name]:
                del by_set[name]
    rows = [f"| {e.set} | `{e.row_id}` | {e.what} | {e.teaches} |" for e in chosen[:MAX_TELLING_ERRORS]]
    head = (
        "## The most telling errors\n\n| set | row | what happened | what it teaches |\n| --- | --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"
