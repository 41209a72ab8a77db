"""Kill a starting Prefect server twenty times.

There must never be more than one server, and the last start must find it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.flows.server_kills import kill_while_it_starts, servers_of

KILLS = 20


def main() -> int:
    """Print the number of servers after each kill."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        counts = [len(servers) for servers in kill_while_it_starts(home, KILLS, seed=20)]
        print(f"{KILLS} kills, servers after each and at last: {counts}; left: {len(servers_of(home))}")
        return 0 if max(counts) == counts[-1] == 1 and not servers_of(home) else 1


if __name__ == "__main__":
    sys.exit(main())
