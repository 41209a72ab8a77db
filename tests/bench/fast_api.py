"""A JSON chat API that answers immediately, so that a benchmark measures only Lookout's time.

python -m tests.bench.fast_api --port 8123
"""

from __future__ import annotations

import argparse

from aiohttp import web

from tests.soak.mortal_app import answer_to


async def chat(request: web.Request) -> web.Response:
    """Answer the question of the request correctly."""
    return web.json_response({"answer": answer_to((await request.json())["question"])})


def main() -> None:
    """Serve until the process is killed."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    app = web.Application()
    app.router.add_post("/", chat)
    web.run_app(app, host="127.0.0.1", port=options.parse_args().port, print=None, access_log=None)


if __name__ == "__main__":
    main()
