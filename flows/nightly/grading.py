"""Grades the conversations of real users turn by turn: by rule, against gold where the gold set has the question.

The judge then compares replies whose facts no rule can grade with their gold or their passages.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from flows.runtime.judge import JudgePlan, open_judge
from flows.verify.judging import marked
from monitors.facts.language import identify
from monitors.gate.assess import assess
from monitors.goldset.issues import TRIAGE_TYPE
from monitors.goldset.load import AskedQuestions
from monitors.graders.base import Grader
from monitors.graders.panel import grade_exchange
from monitors.graders.traffic_panel import TrafficPanel
from monitors.judge.batches import BatchPollPolicy, judge_by_batch
from monitors.judge.consensus import OFF, JudgeCase, PanelRuling, Ruling, abstention, grade_of
from monitors.judge.judge import Account, Judge, JudgedGroup
from monitors.judge.model import price_list
from monitors.judge.precheck import fails_by_rule, is_replaced, judge_case, request_id
from monitors.judge.precheck import is_open as is_report_open
from monitors.judge.prompt import Subject, Task, instructions, subject_of
from monitors.judge.settings import JudgeSettings
from monitors.records.base import Identifier, Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Evidence, Exchange, Origin, Timings, WirePayload
from monitors.records.grades import (
    CASE_ROW,
    JUDGE,
    TRAFFIC_ROW,
    Abstained,
    Aspect,
    Assessment,
    CaseOutcome,
    Grade,
    Judged,
    JudgeLineage,
)
from monitors.records.runs import CaseResult, JudgeState, Judging
from monitors.records.traffic import Conversation
from monitors.records.triage import Issue, TriageReference, TriageTask

NO_GOLD: Final = "(live traffic: nobody wrote down what is right)"
NOTHING: Final = "(nothing)"
"""Stands for a message without text: a case must ask something."""
TRAFFIC: Final = "traffic"
LONGEST_ID: Final = 160


class GradedTurn(Record):
    """One reply with the grades of the graders without a model, and the ``passages`` it was made from."""

    result: CaseResult
    passages: tuple[str, ...] = ()

    def settle(self, result: CaseResult) -> GradedTurn:
        """The same reply with the grades that a judge settled it with."""
        return GradedTurn(result=result, passages=self.passages)

    @property
    def is_report(self) -> bool:
        """Whether it is an agent's report on an issue, which a judge rates without knowing what is right."""
        return self.result.case.triage is not None

    @property
    def has_gold(self) -> bool:
        """Whether somebody wrote down what is right."""
        return _has_gold(self.result.case)


class TrafficGrader:
    """Grades replies by rule: disclosures, leaked errors, citations of replies with figures, language.

    A question that stands in ``gold`` is graded by ``gold_panel``, the graders of a run, with its case's severity.
    """

    def __init__(
        self,
        panel: TrafficPanel,
        *,
        severity: Severity,
        gold: AskedQuestions | None = None,
        gold_panel: Sequence[Grader] = (),
    ) -> None:
        self.panel, self._severity = panel, severity
        self._gold, self._gold_panel = gold or AskedQuestions(), tuple(gold_panel)

    def turns(self, conversation: Conversation, stored: Conversation, run_id: Identifier) -> tuple[GradedTurn, ...]:
        """Every reply of ``conversation``, graded as it was said; ``stored`` is the version to store.

        A question without a reply has nothing to grade.
        """
        graded: list[GradedTurn] = []
        for number, turn in enumerate(conversation.turns):
            if not turn.reply_text.strip():
                continue
            known = self._gold.case_of(_asked(conversation, number))
            if known is None and turn.is_report and turn.issue_url:
                known = self._gold.case_of((turn.issue_url,))
            case = self._case(conversation, number, known)
            said = _turn_exchange(conversation, number, run_id, known)
            panel = self.panel.for_turn(turn) if known is None else self._gold_panel
            # Places point into the original text, and the stored one may be shorter.
            grades = tuple(
                grade if isinstance(grade, Abstained) else grade.model_copy(update={"evidence": ()})
                for grade in grade_exchange(panel, case, said)
            )
            stored_case = self._case(stored, number, known)
            stored_exchange = _turn_exchange(stored, number, run_id, known)
            assessment = assess(stored_case, stored_exchange, grades, case_row=_case_row(stored_case))
            result = CaseResult(case=stored_case, result=stored_exchange, assessment=assessment)
            graded.append(GradedTurn(result=result, passages=stored.turns[number].context))
        return tuple(graded)

    def case_of(self, exchange: Exchange, assessment: Assessment) -> GoldCase:
        """The case of a reply that was graded before, made again from what is stored."""
        known = self._gold.case_of(exchange.turns)
        if known is not None:
            return _of_traffic(known, exchange.case_id, assessment.cluster)
        if assessment.type == TRIAGE_TYPE:
            return _issue_case(exchange.case_id, exchange.turns, assessment.case_severity, assessment.cluster)
        return GoldCase(
            id=exchange.case_id,
            turns=tuple(text or NOTHING for text in exchange.turns),
            gold=NO_GOLD,
            severity=assessment.case_severity,
            language=assessment.language,
            type=TRAFFIC,
            provenance=Provenance(pipeline=Pipeline.IMPORTED),
            cluster=assessment.cluster,
        )

    def _case(self, conversation: Conversation, number: int, known: GoldCase | None) -> GoldCase:
        if known is not None:
            return _of_traffic(known, turn_id(conversation.id, number), conversation.id)
        return _case(conversation, number, self._severity)


