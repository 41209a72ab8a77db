"""A process that runs the maintenance flow on request. It imports Prefect once, and ends with Prefect's sockets.

Each input line is a JSON list: the path of a lookout.toml, the time to wait for the warehouse in seconds, the hours
by which the clock is ahead, and environment variables. Each output line is a JSON list: the state's type, name and
message, and the output for users in one line.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from contextlib import redirect_stderr
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from flows.maintenance.flow import load_warehouse
from tests.flows.rehearsed_clock import set_clock


def main() -> None:
    for line in sys.stdin:
        config, wait_s, ahead_h, variables = json.loads(line)
        set_clock(partial(_ahead, timedelta(hours=ahead_h)))
        os.environ.update(variables)
        with redirect_stderr(io.StringIO()) as printed:
            state = asyncio.run(load_warehouse(Path(config), wait_s, return_state=True))
        printed_text = re.sub(r"[^\w.`]*\n[^\w.`]*", " ", printed.getvalue())
        print(json.dumps([state.type.value, state.name, state.message, printed_text]), flush=True)


def _ahead(by: timedelta) -> datetime:
    return datetime.now(UTC) + by


if __name__ == "__main__":
    main()
