"""A search over builds at their addresses: asks, one question at a time, until the first bad build is known.

Each answer is stored before the next question, and counts when the search is begun again: the build behind a commit
does not change. An answer that fails in another way, or that no rule can grade, says nothing; a build that gives
nothing else is left out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from flows.explain.asking import CaseAsker, Clock, asker_at, moved_settings
from monitors.config.file import Config, target_record
from monitors.errors import ConfigError, ProbeError
from monitors.explain.bisect import ENOUGH, BuildSearch
from monitors.explain.builds import (
    BisectCandidate,
    BisectCase,
    BisectClaim,
    BisectReport,
    Build,
    BuildAnswer,
)
from monitors.goldset.load import cases_sha256
from monitors.probes.readiness import wait_until_ready
from monitors.records.cases import GoldCase
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import CaseResult
from monitors.storage import OWNER_ONLY, alone_with, text_of, write_atomically

BISECT_FOLDER: Final = "bisect"
"""Inside the data folder: the answers of builds, one file a target."""
SILENT_TWICE: Final = 2
"""So many answers in a row that say nothing, and the build is left out."""


class FailingCase(NamedTuple):
    """A case with the kinds by which it failed; none where any failure counts."""

    case: GoldCase
    kinds: frozenset[FailureKind] = frozenset()

    @property
    def sha256(self) -> str:
        """The hash of the case as it is asked."""
        return cases_sha256([self.case])

    def fails(self, answer: BuildAnswer) -> bool | None:
        """Whether the answer has the fault; ``None`` where it says nothing about it."""
        if answer.outcome is CaseOutcome.CORRECT:
            return False
        same = not self.kinds or bool(self.kinds & set(answer.failure_kinds))
        return True if answer.outcome is CaseOutcome.FAILED and same else None


class BuildAnswers:
    """The stored answers of a target's builds. `ConfigError` for a file that holds something else."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._data_folder = data_folder
        self._path = data_folder / BISECT_FOLDER / f"{target}.jsonl"

    def read(self) -> tuple[BuildAnswer, ...]:
        """All of them, oldest first."""
        lines = text_of(self._path).splitlines()
        return tuple(self._answer(line, number) for number, line in enumerate(lines, start=1))

    def _answer(self, line: str, number: int) -> BuildAnswer:
        try:
            return BuildAnswer.model_validate_json(line)
        except ValidationError:
            raise ConfigError(
                f"{self._path}, line {number}: no answer of a build; move the file away to begin anew"
            ) from None

    def add(self, answer: BuildAnswer) -> None:
        """Store one; it is on disk when this returns."""
        with alone_with(self._path):
            text = f"{text_of(self._path)}{answer.model_dump_json()}\n"
            write_atomically(self._path, text, mode=OWNER_ONLY, within=self._data_folder)


AskBuild = Callable[[Build, GoldCase], Awaitable[BuildAnswer]]
OnBuildAnswer = Callable[[BuildAnswer, bool | None], None]


@dataclass
class BuildVisitor:
    """Asks cases at builds; the page of the last one stays open until another is asked."""

    config: Config
    target: str
    cases: Sequence[GoldCase]
    folder: Path
    run_id: str
    environment: Mapping[str, str]
    clock: Clock
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _open: tuple[Build, CaseAsker] | None = None
    _asked: int = 0

    async def ask(self, build: Build, case: GoldCase) -> BuildAnswer:
        """Ask once. A build that is not there, or serves another commit, is an answer that says so."""
        asked_at = self.clock()
        try:
            asker = await self._asker(build)
        except ProbeError as error:
            return _answer_of(build, case, asked_at, CaseOutcome.NO_ANSWER, reason=str(error))
        self._asked += 1
        (result,) = await asker.ask_case(case, 1, first_repeat=self._asked)
        assessment = result.assessment
        return _answer_of(
            build, case, asked_at, assessment.outcome, assessment.failure_kinds, reason=reason_of(result)
        )

    async def _asker(self, build: Build) -> CaseAsker:
        if self._open is not None and self._open[0] == build:
            return self._open[1]
        await self.close()
        await self._serves(build)
        opening = asker_at(
            self.config,
            self.target,
            build.address,
            folder=self.folder,
            run_id=self.run_id,
            cases=self.cases,
            environment=self.environment,
            clock=self.clock,
        )
        asker = await self._stack.enter_async_context(opening)
        self._open = (build, asker)
        return asker

    async def _serves(self, build: Build) -> None:
        """Where the application names its commit, it must name this one. Raises `ProbeError`."""
        configured = self.config.target(self.target)
        target = target_record(self.target, configured)
        settings = moved_settings(configured.probe, target.address, build.address).readiness
        if settings.version_url is None:
            return
        at_once = settings.model_copy(update={"deadline_s": 0.0})
        there = target.model_copy(update={"url": build.address, "space": None})
        await wait_until_ready(there, at_once, commit=build.commit)

    async def close(self) -> None:
        """Close the page that is open."""
        self._open = None
        await self._stack.aclose()


@asynccontextmanager
async def build_visitor(
    config: Config,
    target: str,
    cases: Sequence[GoldCase],
    *,
    folder: Path,
    run_id: str,
    environment: Mapping[str, str],
    clock: Clock,
) -> AsyncGenerator[BuildVisitor]:
    """Whoever asks builds of ``target``; ``folder`` is for what a driver leaves behind."""
    visitor = BuildVisitor(config, target, cases, folder, run_id, environment, clock)
    try:
        yield visitor
    finally:
        await visitor.close()


