"""Grades the conversations of real users, reply by reply. Rules grade first.

If the gold set contains the question, the rules compare the reply with the gold. The judge then grades the replies
whose facts no rule can grade. The judge compares a reply with its gold, or with the passages that the application
used.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from flows.runtime.judge import JudgePlan, open_judge
from flows.verify.judging import mark_unconfirmed
from monitors.facts.language import identify_language
from monitors.gate.assess import assess_case
from monitors.goldset.issues import TRIAGE_TYPE
from monitors.goldset.load import AskedQuestions
from monitors.graders.base import Grader
from monitors.graders.panel import grade_exchange
from monitors.graders.traffic_panel import TrafficPanel, UnseenCitations, has_answer
from monitors.judge.batches import BatchPollPolicy, judge_by_batch
from monitors.judge.consensus import JUDGE_OFF, JudgeCase, PanelRuling, build_judge_abstention, build_judge_grade
from monitors.judge.judge import Account, Judge, JudgedGroup
from monitors.judge.model import build_price_function
from monitors.judge.precheck import (
    build_judge_case,
    build_request_id,
    grade_trivial_answer_as_failed,
    is_judge_required_for_ungraded,
    is_replaced_by,
)
from monitors.judge.prompt import Subject, Task, build_subject_for_judge, load_instructions
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
)
from monitors.records.runs import CaseResult, JudgeState, Judging
from monitors.records.traffic import Conversation
from monitors.records.triage import Issue, TriageReference, TriageTask

NO_GOLD: Final = "(live traffic: there is no gold)"
EMPTY_MESSAGE: Final = "(nothing)"
"""The text that replaces an empty message, because a case must have a question."""
TRAFFIC: Final = "traffic"
MAX_ID_LENGTH: Final = 160
_UNSEEN: Final = UnseenCitations()


class GradedTurn(Record):
    """A reply with its grades. ``passages`` are the texts that the application used to write the reply."""

    result: CaseResult
    passages: tuple[str, ...] = ()

    def with_result(self, result: CaseResult) -> GradedTurn:
        """Return a copy with another result."""
        return GradedTurn(result=result, passages=self.passages)

    @property
    def is_report(self) -> bool:
        """Whether the reply is an agent's report on an issue. A judge rates such a report without a reference."""
        return self.result.case.triage is not None

    @property
    def exchange(self) -> Exchange:
        """The question and its reply."""
        assert isinstance(self.result.result, Exchange)
        return self.result.result


