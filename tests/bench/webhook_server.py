"""The servers for the benchmark of the webhook receiver: the receiver, and one that answers 202 immediately.

python -m tests.bench.webhook_server --receiver --port 8123 --folder /some/folder
"""

from __future__ import annotations

import argparse
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.cli.receive import build_deploys_receiver
from deployments.receivers.connection_limits import BoundedProtocol
from monitors.config.file import parse_config
from monitors.config.sections import DeploySender, DeploySettings
from tests.deployments.triggers.senders import GITHUB_SECRET, trigger


def main() -> None:
    """Serve until the process is killed."""
    options = argparse.ArgumentParser()
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("--receiver", action="store_true")
    what.add_argument("--nothing", action="store_true")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--folder", type=Path, required=True)
    chosen = options.parse_args()
    app = receiver(chosen.folder) if chosen.receiver else at_once()
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=chosen.port,
        http=BoundedProtocol,
        log_level="error",
        access_log=False,
        server_header=False,
    )


def receiver(folder: Path) -> Starlette:
    """Build the receiver as ``lookout receive`` does. No Prefect server runs in the folder."""
    values = {"data_folder": folder, "targets": {"bot": {"url": "http://127.0.0.1:1", "suite": "suite.jsonl"}}}
    return build_deploys_receiver(
        parse_config(values, "the bench"),
        DeploySettings(triggers=(trigger(),)),
        folder / "lookout.toml",
        secrets={DeploySender.GITHUB: (GITHUB_SECRET,)},
        environment={},
    )


def at_once() -> Starlette:
    """Build the baseline server. It answers 202 immediately, and reads and stores nothing."""

    async def accept(_request: Request) -> Response:
        return PlainTextResponse("accepted", status_code=202)

    return Starlette(routes=[Route("/deploys/{provider}", accept, methods=["POST"])])


if __name__ == "__main__":
    main()
