"""Store evidence of a page: a screenshot, a trace and the errors on its console.

The files are named after the case and may contain personal data. Only the owner of the files can read them, and no
alert contains them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

from monitors.probes.browser.chromium import finish_within_deadline
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.browser.visit import Visit
from monitors.records.exchanges import Evidence
from monitors.storage import OWNER_ONLY_FOLDER_MODE, OWNER_ONLY_MODE, move

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Page

FOLDER = "evidence"
PICTURE_DEADLINE_S = 5.0
SCROLL_DEADLINE_S = 1.0
CONSOLE_LINES = 20
CONSOLE_CHARACTERS = 500
CONSOLE_MESSAGES = 300
"""Maximum number of messages on the page's console that are read for one question."""


Hide = Callable[[bytes], bytes]


def rewrite_files_in_archive(archive: Path, change: Hide) -> None:
    """Apply ``change`` to the content of each file in a ZIP archive, and replace the archive."""
    temporary = archive.with_suffix(".part")
    with ZipFile(archive) as old, ZipFile(temporary, "w", ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, change(old.read(member)))
    move(temporary, archive)


class EvidenceRecorder:
    """Records the evidence of one page while one question is asked.

    Stored paths are relative to ``run_folder``.
    """

    def __init__(
        self,
        page: Page,
        context: BrowserContext,
        run_folder: Path,
        name: str,
        *,
        hidden: Hide | None = None,
        visit: Visit | None = None,
    ) -> None:
        """Prepare the recording of a page.

        ``hidden`` redacts secrets in the trace files, because these files contain the headers of each request.
        """
        self._hidden = hidden
        self._page = page
        self._context = context
        self._run_folder = run_folder
        self._name = name
        self._visit = visit
        self._errors: list[str] = []
        self._tracing = False
        self._messages_left = CONSOLE_MESSAGES
        page.on("console", self._record_console_message_if_error)
        page.on("pageerror", self._record_page_error)

    async def start_trace(self) -> None:
        """Start a Playwright trace, which takes about 0.2 s."""
        await self._context.tracing.start(screenshots=False, snapshots=True, sources=False)
        self._tracing = True

    async def collect_evidence(self, *, screenshot: bool, trace: bool) -> Evidence:
        """Store the requested files and return the evidence. A crashed page has no screenshot."""
        return Evidence(
            screenshot=await self._take_screenshot() if screenshot else None,
            trace=await self._store_trace() if trace else None,
            console_errors=tuple(self._errors),
            refused=self._visit.refused if self._visit is not None else (),
            page=self._visit.page if self._visit is not None else None,
        )

    async def stop_recording(self) -> None:
        """Stop recording. Discard a trace that was not stored."""
        if self._messages_left > 0:
            self._page.remove_listener("console", self._record_console_message_if_error)
        self._page.remove_listener("pageerror", self._record_page_error)
        if self._tracing:
            self._tracing = False
            await finish_within_deadline(self._context.tracing.stop(), PICTURE_DEADLINE_S)

    async def _take_screenshot(self) -> str | None:
        path = self._create_folder_and_build_path(".jpg")
        for frame in self._page.frames:
            await finish_within_deadline(frame.evaluate("() => globalThis.__lookout?.show()"), SCROLL_DEADLINE_S)
        taking = self._page.screenshot(path=path, type="jpeg", quality=70, timeout=PICTURE_DEADLINE_S * 1000)
        return (
            await self._restrict_and_return_relative_path(path)
            if await finish_within_deadline(taking, PICTURE_DEADLINE_S)
            else None
        )

    async def _store_trace(self) -> str | None:
        if not self._tracing:
            return None
        self._tracing = False
        path = self._create_folder_and_build_path(".zip")
        stored = await finish_within_deadline(self._context.tracing.stop(path=path), PICTURE_DEADLINE_S)
        if stored and self._hidden is not None:
            await asyncio.to_thread(rewrite_files_in_archive, path, self._hidden)
        return await self._restrict_and_return_relative_path(path) if stored else None

    def _create_folder_and_build_path(self, suffix: str) -> Path:
        folder = self._run_folder / FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=OWNER_ONLY_FOLDER_MODE)
        return folder / f"{self._name}{suffix}"

    async def _restrict_and_return_relative_path(self, path: Path) -> str:
        """Allow only the owner to read a file. Return the path of the file, relative to the run folder."""
        await asyncio.to_thread(path.chmod, OWNER_ONLY_MODE)
        return path.relative_to(self._run_folder).as_posix()

    def _record_console_message_if_error(self, message: ConsoleMessage) -> None:
        if self._messages_left <= 0:
            return
        self._messages_left -= 1
        if self._messages_left == 0:
            self._page.remove_listener("console", self._record_console_message_if_error)
        if message.type == "error":
            self._record_error(message.text)

    def _record_page_error(self, error: Exception) -> None:
        self._record_error(str(error))

    def _record_error(self, text: str) -> None:
        if len(self._errors) < CONSOLE_LINES:
            self._errors.append(replace_surrogates(text)[:CONSOLE_CHARACTERS])
