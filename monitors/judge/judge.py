"""Run the judges on groups of cases. Each case gets as many opinions as it needs.

A group is judged together with canaries: answers with known grades that a judge cannot distinguish from other
answers. If the judge grades a canary wrongly, all rulings of the group are void (neither pass nor fail), and an
alert says that the judge failed.

A panel member asks one model for opinions and counts all tokens. The budget is checked before each call and charged
after the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Final

from pydantic import Field

from monitors.errors import BudgetReached, ConfigError, GradingError, VerdictUnreadable
from monitors.judge.canaries import (
    Canary,
    CanaryReport,
    build_exam_canaries,
    compute_canary_count,
    evaluate_canaries,
    make_canaries,
)
from monitors.judge.consensus import (
    Cost,
    JudgeCase,
    JudgeDecision,
    NoRuling,
    Opinion,
    PanelRuling,
    Ruling,
    SecondOpinionReason,
    build_cost,
    combine_judge_opinions,
    find_second_opinion_reasons,
    is_next_opinion_necessary,
)
from monitors.judge.families import require_other_family
from monitors.judge.model import BYTES_PER_TOKEN, JudgeModel, JudgePrompt, ModelReply, RequestId, Usage
from monitors.judge.precheck import check_answer
from monitors.judge.prompt import (
    RUBRIC_VERSION,
    RenderedPrompt,
    Task,
    build_judge_prompt,
    build_subject_for_judge,
    load_instructions,
)
from monitors.judge.settings import JudgeSettings
from monitors.judge.verdict import CriteriaReading, parse_and_validate_criteria, parse_and_validate_verdict
from monitors.plural import plural
from monitors.records.base import Blame, Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.grades import JudgeLineage

Price = Callable[[str, Usage], Decimal]
"""A function that returns the price of a model's usage in US dollars."""


class Account:
    """The judging budget of one run. Calls in progress count at their highest cost, so the limit is never exceeded.

    The replies of a batch count as spent as soon as they are collected, although they are read later, one after the
    other.
    """

    def __init__(self, price: Price, *, limit_usd: Decimal | None) -> None:
        self._price = price
        self._limit = limit_usd
        self._reserved = Decimal(0)
        self._unread_usd = Decimal(0)
        self.total = Cost()
        self.is_limit_reached = False

    @contextmanager
    def reserve(self, model: str, prompt: JudgePrompt) -> Generator[None]:
        """Reserve the highest possible cost of a call as long as the call is in progress.

        Raises `BudgetReached` if the reservation would exceed the budget.
        """
        max_usd = self._price(model, _estimate_max_usage(prompt))
        if self._limit is not None and self._committed_usd + max_usd > self._limit:
            self.is_limit_reached = True
            raise BudgetReached(
                f"the judge's budget of ${self._limit:.2f} for this run is too small for another verdict"
                f" (${self.total.usd:.4f} spent)"
            )
        self._reserved += max_usd
        try:
            yield
        finally:
            self._reserved -= max_usd

    def count_affordable_first_prompts(self, model: str, prompts: Sequence[JudgePrompt]) -> int:
        """Return how many of ``prompts``, from the first one on, can be sent in a batch within the budget.

        Each prompt counts at its highest cost.
        """
        if self._limit is None:
            return len(prompts)
        left = self._limit - self._committed_usd
        for number, prompt in enumerate(prompts):
            left -= self._price(model, _estimate_max_usage(prompt, batch=True))
            if left < 0:
                return number
        return len(prompts)

    @property
    def _committed_usd(self) -> Decimal:
        """Return the money that is spent (also for unread batch replies) or reserved for calls in progress."""
        return self.total.usd + self._reserved + self._unread_usd

    def add_cost_of_unread_replies(self, model: str, replies: Iterable[ModelReply]) -> None:
        """Add the price of all replies of a batch to the spent money, before the replies are read."""
        self._unread_usd += sum((self._price(model, reply.usage) for reply in replies), Decimal(0))

    def charge_reply(self, model: str, usage: Usage, *, is_from_batch: bool = False) -> Decimal:
        """Add the cost of a reply to the total, and return the cost. An unreadable reply also costs money.

        If ``is_from_batch`` is True, the reply no longer counts as unread.
        """
        usd = self._price(model, usage)
        self._unread_usd -= min(usd, self._unread_usd) if is_from_batch else Decimal(0)
        self.total += build_cost(usage, usd)
        return usd


