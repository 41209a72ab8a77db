"""Asks cases again at any address of a target, each time in a new session, graded by the target's graders.

The results do not count for a run's verdict, and no screenshots are stored. `open_case_asker`
is for callers that know a target and an address of it, such as an earlier build.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from flows.runtime.probe import build_local_pace, build_login_at, build_script, open_driver
from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError
from monitors.gate.assess import assess_case
from monitors.graders.base import Grader
from monitors.graders.panel import build_default_panel, grade_exchange
from monitors.judge.precheck import grade_by_rule, is_open
from monitors.probes.driver import ChatDriver
from monitors.probes.runner import ProbeTally, Question, probe_questions
from monitors.probes.settings import CapturePolicy, Isolation, ProbeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import Assessment
from monitors.records.runs import CaseResult

Clock = Callable[[], datetime]
OnAsked = Callable[[CaseResult], Awaitable[None]]
"""Called with each result; an exception ends the asking."""

MAX_FAILURES_IN_A_ROW = 3
"""After this many questions in a row without an answer the rest is not asked."""


@dataclass(frozen=True)
class CaseAsker:
    """Asks cases at one address, each time in a new session. Belongs to one event loop.

    ``clock`` gives the time of the results.
    """

    driver: ChatDriver
    panel: Sequence[Grader]
    settings: ProbeSettings
    run_id: str
    clock: Clock

    async def ask(self, questions: Iterable[Question], *, on_asked: OnAsked) -> ProbeTally:
        """Ask in the given order; stop after three questions in a row without an answer.

        Answers that the plain graders leave open stay ungraded: `is_open` says whether a judge could grade them.
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
            concurrency=build_local_pace(self.settings),
            on_result=grade_and_pass_on,
        )

    async def ask_case(self, case: GoldCase, times: int, *, first_repeat: int = 0) -> tuple[CaseResult, ...]:
        """Ask one case ``times`` times; return the results in the order in which they came."""
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
    """Open an asker of ``target`` at ``address``, which may be its own or that of another build of it.

    ``cases`` hold what an agent that stops to ask is answered. ``folder`` is for what a driver leaves behind; it
    must not be the run's own. Raises `ConfigError` if the target cannot be asked at ``address``.
    """
    configured = config.require_target(target)
    own_address = build_target_record(target, configured).address
    moved_settings = move_settings(configured.probe, own_address, address)
    settings = build_repeat_settings(moved_settings).use_browser(environment)
    driver_opening = open_driver(
        address,
        settings,
        folder=folder,
        environment=environment,
        login=build_login_at(config, target, address, environment),
        script=build_script(cases),
    )
    async with driver_opening as driver:
        yield CaseAsker(
            driver=driver,
            panel=build_default_panel(configured.graders, configured.domain),
            settings=settings,
            run_id=run_id,
            clock=clock,
        )


def assess_by_rules(panel: Sequence[Grader], case: GoldCase, result: ProbeResult) -> Assessment:
    """Assess an answer without a model: by the graders and the judge's precheck."""
    if not isinstance(result, Exchange):
        return assess_case(case, result, ())
    grades = grade_exchange(panel, case, result)
    assessment = assess_case(case, result, grades)
    by_rule = grade_by_rule(case, result) if is_open(assessment) else None
    return assessment if by_rule is None else assess_case(case, result, (*grades, by_rule))


def build_repeat_settings(settings: ProbeSettings) -> ProbeSettings:
    """Return the settings for asking again: one browser context for each session, one try, no screenshots."""
    return settings.model_copy(
        update={
            "isolation": Isolation.CONTEXT,
            "attempts": 1,
            "circuit_breaker_failures": min(settings.circuit_breaker_failures, MAX_FAILURES_IN_A_ROW),
            "screenshots": CapturePolicy.NEVER,
            "traces": CapturePolicy.NEVER,
        }
    )


def move_settings(settings: ProbeSettings, own_address: str, address: str) -> ProbeSettings:
    """Return the settings with every URL below ``own_address`` moved to ``address``.

    Raises `ConfigError` for an API at another address, which would not be the build at ``address``.
    """
    if own_address == address:
        return settings
    posted = {"api": settings.api.url, "job": settings.job.url}
    moved = {name: None if url is None else move_url(url, own_address, address) for name, url in posted.items()}
    for name, url in posted.items():
        if url is not None and moved[name] is None:
            raise ConfigError(
                f"{address} cannot be asked: probe.{name}.url is {url}, which is not below the target's address "
                f"{own_address}"
            )
    own_version_url = settings.readiness.version_url
    version_url = None if own_version_url is None else move_url(own_version_url, own_address, address)
    return settings.model_copy(
        update={
            "api": settings.api.model_copy(update={"url": moved["api"]}),
            "job": settings.job.model_copy(update={"url": moved["job"]}),
            "readiness": settings.readiness.model_copy(update={"version_url": version_url}),
        }
    )


def move_url(url: str, own_address: str, address: str) -> str | None:
    """Return ``url`` with ``own_address`` replaced by ``address``; ``None`` if it is not beside ``own_address``.

    Both addresses may end in the same path (``/chat``); then only the part before it is replaced.
    """
    here, there = own_address.rstrip("/"), address.rstrip("/")
    while _has_path(here) and _has_path(there) and here.rpartition("/")[2] == there.rpartition("/")[2]:
        here, there = here.rpartition("/")[0], there.rpartition("/")[0]
    inside = url == here or url.startswith((f"{here}/", f"{here}?"))
    return there + url.removeprefix(here) if inside else None


def _has_path(address: str) -> bool:
    return urlsplit(address).path not in ("", "/")
