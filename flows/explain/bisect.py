"""Searches for the first build that gives a wrong answer. Each build has its own address.

Each answer is stored and reused in later searches, because the build of a commit does not change. An answer counts
only if it is right or has the failure that is searched for. A build without such answers is excluded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from flows.explain.asking import CaseAsker, Clock, move_settings_to_address, open_case_asker
from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError, ProbeError
from monitors.explain.bisect import SETTLED_PROBABILITY, BuildSearch
from monitors.explain.builds import (
    BisectCandidate,
    BisectCase,
    BisectClaim,
    BisectReport,
    Build,
    BuildAnswer,
)
from monitors.goldset.load import hash_cases
from monitors.plural import plural
from monitors.probes.readiness import wait_until_ready
from monitors.records.cases import GoldCase
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import CaseResult
from monitors.storage import OWNER_ONLY_MODE, lock_parent_folder, read_text_or_empty, write_atomically

BISECT_FOLDER: Final = "bisect"
"""Name of the folder inside the data folder that stores the answers of builds, one file for each target."""
MAX_UNGRADED_ANSWERS: Final = 2
"""Number of consecutive unusable answers after which a build is excluded.

An answer is usable if it is right, or if it has the failure that is searched for.
"""


class FailingCase(NamedTuple):
    """A failing case, and the failure kinds to search for. If ``kinds`` is empty, every failure counts."""

    case: GoldCase
    kinds: frozenset[FailureKind] = frozenset()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the case's content."""
        return hash_cases([self.case])

    def classify_failure(self, answer: BuildAnswer) -> bool | None:
        """Return true if the answer has the failure, false if the answer is right, and otherwise ``None``."""
        if answer.outcome is CaseOutcome.CORRECT:
            return False
        has_kind = not self.kinds or bool(self.kinds & set(answer.failure_kinds))
        return True if answer.outcome is CaseOutcome.FAILED and has_kind else None