class TrafficGrader:
    """Grades replies with rules: disclosures, leaked errors, citations and language.

    If the question of a user is in ``gold_cases``, ``gold_panel`` grades the reply as in a verification run, with
    the severity of the case.
    """

    def __init__(
        self,
        panel: TrafficPanel,
        *,
        severity: Severity,
        gold_cases: Sequence[GoldCase] = (),
        gold_panel: Sequence[Grader] = (),
    ) -> None:
        self.panel, self._severity = panel, severity
        self.gold_cases, self._gold_panel = tuple(gold_cases), tuple(gold_panel)
        self._gold = AskedQuestions(gold_cases)
        self.grades_citations = panel.settings.citation_required or any(
            case.expected_citation for case in gold_cases
        )
        """Whether grades can depend on the sources that an answer cites."""

    def grade_turns(
        self, conversation: Conversation, stored: Conversation, run_id: Identifier, *, checks_citations: bool = True
    ) -> tuple[GradedTurn, ...]:
        """Grade the original text of each reply in ``conversation``.

        ``stored`` is the version of the conversation to store.

        Questions without a reply are skipped. ``checks_citations`` is false if the log contains no citations.
        """
        graded: list[GradedTurn] = []
        for number, turn in enumerate(conversation.turns):
            if not has_answer(turn):
                continue
            gold_case = self._gold.find_case(_list_questions_until(conversation, number))
            if gold_case is None and turn.is_report and turn.issue_url:
                gold_case = self._gold.find_case((turn.issue_url,))
            case = self._build_case(conversation, number, gold_case)
            exchange = _build_exchange(conversation, number, run_id, gold_case)
            panel = self.panel.select_graders(turn) if gold_case is None else self._gold_panel
            if not checks_citations:
                panel = tuple(_UNSEEN if grader.aspect is Aspect.CITATION else grader for grader in panel)
            # The evidence refers to positions in the original text, which is not stored.
            grades = tuple(
                grade if isinstance(grade, Abstained) else grade.without_evidence()
                for grade in grade_exchange(panel, case, exchange)
            )
            stored_case = self._build_case(stored, number, gold_case)
            stored_exchange = _build_exchange(stored, number, run_id, gold_case)
            assessment = assess_case(
                stored_case, stored_exchange, grades, case_row=_get_severity_source(stored_case)
            )
            result = CaseResult(case=stored_case, result=stored_exchange, assessment=assessment)
            graded.append(GradedTurn(result=result, passages=stored.turns[number].context))
        return tuple(graded)

    def rebuild_case(self, exchange: Exchange, assessment: Assessment) -> GoldCase:
        """Rebuild the case of a graded reply from its stored exchange and assessment."""
        gold_case = self._gold.find_case(exchange.turns)
        if gold_case is not None:
            return gold_case.with_id_and_cluster_without_pair(exchange.case_id, assessment.cluster)
        if assessment.type == TRIAGE_TYPE:
            return _build_issue_case(exchange.case_id, exchange.turns, assessment.case_severity, assessment.cluster)
        return GoldCase(
            id=exchange.case_id,
            turns=tuple(text or EMPTY_MESSAGE for text in exchange.turns),
            gold=NO_GOLD,
            severity=assessment.case_severity,
            language=assessment.language,
            type=TRAFFIC,
            provenance=Provenance(pipeline=Pipeline.IMPORTED),
            cluster=assessment.cluster,
        )

    def _build_case(self, conversation: Conversation, number: int, gold_case: GoldCase | None) -> GoldCase:
        if gold_case is not None:
            return gold_case.with_id_and_cluster_without_pair(
                build_turn_id(conversation.id, number), conversation.id
            )
        turn_id = build_turn_id(conversation.id, number)
        questions = tuple(text or EMPTY_MESSAGE for text in _list_questions_until(conversation, number))
        if conversation.turns[number].is_report:
            return _build_issue_case(turn_id, questions, self._severity, conversation.id)
        return GoldCase(
            id=turn_id,
            turns=questions,
            gold=NO_GOLD,
            severity=self._severity,
            language=identify_language(questions[-1]),
            type=TRAFFIC,
            provenance=Provenance(pipeline=Pipeline.IMPORTED),
            cluster=conversation.id,
        )


def _get_severity_source(case: GoldCase) -> str:
    """Return the name of what sets the case's severity: the case in the suite, or the traffic setting."""
    return CASE_ROW if _has_gold(case) else TRAFFIC_ROW


def _has_gold(case: GoldCase) -> bool:
    return case.gold != NO_GOLD


def has_disclosure_and_error_grades(assessment: Assessment) -> bool:
    """Return whether the reply was graded for disclosures and for leaked errors.

    Every reply must have these two grades.
    """
    graded_aspects = {grade.aspect for grade in assessment.grades if isinstance(grade, Judged)}
    return {Aspect.DISCLOSURE, Aspect.ERROR_LEAK} <= graded_aspects


def build_turn_id(conversation_id: str, number: int) -> Identifier:
    """Build a reply's case id from the conversation id and the reply's number. Replies are numbered from 1."""
    if len(conversation_id) > MAX_ID_LENGTH:
        digest = hashlib.sha256(conversation_id.encode()).hexdigest()[:16]
        conversation_id = f"{conversation_id[:MAX_ID_LENGTH].rstrip('.')}-{digest}"
    return f"{conversation_id}:{number + 1}"


