"""A run of an invented triage agent on issues of an invented shop, graded by the real graders and gate.

The reports are right, wrong in each possible way, empty, or endless. The judge's ratings are invented.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from monitors.domains.pack import INSURANCE, load_domain
from monitors.gate.assess import assess_case
from monitors.gate.compare import build_baseline
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.goldset.lines import parse_case_object
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import AgentQuestion, Evidence, NoAnswerReason, Step, StepKind, Timings
from monitors.records.grades import Aspect, Criterion, FailureKind, Judged, JudgeLineage, UsefulnessCriterion
from monitors.records.runs import Baseline, CaseResult, QuestionCounts, RunReport, Verdict
from monitors.records.targets import Environment, Target
from monitors.stats.intervals import compute_wilson_interval
from tests.monitors.reports.parts import RUN_ID, STARTED, exchange, no_answer, span

TARGET = Target(name="triage-agent", url="http://127.0.0.1:8090/jobs", environment=Environment.STAGING)
REPOSITORY = tuple(
    f"shop/{name}.py" for name in ("payments", "orders", "queue", "locks", "mail", "dates", "api", "search")
)
QUESTIONS = QuestionCounts(
    asked=2,
    useful=1,
    needless=1,
    share=0.5,
    low=compute_wilson_interval(1, 2)[0],
    high=compute_wilson_interval(1, 2)[1],
)
LINEAGE = JudgeLineage(model="claude-opus-5-5", prompt_sha256="ab" * 32, rubric_version="1")


class Written(NamedTuple):
    """An agent's work on an issue: its report, its steps, and the judge's rating (0 if there is none)."""

    case: GoldCase
    report: str
    steps: tuple[Step, ...] = ()
    rating: int = 0
    quote: str = ""
    reason: str = ""
    evidence: Evidence = Evidence()
    """The evidence of the job, apart from its steps."""
    criteria_problem: str = ""


def issue(number: int, title: str, body: str, *, files: Sequence[str] = REPOSITORY, **reference: Any) -> GoldCase:
    """Return an issue of the invented shop with its reference; ``files`` are the files of its repository."""
    known = {"severity": "high", "shortest_path": 3} | reference
    made = parse_case_object(
        {
            "issue_url": f"https://github.com/acme/lamps/issues/{number}",
            "issue_title": title,
            "issue_body": body,
            "severity": 2,
            "repository_files": [*files, *known.get("relevant_files", ())],
            "reference": known,
        }
    )
    assert isinstance(made, GoldCase), made
    return made


def structured(cause: str, fix: str, files: Sequence[str], severity: str = "high", **more: object) -> str:
    """Return a report in the format of the triage service."""
    fields = {"severity": severity, "root_cause": cause, "relevant_files": list(files), "recommended_fix": fix}
    return json.dumps(fields | more, ensure_ascii=False)


def calls(*names: tuple[str, str], at_s: float | None = None) -> tuple[Step, ...]:
    """Return tool calls with their arguments; ``at_s`` is the interval between them if times were recorded."""
    return tuple(
        Step(
            name=name,
            detail=json.dumps({"name": name, "arguments": argument}),
            at_ms=None if at_s is None else 1000 * at_s * (place + 1),
        )
        for place, (name, argument) in enumerate(names)
    )


LOCK = issue(
    7,
    "Orders hang after a failed payment",
    "One payment was refused. Every order after it waits for ever.\n\nWe restart the worker, and it goes on until the "
    "next refused card.",
    root_cause="charge() raises before the order lock is released, so the next order waits for the lock",
    relevant_files=["shop/payments.py", "shop/locks.py"],
    expected_keywords=["lock"],
)
MAIL = issue(
    9,
    "Confirmation mail is sent twice",
    "Since Tuesday some customers get two mails.",
    severity="medium",
    root_cause="the retry in send() does not remember that the first try went out",
    relevant_files=["shop/mail.py"],
)
DATES = issue(
    12,
    "Delivery date is a month off",
    "3 April is shown as 4 March in the French shop.",
    severity="medium",
    root_cause="parse_day() reads the month before the day for every locale",
    relevant_files=["shop/dates.py"],
)
SEARCH = issue(
    15,
    "Search finds nothing with an umlaut",
    "„Küchenlampe“ finds nothing, „Kuchenlampe“ finds all of them.",
    severity="low",
    root_cause="the index is built from folded words, the query is not folded",
    relevant_files=["shop/search.py"],
)
QUEUE = issue(
    18,
    "Worker eats all memory over night",
    "After eight hours the process has 9 GB.",
    severity="critical",
    root_cause="finished jobs stay in the queue's table of results and are never removed",
    relevant_files=["shop/queue.py"],
)
API = issue(
    21,
    "Rate limit answers 500 instead of 429",
    "",
    severity="low",
    root_cause="the limiter raises an error that the handler does not know",
    relevant_files=["shop/api.py"],
    max_steps=5,
)
DEEP = issue(
    24,
    "Import of a large catalogue stops in the middle of a very long list of articles without saying anything at all",
    "It stops at about 10,000 articles.",
    root_cause="the reader gives up at the first empty line",
    relevant_files=[
        "services/catalogue/importers/spreadsheets/readers/streaming/very_long_named_module_for_reading_rows_one_by_one.py"
    ],
)
DOWN = issue(27, "Refund is booked twice", "See the attached statement.", relevant_files=["shop/orders.py"])
CASES = (LOCK, MAIL, DATES, SEARCH, QUEUE, API, DEEP, DOWN)

BY_AGENTS = (
    Step(name="investigator", kind=StepKind.AGENT, at_ms=400, duration_ms=9_100, tokens=3_812),
    Step(name="search_code", detail='{"query": "lock"}', kind=StepKind.TOOL, at_ms=900, duration_ms=310),
    Step(name="read_file", detail='{"path": "shop/payments.py"}', kind=StepKind.TOOL, at_ms=2_400, duration_ms=45),
    Step(name="codebase_search", kind=StepKind.AGENT, at_ms=9_600, duration_ms=5_200, tokens=2_044),
    Step(name="search_code", detail='{"query": "lock"}', kind=StepKind.TOOL, at_ms=9_900, duration_ms=290),
    Step(name="critic", kind=StepKind.AGENT, at_ms=15_000, duration_ms=2_000, tokens=901),
    Step(name="writer", kind=StepKind.AGENT, at_ms=17_100, duration_ms=6_700, tokens=1_530),
)
ASKED = (
    AgentQuestion(question="Which payment provider does the shop use?", answer="I don't know."),
    AgentQuestion(question="Does it hang after every refused payment?", answer="Yes, every time.", scripted=True),
)
PROSE = """## Root cause
The reader in `services/catalogue/importers/spreadsheets/readers/streaming/very_long_named_module_for_reading_rows_one_by_one.py` gives up at the first empty line of the sheet, and nobody notices that rows are left.