def _of_traffic(known: GoldCase, case_id: Identifier, conversation_id: str | None) -> GoldCase:
    """A gold case as a real user asked it: its id comes from the conversation, and so does its cluster."""
    return known.model_copy(update={"id": case_id, "cluster": conversation_id, "pair": None})


def _case_row(case: GoldCase) -> str:
    """Where the case's severity comes from: the suite, or the setting for questions that it does not have."""
    return CASE_ROW if _has_gold(case) else TRAFFIC_ROW


def _has_gold(case: GoldCase) -> bool:
    return case.gold != NO_GOLD


def is_safely_graded(assessment: Assessment) -> bool:
    """Whether the checks that every reply goes through gave a grade."""
    graded_aspects = {grade.aspect for grade in assessment.grades if isinstance(grade, Judged)}
    return {Aspect.DISCLOSURE, Aspect.ERROR_LEAK} <= graded_aspects


def turn_id(conversation_id: str, number: int) -> Identifier:
    """A reply's case id: the conversation and which reply it is, from 1."""
    if len(conversation_id) > LONGEST_ID:
        digest = hashlib.sha256(conversation_id.encode()).hexdigest()[:16]
        conversation_id = f"{conversation_id[:LONGEST_ID].rstrip('.')}-{digest}"
    return f"{conversation_id}:{number + 1}"


def _case(conversation: Conversation, number: int, severity: Severity) -> GoldCase:
    asked = tuple(text or NOTHING for text in _asked(conversation, number))
    if conversation.turns[number].is_report:
        return _issue_case(turn_id(conversation.id, number), asked, severity, conversation.id)
    return GoldCase(
        id=turn_id(conversation.id, number),
        turns=asked,
        gold=NO_GOLD,
        severity=severity,
        language=identify(asked[-1]),
        type=TRAFFIC,
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
        cluster=conversation.id,
    )


def _issue_case(case_id: Identifier, asked: Sequence[str], severity: Severity, cluster: str | None) -> GoldCase:
    """A case without a reference: an issue that a real user gave an agent, its title in the first line."""
    title, _, body = (asked[-1].strip() or NOTHING).partition("\n")
    return GoldCase(
        id=case_id,
        turns=tuple(text or NOTHING for text in asked),
        gold=NO_GOLD,
        severity=severity,
        language=identify(asked[-1]),
        type=TRIAGE_TYPE,
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
        cluster=cluster,
        triage=TriageTask(issue=Issue(title=title, body=body.strip()), reference=TriageReference()),
    )


def _asked(conversation: Conversation, number: int) -> tuple[str, ...]:
    """The user's messages up to a reply."""
    return tuple(turn.user_text for turn in conversation.turns[: number + 1])


def _turn_exchange(conversation: Conversation, number: int, run_id: Identifier, known: GoldCase | None) -> Exchange:
    turn = conversation.turns[number]
    wire = WirePayload(url="", text=turn.reply_text, citations=turn.citations) if turn.citations else None
    return Exchange(
        run_id=run_id,
        case_id=turn_id(conversation.id, number),
        origin=Origin.TRAFFIC,
        turns=known.turns if known is not None and turn.is_report else _asked(conversation, number),
        earlier_answers=tuple(one.reply_text for one in conversation.turns[:number]),
        visible_text=turn.reply_text,
        wire=wire,
        asked_at=conversation.completed_at,
        timings=Timings(total_ms=turn.latency_ms or 0.0),
        app_path=turn.app_path,
        app_version=conversation.app_version,
        evidence=Evidence(steps=turn.steps, hops=turn.hops),
    )


NO_KNOWN_REPORT: Final = "the suite has no issue whose report is known, by which a rating could be believed"
NO_PASSAGES: Final = "the passages that the reply was made from were not kept"


class NightlyJudging(Record):
    """The result of judging: the account of it, and why its grades are void."""

    judging: Judging
    void: str = ""


