"""Write the job templates of container work pools: Prefect's own templates with Lookout's settings.

    python -m tests.tools.pool_templates   rewrites deployments/prefect/pools/docker.json and kubernetes.json

A run needs the configuration, the data folder, space in ``/dev/shm`` for Chromium's pages, and secrets. The
templates do not contain the secrets. Docker gets the secrets from Prefect's Secret blocks, Kubernetes from a Secret
of the cluster.
"""

from __future__ import annotations

import copy
import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any, Final

from flows.terminal import write_text

FOLDER: Final = Path(__file__).parents[2] / "deployments" / "prefect" / "pools"
IMAGE: Final = "lookout"
CONFIG_FOLDER: Final = "/etc/lookout"
DATA_FOLDER: Final = "/var/lib/lookout"
SECRETS: Final = ("SLACK_BOT_TOKEN", "ANTHROPIC_API_KEY", "HF_TOKEN", "LOOKOUT_HEARTBEAT_URL")
"""The environment variables with secrets that a run reads.

In your copy of the template, remove variables that have no Secret block, and add other variables that you use.
"""
PACKAGES: Final = {"docker": "prefect-docker", "kubernetes": "prefect-kubernetes"}

Template = dict[str, Any]


def shipped(kind: str) -> Template:
    """Return the default job template of the installed Prefect for ``kind``: docker or kubernetes."""
    views = resources.files("prefect.server.api") / "collections_data" / "views"
    metadata = json.loads((views / "aggregate-worker-metadata.json").read_text(encoding="utf-8"))
    template: Template = metadata[PACKAGES[kind]][kind]["default_base_job_configuration"]
    return template


def docker_template(default: Template) -> Template:
    """Return the job template for Docker. The containers share the host's configuration, data and ``/dev/shm``."""
    made = copy.deepcopy(default)
    variables = made["variables"]["properties"]
    variables["image"]["default"] = IMAGE
    variables["image_pull_policy"]["default"] = "IfNotPresent"
    variables["volumes"]["default"] = [
        f"{CONFIG_FOLDER}:{CONFIG_FOLDER}:ro",
        f"lookout-data:{DATA_FOLDER}",
        "/dev/shm:/dev/shm",
    ]
    variables["env"]["default"] = {name: f"{{{{ prefect.blocks.secret.{block_of(name)} }}}}" for name in SECRETS}
    return made


def kubernetes_template(default: Template) -> Template:
    """Return the job template for Kubernetes, with a volume claim for data, a config map, and a Secret."""
    made = copy.deepcopy(default)
    variables = made["variables"]["properties"]
    variables["image"]["default"] = IMAGE
    variables["namespace"]["default"] = "lookout"
    pod = made["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"secretRef": {"name": "lookout-secrets"}}]
    pod["containers"][0]["volumeMounts"] = [
        {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
        {"name": "data", "mountPath": DATA_FOLDER},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    pod["volumes"] = [
        {"name": "config", "configMap": {"name": "lookout-config"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "lookout-data"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    ]
    return made


def block_of(variable: str) -> str:
    """Return the name of the Secret block for a variable: the name in lower case, with ``-`` for ``_``."""
    return variable.lower().replace("_", "-")


MAKERS: Final = {"docker": docker_template, "kubernetes": kubernetes_template}


def text_of(kind: str) -> str:
    """Return the text of the template file for ``kind``: docker or kubernetes."""
    return json.dumps(MAKERS[kind](shipped(kind)), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write all templates."""
    FOLDER.mkdir(exist_ok=True)
    for kind in MAKERS:
        path = FOLDER / f"{kind}.json"
        path.write_text(text_of(kind), encoding="utf-8")
        write_text(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