## Severity
Critical

## Recommended fix
Skip empty lines and compare the number of rows read with the number in the sheet's header.
"""
WANDERING = tuple(("search_code", f"query {number % 23}") for number in range(60))


def written(*, good: bool = False) -> tuple[Written, ...]:
    """Return the reports of the run.

    If ``good`` is true, return the reports of the baseline run, which are all good.
    """
    lock = structured(
        "The order lock is taken before charge() and released after it; when charge() raises, nobody releases the lock.",
        "Take the lock in a with statement, so that it is released whatever charge() raises.",
        ["./shop/payments.py:41", "shop/locks.py"],
        confidence=0.9,
    )
    mail = structured(
        "The first try of send() is not remembered, so the retry sends the mail once more.",
        "Store the message id before the first try and skip a mail that has one.",
        ["shop/mail.py"],
        "medium",
    )
    dates = structured(
        "parse_day() takes the month from the first group for every locale, so day and month change places.",
        "Read the order from the locale's date pattern.",
        ["shop/dates.py"],
        "medium",
    )
    three = calls(("search_code", "lock"), ("read_file", "shop/payments.py"), ("write_report", ""), at_s=1.4)
    if good:
        return tuple(
            Written(case, text, three, rating)
            for case, text, rating in ((LOCK, lock, 5), (MAIL, mail, 5), (DATES, dates, 4), (DEEP, PROSE, 4))
        )
    every_file = structured(
        "Something in the search does not work as it should, probably in one of the modules named here.",
        "Look at all of them and find out which one is wrong.",
        [
            *REPOSITORY,
            *(f"shop/plugins/part_{number:02}/handlers/request_handler_{number:02}.py" for number in range(43)),
        ],
        "critical",
    )
    sure = structured(
        "The mail server sends every mail twice since its upgrade on Tuesday; the shop has nothing to do with it.",
        "Ask the provider to roll the upgrade back. Nothing is to be changed in shop/mail.py.",
        ["shop/mail.py"],
        "medium",
        confidence=0.99,
    )
    return (
        Written(
            LOCK,
            lock,
            BY_AGENTS,
            5,
            "nobody releases the lock",
            "right place and mechanism, exact files, clear fix",
            Evidence(hops=4, questions=ASKED),
        ),
        Written(
            MAIL,
            sure,
            calls(
                ("search_code", "send"), ("search_code", "send"), ("web_search", "mail twice"), ("write_report", "")
            ),
            2,
            "the shop has nothing to do with it",
            "the right file with a wrong cause, which is stated as certain",
        ),
        Written(DATES, dates, (), 4, "day and month change places", "right cause; the fix does not say where"),
        Written(SEARCH, every_file, calls(("list_files", ""), ("write_report", "")), 2, "", "lists every file"),
        Written(QUEUE, "", calls(("read_issue", ""))),
        Written(
            API,
            structured(
                "The limiter raises its own error, which no handler of the service turns into a status.",
                "Register a handler for the limiter's error that answers 429 with Retry-After.",
                ["shop/api.py"],
                "low",
            ),
            calls(*WANDERING, at_s=0.9),
            5,
            "which no handler of the service turns into a status",
            "right cause and a fix that can be done at once",
            criteria_problem="the judge's grade for accuracy is missing or not valid",
        ),
        Written(
            DEEP, PROSE, three, 4, "gives up at the first empty line", "right cause and file; severity overstated"
        ),
    )


def result_of(one: Written) -> CaseResult:
    """Return the result of one report: the grades of the real graders and the judge's invented rating."""
    came = exchange(
        one.case,
        one.report,
        evidence=one.evidence.model_copy(update={"steps": one.steps}),
        timings=Timings(total_ms=24_000 + 350 * len(one.steps)),
        app_path=None,
        app_version="2026.11.3",
    )
    grades = grade_exchange(build_rule_panel(GraderSettings(), load_domain((INSURANCE,))), one.case, came)
    if one.rating:
        grades = (*grades, rated(one))
    return CaseResult(case=one.case, result=came, assessment=assess_case(one.case, came, grades))


