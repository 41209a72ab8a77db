"""Check after a run with kills: each case is stored exactly once, with the answer to its own question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.data_folder import open_store_in
from monitors.records.base import Record
from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.runs import CaseResult
from monitors.reports.results_json import read_results
from tests.soak.kill_story import Story
from tests.soak.mortal_app import answer_to
from warehouse.database.check import check_database
from warehouse.journal.rows import ResultRow


@dataclass(frozen=True)
class Verdict:
    """The result of the check: the faults that were found (ideally none), and the figures."""

    faults: Sequence[str]
    figures: Sequence[str]


def judged(story: Story) -> Verdict:
    """Compare the app's record, the journal, the warehouse and results.json with the planned questions."""
    runs = sorted(path.name for path in (story.folder / "data" / "runs").iterdir())
    if len(runs) != 1:
        return Verdict([f"one run was to be finished, there are {len(runs)}: {runs}"], _figures(story, 0, 0, 0))
    faults = [*_of_journal(story, runs[0]), *_of_results(story, runs[0]), *_of_warehouse(story, runs[0])]
    if set(story.exit_codes) != {0}:
        faults.append(f"Lookout ended by itself with {story.exit_codes}, though every answer was right")
    if story.orphans:
        faults.append(f"{story.orphans} processes outlived the Lookout that had started them")
    if len(story.done) < len(story.plan):
        faults.append(f"only {len(story.done)} of {len(story.plan)} kills were done: the run ended before")
    asked = Counter(line.question for line in _asked(story))
    failed = sum(len(one.result.failed_attempts) for one in _results(story, runs[0]))
    silent = sum(isinstance(one.result, NoAnswer) for one in _results(story, runs[0]))
    return Verdict(faults, [*_figures(story, sum(asked.values()), len(asked), failed), f"no answer: {silent}"])


def _figures(story: Story, asked: int, different: int, failed: int) -> list[str]:
    kinds = Counter(victim.value for victim in story.done)
    killed = ", ".join(f"{times} {kind}" for kind, times in sorted(kinds.items()))
    return [
        f"{story.cases} cases, {len(story.done)} kills ({killed}), {story.closing} more while closing",
        f"{story.seconds:.0f} s; Lookout was started {story.starts} times, its own exit codes: {story.exit_codes}",
        f"the app received {asked} questions, {different} different ones: {asked - different} were asked again",
        f"failed tries on record in the final results: {failed}",
    ]


class Received(Record):
    """A question that the app recorded before it answered; ``at`` is in seconds since 1970."""

    question: str
    at: float


def _asked(story: Story) -> list[Received]:
    return [Received.model_validate_json(line) for line in story.asked_file.read_text("utf-8").splitlines()]


def _results(story: Story, run: str) -> Sequence[CaseResult]:
    return read_results(story.folder / "data" / "runs" / run / "results.json")[1]


def _expected(story: Story) -> set[str]:
    return {f"plan-{number}" for number in range(story.cases)}


def _of_journal(story: Story, run: str) -> Iterator[str]:
    """Return the faults in the journal.

    Every case must have exactly one answer, which must belong to this case. A case must not be asked again after
    its answer was stored.
    """
    journal = open_store_in(story.folder / "data").journal
    answers: Counter[str] = Counter()
    received = _asked(story)
    for name in journal.segments.list_segments(run):
        durable_at = (story.journal / name).stat().st_mtime
        for row in journal.read(name).rows():
            if not isinstance(row, ResultRow) or not isinstance(row.row, Exchange):
                continue
            answers[row.row.case_id] += 1
            yield from _of_answer(row.row)
            late = [one for one in received if one.question == row.row.turns[-1] and one.at > durable_at]
            yield from (f"{row.row.case_id} was asked again after its answer was stored" for _ in late)
    yield from (f"{case} has {times} answers in the journal" for case, times in answers.items() if times > 1)
    yield from (f"{case} has no answer in the journal" for case in _expected(story) - set(answers))


def _of_answer(exchange: Exchange) -> Iterator[str]:
    own = answer_to(exchange.turns[-1])
    if " ".join(exchange.visible_text.split()) != own:
        yield f"{exchange.case_id} got {exchange.visible_text!r} instead of {own!r}"


def _of_results(story: Story, run: str) -> Iterator[str]:
    cases = [one.case.id for one in _results(story, run)]
    yield from (f"{case} is {times} times in results.json" for case, times in Counter(cases).items() if times > 1)
    yield from (f"{case} is not in results.json" for case in _expected(story) - set(cases))
    yield from (
        f"{one.case.id} came to {one.assessment.outcome}: {one.assessment.reason}"
        for one in _results(story, run)
        if one.assessment.outcome.value != "correct"
    )


def _of_warehouse(story: Story, run: str) -> Iterator[str]:
    store = open_store_in(story.folder / "data")
    for table in ("results", "assessments"):
        query = store.query(f"select case_id, count(*) from {table} where run_id = ? group by 1", [run], wait_s=30)
        found = {str(case): times for case, times in query.rows}
        yield from (f"{case} is {times} times in {table}" for case, times in found.items() if times != 1)
        yield from (f"{case} is not in {table}" for case in _expected(story) - set(found))
    yield from (f"warehouse: {problem.text}" for problem in check_database(store, wait_s=30).problems)