async def judge_traffic(
    plan: JudgePlan,
    turns: Sequence[GradedTurn],
    known: Sequence[GoldCase],
    *,
    seed: str,
    environment: Mapping[str, str],
    nonce: Callable[[], str],
) -> tuple[NightlyJudging, tuple[CaseResult, ...]]:
    """Have the judge grade the replies that are open; also return each of them as it was settled.

    ``known`` are gold cases that canaries are made of. Never raises for a judge that does not work.
    """
    open_turns = [one for one in turns if is_open(one)]
    askable = [one for one in open_turns if not (plan.why_off or _why_unaskable(one, known))]
    unasked = [one for one in open_turns if plan.why_off or _why_unaskable(one, known)]
    off = f"{OFF}: {plan.why_off}" if plan.why_off else ""
    settled = [
        _with(one, abstention(off or _why_unaskable(one, known), task=_subject(one).task)) for one in unasked
    ]
    reasons = tuple(filter(None, (_why_unaskable(one, known) for one in open_turns)))
    settings = plan.settings
    if settings is None or plan.why_off or not askable:
        spent = Account(price_list(()), limit_usd=None)
        return NightlyJudging(judging=_account_of(plan, turns, open_turns, spent, (), unaskable=reasons)), tuple(
            settled
        )
    account = Account(price_list(settings.prices), limit_usd=settings.budget_usd)
    async with open_judge(plan, environment, account, nonce) as judge:
        groups, missing = await _groups_by_task(judge, settings, askable, known, seed)
    rulings = {ruling.case.id: ruling for group in groups for ruling in group.rulings}
    settled += [_ruled(one, rulings[_request(one)]) for one in askable]
    judging = _account_of(plan, turns, open_turns, account, groups, unaskable=reasons, not_by_batch=missing)
    void = _void_text([group for group in groups if group.is_void])
    return NightlyJudging(judging=judging, void=void), tuple(settled)


def why_unchecked(judged: NightlyJudging) -> str:
    """Why facts of this nightly run were not checked, in a few words."""
    judging = judged.judging
    if judging.budget_reached:
        return "the judge's budget was reached"
    if judging.void_groups:
        return "the judge missed known answers: its grades are void"
    if judging.is_short:
        return f"the judge gave no verdict: {'; '.join(judging.ungraded_because[:1])}"
    return judging.why


def _why_unaskable(turn: GradedTurn, known: Sequence[GoldCase]) -> str:
    """Why a judge cannot be asked about a reply; empty where it can."""
    if turn.is_report:
        return "" if any(case.triage is not None for case in known) else NO_KNOWN_REPORT
    return "" if turn.has_gold or turn.passages else NO_PASSAGES


def is_unanswered(grade: Grade) -> bool:
    """Whether a judge was asked for this grade and gave none."""
    asked = isinstance(grade, Abstained) and grade.grader == JUDGE
    return asked and grade.reason not in (NO_PASSAGES, NO_KNOWN_REPORT) and not grade.reason.startswith(OFF)


def is_open(turn: GradedTurn) -> bool:
    """Whether only a judge could grade it, and none was asked yet."""
    assessment = turn.result.assessment
    asked = any(grade.grader == JUDGE for grade in assessment.grades)
    waits = is_report_open(assessment) if turn.is_report else assessment.outcome is CaseOutcome.UNGRADED
    return waits and not asked


async def _groups_by_task(
    judge: Judge, settings: JudgeSettings, askable: Sequence[GradedTurn], known: Sequence[GoldCase], seed: str
) -> tuple[tuple[JudgedGroup, ...], tuple[str, ...]]:
    """Reports and answers in groups of their own: each is judged beside known ones of its kind."""
    groups, missing = tuple[JudgedGroup, ...](), tuple[str, ...]()
    for reports in (False, True):
        some = [one for one in askable if one.is_report is reports]
        of_kind = [case for case in known if (case.triage is not None) is reports] or known
        if some:
            judged, not_by_batch = await _groups(
                judge, settings, some, of_kind, f"{seed}:reports" if reports else seed
            )
            groups, missing = groups + judged, missing + not_by_batch
    return groups, missing


async def _groups(
    judge: Judge, settings: JudgeSettings, askable: Sequence[GradedTurn], known: Sequence[GoldCase], seed: str
) -> tuple[tuple[JudgedGroup, ...], tuple[str, ...]]:
    """Judge in batches at half the price, or one by one where the settings say so."""
    size = settings.batch_size
    # Replies go to the judge as they are stored: personal data is masked in them already.
    cases = [
        JudgeCase(id=_request(turn), subject=_subject(turn), severity=turn.result.case.severity) for turn in askable
    ]
    if settings.nightly_batches:
        patience = BatchPollPolicy(deadline_s=settings.batch_deadline_s, poll_s=settings.batch_poll_s)
        outcome = await judge_by_batch(
            judge, cases, known, seed=seed, group_size=size, patience=patience, monotonic=time.monotonic
        )
        return outcome.groups, outcome.missing
    groups: list[JudgedGroup] = []
    for at in range(0, len(cases), size):
        some = cases[at : at + size]
        groups.append(await judge.group(some, judge.group_canaries(some, known, seed=f"{seed}:{at}")))
    return tuple(groups), ()


