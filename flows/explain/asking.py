"""Asks cases again at a target, or at an earlier build of the target, and grades the answers with rules.

Each question uses a new session. The results do not change the verdict of a run. No screenshots are stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from flows.runtime.probe import build_concurrency_limit, build_login_at, build_scripted_reply_finder, open_driver
from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError
from monitors.gate.assess import assess_case
from monitors.graders.base import Grader
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.judge.precheck import grade_trivial_answer_as_failed, is_judge_required_for_ungraded
from monitors.probes.driver import ChatDriver
from monitors.probes.runner import ProbeTally, Question, probe_questions
from monitors.probes.settings import CapturePolicy, Isolation, ProbeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import Assessment
from monitors.records.runs import CaseResult

Clock = Callable[[], datetime]
OnAsked = Callable[[CaseResult], Awaitable[None]]
"""A function that is called with each result. If the function raises an exception, no more questions are asked."""

MAX_FAILURES_IN_A_ROW = 3
"""After this number of consecutive questions without an answer, no more questions are asked."""


@dataclass(frozen=True)
class CaseAsker:
    """Asks cases at one address, with a new session for each case. Use each instance in one event loop only."""

    driver: ChatDriver
    panel: Sequence[Grader]
    settings: ProbeSettings
    run_id: str
    clock: Clock

    async def ask(self, questions: Iterable[Question], *, on_asked: OnAsked) -> ProbeTally:
        """Ask the questions in order. Stop after three questions in a row without an answer.

        No judge is asked. Therefore answers that rules cannot grade stay ungraded.
        """

        async def grade_and_pass_on(case: GoldCase, result: ProbeResult) -> None:
            assessment = assess_by_rules(self.panel, case, result)
            await on_asked(CaseResult(case=case, result=result, assessment=assessment))

        return await probe_questions(
            self.driver,
            questions,
            run_id=self.run_id,
            settings=self.settings,
            clock=self.clock,
            concurrency=build_concurrency_limit(self.settings),
            on_result=grade_and_pass_on,
        )

    async def ask_case(self, case: GoldCase, times: int, *, first_repeat: int = 0) -> tuple[CaseResult, ...]:
        """Ask one case ``times`` times. Return the results in the order in which the answers arrive.

        The repeats are numbered from ``first_repeat``.
        """
        results: list[CaseResult] = []

        async def append_result(result: CaseResult) -> None:
            results.append(result)

        repeats = range(first_repeat, first_repeat + times)
        await self.ask((Question(case=case, repeat=repeat) for repeat in repeats), on_asked=append_result)
        return tuple(results)


@asynccontextmanager
async def open_case_asker(
    config: Config,
    target: str,
    address: str,
    *,
    folder: Path,
    run_id: str,
    cases: Sequence[GoldCase],
    environment: Mapping[str, str],
    clock: Clock,
) -> AsyncGenerator[CaseAsker]:
    """Open a `CaseAsker` for ``target`` at ``address``: the target's own address, or the address of another build.

    ``cases`` contain the scripted replies for an agent that asks a question before it answers. ``folder`` is for
    files of the driver, and must not be the folder of the run. Raises `ConfigError` if the target cannot be asked
    at ``address``.
    """
    configured = config.require_target(target)
    own_address = build_target_record(target, configured).address
    moved_settings = move_settings_to_address(configured.probe, own_address, address)
    settings = build_settings_for_asking_again(moved_settings).with_browser_from_environment(environment)
    driver_opening = open_driver(
        address,
        settings,
        folder=folder,
        environment=environment,
        login=build_login_at(config, target, address, environment),
        script=build_scripted_reply_finder(cases),
    )
    async with driver_opening as driver:
        yield CaseAsker(
            driver=driver,
            panel=build_rule_panel(configured.graders, configured.domain),
            settings=settings,
            run_id=run_id,
            clock=clock,
        )


def assess_by_rules(panel: Sequence[Grader], case: GoldCase, result: ProbeResult) -> Assessment:
    """Grade an answer without a model: with the graders, and with the rules that run before a judge is asked."""
    if not isinstance(result, Exchange):
        return assess_case(case, result, ())
    grades = grade_exchange(panel, case, result)
    assessment = assess_case(case, result, grades)
    by_rule = grade_trivial_answer_as_failed(case, result) if is_judge_required_for_ungraded(assessment) else None
    return assessment if by_rule is None else assess_case(case, result, (*grades, by_rule))


def build_settings_for_asking_again(settings: ProbeSettings) -> ProbeSettings:
    """Return the settings for asking again: one browser context per question, one attempt, no screenshots."""
    return settings.model_copy(
        update={
            "isolation": Isolation.CONTEXT,
            "attempts": 1,
            "circuit_breaker_failures": min(settings.circuit_breaker_failures, MAX_FAILURES_IN_A_ROW),
            "screenshots": CapturePolicy.NEVER,
            "traces": CapturePolicy.NEVER,
        }
    )


def move_settings_to_address(settings: ProbeSettings, own_address: str, address: str) -> ProbeSettings:
    """Return the settings with ``address`` instead of ``own_address`` in every URL.

    Raises `ConfigError` if the URL of an API is not below ``own_address``.
    """
    if own_address == address:
        return settings
    posted = {"api": settings.api.url, "job": settings.job.url}
    moved = {
        name: None if url is None else move_url_to_address(url, own_address, address)
        for name, url in posted.items()
    }
    for name, url in posted.items():
        if url is not None and moved[name] is None:
            raise ConfigError(
                f"Lookout cannot ask {address}: probe.{name}.url is {url}, which does not start with the target's "
                f"address {own_address}"
            )
    own_version_url = settings.readiness.version_url
    version_url = None if own_version_url is None else move_url_to_address(own_version_url, own_address, address)
    return settings.model_copy(
        update={
            "api": settings.api.model_copy(update={"url": moved["api"]}),
            "job": settings.job.model_copy(update={"url": moved["job"]}),
            "readiness": settings.readiness.model_copy(update={"version_url": version_url}),
        }
    )


def move_url_to_address(url: str, own_address: str, address: str) -> str | None:
    """Replace ``own_address`` by ``address`` in ``url``. Return ``None`` if ``url`` is not below ``own_address``.

    If both addresses end in the same path, for example ``/chat``, only the part before the path is replaced.
    """
    here, there = own_address.rstrip("/"), address.rstrip("/")
    while _has_url_path(here) and _has_url_path(there) and here.rpartition("/")[2] == there.rpartition("/")[2]:
        here, there = here.rpartition("/")[0], there.rpartition("/")[0]
    inside = url == here or url.startswith((f"{here}/", f"{here}?"))
    return there + url.removeprefix(here) if inside else None


def _has_url_path(address: str) -> bool:
    return urlsplit(address).path not in ("", "/")
