"""Run the judging part of a run on given answers, with a real journal, the real SDK and local providers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flows.clock import utc_now
from flows.runtime.run import build_run_context
from flows.verify.alerts import build_run_observations
from flows.verify.judging import JudgeStage
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun, mark_run_if_judge_changed
from monitors.config.file import parse_config
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import evaluate_results
from monitors.graders.panel import grade_exchange
from monitors.records.cases import GoldCase
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.incidents import IncidentKind, Observation
from monitors.records.runs import CaseResult, RunReport
from tests.builders import exchange, gold_case
from tests.servers.anthropic import KEY, AnthropicServer
from warehouse.journal.rows import RunRow

KEY_VARIABLE = "LOOKOUT_TEST_KEY"

HOME = "Treatment at home is paid when the treating doctor advises it in writing and a nurse attends."
HOME_RIGHT = "Treatment at home gets paid, provided the treating doctor has advised it in writing and a nurse attends. [Source: A, 4]"
HOME_WRONG = (
    "Treatment at home is a comfort that many customers like, and our team is glad to explain it. [Source: A, 4]"
)
TEETH = "Dental work belongs to the base plan wherever an accident makes surgery on the jaw necessary."
TEETH_RIGHT = (
    "Dental work belongs to the base plan where an accident makes surgery on the jaw necessary. [Source: A, 6]"
)
TEETH_WRONG = "Smiles matter to us, and brushing twice a day keeps them bright for many years. [Source: A, 6]"


class JudgedRun(NamedTuple):
    """The report, the results and the observations of a judged run."""

    report: RunReport
    results: tuple[CaseResult, ...]
    news: tuple[Observation, ...]
    heard: tuple[CaseResult, ...]

    def of(self, case_id: str) -> Assessment:
        """Return the assessment of the case with this id."""
        return next(result.assessment for result in self.results if result.case.id == case_id)

    def observations_of(self, kind: IncidentKind) -> list[Observation]:
        """Return the observations of ``kind`` that would cause an alert."""
        return [observation for observation in self.news if observation.kind is kind]

    @property
    def passed(self) -> list[str]:
        """Return the ids of the cases that were graded as correct."""
        return [result.case.id for result in self.results if result.assessment.outcome is CaseOutcome.CORRECT]

    @property
    def notes(self) -> str:
        """Return the texts of all reasons in the report as one text."""
        return " | ".join(reason.text for reason in self.report.reasons)


def home(case_id: str = "home", **changes: Any) -> GoldCase:
    """Build a case about treatment at home whose gold is a sentence with conditions, which no rule can grade."""
    return gold_case(case_id, **({"turns": ("What about treatment at home?",), "gold": HOME} | changes))


def teeth(case_id: str = "teeth", **changes: Any) -> GoldCase:
    """Build a case about dental work whose gold no rule can grade."""
    return gold_case(case_id, **({"turns": ("What about dental work?",), "gold": TEETH} | changes))


def configured(folder: Path, cases: Sequence[GoldCase], **judge: Any) -> VerifyRequest:
    """Build the request of a run with the suite ``cases``.

    ``judge`` contains the settings in ``[judge]``. Without them, the run has no judge.
    """
    suite = folder / "suite.jsonl"
    suite.write_text("".join(case.model_dump_json() + "\n" for case in cases), encoding="utf-8")
    values: dict[str, Any] = {
        "data_folder": str(folder / "data"),
        "targets": {
            "demo": {
                "url": "http://127.0.0.1:9",
                "suite": str(suite),
                "model_family": "gpt",
                "graders": {"citation_required": True},
            }
        },
        "gate": {"min_severity_3_cases": 0},
    }
    if judge:
        values["judge"] = {"deadline_s": 60, "try_s": 30, "tries": 2, "most_pause_s": 1} | judge
    return VerifyRequest(
        target="demo", config=parse_config(json.loads(json.dumps(values)), "lookout.toml"), fresh=True
    )


def judge_at(*servers: AnthropicServer, model: str = "claude-sonnet-5-5", **settings: Any) -> dict[str, Any]:
    """Return settings for ``[judge]`` with one model for each server."""
    models = [{"model": model, "base_url": server.url, "key_variable": KEY_VARIABLE} for server in servers]
    return {"models": models} | settings


async def run_of(
    request: VerifyRequest, answers: Sequence[tuple[GoldCase, str]], *, recorded: bool = False
) -> JudgedRun:
    """Grade ``answers`` as a run does, evaluate the gate, and collect the observations.

    If ``recorded`` is true, the run is also stored in the warehouse.
    """
    run = LiveRun(build_run_context(request))
    with run.context.run_folder:
        if run.context.run_folder.resumed:
            run.load_earlier_results()
        return await _judge_answers(run, answers, recorded=recorded)


async def _judge_answers(run: LiveRun, answers: Sequence[tuple[GoldCase, str]], *, recorded: bool) -> JudgedRun:
    heard: list[CaseResult] = []

    async def deliver(result: CaseResult) -> None:
        heard.append(result)

    async with JudgeStage(run, deliver) as judges:
        for case, answer in answers:
            came = exchange(case, answer, run_id=run.context.run_id)
            grades = grade_exchange(run.context.panel, case, came)
            assessment = assess_case(case, came, grades)
            if judges.is_needed(assessment):
                await judges.grade_or_queue_answer(case, came, grades)
            else:
                await deliver(run.save(case, came, assessment))
    if recorded:
        mark_run_if_judge_changed(run)
    report = evaluate_results(run.build_facts(utc_now()), run.results, run.context.config.gate)
    if recorded:
        run.context.journal.append((RunRow(row=report),), run_id=run.context.run_id)
        run.context.store.load_pending(30)
    return JudgedRun(report, tuple(run.results), build_run_observations(run, report), tuple(heard))


def with_key(monkeypatch: Any) -> None:
    """Set the environment variable with the API key for the local providers."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
