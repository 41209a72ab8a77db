"""A local server with a part of GitHub's REST API: comments, statuses, deployments and the current user.

Like GitHub, it sends pages with a ``Link`` header, and responds with 403 for a token without a permission, and with
422 for a text that is too long or an unknown commit. The author of a comment depends on the token, and a deleted
comment cannot be changed. To start it by hand, run ``python -m tests.servers.github``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

WORKFLOW_TOKEN = "ghs_" + "w" * 36
"""The token of a GitHub workflow. It belongs to a bot, and cannot request the current user."""
PERSON_TOKEN = "ghp_" + "p" * 36
READING_TOKEN = "ghs_" + "r" * 36
"""The read-only token of a GitHub workflow for a pull request from a fork."""
REPOSITORY = "acme/helpdesk"
PULL = 12
HEAD = "1234567890abcdef1234567890abcdef12345678"

BOT = {"login": "github-actions[bot]", "type": "Bot"}
PERSON = {"login": "release-manager", "type": "User"}
STRANGER = {"login": "mallory", "type": "User"}
OTHER_BOT = {"login": "helpful-app[bot]", "type": "Bot"}
AUTHORS = {WORKFLOW_TOKEN: BOT, READING_TOKEN: BOT, PERSON_TOKEN: PERSON}

MAX_BODY_CHARACTERS = 65_536
STATES = ("error", "failure", "pending", "success")

Fault = Callable[[web.Request], web.StreamResponse]


@dataclass
class Comment:
    """A comment on the pull request. ``edits`` is how often it was changed."""

    id: int
    body: str
    user: dict[str, str] | None
    edits: int = 0


@dataclass(frozen=True)
class Asked:
    """One request that the server received."""

    method: str
    path: str
    query: str
    body: dict[str, Any]


@dataclass
class Misbehaviour:
    """The planned faults of a server.

    Each of ``faults`` is the response to one of the next requests, in order. Each of ``after_taking`` replaces the
    response after a request was executed. ``before_answering`` is called with each request. While ``is_slow`` is
    true, no request is answered. While ``is_slow_after_taking`` is true, changes of comments are executed but
    not answered.
    """

    faults: list[Fault] = field(default_factory=list)
    after_taking: list[Fault] = field(default_factory=list)
    before_answering: Callable[[Asked], None] = lambda _asked: None
    is_slow: bool = False
    is_slow_after_taking: bool = False


class GitHub(ThreadedServer):
    """A GitHub server with one repository and one pull request.

    ``per_page`` is the maximum number of items on a page. ``pull_head`` is the head commit of the pull request, and
    ``pull_base`` its base branch.
    """

    def __init__(self, port: int = 0, *, per_page: int = 100) -> None:
        super().__init__(port)
        self.comments: list[Comment] = []
        self.statuses: list[dict[str, Any]] = []
        self.asked: list[Asked] = []
        self.tokens: set[str] = set()
        self.wrong = Misbehaviour()
        self.deployments: list[dict[str, Any]] = []
        self.pull_head = HEAD
        self.pull_base = "main"
        self._per_page = per_page
        self._next_id = 1

    def application(self) -> web.Application:
        """Return the application with the routes of the API."""
        app = web.Application(client_max_size=4 * 1024**2)
        at = "/repos/{owner}/{name}"
        app.router.add_get("/user", self._user)
        app.router.add_get(at + "/issues/{number}/comments", self._list)
        app.router.add_post(at + "/issues/{number}/comments", self._create)
        app.router.add_patch(at + "/issues/comments/{id}", self._change)
        app.router.add_delete(at + "/issues/comments/{id}", self._delete)
        app.router.add_get(at + "/pulls/{number}", self._pull)
        app.router.add_post(at + "/statuses/{sha}", self._status)
        app.router.add_get(at + "/commits/{sha}/statuses", self._list_statuses)
        app.router.add_get(at + "/deployments", self._deployments)
        app.router.add_get(at + "/deployments/{id}/statuses", self._deployment_statuses)
        app.middlewares.append(self._watched)
        return app

    def says(self, body: str, user: dict[str, str] | None = None) -> Comment:
        """Add a comment with the text ``body`` by another user."""
        comment = Comment(self._next_id, body, STRANGER if user is None else user)
        self._next_id += 1
        self.comments.append(comment)
        return comment

    def deploys(self, sha: str, state: str, *, environment: str = "production", ref: str = "main") -> None:
        """Add a new deployment of the commit ``sha`` with the state ``state``."""
        number = len(self.deployments) + 1
        self.deployments.insert(
            0, {"id": number, "sha": sha, "ref": ref, "environment": environment, "states": [state]}
        )

    async def _deployments(self, request: web.Request) -> web.Response:
        wanted = request.query.get("environment")
        deployments = [deployment for deployment in self.deployments if wanted in (None, deployment["environment"])]
        return web.json_response(deployments[: int(request.query.get("per_page", "30"))])

    async def _deployment_statuses(self, request: web.Request) -> web.Response:
        deployments = [
            deployment for deployment in self.deployments if str(deployment["id"]) == request.match_info["id"]
        ]
        return web.json_response([{"state": state} for state in deployments[0]["states"]])

    async def _pull(self, _request: web.Request) -> web.Response:
        head, base = {"sha": self.pull_head, "ref": "feature"}, {"ref": self.pull_base}
        return web.json_response({"number": PULL, "head": head, "base": base})

    async def _list_statuses(self, request: web.Request) -> web.Response:
        """Return the statuses of a commit, newest first, as GitHub does."""
        sha = request.match_info["sha"]
        listed = [status for status in reversed(self.statuses) if status["sha"] == sha]
        return self._page(request, [{"target_url": None, **status} for status in listed])

    def current(self, sha: str) -> dict[str, str]:
        """Return the newest state of each status context of the commit ``sha``, as GitHub's branch rules use it."""
        return {status["context"]: status["state"] for status in self.statuses if status["sha"] == sha}

    def by(self, user: dict[str, str]) -> list[Comment]:
        """Return the comments by the author ``user``."""
        return [comment for comment in self.comments if comment.user == user]

    @property
    def states(self) -> list[tuple[str, str]]:
        """Return the context and the state of every created status, oldest first."""
        return [(status["context"], status["state"]) for status in self.statuses]

    @property
    def _watched(self) -> Any:
        @web.middleware
        async def watched(request: web.Request, handler: Any) -> web.StreamResponse:
            text = await request.text()
            asked = Asked(request.method, request.path, request.query_string, json.loads(text) if text else {})
            self.asked.append(asked)
            self.wrong.before_answering(asked)
            if self.wrong.is_slow:
                await self.closing.wait()
            if self.wrong.faults:
                return self.wrong.faults.pop(0)(request)
            refusal = self._refusal(request)
            if refusal is not None:
                return refusal
            answer: web.StreamResponse = await handler(request)
            if request.method != "GET" and self.wrong.is_slow_after_taking and "/comments" in request.path:
                await self.closing.wait()
            if request.method != "GET" and self.wrong.after_taking:
                return self.wrong.after_taking.pop(0)(request)
            return answer

        return watched

    def _refusal(self, request: web.Request) -> web.Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in AUTHORS:
            return _no(401, "Bad credentials")
        self.tokens.add(token)
        if request.method != "GET" and token == READING_TOKEN:
            return _no(403, "Resource not accessible by integration")
        if (
            request.match_info.get("owner")
            and f"{request.match_info['owner']}/{request.match_info['name']}" != REPOSITORY
        ):
            return _no(404, "Not Found")
        if request.match_info.get("number", str(PULL)) != str(PULL):
            return _no(404, "Not Found")
        return None

    async def _user(self, request: web.Request) -> web.Response:
        author = _author(request)
        if author["type"] == "Bot":
            return _no(403, "Resource not accessible by integration")
        return web.json_response(author)

    async def _list(self, request: web.Request) -> web.Response:
        return self._page(request, [self._shown(comment) for comment in self.comments])

    def _page(self, request: web.Request, items: list[dict[str, Any]]) -> web.Response:
        size = min(int(request.query.get("per_page", "30")), self._per_page)
        page = int(request.query.get("page", "1"))
        headers = {}
        if page * size < len(items):
            after = request.url.update_query(page=str(page + 1))
            headers["Link"] = f'<{after}>; rel="next", <{after}>; rel="last"'
        return web.json_response(items[(page - 1) * size : page * size], headers=headers)

    async def _create(self, request: web.Request) -> web.Response:
        body = (await request.json())["body"]
        if len(body) > MAX_BODY_CHARACTERS:
            return _no(422, f"Body is too long (maximum is {MAX_BODY_CHARACTERS} characters)")
        return web.json_response(self._shown(self.says(body, _author(request))), status=201)

    async def _change(self, request: web.Request) -> web.Response:
        comment = self._found(request)
        body = (await request.json())["body"]
        if comment is None:
            return _no(404, "Not Found")
        if len(body) > MAX_BODY_CHARACTERS:
            return _no(422, f"Body is too long (maximum is {MAX_BODY_CHARACTERS} characters)")
        comment.body, comment.edits = body, comment.edits + 1
        return web.json_response(self._shown(comment))

    async def _delete(self, request: web.Request) -> web.Response:
        comment = self._found(request)
        if comment is None:
            return _no(404, "Not Found")
        self.comments.remove(comment)
        return web.Response(status=204)

    async def _status(self, request: web.Request) -> web.Response:
        body, sha = await request.json(), request.match_info["sha"]
        if not re.fullmatch(r"[0-9a-f]{40}", sha):
            return _no(422, f"No commit found for SHA: {sha}")
        if body.get("state") not in STATES or len(body.get("description", "")) > 140:
            return _no(422, "Validation Failed")
        self.statuses.append(body | {"sha": sha})
        return web.json_response(body | {"id": len(self.statuses)}, status=201)

    def _found(self, request: web.Request) -> Comment | None:
        wanted = int(request.match_info["id"])
        return next((comment for comment in self.comments if comment.id == wanted), None)

    def _shown(self, comment: Comment) -> dict[str, Any]:
        address = f"https://github.com/{REPOSITORY}/pull/{PULL}#issuecomment-{comment.id}"
        return {"id": comment.id, "body": comment.body, "user": comment.user, "html_url": address}