def reason_of(result: CaseResult) -> str:
    """Why it came to what it came to, in one sentence."""
    return result.result.detail if isinstance(result.result, NoAnswer) else result.assessment.reason


def _answer_of(
    build: Build,
    case: GoldCase,
    asked_at: datetime,
    outcome: CaseOutcome,
    failure_kinds: tuple[FailureKind, ...] = (),
    *,
    reason: str,
) -> BuildAnswer:
    return BuildAnswer(
        commit=build.commit,
        address=build.address,
        case_id=case.id,
        case_sha256=cases_sha256([case]),
        asked_at=asked_at,
        outcome=outcome,
        failure_kinds=failure_kinds,
        reason=reason,
    )


@dataclass
class BuildBisection:
    """A search for the first bad one of ``builds`` by ``cases``, worst first, with at most ``budget`` questions.

    ``answers`` are those of before; ``ask`` asks, ``on_answer`` hears of each with whether it failed.
    """

    target: str
    builds: Sequence[Build]
    cases: Sequence[FailingCase]
    answers: BuildAnswers
    ask: AskBuild
    on_answer: OnBuildAnswer
    budget: int
    asked: int = 0
    stored: int = 0

    def __post_init__(self) -> None:
        self._search = BuildSearch(len(self.builds), len(self.cases))
        self._heard: list[tuple[int, int, bool]] = []
        self._silent: dict[int, int] = {}
        self._left_out: dict[int, str] = {}

    async def run(self) -> BisectReport:
        """Ask until one hypothesis is likely enough, the budget is used up, or no question promises anything."""
        self._recall()
        for end in (len(self.builds) - 1, 0):
            while not self._is_heard(end) and end not in self._left_out and self.asked < self.budget:
                await self._ask(end, 0)
        while not self._search.is_settled() and self.asked < self.budget:
            question = self._search.next_question()
            if question is None:
                break
            await self._ask(question.build, question.case)
        return self._report()

    def _is_heard(self, build: int) -> bool:
        return any(at == build for at, _, _ in self._heard)

    def _recall(self) -> None:
        places = {build: at for at, build in enumerate(self.builds)}
        cases = {(failing.case.id, failing.sha256): at for at, failing in enumerate(self.cases)}
        for answer in self.answers.read():
            build = places.get(Build(commit=answer.commit, address=answer.address))
            case = cases.get((answer.case_id, answer.case_sha256))
            if build is not None and case is not None:
                failed = self.cases[case].fails(answer)
                if failed is not None:
                    self.stored += 1
                    self._hear(build, case, failed=failed)

    async def _ask(self, build: int, case: int) -> None:
        answer = await self.ask(self.builds[build], self.cases[case].case)
        self.asked += 1
        failed = self.cases[case].fails(answer)
        if failed is None:
            self._silent[build] = self._silent.get(build, 0) + 1
            if self._silent[build] >= SILENT_TWICE:
                self._search.leave_out(build)
                self._left_out[build] = answer.reason
        else:
            self._silent[build] = 0
            self.answers.add(answer)
            self._hear(build, case, failed=failed)
        self.on_answer(answer, failed)

    def _hear(self, build: int, case: int, *, failed: bool) -> None:
        self._heard.append((build, case, failed))
        self._search.record(build, case, failed=failed)

    def _report(self) -> BisectReport:
        posterior = self._search.posterior()
        groups = sorted(self._search.candidates(), key=lambda group: -sum(posterior[at] for at in group))
        candidates = tuple(self._candidate(group, posterior) for group in groups)
        return BisectReport(
            target=self.target,
            good=self.builds[0].commit,
            bad=self.builds[-1].commit,
            builds=len(self.builds),
            candidates=candidates,
            cases=tuple(self._case(at, groups[0][0]) for at in range(len(self.cases))),
            asked=self.asked,
            stored=self.stored,
            left_out=tuple((self.builds[at].commit, why) for at, why in sorted(self._left_out.items())),
            why_open=self._why_open(candidates[0]),
        )

    def _candidate(self, group: tuple[int, ...], posterior: Sequence[float]) -> BisectCandidate:
        chance = min(1.0, sum(posterior[at] for at in group))
        if group == (0,):
            return BisectCandidate(claim=BisectClaim.GOOD_FAILS, probability=chance)
        if group == (len(self.builds),):
            return BisectCandidate(claim=BisectClaim.BAD_PASSES, probability=chance)
        commits = tuple(self.builds[at].commit for at in group)
        return BisectCandidate(claim=BisectClaim.FIRST_BAD, commits=commits, probability=chance)

    def _case(self, case: int, first_bad: int) -> BisectCase:
        before = [failed for at, of, failed in self._heard if of == case and at < first_bad]
        after = [failed for at, of, failed in self._heard if of == case and at >= first_bad]
        return BisectCase(
            case_id=self.cases[case].case.id,
            failed_before=sum(before),
            asked_before=len(before),
            failed_after=sum(after),
            asked_after=len(after),
            elsewhere=min(1.0, self._search.breaks_elsewhere(case)),
        )

    def _why_open(self, best: BisectCandidate) -> str:
        if not self._heard:
            return "no build gave an answer that could be graded"
        both = {failed for _, _, failed in self._heard} == {True, False}
        if best.probability >= ENOUGH and (both or best.claim is not BisectClaim.FIRST_BAD):
            return ""
        if best.probability >= ENOUGH:
            return "no answer shows a build that is right, and one that is not"
        if self.asked >= self.budget:
            return f"the budget of {self.budget} questions is used up"
        return "no further question would tell more"
