"""What is recorded of a run beside its grades, and what of it differs from the last accepted run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel

from flows.runtime.judge import JudgePlan
from flows.runtime.run import RunContext, lookout_version
from flows.verify.run_folder import AUTO
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import redact
from monitors.config.file import TargetConfig
from monitors.errors import WarehouseError
from monitors.explain.run_snapshot import snapshot_of
from monitors.explain.what_changed import ADDRESS
from monitors.records.runs import Baseline, RunReport, Verdict
from monitors.records.snapshots import RunSnapshot
from warehouse.queries.runs import deployed_at, last_accepted


def snapshot_of_run(run: LiveRun) -> RunSnapshot:
    """The snapshot of a run that has been asked."""
    context = run.context
    known = RunSnapshot(
        commit=run.commit,
        deployed_at=_deployed_at(run),
        suite_sha256=context.suite.sha256,
        cases=len(context.suite.cases),
        graders={grader.name: grader.version for grader in context.panel},
        settings=setting_hashes(context),
        judges=run.judging.lineages if run.judging else (),
        browser=run.browser,
        lookout=lookout_version(),
    )
    graders = context.configured.graders
    return snapshot_of(
        known,
        run.results,
        citation_patterns=graders.citation_patterns,
        redact=lambda text: redact(text, account_patterns=graders.account_patterns),
    )


def setting_hashes(context: RunContext) -> Mapping[str, str]:
    """A hash of each part of the configuration that bears on a verdict, by its name in lookout.toml."""
    parts: Mapping[str, BaseModel | str] = {
        "gate": context.config.gate,
        "target": context.target,
        ADDRESS: context.target.address,
        "probe": context.configured.probe,
    }
    hashes = {name: _hash(part) for name, part in parts.items()}
    return {**hashes, **grading_hashes(context.configured, context.judge)}


def grading_hashes(configured: TargetConfig, judge: JudgePlan) -> Mapping[str, str]:
    """The same of the parts alone that bear on how an answer is graded."""
    parts: Mapping[str, BaseModel | str | None] = {
        "graders": configured.graders,
        "domains": ",".join(configured.domains),
        "judge": judge.settings,
    }
    return {name: _hash(part) for name, part in parts.items() if part is not None}


def _hash(part: BaseModel | str) -> str:
    text = part if isinstance(part, str) else part.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_asked(report: RunReport) -> bool:
    """Whether somebody will ask what changed: not of a run that passed."""
    return report.verdict is not Verdict.PASS


def last_pass(run: LiveRun, baseline: Baseline | None) -> RunReport | None:
    """The last accepted run: the baseline where it is one, else the newest."""
    context = run.context
    if baseline is not None and baseline.report.verdict is Verdict.PASS:
        return baseline.report
    if context.request.baseline == AUTO:
        return None
    try:
        found = last_accepted(
            context.store,
            context.target.name,
            context.target.environment,
            context.suite.sha256,
            before=context.run_id,
        )
    except WarehouseError:
        return None
    return found.report if found else None


def _deployed_at(run: LiveRun) -> datetime | None:
    if run.commit is None:
        return None
    try:
        return deployed_at(run.context.store, run.context.target.name, run.commit)
    except WarehouseError:
        return None
