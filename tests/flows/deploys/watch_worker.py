"""A process that runs the poll for deploys on request, so that Prefect's sockets and threads end with the process.

Each input line is a JSON list: the path of a lookout.toml and the ``[deploys]`` table. Each output line is a JSON
list: the type, name and message of the run's state.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from flows.deploys.flow import watch_deploys
from monitors.config.sections import DeploySettings


def main() -> None:
    for line in sys.stdin:
        config, deploys = json.loads(line)
        settings = DeploySettings.model_validate(deploys)
        state = asyncio.run(watch_deploys(Path(config), settings, return_state=True))
        print(json.dumps([state.type.value, state.name, state.message]), flush=True)


if __name__ == "__main__":
    main()
