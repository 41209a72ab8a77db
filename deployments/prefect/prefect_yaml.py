"""``lookout prefect-yaml``: write a configuration's deployments as the file that ``prefect deploy`` reads.

It is the plan that ``lookout up`` serves from one machine, for workers of a work pool elsewhere. It holds names and
paths only: secrets are in the workers' environment, or named in the pool's own template
(``deployments/prefect/pools``).

    python -m deployments.prefect.prefect_yaml   writes deployments/prefect/prefect.yaml again, from
    lookout.example.toml
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from deployments.cli.options import DEFAULT_CONFIG, ConfigOption
from flows.server.schedules import TAG, Cron, Every, PlannedDeployment, plan_deployments
from flows.terminal import write_data, write_text
from monitors.config.file import Config, load_config

POOL: Final = "lookout"
FOLDER: Final = Path(__file__).parent
EXAMPLE: Final = FOLDER.parent / "lookout.example.toml"
DOCUMENT: Final = FOLDER / "prefect.yaml"
INSTALLED_AT: Final = Path("/etc/lookout/lookout.toml")
"""Where workers find the configuration: the same path for all of them, in a container or not."""

_HEAD: Final = """\
# Written by `lookout prefect-yaml`: the deployments of a lookout.toml, for workers of the pool {pool!r}.
# Put secrets in the workers' environment or in the pool's template, never in this file. See docs/scaling.md.
"""

_PULL: Final = [{"prefect.deployments.steps.set_working_directory": {"directory": "/"}}]
"""The code is installed where workers run; without a step, they would search the deploying user's folder."""


def prefect_yaml_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    at: Annotated[
        Path | None, typer.Option(help="path of that file on the workers; default: the same path as here")
    ] = None,
    pool: Annotated[str, typer.Option(help="the work pool whose workers execute the runs")] = POOL,
    image: Annotated[str | None, typer.Option(help="the container image of the pool")] = None,
) -> None:
    """Print a prefect.yaml with every deployment and schedule, for workers of a work pool."""
    write_data(format_prefect_yaml(load_config(config), at or config.resolve(), pool=pool, image=image))


def format_prefect_yaml(config: Config, config_path: Path, *, pool: str = POOL, image: str | None = None) -> str:
    """Format the file for workers that read ``config_path`` (absolute); ``image`` is for pools of containers."""
    work_pool: dict[str, Any] = {"name": pool}
    if image is not None:
        work_pool["job_variables"] = {"image": image}
    planned = plan_deployments(config, config_path, config.schedules)
    content = {
        "name": "lookout",
        "pull": _PULL,
        "deployments": [_build_deployment(deployment, work_pool) for deployment in planned],
    }
    body = yaml.dump(content, Dumper=_NoAliasDumper, sort_keys=False, allow_unicode=True, width=110)
    return _HEAD.format(pool=pool) + body


class _NoAliasDumper(yaml.SafeDumper):
    """Writes repeated values again, instead of an alias to the first."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _build_deployment(planned: PlannedDeployment, work_pool: dict[str, Any]) -> dict[str, Any]:
    limit = {"concurrency_limit": {"limit": 1, "collision_strategy": "CANCEL_NEW"}}
    return {
        "name": planned.name,
        "entrypoint": f"{planned.module}.{planned.function}",
        "tags": [TAG, *planned.tags],
        "schedules": _build_schedules(planned.when),
        **(limit if isinstance(planned.when, Every) else {}),  # the next poll comes within a minute
        "parameters": dict(planned.parameters),
        "work_pool": work_pool,
    }


def _build_schedules(when: Cron | Every | None) -> list[dict[str, Any]]:
    match when:
        case Cron():
            return [{"cron": when.line, "timezone": when.time_zone}]
        case Every():
            return [{"interval": when.seconds}]
        case None:
            return []


def main() -> int:
    """Write the example."""
    DOCUMENT.write_text(format_prefect_yaml(load_config(EXAMPLE), INSTALLED_AT), encoding="utf-8")
    write_text(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