def _estimate_max_usage(prompt: JudgePrompt, *, batch: bool = False) -> Usage:
    """Return the highest possible usage of a call: no cached tokens, and a verdict of maximum length."""
    prompt_tokens = -(-len((prompt.instructions + prompt.material).encode("utf-8")) // BYTES_PER_TOKEN)
    if batch:
        return Usage(cache_write_1h_tokens=prompt_tokens, output_tokens=prompt.max_tokens, batch=True)
    return Usage(cache_write_5m_tokens=prompt_tokens, output_tokens=prompt.max_tokens)


MAX_READINGS: Final = 2
"""Maximum number of requests for one verdict. If the first verdict is unreadable, it is requested once more."""


class FamilyPolicy(Record):
    """The rule that no judge may belong to the target's model family.

    ``additions`` contains the families of custom model names.
    """

    target: str
    family: str | None = None
    additions: dict[str, tuple[str, ...]] = Field(default={})

    def require_judge_of_other_family(self, judge_model: str) -> None:
        """Raise `ConfigError` if ``judge_model`` is, or may be, of the target's family."""
        require_other_family(judge_model, target=self.target, target_family=self.family, additions=self.additions)


class CaseCost:
    """The total cost of judging one case. The cost of each reply is added to it."""

    def __init__(self) -> None:
        self.total = Cost()


class PanelMember:
    """One judging model, and the account that pays for it."""

    def __init__(self, model: JudgeModel, *, account: Account, family_policy: FamilyPolicy) -> None:
        self.model = model
        self._account = account
        self._family_policy = family_policy

    async def ask_opinion(
        self, rendered: RenderedPrompt, case_cost: CaseCost, *, batch_reply: ModelReply | None = None
    ) -> Opinion:
        """Return the opinion of this judge. If a batch already has the reply, pass it as ``batch_reply``.

        Raises `BudgetReached` before the budget is exceeded, and also `JudgeUnavailable`, `JudgeRefused`,
        `JudgeMisconfigured` and `VerdictUnreadable`.
        """
        last: VerdictUnreadable | None = None
        for reading in range(MAX_READINGS):
            reply = await self._obtain_reply_and_charge(rendered, case_cost, batch_reply if reading == 0 else None)
            try:
                return self._parse_and_validate_opinion(rendered, reply)
            except VerdictUnreadable as error:
                last = error
        raise last or AssertionError("internal error: an opinion must be read at least once")

    def select_affordable_prompts(self, prompts: Sequence[JudgePrompt]) -> Sequence[JudgePrompt]:
        """Return the first ``prompts`` that the budget allows in one batch at their highest possible cost."""
        return prompts[: self._account.count_affordable_first_prompts(self.model.name, prompts)]

    def add_cost_of_unread_replies(self, replies: Iterable[ModelReply]) -> None:
        """Add the cost of all replies of a batch. The cost counts as spent before the first reply is read."""
        self._account.add_cost_of_unread_replies(self.model.name, replies)

    async def _obtain_reply_and_charge(
        self, rendered: RenderedPrompt, case_cost: CaseCost, batch_reply: ModelReply | None
    ) -> ModelReply:
        if batch_reply is not None:
            self._charge_budget_and_case(batch_reply, case_cost, is_from_batch=True)
            return batch_reply
        with self._account.reserve(self.model.name, rendered.prompt):
            reply = await self.model.request_reply(rendered.prompt)
            self._charge_budget_and_case(reply, case_cost)
        return reply

    def _charge_budget_and_case(
        self, reply: ModelReply, case_cost: CaseCost, *, is_from_batch: bool = False
    ) -> None:
        """Charge the cost of a reply to the budget and to the case."""
        case_cost.total += build_cost(
            reply.usage, self._account.charge_reply(self.model.name, reply.usage, is_from_batch=is_from_batch)
        )

    def _parse_and_validate_opinion(self, rendered: RenderedPrompt, reply: ModelReply) -> Opinion:
        """Return the opinion in a reply.

        Raises `GradingError` in two cases: the model that answered may not judge the target, or the judge passed an
        answer of which it read only a part.
        """
        if reply.answered_by != self.model.name:
            self._require_allowed_model(reply.answered_by)
        verdict = parse_and_validate_verdict(reply, rendered.graded)
        if rendered.graded.cut and verdict.factual_match:
            left_out = f"the answer is {plural(rendered.graded.cut, 'character')} too long to show to the judge"
            raise GradingError(f"{left_out}, so the judge cannot pass it")
        rates_report = rendered.task is Task.RUBRIC
        criteria = parse_and_validate_criteria(reply, rendered.graded) if rates_report else CriteriaReading()
        return Opinion(judge=reply.answered_by, verdict=verdict, criteria=criteria)

    def _require_allowed_model(self, answered_by: str) -> None:
        try:
            self._family_policy.require_judge_of_other_family(answered_by)
        except ConfigError as error:
            raise GradingError(f"Lookout asked {self.model.name}, but {answered_by} answered: {error}") from None


VOID_REASON: Final = (
    "the judge failed the check with known answers in the same batch, so Lookout discarded its grades"
)


class JudgedGroup(Record):
    """The rulings on a group of cases.

    ``canaries`` is the result of the group's canaries, or ``None`` if there were no canaries or no decisions.
    """

    rulings: tuple[Ruling, ...]
    canaries: CanaryReport | None
    canary_cost: Cost

    @property
    def is_void(self) -> bool:
        """Return whether the rulings do not count, because the judge failed the test with canaries."""
        return self.canaries is not None and self.canaries.void


class Judge:
    """A panel of one or three judges. ``nonce`` returns 16 to 64 new random hexadecimal digits."""

    def __init__(
        self, members: Sequence[PanelMember], settings: JudgeSettings, *, nonce: Callable[[], str]
    ) -> None:
        self.members = tuple(members)
        self._settings = settings
        self._nonce = nonce
        self._slots = asyncio.Semaphore(settings.concurrency)

    def render_prompt(self, case: JudgeCase) -> RenderedPrompt:
        """Return the prompt for a case, with a new nonce."""
        return build_judge_prompt(
            case.subject, prompt_id=case.id, nonce=self._nonce(), max_tokens=self._settings.max_tokens
        )

    def build_group_canaries(
        self, cases: Sequence[JudgeCase], known_cases: Sequence[GoldCase], *, seed: str, exam: bool = False
    ) -> tuple[Canary, ...]:
        """Return the canaries of a group, made from known cases.

        Steering sentences from the group's answers are added to some canaries. If ``exam`` is True, there is one
        wrong canary of each kind.
        """
        count = compute_canary_count(
            len(cases), batch_size=self._settings.batch_size, canaries=self._settings.canaries
        )
        steering = [s for c in cases for s in check_answer(c.subject.answer, c.subject.turns[-1]).steering]
        if exam:
            return build_exam_canaries(known_cases, seed=seed, steering=steering)
        return make_canaries(known_cases, count=count, seed=seed, steering=steering) if count else ()

    async def judge_group(
        self,
        cases: Sequence[JudgeCase],
        canaries: Sequence[Canary],
        *,
        prompts: Mapping[RequestId, RenderedPrompt] | None = None,
        replies: Mapping[RequestId, ModelReply] | None = None,
    ) -> JudgedGroup:
        """Judge ``cases`` together with their canaries. Errors of a judge are not raised.

        ``replies`` holds the judge's replies to ``prompts``, if a batch already returned them. The canaries are
        judged first. Therefore, the judge has been checked even if the budget ends early and some cases stay
        ungraded.
        """
        rendered_prompts, batch_replies = prompts or {}, replies or {}

        async def judge_case(case: JudgeCase, *, is_canary: bool) -> Ruling:
            async with self._slots:
                return await self._ask_judges_for_ruling(
                    case, rendered_prompts.get(case.id), batch_replies.get(case.id), is_canary=is_canary
                )

        rulings = await asyncio.gather(
            *(judge_case(build_canary_case(canary), is_canary=True) for canary in canaries),
            *(judge_case(case, is_canary=False) for case in cases),
        )
        return _evaluate_canaries_and_void_group(rulings[len(canaries) :], rulings[: len(canaries)], canaries)

    async def _ask_judges_for_ruling(
        self, case: JudgeCase, rendered: RenderedPrompt | None, batch_reply: ModelReply | None, *, is_canary: bool
    ) -> Ruling:
        """Ask judges until the case has enough opinions, and return the ruling.

        A canary gets only one opinion, from the first judge that answers.
        """
        rendered = rendered or self.render_prompt(case)
        case_cost, opinions, failures = CaseCost(), list[Opinion](), list[GradingError]()
        doubts: frozenset[SecondOpinionReason] = frozenset()
        for number, member in enumerate(self.members):
            if not is_next_opinion_necessary(opinions, doubts, members_left=len(self.members) - number):
                break
            try:
                reply = None if number else batch_reply
                opinions.append(await member.ask_opinion(rendered, case_cost, batch_reply=reply))
            except GradingError as error:
                failures.append(error)
            except Exception as error:  # noqa: BLE001 - a client's bug must cost one grade, not the run
                failures.append(GradingError(f"internal error in the judge: {type(error).__name__}"))
            if len(opinions) == 1 and not is_canary:
                doubts = find_second_opinion_reasons(opinions[0], severity=case.severity, rules=case.rules)
        return self._build_ruling(case, opinions, doubts, failures, case_cost)

    def _build_ruling(
        self,
        case: JudgeCase,
        opinions: Sequence[Opinion],
        doubts: frozenset[SecondOpinionReason],
        failures: Sequence[GradingError],
        case_cost: CaseCost,
    ) -> Ruling:
        if not opinions and failures:
            return _build_no_ruling(case, failures, case_cost)
        decided = combine_judge_opinions(
            opinions, doubts, members=len(self.members), severity=case.severity, rules=case.rules
        )
        if isinstance(decided, JudgeDecision):
            lineage = JudgeLineage(
                model=decided.speaker.judge,
                prompt_sha256=load_instructions(case.task).sha256,
                rubric_version=RUBRIC_VERSION,
            )
            return PanelRuling(case=case, decision=decided, lineage=lineage, cost=case_cost.total)
        return NoRuling(case=case, reason=decided.reason, blame=Blame.MONITOR, cost=case_cost.total)


def build_canary_case(canary: Canary) -> JudgeCase:
    """Return a case for a canary. A judge cannot distinguish this case from other cases."""
    return JudgeCase(
        id=canary.id,
        subject=build_subject_for_judge(canary.case, canary.answer),
        severity=Severity.MINOR,
    )


def _build_no_ruling(case: JudgeCase, failures: Sequence[GradingError], case_cost: CaseCost) -> NoRuling:
    """Return the ruling of a case without opinions.

    If a failure reports that the budget is spent, this failure is the reason. Otherwise, the first failure is.
    """
    spent = next((error for error in failures if isinstance(error, BudgetReached)), None)
    why = spent or failures[0]
    return NoRuling(case=case, reason=str(why), blame=why.blame, cost=case_cost.total, budget=spent is not None)


def _evaluate_canaries_and_void_group(
    rulings: Sequence[Ruling], canary_rulings: Sequence[Ruling], canaries: Sequence[Canary]
) -> JudgedGroup:
    """Return the group with the result of its canaries.

    If the judge failed the test with canaries, all rulings are void.
    """
    cost = sum((ruling.cost for ruling in canary_rulings), Cost())
    ruled = [ruling for ruling in rulings if isinstance(ruling, PanelRuling)]
    if not ruled or not canaries:
        return JudgedGroup(rulings=tuple(rulings), canaries=None, canary_cost=cost)
    report = evaluate_canaries(
        canaries,
        {ruling.case.id: _get_canary_finding(ruling) for ruling in canary_rulings},
        judge=ruled[0].lineage.model,
    )
    final_rulings = tuple(_void_ruling(ruling) if report.void else ruling for ruling in rulings)
    return JudgedGroup(rulings=final_rulings, canaries=report, canary_cost=cost)


def _get_canary_finding(ruling: Ruling) -> Finding:
    if isinstance(ruling, NoRuling):
        return Finding.UNGRADED
    return Finding.YES if ruling.decision.passed else Finding.NO


def _void_ruling(ruling: Ruling) -> Ruling:
    if isinstance(ruling, NoRuling):
        return ruling
    return NoRuling(case=ruling.case, reason=VOID_REASON, blame=Blame.PROVIDER, cost=ruling.cost)
