"""Build the driver that is configured for a target. Secrets that an app repeats are redacted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from monitors.errors import ConfigError, ProbeError
from monitors.probes.api.driver import ApiDriver
from monitors.probes.api.gradio import GradioDriver
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.login import Login
from monitors.probes.driver import Answer, ChatDriver, EvidenceFilter, SelectEvidence, select_no_evidence
from monitors.probes.job.driver import Clock, FindScriptedAnswer, JobDriver, JobTraces, answer_no_question
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Record
from monitors.request_headers import NO_HEADERS, RequestHeaders

DriverFactory = Callable[[], AbstractAsyncContextManager[ChatDriver]]
RedactedRecord = TypeVar("RedactedRecord", bound=Record)


def build_driver(
    address: str,
    settings: ProbeSettings,
    *,
    run_folder: Path,
    clock: Clock,
    headers: RequestHeaders = NO_HEADERS,
    search_path: str | None = None,
    login: Login | None = None,
    traces: JobTraces | None = None,
    script: FindScriptedAnswer = answer_no_question,
) -> AbstractAsyncContextManager[ChatDriver]:
    """Return the driver that ``probe.driver`` selects, as an async context manager. Raises `ConfigError`.

    - `headers` contain the authentication for an API.
    - `clock` returns the current time, which is used as the start time of a job.
    - `search_path` contains the folders in which Lookout searches for a Chromium.
    - `login` signs in to pages.
    - `traces` reads the traces of an agent's jobs.
    - `script` returns the suite's answer to a question that an agent asks.
    """
    factories: dict[str, DriverFactory] = {
        "browser": lambda: BrowserDriver(
            address, settings, run_folder=run_folder, search_path=search_path, login=login
        ),
        "gradio": lambda: _RedactingDriver(GradioDriver(address, settings, headers=headers), headers),
        "json": lambda: _RedactingDriver(ApiDriver(address, settings, headers=headers), headers),
        "sse": lambda: _RedactingDriver(ApiDriver(address, settings, headers=headers), headers),
        "job": lambda: _RedactingDriver(
            JobDriver(
                address,
                settings,
                run_folder=run_folder,
                clock=clock,
                headers=headers,
                traces=traces,
                script=script,
            ),
            headers,
        ),
    }
    factory = factories.get(settings.driver)
    if factory is None:
        raise ConfigError(f"probe.driver = {settings.driver!r} is not a driver; accepted: {', '.join(factories)}")
    return factory()


class _RedactingDriver:
    """A driver that calls another driver and redacts the secrets of ``headers`` in its answers and errors.

    A secret is also redacted if a stream sends it in several pieces.
    """

    def __init__(self, driver: AbstractAsyncContextManager[ChatDriver], headers: RequestHeaders) -> None:
        self._opening = driver
        self._headers = headers
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._driver = await self._open.enter_async_context(self._opening)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._open.aclose()

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        """See `ChatDriver.ask`."""

        async def select_evidence_after_redaction(answer: Answer) -> EvidenceFilter:
            return await select_evidence(self._redact(answer))

        try:
            return self._redact(
                await self._driver.ask(turns, name=name, select_evidence=select_evidence_after_redaction)
            )
        except ProbeError as error:
            error.args = tuple(self._headers.hide_secrets(str(text)) for text in error.args)
            error.partial_text = self._headers.hide_secrets(error.partial_text)
            error.evidence = self._redact(error.evidence)
            raise

    def _redact(self, record: RedactedRecord) -> RedactedRecord:
        if not self._headers.secrets:
            return record
        return type(record).model_validate(_change_texts_in(record.model_dump(), self._headers.hide_secrets))


def _change_texts_in(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_change_texts_in(item, change) for item in cast("list[Any]", value)]
        case dict():
            return {key: _change_texts_in(item, change) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value
