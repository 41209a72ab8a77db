"""The demo's lookout.toml: written into its folder, so that every other command works on it too.

The Space's port is one that nobody listens on.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

from monitors.config.file import FILE_NAME, Config, load_config
from monitors.errors import WarehouseUnwritable


def free_port(host: str, preferred: int) -> int:
    """``preferred`` when it is free, else one that the system picks."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port on {host}")


SUITE = Path(__file__).with_name("suraksha.jsonl")

TEMPLATE = """\
# Written by `lookout demo`. The same commands as for any other target work here:
#   lookout verify demo --config {config}
data_folder = "."

[targets.demo]
url = "http://127.0.0.1:{port}"
environment = "staging"
suite = {suite}

# A Gradio chat forgets with its page, so loading it again is a fresh conversation, at two thirds of the cost.
[targets.demo.probe]
isolation = "reload"

[targets.demo.probe.readiness]
version_url = "http://127.0.0.1:{port}/version"

[alerts]
slack_channel = {channel}
{slack_api_url}"""


def written_config(folder: Path, port: int, *, slack_api_url: str | None, channel: str) -> Config:
    """Write the configuration for a Space on ``port`` and read it back, as any other."""
    path = folder / FILE_NAME
    address = f"slack_api_url = {json.dumps(slack_api_url)}\n" if slack_api_url else ""
    text = TEMPLATE.format(
        config=path,
        port=port,
        suite=json.dumps(str(SUITE)),
        channel=json.dumps(channel),
        slack_api_url=address,
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WarehouseUnwritable(
            f"{folder}: cannot be written ({error.strerror}); choose another with --data-folder"
        ) from error
    return load_config(path)