def _build_issue_case(
    case_id: Identifier, questions: Sequence[str], severity: Severity, cluster: str | None
) -> GoldCase:
    """Build a case without a reference from an issue that a real user gave to an agent.

    The first line of the issue is its title.
    """
    title, _, body = (questions[-1].strip() or EMPTY_MESSAGE).partition("\n")
    return GoldCase(
        id=case_id,
        turns=tuple(text or EMPTY_MESSAGE for text in questions),
        gold=NO_GOLD,
        severity=severity,
        language=identify_language(questions[-1]),
        type=TRIAGE_TYPE,
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
        cluster=cluster,
        triage=TriageTask(issue=Issue(title=title, body=body.strip()), reference=TriageReference()),
    )


def _list_questions_until(conversation: Conversation, number: int) -> tuple[str, ...]:
    """List the user's messages up to and including the message to which the reply ``number`` belongs."""
    return tuple(turn.user_text for turn in conversation.turns[: number + 1])


def _build_exchange(
    conversation: Conversation, number: int, run_id: Identifier, gold_case: GoldCase | None
) -> Exchange:
    turn = conversation.turns[number]
    wire = WirePayload(url="", text=turn.reply_text, citations=turn.citations) if turn.citations else None
    return Exchange(
        run_id=run_id,
        case_id=build_turn_id(conversation.id, number),
        origin=Origin.TRAFFIC,
        turns=gold_case.turns
        if gold_case is not None and turn.is_report
        else _list_questions_until(conversation, number),
        earlier_answers=tuple(earlier_turn.reply_text for earlier_turn in conversation.turns[:number]),
        visible_text=turn.reply_text,
        wire=wire,
        asked_at=conversation.completed_at,
        timings=Timings(total_ms=turn.latency_ms or 0.0),
        app_path=turn.app_path,
        app_version=conversation.app_version,
        evidence=Evidence(steps=turn.steps, hops=turn.hops),
    )


NO_KNOWN_REPORT: Final = (
    "no issue of the suite has a known correct report, so Lookout cannot check the judge's ratings"
)
NO_PASSAGES: Final = "the passages from which the reply was made were not stored"


class NightlyJudging(Record):
    """The figures of judging in one nightly run: the requests to the judge and the verdicts.

    ``void`` is the reason why the judge's grades are discarded. It is empty if the grades are valid.
    """

    judging: Judging
    void: str = ""


async def judge_traffic(
    plan: JudgePlan,
    turns: Sequence[GradedTurn],
    gold_cases: Sequence[GoldCase],
    *,
    seed: str,
    environment: Mapping[str, str],
    nonce: Callable[[], str],
) -> tuple[NightlyJudging, tuple[CaseResult, ...]]:
    """Ask the judge to grade the replies that rules could not grade. Return the figures and the new grades.

    Known answers that test the judge (canaries) are made from ``gold_cases``. If the judge fails, no error is
    raised.
    """
    open_turns = [turn for turn in turns if is_waiting_for_judge(turn)]
    askable = [
        turn for turn in open_turns if not (plan.why_off or _explain_why_judge_cannot_grade(turn, gold_cases))
    ]
    unasked = [turn for turn in open_turns if plan.why_off or _explain_why_judge_cannot_grade(turn, gold_cases)]
    off = f"{JUDGE_OFF}: {plan.why_off}" if plan.why_off else ""
    judged_results = [
        _add_grade_to_turn(
            turn,
            build_judge_abstention(
                off or _explain_why_judge_cannot_grade(turn, gold_cases), task=_build_judge_subject(turn).task
            ),
        )
        for turn in unasked
    ]
    reasons = tuple(filter(None, (_explain_why_judge_cannot_grade(turn, gold_cases) for turn in open_turns)))
    settings = plan.settings
    if settings is None or plan.why_off or not askable:
        spent = Account(build_price_function(()), limit_usd=None)
        return NightlyJudging(
            judging=_build_judging_figures(plan, turns, open_turns, spent, (), unaskable=reasons)
        ), tuple(judged_results)
    account = Account(build_price_function(settings.prices), limit_usd=settings.limit_usd)
    async with open_judge(plan, environment, account, nonce) as judge:
        groups, missing = await _judge_by_task(judge, settings, askable, gold_cases, seed)
    rulings = {ruling.case.id: ruling for group in groups for ruling in group.rulings}
    for turn in askable:
        ruling = rulings[_build_request_id(turn)]
        result = _add_grade_to_turn(turn, build_judge_grade(ruling, turn.exchange))
        unconfirmed = isinstance(ruling, PanelRuling) and ruling.decision.unconfirmed
        judged_results.append(result.with_assessment(mark_unconfirmed(result.assessment, unconfirmed=unconfirmed)))
    judging = _build_judging_figures(
        plan, turns, open_turns, account, groups, unaskable=reasons, not_by_batch=missing
    )
    void_answers = sum(len(group.rulings) for group in groups if group.is_void)
    missed = next((group.canaries for group in groups if group.is_void and group.canaries is not None), None)
    void = missed.format_void_alert(void_answers) if missed is not None else ""
    return NightlyJudging(judging=judging, void=void), tuple(judged_results)


