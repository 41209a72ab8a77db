"""Which data folder a command is about."""

from __future__ import annotations

from pathlib import Path

from monitors.config import load_config
from monitors.errors import ConfigError

DEMO_FOLDER = Path(".lookout-demo")
DEFAULT_FOLDER = Path(".lookout")


def data_folder_of(config: Path, given: Path | None) -> Path:
    """The folder that was given, else the configuration's, else the usual one, else the demo's."""
    if given is not None:
        return given
    if config.exists():
        return load_config(config).data_folder
    for folder in (DEFAULT_FOLDER, DEMO_FOLDER):
        if folder.exists():
            return folder
    raise ConfigError(f"there is no {config} and no {DEFAULT_FOLDER} here; name one with --config or --data-folder")