def _subject(turn: GradedTurn) -> Subject:
    """The gold, where the question stands in the gold set, else the passages."""
    exchange = _retrieval_exchange(turn)
    if turn.is_report:
        subject = judge_case(turn.result.case, exchange, turn.result.assessment.grades).subject
        return subject if turn.has_gold else subject.model_copy(update={"expected": ()})
    if turn.has_gold:
        return subject_of(turn.result.case, exchange.graded_text)
    return Subject(turns=exchange.turns, answer=exchange.graded_text, passages=turn.passages)


def _request(turn: GradedTurn) -> str:
    exchange = _retrieval_exchange(turn)
    return request_id(exchange.run_id, exchange.case_id)


def _retrieval_exchange(turn: GradedTurn) -> Exchange:
    assert isinstance(turn.result.result, Exchange)
    return turn.result.result


def _ruled(turn: GradedTurn, ruling: Ruling) -> CaseResult:
    result = _with(turn, grade_of(ruling, _retrieval_exchange(turn)))
    unconfirmed = isinstance(ruling, PanelRuling) and ruling.decision.unconfirmed
    return result.reassess(marked(result.assessment, unconfirmed=unconfirmed))


def _with(turn: GradedTurn, added: Judged | Abstained) -> CaseResult:
    """The reply with one more grade, assessed anew. An answer that is none fails by rule, whatever a judge says."""
    case, exchange = turn.result.case, _retrieval_exchange(turn)
    before = (grade for grade in turn.result.assessment.grades if not is_replaced(grade, added))
    grades: tuple[Grade, ...] = (*before, added)
    trivial = fails_by_rule(case, exchange) if isinstance(added, Judged) and added.passed else None
    if trivial is not None:
        grades = (*grades, trivial)
    return turn.result.reassess(assess(case, exchange, grades, case_row=_case_row(case)))


def _account_of(
    plan: JudgePlan,
    turns: Sequence[GradedTurn],
    open_turns: Sequence[GradedTurn],
    account: Account,
    groups: Sequence[JudgedGroup],
    *,
    unaskable: Sequence[str],
    not_by_batch: tuple[str, ...] = (),
) -> Judging:
    ruled = [ruling for group in groups for ruling in group.rulings if isinstance(ruling, PanelRuling)]
    reasons = [r.reason for group in groups for r in group.rulings if not isinstance(r, PanelRuling)]
    why = plan.why_off or ("; ".join(_once(unaskable)) if unaskable and not ruled else "")
    voids = [group for group in groups if group.is_void]
    lineages = {_name(ruling.lineage): ruling.lineage for ruling in ruled}
    return Judging(
        state=JudgeState.ON if groups else JudgeState.OFF,
        why=why,
        models=plan.models,
        answers=len(turns),
        left_open=len(open_turns),
        unaskable=len(unaskable),
        judged=len(ruled),
        groups=len(groups),
        void_groups=len(voids),
        void_grades=sum(len(group.rulings) for group in voids),
        ungraded_because=_once([*reasons, *unaskable])[:5],
        lineages=tuple(lineages[name] for name in sorted(lineages)),
        calls=account.total.calls,
        input_tokens=account.total.input_tokens,
        cached_tokens=account.total.cached_tokens,
        output_tokens=account.total.output_tokens,
        cost_usd=account.total.usd,
        budget_usd=plan.settings.budget_usd if plan.settings else None,
        budget_reached=account.is_reached,
        not_by_batch=not_by_batch,
    )


def _once(reasons: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))


def graded_by(judging: Judging, rules: str) -> str:
    """Who graded: the rules alone, or the judge that spoke.

    A judge is identified by its model and all that live traffic may ask it: a nightly run in which no question
    stood in the gold set has the same judge as the run before.
    """
    prompts = "".join(instructions(task).sha256 for task in (Task.FACTUAL, Task.GROUNDED))
    judges = {f"{one.model}:{_short(prompts)}:{one.rubric_version}" for one in judging.lineages}
    return "+".join([rules, *sorted(judges)])


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _name(one: JudgeLineage) -> str:
    return f"{one.model}:{one.prompt_sha256[:12]}:{one.rubric_version}"


def _void_text(voids: Sequence[JudgedGroup]) -> str:
    if not voids:
        return ""
    first = next(group.canaries for group in voids if group.canaries is not None)
    return first.alert_text(sum(len(group.rulings) for group in voids))
