"""The judge's part of a night: replies whose facts no rule can tell, held against the passages behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from flows.judge_wiring import JudgePlan, open_judge
from flows.judging import marked
from flows.traffic_grading import GradedTurn
from monitors.gate.assess import assess
from monitors.judge.account import Account
from monitors.judge.batches import BatchPatience
from monitors.judge.by_batch import judge_by_batch
from monitors.judge.cascade import fails_by_rule, request_id
from monitors.judge.grading import JUDGE, OFF, abstention, grade_of
from monitors.judge.judge import Judge, JudgedGroup
from monitors.judge.prices import price_list
from monitors.judge.prompt import Subject, Task
from monitors.judge.ruling import JudgeCase, Ruled, Ruling
from monitors.judge.settings import JudgeSettings
from monitors.records.base import Record
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, CaseOutcome, Grade, Judged, JudgeLineage
from monitors.records.judging import JudgeState, Judging
from monitors.records.runs import CaseResult

NO_PASSAGES: Final = "the passages that the reply was made from were not kept"


class NightJudged(Record):
    """What the judge came to: the account of it, and why its grades are void."""

    judging: Judging
    void: str = ""


async def judge_night(
    plan: JudgePlan,
    turns: Sequence[GradedTurn],
    known: Sequence[GoldCase],
    *,
    seed: str,
    environment: Mapping[str, str],
    nonce: Callable[[], str],
) -> tuple[NightJudged, tuple[CaseResult, ...]]:
    """Have the replies that are open judged; also returns each of them as it was settled.

    ``known`` are gold cases that canaries are made of. Never raises for a judge that does not work.
    """
    open_turns = [one for one in turns if is_open(one)]
    why = f"{OFF}: {plan.why_off}" if plan.why_off else NO_PASSAGES
    unasked = [one for one in open_turns if not one.passages or plan.why_off]
    settled = [_with(one, abstention(why, task=Task.GROUNDED)) for one in unasked]
    askable = [one for one in open_turns if one.passages]
    settings = plan.settings
    if settings is None or plan.why_off or not askable:
        spent = Account(price_list(()), limit_usd=None)
        return NightJudged(judging=_account_of(plan, turns, open_turns, spent, ())), tuple(settled)
    account = Account(price_list(settings.prices), limit_usd=settings.budget_usd)
    async with open_judge(plan, environment, account, nonce) as judge:
        groups, missing = await _groups(judge, settings, askable, known, seed)
    rulings = {ruling.case.id: ruling for group in groups for ruling in group.rulings}
    settled += [_ruled(one, rulings[_request(one)]) for one in askable]
    told = _account_of(plan, turns, open_turns, account, groups).model_copy(update={"not_by_batch": missing})
    void = _void_text([group for group in groups if group.is_void])
    return NightJudged(judging=told, void=void), tuple(settled)


def is_open(turn: GradedTurn) -> bool:
    """Whether only a judge could tell, and none was asked yet."""
    assessment = turn.result.assessment
    asked = any(grade.grader == JUDGE for grade in assessment.grades)
    return assessment.outcome is CaseOutcome.UNTOLD and not asked


async def _groups(
    judge: Judge, settings: JudgeSettings, askable: Sequence[GradedTurn], known: Sequence[GoldCase], seed: str
) -> tuple[tuple[JudgedGroup, ...], tuple[str, ...]]:
    """By batches at half the price, or one by one where the settings say so."""
    cases, size = [_judge_case(one) for one in askable], settings.batch_size
    if settings.nightly_batches:
        patience = BatchPatience(deadline_s=settings.batch_deadline_s, poll_s=settings.batch_poll_s)
        night = await judge_by_batch(
            judge, cases, known, seed=seed, group_size=size, patience=patience, monotonic=time.monotonic
        )
        return night.groups, night.missing
    groups: list[JudgedGroup] = []
    for at in range(0, len(cases), size):
        some = cases[at : at + size]
        groups.append(await judge.group(some, judge.riders(some, known, seed=f"{seed}:{at}")))
    return tuple(groups), ()


def _judge_case(turn: GradedTurn) -> JudgeCase:
    """What is sent is what is stored: personal data is masked in it already."""
    exchange = _exchange(turn)
    subject = Subject(turns=exchange.turns, answer=exchange.graded_text, passages=turn.passages)
    return JudgeCase(id=_request(turn), subject=subject, severity=turn.result.case.severity)


def _request(turn: GradedTurn) -> str:
    exchange = _exchange(turn)
    return request_id(exchange.run_id, exchange.case_id)


def _exchange(turn: GradedTurn) -> Exchange:
    assert isinstance(turn.result.result, Exchange)
    return turn.result.result


def _ruled(turn: GradedTurn, ruling: Ruling) -> CaseResult:
    result = _with(turn, grade_of(ruling, _exchange(turn)))
    unconfirmed = isinstance(ruling, Ruled) and ruling.decision.unconfirmed
    return result.model_copy(update={"assessment": marked(result.assessment, unconfirmed=unconfirmed)})


def _with(turn: GradedTurn, added: Judged | Abstained) -> CaseResult:
    """The reply with one grade more, weighed anew. An answer that is none fails by rule, whatever a judge says."""
    case, exchange = turn.result.case, _exchange(turn)
    grades: tuple[Grade, ...] = (*turn.result.assessment.grades, added)
    trivial = fails_by_rule(case, exchange) if isinstance(added, Judged) and added.passed else None
    if trivial is not None:
        grades = (*grades, trivial)
    return turn.result.model_copy(update={"assessment": assess(case, exchange, grades)})


def _account_of(
    plan: JudgePlan,
    turns: Sequence[GradedTurn],
    open_turns: Sequence[GradedTurn],
    account: Account,
    groups: Sequence[JudgedGroup],
) -> Judging:
    ruled = [ruling for group in groups for ruling in group.rulings if isinstance(ruling, Ruled)]
    reasons = [r.reason for group in groups for r in group.rulings if not isinstance(r, Ruled)]
    without = [one for one in open_turns if not one.passages]
    why = plan.why_off or (NO_PASSAGES if without and not ruled else "")
    voids = [group for group in groups if group.is_void]
    return Judging(
        state=JudgeState.ON if groups else JudgeState.OFF,
        why=why,
        models=plan.models,
        answers=len(turns),
        left_open=len(open_turns),
        judged=len(ruled),
        groups=len(groups),
        void_groups=len(voids),
        void_grades=sum(len(group.rulings) for group in voids),
        ungraded_because=_once([*reasons, *(NO_PASSAGES for _ in without)])[:5],
        lineages=_lineages(ruled),
        calls=account.total.calls,
        input_tokens=account.total.input_tokens,
        cached_tokens=account.total.cached_tokens,
        output_tokens=account.total.output_tokens,
        cost_usd=account.total.usd,
        budget_usd=plan.settings.budget_usd if plan.settings else None,
        budget_reached=account.is_reached,
    )


def _once(reasons: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))


def _lineages(ruled: Sequence[Ruled]) -> tuple[JudgeLineage, ...]:
    found = {_name(one.lineage): one.lineage for one in ruled}
    return tuple(found[name] for name in sorted(found))


def graded_by(judging: Judging, rules: str) -> str:
    """Who told: the rules alone, or the judge that spoke."""
    return "+".join([rules, *(_name(one) for one in judging.lineages)])


def _name(one: JudgeLineage) -> str:
    return f"{one.model}:{one.prompt_sha256[:12]}:{one.rubric_version}"


def _void_text(voids: Sequence[JudgedGroup]) -> str:
    if not voids:
        return ""
    first = next(group.canaries for group in voids if group.canaries is not None)
    return first.alert_text(sum(len(group.rulings) for group in voids))
