"""Kill Prefect's server during a verification, and wait until the command ends."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.flows.test_prefect_lost import Victim, verify_twice
from tests.servers.slack import SlackServer


def main() -> int:
    """Run the command twice, and print how long both runs took together."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, SlackServer() as slack:
        server = Victim(Path(folder) / "victim")
        work = Path(folder) / "work"
        work.mkdir()
        try:
            verify_twice(work, server, slack, to_the_end=True)
        finally:
            server.stop()
    print(
        f"a run without its server and the next one with it: {time.monotonic() - begun:.0f} s, nothing alerted twice"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
