"""Sends one alert about a part of ``lookout up``: ``python -m deployments.up.part_alerts ARGUMENTS``.

    CONFIG crash-loop PART DEATHS CODE    the part ended several times in a row
    CONFIG recovery PART                  the part runs stably again

The supervisor starts this short process for each alert. Therefore the supervisor itself does not need to import the
code that sends alerts.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from flows.alerting.faults import Fault, notify_fault, resolve_faults
from flows.runtime.slack import build_notifier_without_run
from flows.terminal import escape_controls_in_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.errors import MonitorError
from monitors.records.incidents import Capability

SUBJECT: Final = "up"
"""In messages about parts of ``lookout up``, this name is shown instead of a target's name."""
CRASH_LOOP: Final = "crash-loop"
BROKEN_EXIT_CODE: Final = 4


def main() -> int:
    """Send the alert that the arguments describe. Return exit code 0, or 4 if the alert could not be sent."""
    path, kind, name, *rest = sys.argv[1:]
    try:
        config = load_config(Path(path))
        if kind == CRASH_LOOP:
            deaths, code = rest
            asyncio.run(send_crash_loop_alert(config, name, int(deaths), f"last with exit code {code}"))
        else:
            asyncio.run(send_recovery_alert(config, name))
    except MonitorError as error:
        write_note(f"the alert about {name} could not be sent: {redact(str(error))}\n")
        return BROKEN_EXIT_CODE
    return 0


async def send_crash_loop_alert(config: Config, name: str, deaths: int, last_end: str) -> None:
    """Send an alert about a part that ended ``deaths`` times in a row. ``last_end`` describes how it last ended."""
    detail = (
        f"The part {name!r} of `lookout up` ended {deaths} times in a row, {last_end}. "
        "Lookout continues to restart it. For the cause, see the part's last lines in the log of `lookout up`."
    )
    notifier = await asyncio.to_thread(build_notifier_without_run, config, SUBJECT, Capability.UP)
    await notify_fault(notifier, Fault(_format_fault_name(name), detail))


async def send_recovery_alert(config: Config, name: str) -> None:
    """Resolve the alert about a part, and send the message that the part is running again."""
    notifier = await asyncio.to_thread(build_notifier_without_run, config, SUBJECT, Capability.UP)
    text = f"The part {name!r} of `lookout up` is running again."
    await resolve_faults(notifier, {_format_fault_name(name): text}, began_at=notifier.now())


def _format_fault_name(part: str) -> str:
    return f"PartDies:{part}"


if __name__ == "__main__":
    with escape_controls_in_output():
        sys.exit(main())
