"""Builds the snapshot of a run: its commit, settings, graders and judges. Also finds the last accepted run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel

from flows.runtime.judge import JudgePlan
from flows.runtime.run import RunContext, get_lookout_version
from flows.verify.run_folder import AUTO
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import redact
from monitors.config.file import TargetConfig
from monitors.errors import WarehouseError
from monitors.explain.run_snapshot import build_snapshot
from monitors.explain.what_changed import ADDRESS_PART, GATE_PART
from monitors.records.runs import Baseline, RunReport, Verdict
from monitors.records.snapshots import RunSnapshot
from warehouse.queries.runs import find_baseline_run, find_deploy_time


def build_run_snapshot(run: LiveRun) -> RunSnapshot:
    """Build the snapshot of a run after all cases were asked."""
    context = run.context
    snapshot = RunSnapshot(
        commit=run.commit,
        deployed_at=_find_deploy_time(run),
        suite_sha256=context.suite.sha256,
        cases=len(context.suite.cases),
        graders={grader.name: grader.version for grader in context.panel},
        settings=hash_verdict_settings(context),
        judges=run.judging.lineages if run.judging else (),
        browser=run.browser,
        lookout=get_lookout_version(),
    )
    graders = context.configured.graders
    return build_snapshot(
        snapshot,
        run.results,
        citation_patterns=graders.citation_patterns,
        redact=lambda text: redact(text, account_patterns=graders.account_patterns),
    )


def hash_verdict_settings(context: RunContext) -> Mapping[str, str]:
    """Hash each part of the configuration that affects the verdict. The keys are names from lookout.toml."""
    parts: Mapping[str, BaseModel | str] = {
        GATE_PART: context.config.gate,
        "target": context.target,
        ADDRESS_PART: context.target.address,
        "probe": context.configured.probe,
    }
    hashes = {name: _hash_part(part) for name, part in parts.items()}
    return {**hashes, **hash_grading_settings(context.configured, context.judge)}


def hash_grading_settings(configured: TargetConfig, judge: JudgePlan) -> Mapping[str, str]:
    """Hash each part of the configuration that affects grades. The keys are names from lookout.toml."""
    parts: Mapping[str, BaseModel | str | None] = {
        "graders": configured.graders,
        "domains": ",".join(configured.domains),
        "judge": judge.settings,
    }
    return {name: _hash_part(part) for name, part in parts.items() if part is not None}


def _hash_part(part: BaseModel | str) -> str:
    text = part if isinstance(part, str) else part.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def should_report_changes(report: RunReport) -> bool:
    """Return whether the report should list changes. The report of a run that passed does not list changes."""
    return report.verdict is not Verdict.PASS


def find_last_accepted_report(run: LiveRun, baseline: Baseline | None) -> RunReport | None:
    """Find the last accepted run, which is the baseline if the baseline passed.

    If the requested baseline did not pass, or is ``none``, find the newest accepted run.
    """
    context = run.context
    if baseline is not None and baseline.report.verdict is Verdict.PASS:
        return baseline.report
    if context.request.baseline == AUTO:
        return None
    try:
        accepted = find_baseline_run(
            context.store,
            context.target.name,
            context.target.environment,
            context.suite.sha256,
            except_run=context.run_id,
        )
    except WarehouseError:
        return None
    return accepted.report if accepted else None


def _find_deploy_time(run: LiveRun) -> datetime | None:
    if run.commit is None:
        return None
    try:
        return find_deploy_time(run.context.store, run.context.target.name, run.commit)
    except WarehouseError:
        return None