def explain_unchecked_facts(judged: NightlyJudging) -> str:
    """Explain why the facts of some replies were not checked in this nightly run.

    Return an empty string if no reason is known.
    """
    judging = judged.judging
    if judging.budget_reached:
        return "the judge's budget was used up"
    if judging.void_groups:
        return "the judge graded known answers wrongly, so Lookout discarded its grades"
    if judging.has_too_few_verdicts:
        return f"the judge gave no verdict: {'; '.join(judging.ungraded_because[:1])}"
    return judging.why


def _explain_why_judge_cannot_grade(turn: GradedTurn, gold_cases: Sequence[GoldCase]) -> str:
    """Explain why a judge cannot be asked about a reply. Return an empty string if a judge can be asked."""
    if turn.is_report:
        return "" if any(case.triage is not None for case in gold_cases) else NO_KNOWN_REPORT
    return "" if _has_gold(turn.result.case) or turn.passages else NO_PASSAGES


def is_unanswered_by_judge(grade: Grade) -> bool:
    """Return whether a judge was asked for this grade and gave no verdict."""
    asked = isinstance(grade, Abstained) and grade.grader == JUDGE
    return asked and grade.reason not in (NO_PASSAGES, NO_KNOWN_REPORT) and not grade.reason.startswith(JUDGE_OFF)


def is_waiting_for_judge(turn: GradedTurn) -> bool:
    """Return whether only a judge can grade the reply and no judge has been asked."""
    assessment = turn.result.assessment
    asked = any(grade.grader == JUDGE for grade in assessment.grades)
    waits = (
        is_judge_required_for_ungraded(assessment) if turn.is_report else assessment.outcome is CaseOutcome.UNGRADED
    )
    return waits and not asked


async def _judge_by_task(
    judge: Judge, settings: JudgeSettings, askable: Sequence[GradedTurn], gold_cases: Sequence[GoldCase], seed: str
) -> tuple[tuple[JudgedGroup, ...], tuple[str, ...]]:
    """Ask the judge about reports and answers in separate groups.

    Return the groups and reasons for missing verdicts.

    The known answers in a group are made from gold cases of the same task, if the suite has such cases.
    """
    groups: list[JudgedGroup] = []
    missing: list[str] = []
    size = settings.batch_size
    for reports in (False, True):
        # The judge gets the stored replies, where personal data is redacted.
        cases = [
            JudgeCase(
                id=_build_request_id(turn), subject=_build_judge_subject(turn), severity=turn.result.case.severity
            )
            for turn in askable
            if turn.is_report is reports
        ]
        if not cases:
            continue
        gold = [case for case in gold_cases if (case.triage is not None) is reports] or gold_cases
        group_seed = f"{seed}:reports" if reports else seed
        if settings.nightly_batches:  # a batch costs half the price
            policy = BatchPollPolicy(deadline_s=settings.batch_deadline_s, poll_s=settings.batch_poll_s)
            outcome = await judge_by_batch(
                judge, cases, gold, seed=group_seed, group_size=size, poll_policy=policy, monotonic=time.monotonic
            )
            groups += outcome.groups
            missing += outcome.missing
            continue
        for start in range(0, len(cases), size):
            group = cases[start : start + size]
            canaries = judge.build_group_canaries(group, gold, seed=f"{group_seed}:{start}")
            groups.append(await judge.judge_group(group, canaries))
    return tuple(groups), tuple(missing)


