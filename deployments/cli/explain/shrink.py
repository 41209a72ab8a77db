"""``lookout shrink``: find the shortest question that still fails in the same way as a case.

The question is stored as a draft of a new case.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.explain.bisect import refuse_production_addresses
from deployments.cli.options import DEFAULT_CONFIG, AllowProductionOption, ConfigOption, JsonOption
from flows.terminal import print_text, write_json, write_note
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.config.file import Config, build_target_record, load_config
from monitors.errors import ConfigError
from monitors.explain.shrink import ShrinkEnd, ShrunkQuestion
from monitors.goldset.load import load_suite
from monitors.plural import plural
from monitors.records.cases import GoldCase
from monitors.records.grades import FAILURE_WORDS, CaseOutcome
from monitors.records.operator_actions import CaseDraft
from monitors.records.runs import CaseResult

if TYPE_CHECKING:
    from flows.explain.asking import CaseAsker
    from flows.explain.shrink import CaseShrinker

REPRODUCE_COUNT: Final = 3
"""The number of times that the printed command asks the shortest question."""


@dataclass(frozen=True)
class ShrinkPlan:
    """The case to shrink, and where to ask it.

    ``right_at`` is the address of a build that answers the case correctly. ``right_at`` is ``None`` if no such
    address was given.
    """

    config_path: Path
    config: Config
    target: str
    case: GoldCase
    address: str
    right_at: str | None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return the addresses at which the case is asked."""
        return (self.address, *((self.right_at,) if self.right_at else ()))


def require_target_with_case(config: Config, case_id: str, target: str | None) -> tuple[str, GoldCase]:
    """Return the case, and the target whose suite contains it. Raises `ConfigError`."""
    case_id = case_id.replace("꞉", ":")  # earlier versions showed this character in Slack
    names = [target] if target is not None else sorted(config.targets)
    matches: list[tuple[str, GoldCase]] = []
    for name in names:
        suite = load_suite(config.require_target(name).suite)
        matches += [(name, case) for case in suite.cases if case.id == case_id]
    if not matches:
        raise ConfigError(f"no suite has a case with the id {case_id}. Targets searched: {', '.join(names)}")
    if len(matches) > 1:
        raise ConfigError(
            f"several targets have the case {case_id}: {', '.join(name for name, _ in matches)}. Choose a target "
            "with --target"
        )
    return matches[0]


