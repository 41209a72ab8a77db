"""A process that runs the flow for followed logs on a schedule, as an installation does, until it gets SIGTERM.

Start it with ``python -m tests.flows.hallucination_log.log_server lookout.toml NAME EVERY_S FOR_S``.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from prefect import serve
from prefect.deployments.runner import EntrypointType

from flows.hallucination_log.flow import follow_log


def main() -> None:
    config, name, every_s, for_s = sys.argv[1:]
    # Not `follow_log.serve`: that pickles the flow, and its annotations, which are strings, find no names then.
    deployment = follow_log.to_deployment(
        name=name,
        interval=timedelta(seconds=float(every_s)),
        parameters={"config_path": str(Path(config).resolve()), "for_s": float(for_s)},
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    serve(deployment, limit=1, print_starting_message=False)


if __name__ == "__main__":
    main()