def _build_judge_subject(turn: GradedTurn) -> Subject:
    """Build the request to the judge.

    The request contains the gold if the question has gold, and otherwise the passages.
    """
    exchange, has_gold = turn.exchange, _has_gold(turn.result.case)
    if turn.is_report:
        subject = build_judge_case(turn.result.case, exchange, turn.result.assessment.grades).subject
        return subject if has_gold else subject.model_copy(update={"expected": ()})
    if has_gold:
        return build_subject_for_judge(turn.result.case, exchange.graded_text)
    return Subject(turns=exchange.turns, answer=exchange.graded_text, passages=turn.passages)


def _build_request_id(turn: GradedTurn) -> str:
    return build_request_id(turn.exchange.run_id, turn.exchange.case_id)


def _add_grade_to_turn(turn: GradedTurn, added: Judged | Abstained) -> CaseResult:
    """Add a grade to a reply, remove the grades that it replaces, and assess the reply again.

    A trivial answer fails even if the judge passes it.
    """
    case, exchange = turn.result.case, turn.exchange
    grades_before = (grade for grade in turn.result.assessment.grades if not is_replaced_by(grade, added))
    grades: tuple[Grade, ...] = (*grades_before, added)
    rule_failure = (
        grade_trivial_answer_as_failed(case, exchange) if isinstance(added, Judged) and added.passed else None
    )
    if rule_failure is not None:
        grades = (*grades, rule_failure)
    return turn.result.with_assessment(assess_case(case, exchange, grades, case_row=_get_severity_source(case)))


def _build_judging_figures(
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
    why = plan.why_off or ("; ".join(dict.fromkeys(unaskable)) if not ruled else "")
    voids = [group for group in groups if group.is_void]
    lineages = {
        f"{lineage.model}:{lineage.prompt_sha256[:12]}:{lineage.rubric_version}": lineage
        for lineage in (ruling.lineage for ruling in ruled)
    }
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
        ungraded_because=tuple(dict.fromkeys([*reasons, *unaskable]))[:5],
        lineages=tuple(lineages[name] for name in sorted(lineages)),
        calls=account.total.calls,
        estimated_calls=account.total.estimated_calls,
        input_tokens=account.total.input_tokens,
        cached_tokens=account.total.cached_tokens,
        output_tokens=account.total.output_tokens,
        cost_usd=account.total.usd,
        budget_usd=plan.settings.limit_usd if plan.settings else None,
        budget_reached=account.is_limit_reached,
        unpriced_models=plan.settings.unpriced_models if plan.settings else (),
        not_by_batch=not_by_batch,
    )


def format_grader_identity(judging: Judging, rules: str) -> str:
    """Build a string that identifies the graders: the rules, and each judge by its model and prompts.

    The prompts of all tasks for live traffic are included. Therefore the string for a judge is the same each night.
    """
    prompts = "".join(load_instructions(task).sha256 for task in (Task.FACTUAL, Task.GROUNDED))
    judges = {
        f"{lineage.model}:{hashlib.sha256(prompts.encode()).hexdigest()[:12]}:{lineage.rubric_version}"
        for lineage in judging.lineages
    }
    return "+".join([rules, *sorted(judges)])