def rated(one: Written) -> Judged:
    """Return the judge's grade of one report, with its invented rating."""
    quoted = (span(one.report, one.quote, "quoted by the judge"),) if one.quote else ()
    useful = one.rating >= 3
    return Judged(
        grader="judge",
        version="1-abcdef",
        aspect=Aspect.USEFULNESS,
        passed=useful,
        failure_kind=None if useful else FailureKind.POOR_TRIAGE,
        score=(one.rating - 1) / 4,
        rubric=one.rating,
        reason=one.reason or "said so",
        criteria=() if one.criteria_problem else criteria(one),
        criteria_problem=one.criteria_problem,
        evidence=quoted,
        lineage=LINEAGE,
    )


def criteria(one: Written) -> tuple[UsefulnessCriterion, ...]:
    """Return the judge's criteria for one report. For a missing part of the report, a reason replaces the quote."""
    quote = span(one.report, one.quote, "quoted by the judge") if one.quote else None
    scores = {
        Criterion.HELPFULNESS: one.rating >= 4,
        Criterion.COMPLETENESS: one.rating == 5,
        Criterion.ACCURACY: one.rating >= 3,
    }
    return tuple(
        UsefulnessCriterion(name=name, score=1, quote=quote)
        if met
        else UsefulnessCriterion(name=name, score=0, reason="the fix names no function")
        if name is Criterion.COMPLETENESS
        else UsefulnessCriterion(name=name, score=0, quote=quote, reason="another cause than the reference")
        for name, met in scores.items()
    )


def evaluated(results: Sequence[CaseResult], baseline: Baseline | None = None, **changes: Any) -> RunReport:
    """Evaluate the run with the real gate, and return the report."""
    facts: dict[str, Any] = {
        "run_id": RUN_ID,
        "target": TARGET,
        "suite_name": "lamps-issues",
        "suite_sha256": "5e" * 32,
        "planned": len({one.case.id for one in results}),
        "commit": "9c41e77",
        "started_at": STARTED,
        "finished_at": STARTED + timedelta(minutes=7, seconds=12),
    }
    settings = GateSettings(min_severity_3_cases=0)
    return evaluate_results(RunFacts.model_validate(facts | changes), results, settings, baseline=baseline)


class TriageRun(NamedTuple):
    """The input of the report writers for the triage run."""

    report: RunReport
    cases: tuple[CaseResult, ...]


def triage_run(*, with_baseline: bool = True) -> TriageRun:
    """Return a run of seven reports and a failed job.

    The baseline, if any, has four rated reports.
    """
    nothing = no_answer(
        DOWN, NoAnswerReason.APP_ERROR_SHOWN, Blame.APP, "the job failed with the state 'failed': out of tokens"
    )
    results = (
        *map(result_of, written()),
        CaseResult(case=DOWN, result=nothing, assessment=assess_case(DOWN, nothing, ())),
    )
    before = tuple(map(result_of, written(good=True)))
    earlier = evaluated(before, run_id="20261120T211502Z-triage-11c0", commit="3f02b1d")
    accepted = build_baseline(earlier.model_copy(update={"verdict": Verdict.PASS}), before)
    report = evaluated(results, accepted if with_baseline else None)
    return TriageRun(report.model_copy(update={"questions": QUESTIONS}), results)
