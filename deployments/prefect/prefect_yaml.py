"""``lookout prefect-yaml``: write the deployments of a configuration to a file for ``prefect deploy``.

``lookout up`` runs the same deployments on one machine. The file is for workers of a work pool on other machines.
It contains names and paths, but no secrets. Secrets come from the workers' environment or from the pool's template
(``deployments/prefect/pools``).

    python -m deployments.prefect.prefect_yaml   writes deployments/prefect/prefect.yaml again, from
    lookout.example.toml
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
import yaml

from deployments.cli.options import DEFAULT_CONFIG, ConfigOption
from flows.runtime.secrets import get_environment
from flows.server.schedules import (
    NOT_PAUSED,
    SCHEDULE_SLUG,
    Cron,
    Every,
    Pause,
    PlannedDeployment,
    plan_deployments,
)
from flows.terminal import write_data, write_text
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError

FOLDER: Final = Path(__file__).parent
EXAMPLE: Final = FOLDER.parent / "lookout.example.toml"
DOCUMENT: Final = FOLDER / "prefect.yaml"
INSTALLED_AT: Final = Path("/etc/lookout/lookout.toml")
"""The path of the configuration on each machine or container with a worker."""

_HEAD: Final = """\
# Written by `lookout prefect-yaml`: the deployments of a lookout.toml, for workers of the pool {pool!r}.
# Put secrets in the workers' environment or in the pool's template, never in this file. See docs/scaling.md.
"""

_PULL: Final = [{"prefect.deployments.steps.set_working_directory": {"directory": "/"}}]
"""The pull step, which sets a working directory that exists on every worker. The code is already installed there.

Without a pull step, a worker would look for the working directory of the machine that ran `prefect deploy`.
"""


def prefect_yaml_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    at: Annotated[
        Path | None,
        typer.Option(
            help="the path of the configuration file on the workers; default: the same path as on this machine"
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            help="the work pool that executes the runs; default: lookout, or lookout-PREFIX if prefect.prefix is "
            "set"
        ),
    ] = None,
    image: Annotated[str | None, typer.Option(help="the container image, for a pool that runs containers")] = None,
    deploy: Annotated[
        bool,
        typer.Option(
            "--deploy",
            help="deploy to Prefect instead of printing the file. Deployments that are no longer configured are "
            "deleted. Paused deployments stay paused",
        ),
    ] = False,
) -> None:
    """Print a prefect.yaml with all deployments and schedules, for your own Prefect work pool."""
    loaded, config_path = load_config(config), at or config.resolve()
    pool = pool or loaded.prefect.tag
    if deploy:
        _deploy_with_prefect_command(loaded, config_path, pool=pool, image=image)
    else:
        write_data(format_prefect_yaml(loaded, config_path, pool=pool, image=image))


def _deploy_with_prefect_command(config: Config, config_path: Path, *, pool: str, image: str | None) -> None:
    """Run `prefect deploy` with a temporary prefect.yaml. Then delete deployments that are no longer configured.

    If `prefect deploy` fails, raises a `ConfigError` that contains its output.
    """
    from flows.runtime.run import start_or_connect_to_prefect

    start_or_connect_to_prefect(config)
    from prefect.client.orchestration import get_client  # reads its settings at import, so only after connecting

    from flows.server.registered import delete_unplanned_deployments, read_pauses

    async def read() -> Mapping[str, Pause]:
        async with get_client() as client:
            return await read_pauses(client, config.prefect.tag)

    async def remove() -> Sequence[str]:
        async with get_client() as client:
            return await delete_unplanned_deployments(
                client, plan_deployments(config, config_path, config.schedules), config_path, config.prefect.tag
            )

    pauses = asyncio.run(read())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prefect.yaml"
        file.write_text(
            format_prefect_yaml(config, config_path, pool=pool, image=image, pauses=pauses), encoding="utf-8"
        )
        command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", file.name]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command, cwd=folder, env=get_environment(), capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise ConfigError(f"prefect deploy ended with code {done.returncode}:\n{done.stdout}{done.stderr}")
    for name, pause in pauses.items():
        write_text(f"{name} stays paused. It was paused at {pause.since:%Y-%m-%d %H:%M} UTC\n")
    for name in asyncio.run(remove()):
        write_text(f"{name} is no longer in the configuration, and was removed from Prefect\n")


def format_prefect_yaml(
    config: Config,
    config_path: Path,
    *,
    pool: str | None = None,
    image: str | None = None,
    pauses: Mapping[str, Pause] = MappingProxyType({}),
) -> str:
    """Return the text of prefect.yaml for workers that read the configuration ``config_path`` (absolute).

    The default for ``pool`` is the pool of this installation. ``image`` is the container image, for pools that run
    containers. ``pauses`` maps deployments to their pauses, as returned by `read_pauses`.
    """
    pool = pool or config.prefect.tag
    work_pool: dict[str, Any] = {"name": pool}
    if image is not None:
        work_pool["job_variables"] = {"image": image}
    planned = plan_deployments(config, config_path, config.schedules)
    content = {
        "name": "lookout",
        "pull": _PULL,
        "deployments": [
            _build_deployment(deployment, work_pool, pauses.get(deployment.name, NOT_PAUSED))
            for deployment in planned
        ],
    }
    body = yaml.dump(content, Dumper=_NoAliasDumper, sort_keys=False, allow_unicode=True, width=110)
    return _HEAD.format(pool=pool) + body


class _NoAliasDumper(yaml.SafeDumper):
    """A YAML dumper without aliases, so that repeated values are written in full."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _build_deployment(planned: PlannedDeployment, work_pool: dict[str, Any], pause: Pause) -> dict[str, Any]:
    limit = {"limit": 1, "collision_strategy": "ENQUEUE"}
    return {
        "name": planned.name,
        "entrypoint": f"{planned.module}.{planned.function}",
        "tags": [planned.tag, *planned.tags, *pause.tags],
        "schedules": _build_schedules(planned.when, pause),
        **({"paused": True} if pause.is_paused else {}),
        **({"concurrency_limit": limit} if planned.run_limit is not None else {}),
        "parameters": dict(planned.parameters),
        "work_pool": work_pool,
    }


def _build_schedules(when: Cron | Every | None, pause: Pause) -> list[dict[str, Any]]:
    own = {"slug": SCHEDULE_SLUG, **({} if pause.is_schedule_active else {"active": False})}
    match when:
        case Cron():
            return [{"cron": when.line, "timezone": when.time_zone, **own}]
        case Every():
            return [{"interval": when.seconds, **own}]
        case None:
            return []


def main() -> int:
    """Write ``prefect.yaml`` from the example configuration."""
    DOCUMENT.write_text(format_prefect_yaml(load_config(EXAMPLE), INSTALLED_AT), encoding="utf-8")
    write_text(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
