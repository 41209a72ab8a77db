"""`lookout gold grow`, killed after the case has joined and before its draft is decided. Arguments: data, suite."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from deployments import gold_grow_command
from deployments.gold_grow_command import GrowOptions


def main() -> None:
    """Run until the outcome would be kept."""

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    gold_grow_command.append_outcomes = killed
    folder, suite = Path(sys.argv[1]), Path(sys.argv[2])
    gold_grow_command.grow_command(
        GrowOptions(
            suite=suite,
            config=folder / "none.toml",
            data_folder=folder,
            target=None,
            take=None,
            by="asha",
            as_json=False,
        )
    )


if __name__ == "__main__":
    main()
