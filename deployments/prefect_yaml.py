"""``lookout prefect-yaml``: the deployments of a configuration as the file that ``prefect deploy`` reads.

The same plan as ``lookout up`` serves from one machine, for workers of a work pool elsewhere. It holds names and
paths only: secrets are in the workers' environment, or named in the pool's own template (``deployments/pools``).

    python -m deployments.prefect_yaml   writes deployments/prefect.yaml anew, from lookout.example.toml
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from deployments.pool_options import POOL
from flows.schedules import TAG, Cron, Every, PlannedDeployment, planned_deployments
from monitors.config import Config, load_config

FOLDER: Final = Path(__file__).parent
EXAMPLE: Final = FOLDER / "lookout.example.toml"
DOCUMENT: Final = FOLDER / "prefect.yaml"
INSTALLED_AT: Final = Path("/etc/lookout/lookout.toml")
"""Where workers find the configuration: the same path for all of them, in a container or not."""

_HEAD: Final = """\
# Made by `lookout prefect-yaml`: the deployments of a lookout.toml, for workers of the pool {pool!r}.
# Secrets stand in the workers' environment, or in the pool's template; never here. See docs/scaling.md.
"""

_PULL: Final = [{"prefect.deployments.steps.set_working_directory": {"directory": "/"}}]
"""The code is installed where workers run; without a step, they would look for the folder of whoever deploys."""


def prefect_yaml(config: Config, config_path: Path, *, pool: str = POOL, image: str | None = None) -> str:
    """The file for workers that read ``config_path`` (absolute); ``image`` is for pools of containers."""
    work_pool: dict[str, Any] = {"name": pool}
    if image is not None:
        work_pool["job_variables"] = {"image": image}
    planned = planned_deployments(config, config_path, config.schedules)
    content = {"name": "lookout", "pull": _PULL, "deployments": [_deployment(one, work_pool) for one in planned]}
    body = yaml.dump(content, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return _HEAD.format(pool=pool) + body


class _Plain(yaml.SafeDumper):
    """Writes what repeats again, instead of pointing to where it stood first."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _deployment(planned: PlannedDeployment, work_pool: dict[str, Any]) -> dict[str, Any]:
    limit = {"concurrency_limit": {"limit": 1, "collision_strategy": "CANCEL_NEW"}}
    return {
        "name": planned.name,
        "entrypoint": f"{planned.module}.{planned.function}",
        "tags": [TAG, *planned.tags],
        "schedules": _schedules(planned.when),
        **(limit if isinstance(planned.when, Every) else {}),  # the next look comes within a minute
        "parameters": dict(planned.parameters),
        "work_pool": work_pool,
    }


def _schedules(when: Cron | Every | None) -> list[dict[str, Any]]:
    match when:
        case Cron():
            return [{"cron": when.line, "timezone": when.time_zone}]
        case Every():
            return [{"interval": when.seconds}]
        case None:
            return []


def main() -> int:
    """Write the example."""
    DOCUMENT.write_text(prefect_yaml(load_config(EXAMPLE), INSTALLED_AT), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
