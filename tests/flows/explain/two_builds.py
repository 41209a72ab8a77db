"""A Gradio page in two builds, in a separate process. The answer to each question is scripted.

``python -m tests.flows.explain.two_builds SCRIPT.json`` serves ``/now`` and ``/builds/4f2a91c`` on a free local
port, and prints the address. In the script, ``answers`` maps each build and question to answers that are given in
turn; the last answer repeats. ``versions`` maps each build to the response of its ``/version``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

# A test that imports the names of the builds needs no Gradio, whose import takes three seconds.
if TYPE_CHECKING:
    import gradio
    from fastapi import FastAPI

NOW, BEFORE = "9b1c003", "4f2a91c"
PATHS = {NOW: "/now", BEFORE: f"/builds/{BEFORE}"}


def application(script: dict) -> FastAPI:
    """Return the web application that serves both builds."""
    import gradio
    from fastapi import FastAPI

    app = FastAPI()
    for commit, path in PATHS.items():
        version = {"sha": script["versions"].get(commit, commit)}
        app.get(f"{path}/version")(lambda version=version: version)
        app = gradio.mount_gradio_app(app, _page(script["answers"].get(commit, {})), path=path)
    return app


def _page(answers: dict[str, list[str]]) -> gradio.Blocks:
    import gradio

    asked = Counter()

    def answer(message: str, _history: list) -> str:
        turns = answers.get(message, ["I do not know."])
        asked[message] += 1
        return turns[min(asked[message], len(turns)) - 1]

    return gradio.ChatInterface(answer)


if __name__ == "__main__":
    import uvicorn

    from deployments.demo.space import HOST, listen_or_exit

    listener = listen_or_exit(0)
    page = application(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(f"http://{HOST}:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(page, log_level="warning")).run(sockets=[listener])