def _author(request: web.Request) -> dict[str, str]:
    return AUTHORS[request.headers["Authorization"].removeprefix("Bearer ")]


def _no(status: int, message: str, **headers: str) -> web.Response:
    return web.json_response({"message": message}, status=status, headers=headers)


def too_many(status: int = 403, message: str = "API rate limit exceeded", **headers: str) -> Fault:
    """Return a handler that responds with GitHub's error for an exceeded rate limit, and with ``headers``."""
    return lambda _request: _no(
        status, message, **{name.replace("_", "-"): value for name, value in headers.items()}
    )


def broken(status: int = 502) -> Fault:
    """Return a handler that responds with GitHub's HTML error page instead of JSON."""
    return lambda _request: web.Response(status=status, text="<html>Unicorn!</html>", content_type="text/html")


def cut_off(request: web.Request) -> web.StreamResponse:
    """Close the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="GitHub's API on loopback, for trying things out")
    parser.add_argument("--port", type=int, default=8075)
    with GitHub(parser.parse_args().port) as server:
        print(
            f"GITHUB_API_URL={server.url} GITHUB_TOKEN={WORKFLOW_TOKEN} GITHUB_REPOSITORY={REPOSITORY}", flush=True
        )
        try:
            asyncio.run(asyncio.Event().wait())
        except KeyboardInterrupt:
            print("\n\n".join(comment.body for comment in server.comments))


if __name__ == "__main__":
    main()