def shrink_command(
    case: Annotated[str, typer.Argument(help="the id of a case that fails")],
    *,
    target: Annotated[
        str | None, typer.Option(help="the name of the target, if several targets have the case")
    ] = None,
    turn: Annotated[
        list[str] | None,
        typer.Option(help="ask this question instead of the question of the case; repeat the option for each turn"),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="ask at this address instead of the address of the target")
    ] = None,
    right_at: Annotated[
        str | None,
        typer.Option(
            "--right-at",
            help="the address of a build that answers the case correctly; this build must also answer the shorter "
            "question correctly",
        ),
    ] = None,
    ask: Annotated[
        int | None,
        typer.Option(min=1, help="only ask the question this number of times, and do not shorten the question"),
    ] = None,
    budget: Annotated[int, typer.Option(min=3, help="the maximum number of questions to ask")] = 40,
    config: ConfigOption = DEFAULT_CONFIG,
    allow_production: AllowProductionOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Find the shortest question that still fails in the same way as a case."""
    configured = load_config(config)
    name, gold_case = require_target_with_case(configured, case, target)
    if turn:
        gold_case = gold_case.with_turns(tuple(turn))
    address = url or build_target_record(name, configured.require_target(name)).address
    plan = ShrinkPlan(config, configured, name, gold_case, address, right_at)
    refuse_production_addresses(configured, name, plan.addresses, allow_production)
    with show_waiting(f"{name}: asking {case}"):
        if ask is not None:
            return _print_answers_and_choose_exit_code(asyncio.run(_ask_case_repeatedly(plan, ask)))
        shrinker, shrunk = asyncio.run(_shrink_case(plan, budget))
        draft = _build_draft_and_store_if_shorter(plan, shrinker, shrunk)
    if as_json:
        write_json(_format_shrink_json(plan, shrunk, draft) + "\n")
    else:
        for line in format_shrink_result(plan, shrinker, shrunk, draft):
            print_text(line)
    return ExitCode.PASS if draft is not None else ExitCode.INCONCLUSIVE


async def _open_case_asker(plan: ShrinkPlan, address: str, stack: AsyncExitStack) -> CaseAsker:
    from flows.clock import utc_now  # slow: imports duckdb and all judges
    from flows.data_folder import get_runs_folder  # slow: imports duckdb and all judges
    from flows.explain.asking import open_case_asker
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and all judges

    opening = open_case_asker(
        plan.config,
        plan.target,
        address,
        folder=get_runs_folder(plan.config).parent / "shrink",
        run_id=f"shrink-{plan.target}",
        cases=(plan.case,),
        environment=get_environment(),
        clock=utc_now,
    )
    return await stack.enter_async_context(opening)


async def _shrink_case(plan: ShrinkPlan, budget: int) -> tuple[CaseShrinker, ShrunkQuestion]:
    from flows.explain.shrink import CaseShrinker  # slow: imports all drivers

    write_note(f"{plan.target}: {plan.case.id}, at most {plural(budget, 'question')}\n")
    async with AsyncExitStack() as stack:
        control = await _open_case_asker(plan, plan.right_at, stack) if plan.right_at else None
        shrinker = CaseShrinker(plan.case, await _open_case_asker(plan, plan.address, stack), control)
        return shrinker, await shrinker.run(budget)


async def _ask_case_repeatedly(plan: ShrinkPlan, times: int) -> Sequence[CaseResult]:
    async with AsyncExitStack() as stack:
        asker = await _open_case_asker(plan, plan.address, stack)
        return await asker.ask_case(plan.case, times)


def _print_answers_and_choose_exit_code(results: Sequence[CaseResult]) -> ExitCode:
    """Print the outcome of each answer, and the counts.

    Return FAIL if an answer failed, PASS if none failed and at least one was correct, and otherwise INCONCLUSIVE.
    """
    from flows.explain.bisect import format_outcome_reason  # slow: imports all drivers

    failed = [result for result in results if result.assessment.outcome is CaseOutcome.FAILED]
    right = [result for result in results if result.assessment.outcome is CaseOutcome.CORRECT]
    for result in results:
        kinds = ", ".join(FAILURE_WORDS[kind] for kind in result.assessment.failure_kinds)
        outcome = result.assessment.outcome.value.replace("_", " ")
        print_text(f"  {outcome}: {f'{kinds}: ' * bool(kinds)}{redact(format_outcome_reason(result))}")
    print_text(
        f"{len(failed)} of {plural(len(results), 'answer')} failed, {len(right)} of {len(results)} were correct."
    )
    if failed:
        return ExitCode.FAIL
    return ExitCode.PASS if right else ExitCode.INCONCLUSIVE


def _build_draft_and_store_if_shorter(
    plan: ShrinkPlan, shrinker: CaseShrinker, shrunk: ShrunkQuestion
) -> CaseDraft | None:
    """Return a draft with the shortest question, or ``None`` if the case does not fail.

    The draft is also stored for ``gold grow``, but only if the question became shorter. Otherwise the draft would
    repeat the case.
    """
    from flows.clock import utc_now  # slow: imports duckdb
    from flows.data_folder import open_store  # slow: imports duckdb
    from flows.explain.shrink import build_shrunk_draft
    from warehouse.queries.operator_actions import append_draft

    if shrunk.end is ShrinkEnd.PASSES or shrunk.turns not in shrinker.failing:
        return None
    patterns = plan.config.require_target(plan.target).graders.account_patterns
    draft = build_shrunk_draft(shrinker, shrunk, target=plan.target, at=utc_now(), account_patterns=patterns)
    if shrunk.turns != plan.case.turns:
        append_draft(open_store(plan.config).journal, draft)
    return draft


def format_reproduce_command(plan: ShrinkPlan, shrunk: ShrunkQuestion) -> str:
    """Format the command that asks the shortest question again."""
    command = ["lookout", "shrink", plan.case.id, "--target", plan.target, "--ask", str(REPRODUCE_COUNT)]
    if plan.config_path != DEFAULT_CONFIG:
        command += ["--config", str(plan.config_path)]
    if plan.address != build_target_record(plan.target, plan.config.require_target(plan.target)).address:
        command += ["--url", plan.address]
    return shlex.join([*command, *(part for turn in shrunk.turns for part in ("--turn", turn))])


def format_shrink_result(
    plan: ShrinkPlan, shrinker: CaseShrinker, shrunk: ShrunkQuestion, draft: CaseDraft | None
) -> Iterator[str]:
    """Format the result for a person."""
    if draft is None:
        yield _format_not_shrunk(plan, shrinker, shrunk)
        return
    yield (
        f"{plan.case.id} failed in {shrunk.first_failed} of {shrunk.first_asked} answers: "
        f"{draft.finding.split(': ', 1)[-1]}"
    )
    if shrunk.turns == plan.case.turns:
        end = _format_shrink_end(shrunk, shrinker)
        yield (
            f"Lookout could not remove any word of the question{end}. Lookout asked "
            f"{plural(shrunk.probes, 'question')}."
        )
    else:
        yield (
            f"Lookout found a shorter question that fails in the same way. It has {shrunk.length} of "
            f"{plural(shrunk.length_before, 'word')} and failed in {shrunk.failed} of "
            f"{plural(shrunk.asked, 'answer')}{_format_shrink_end(shrunk, shrinker)}:"
        )
        yield from (f"  {redact(turn)}" for turn in shrunk.turns)
        yield from _format_shrink_notes(shrinker, shrunk)
        yield (
            f"Lookout stored the question as draft {draft.id}. To add the question to the suite: lookout gold grow "
            "--suite SUITE"
        )
    yield f"To reproduce the failure: {format_reproduce_command(plan, shrunk)}"


def _format_not_shrunk(plan: ShrinkPlan, shrinker: CaseShrinker, shrunk: ShrunkQuestion) -> str:
    counts = f"The case failed in {shrunk.first_failed} of {shrunk.first_asked} answers"
    if shrunk.end is ShrinkEnd.SILENT:
        return (
            f"Lookout cannot shrink {plan.case.id}, because it could not grade answers: "
            f"{redact(shrinker.problem)}. "
            f"{counts}."
        )
    return f"Lookout cannot shrink {plan.case.id}. A case must fail in more than half of its answers. {counts}."


def _format_shrink_end(shrunk: ShrunkQuestion, shrinker: CaseShrinker) -> str:
    match shrunk.end:
        case ShrinkEnd.BUDGET:
            return ". Lookout asked the maximum number of questions, so a shorter question may exist"
        case ShrinkEnd.SILENT:
            return (
                f". Then Lookout received no more answers ({redact(shrinker.problem)}), so a shorter question "
                "may exist"
            )
        case _:
            return ""


def _format_shrink_notes(shrinker: CaseShrinker, shrunk: ShrunkQuestion) -> Iterator[str]:
    from flows.explain.shrink import POINTLESS_QUESTION_FAILURES  # slow: imports all drivers

    controls = (
        f", and {plural(shrinker.controls, 'question')} at the --right-at address" if shrinker.control else ""
    )
    yield f"Lookout asked {plural(shrunk.probes, 'question')}{controls}."
    if shrinker.signature and shrinker.signature.kind in POINTLESS_QUESTION_FAILURES and shrinker.control is None:
        yield (
            "Read this question before you use it, because a text that is not a question may fail in the same way. "
            "To avoid such texts, give --right-at with the address of a build that answers the case correctly."
        )


def _format_shrink_json(plan: ShrinkPlan, shrunk: ShrunkQuestion, draft: CaseDraft | None) -> str:
    document = {
        "target": plan.target,
        "case": plan.case.id,
        "shrunk": shrunk.model_dump(mode="json"),
        "draft": draft.id if draft else None,
        "reproduce": format_reproduce_command(plan, shrunk) if draft else None,
    }
    return json.dumps(document, ensure_ascii=False, indent=2)
