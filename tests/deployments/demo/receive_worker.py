"""Runs the receiver as a process, as ``lookout receive`` starts it.

The ``[deploys]`` table is in a separate file.

python -m tests.deployments.demo.receive_worker LOOKOUT_TOML DEPLOYS_TOML PORT
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from deployments.cli.exit_codes import exit_code_from_error
from deployments.cli.receive import run_deploys_receiver
from monitors.config.file import load_config
from monitors.config.sections import DeploySettings
from monitors.errors import MonitorError


def main() -> int:
    config, deploys, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    try:
        settings = DeploySettings.model_validate(tomllib.loads(deploys.read_text(encoding="utf-8")))
        code = run_deploys_receiver(
            load_config(config), settings, config, host="127.0.0.1", port=port, environment=os.environ
        )
    except MonitorError as error:
        sys.stderr.write(f"lookout: {error}\n")
        code = exit_code_from_error(error)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
