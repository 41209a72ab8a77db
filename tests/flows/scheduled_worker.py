"""A process that runs the deployments of a configuration like Prefect's worker, at given times.

Its argument is the path of a lookout.toml. Each input line is a JSON list: the full name of a deployment, and an
ISO time. The process runs the deployment's flow with its parameters and a clock that starts at this time. Each
output line is a JSON list: the type, name and message of the run's state.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

from prefect import Flow

from flows.server.schedules import plan_deployments
from monitors.config.file import load_config
from tests.flows.rehearsed_clock import set_clock

TICK = timedelta(milliseconds=1)


class Ticking:
    """A clock that begins at a given time and advances by one millisecond at every call."""

    def __init__(self, begin: datetime) -> None:
        self._now = begin

    def __call__(self) -> datetime:
        self._now += TICK
        return self._now


def main() -> None:
    path = Path(sys.argv[1])
    config = load_config(path)
    planned = {
        planned_deployment.full_name: planned_deployment
        for planned_deployment in plan_deployments(config, path, config.schedules)
    }
    for line in sys.stdin:
        name, at = json.loads(line)
        deployment = planned[name]
        flow: Flow[..., object] = getattr(importlib.import_module(deployment.module), deployment.function)
        parameters = flow.validate_parameters(dict(deployment.parameters))
        set_clock(Ticking(datetime.fromisoformat(at)))
        state = asyncio.run(flow(**parameters, return_state=True))
        print(json.dumps([state.type.value, state.name, state.message]), flush=True)


if __name__ == "__main__":
    main()
