"""Reports changes of the configuration file. New runs read the file again, but running processes do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from monitors.config.file import load_config
from monitors.errors import ConfigError

POLL_S: Final = 5.0


async def report_configuration_changes(path: Path, write_line: Callable[[str], None]) -> None:
    """Write a line after each change of the file, until cancelled. The line states whether the file is valid."""
    current = content = await asyncio.to_thread(_read_content, path)
    while True:
        # The file is polled, because an editor may replace it, which would end a watch on it.
        await asyncio.sleep(POLL_S)
        previous, content = content, await asyncio.to_thread(_read_content, path)
        if content in {current, None} or content != previous:  # an editor may be writing it just now
            continue
        current = content
        try:
            await asyncio.to_thread(load_config, path)
        except ConfigError as error:
            write_line(f"{path.name} has changed and cannot be read, so no run can start: {error}")
        else:
            write_line(
                f"{path.name} has changed. New runs use the changed file. To apply changes of schedules, receivers "
                "or the site, restart `lookout up`"
            )


def _read_content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
