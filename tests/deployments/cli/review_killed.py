"""Runs `lookout gold review`, and kills it at a step. Arguments: the step, the drafts, the suite.

The keys are read from standard input.

``in_suite``: the new suite is written to a temporary file but has not replaced the suite. ``between``: the case was
added, but its draft is not marked. ``in_drafts``: the new file of drafts is written but has not replaced the old
one.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from deployments.cli.gold import review
from monitors import storage


def main() -> None:
    """Run the command until it reaches the step at which it is killed."""
    step, drafts, suite = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    replace = os.replace

    def killed_replace(source: str, target: str, **folders: int) -> None:
        if (step == "in_suite" and target == suite.name) or (step == "in_drafts" and target == drafts.name):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target, **folders)

    def killed_decide(*_: object) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    storage.os.replace = killed_replace
    if step == "between":
        review.store_draft_decision = killed_decide
    review.review_command(drafts, suite=suite, by="asha", config=suite.with_name("none.toml"))


if __name__ == "__main__":
    main()