class BuildAnswers:
    """Stores the answers of a target's builds in a file. Raises `ConfigError` if the file has another format."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._data_folder = data_folder
        self._path = data_folder / BISECT_FOLDER / f"{target}.jsonl"

    def read(self) -> tuple[BuildAnswer, ...]:
        """Read all stored answers, oldest first."""
        lines = read_text_or_empty(self._path).splitlines()
        return tuple(self._parse_answer(line, number) for number, line in enumerate(lines, start=1))

    def _parse_answer(self, line: str, number: int) -> BuildAnswer:
        try:
            return BuildAnswer.model_validate_json(line)
        except ValidationError:
            raise ConfigError(
                f"{self._path}, line {number}: not a valid stored answer; to start again, move the file away"
            ) from None

    def add(self, answer: BuildAnswer) -> None:
        """Store an answer so that it survives a crash."""
        with lock_parent_folder(self._path):
            text = f"{read_text_or_empty(self._path)}{answer.model_dump_json()}\n"
            write_atomically(self._path, text, mode=OWNER_ONLY_MODE, within=self._data_folder)


AskBuild = Callable[[Build, GoldCase], Awaitable[BuildAnswer]]
OnBuildAnswer = Callable[[BuildAnswer, bool | None], None]


@dataclass
class BuildVisitor:
    """Asks cases at builds. A build's page stays open until another build is asked."""

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
        """Ask a case once and return the answer.

        If the build does not respond or serves another commit, the outcome is ``NO_ANSWER``, with the reason.
        """
        asked_at = self.clock()
        try:
            asker = await self._open_asker(build)
        except ProbeError as error:
            return _build_answer(build, case, asked_at, CaseOutcome.NO_ANSWER, reason=str(error))
        self._asked += 1
        (result,) = await asker.ask_case(case, 1, first_repeat=self._asked)
        assessment = result.assessment
        return _build_answer(
            build,
            case,
            asked_at,
            assessment.outcome,
            assessment.failure_kinds,
            reason=format_outcome_reason(result),
        )

    async def _open_asker(self, build: Build) -> CaseAsker:
        if self._open is not None and self._open[0] == build:
            return self._open[1]
        await self.close()
        await self._require_build_commit(build)
        opening = open_case_asker(
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

    async def _require_build_commit(self, build: Build) -> None:
        """Raise `ProbeError` if the application does not report the commit of the build."""
        configured = self.config.require_target(self.target)
        target = build_target_record(self.target, configured)
        settings = move_settings_to_address(configured.probe, target.address, build.address)
        if settings.readiness.version_url is None:
            return
        without_waiting = settings.with_readiness_times(deadline_s=0.0, poll_s=settings.readiness.poll_s)
        target_of_build = target.model_copy(update={"url": build.address, "space": None})
        await wait_until_ready(target_of_build, without_waiting, commit=build.commit)

    async def close(self) -> None:
        """Close the page that is open."""
        self._open = None
        await self._stack.aclose()


@asynccontextmanager
async def open_build_visitor(
    config: Config,
    target: str,
    cases: Sequence[GoldCase],
    *,
    folder: Path,
    run_id: str,
    environment: Mapping[str, str],
    clock: Clock,
) -> AsyncGenerator[BuildVisitor]:
    """Open a `BuildVisitor` for the builds of ``target``. ``folder`` is for files of the driver."""
    visitor = BuildVisitor(config, target, cases, folder, run_id, environment, clock)
    try:
        yield visitor
    finally:
        await visitor.close()


def format_outcome_reason(result: CaseResult) -> str:
    """Format the reason for a result's outcome as one sentence."""
    return result.result.detail if isinstance(result.result, NoAnswer) else result.assessment.reason


def _build_answer(
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
        case_sha256=hash_cases([case]),
        asked_at=asked_at,
        outcome=outcome,
        failure_kinds=failure_kinds,
        reason=reason,
    )


@dataclass
class BuildBisection:
    """Searches ``builds`` for the first build that fails ``cases``, with at most ``budget`` questions.

    ``cases`` are sorted with the most severe case first. ``answers`` stores the answers. ``ask`` asks a case at a
    build. ``on_answer`` is called with each answer, and with what `FailingCase.classify_failure` returns for it.
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
        self._answered: list[tuple[int, int, bool]] = []
        self._ungraded_counts: dict[int, int] = {}
        self._left_out: dict[int, str] = {}

    async def run(self) -> BisectReport:
        """Ask until it is certain enough which build is the first bad build.

        Also stop if the budget is used up, or if no question would help.
        """
        self._load_stored_answers()
        for end in (len(self.builds) - 1, 0):
            while not self._has_answer(end) and end not in self._left_out and self.asked < self.budget:
                await self._ask_build(end, 0)
        while not self._search.is_settled() and self.asked < self.budget:
            question = self._search.choose_question()
            if question is None:
                break
            await self._ask_build(question.build, question.case)
        return self._build_report()

    def _has_answer(self, build: int) -> bool:
        return any(at == build for at, _, _ in self._answered)

    def _load_stored_answers(self) -> None:
        places = {build: at for at, build in enumerate(self.builds)}
        cases = {(failing.case.id, failing.sha256): at for at, failing in enumerate(self.cases)}
        for answer in self.answers.read():
            build = places.get(Build(commit=answer.commit, address=answer.address))
            case = cases.get((answer.case_id, answer.case_sha256))
            if build is not None and case is not None:
                failed = self.cases[case].classify_failure(answer)
                if failed is not None:
                    self.stored += 1
                    self._record_answer(build, case, failed=failed)

    async def _ask_build(self, build: int, case: int) -> None:
        answer = await self.ask(self.builds[build], self.cases[case].case)
        self.asked += 1
        failed = self.cases[case].classify_failure(answer)
        if failed is None:
            self._ungraded_counts[build] = self._ungraded_counts.get(build, 0) + 1
            if self._ungraded_counts[build] >= MAX_UNGRADED_ANSWERS:
                self._search.exclude_build(build)
                self._left_out[build] = answer.reason
        else:
            self._ungraded_counts[build] = 0
            self.answers.add(answer)
            self._record_answer(build, case, failed=failed)
        self.on_answer(answer, failed)

    def _record_answer(self, build: int, case: int, *, failed: bool) -> None:
        self._answered.append((build, case, failed))
        self._search.record_answer(build, case, failed=failed)

    def _build_report(self) -> BisectReport:
        posterior = self._search.compute_posterior()
        groups = sorted(
            self._search.group_indistinguishable_hypotheses(), key=lambda group: -sum(posterior[at] for at in group)
        )
        candidates = tuple(self._build_candidate(group, posterior) for group in groups)
        return BisectReport(
            target=self.target,
            good=self.builds[0].commit,
            bad=self.builds[-1].commit,
            builds=len(self.builds),
            candidates=candidates,
            cases=tuple(self._build_bisect_case(at, groups[0][0]) for at in range(len(self.cases))),
            asked=self.asked,
            stored=self.stored,
            left_out=tuple((self.builds[at].commit, why) for at, why in sorted(self._left_out.items())),
            why_open=self._explain_uncertainty(candidates[0]),
        )

    def _build_candidate(self, group: tuple[int, ...], posterior: Sequence[float]) -> BisectCandidate:
        chance = min(1.0, sum(posterior[at] for at in group))
        if group == (0,):
            return BisectCandidate(claim=BisectClaim.GOOD_FAILS, probability=chance)
        if group == (len(self.builds),):
            return BisectCandidate(claim=BisectClaim.BAD_PASSES, probability=chance)
        commits = tuple(self.builds[at].commit for at in group)
        return BisectCandidate(claim=BisectClaim.FIRST_BAD, commits=commits, probability=chance)

    def _build_bisect_case(self, case: int, first_bad: int) -> BisectCase:
        before = [failed for at, of, failed in self._answered if of == case and at < first_bad]
        after = [failed for at, of, failed in self._answered if of == case and at >= first_bad]
        return BisectCase(
            case_id=self.cases[case].case.id,
            failed_before=sum(before),
            asked_before=len(before),
            failed_after=sum(after),
            asked_after=len(after),
            elsewhere=min(1.0, self._search.compute_other_cause_probability(case)),
        )

    def _explain_uncertainty(self, best: BisectCandidate) -> str:
        """Explain why the result ``best`` is not certain enough. Return an empty string if it is certain enough."""
        if not self._answered:
            return "no build gave an answer that Lookout can grade"
        both = {failed for _, _, failed in self._answered} == {True, False}
        if best.probability >= SETTLED_PROBABILITY and (both or best.claim is not BisectClaim.FIRST_BAD):
            return ""
        if best.probability >= SETTLED_PROBABILITY:
            return "the answers were all right or all wrong"
        if self.asked >= self.budget:
            return f"the budget of {plural(self.budget, 'question')} is used up"
        return "further questions would not give more information"
