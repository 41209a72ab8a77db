"""A local server with the part of the Hugging Face Hub's API that reads the files of a dataset."""

from __future__ import annotations

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

COMMIT = "1" * 40


class HubFiles(ThreadedServer):
    """A server with the dataset ``owner/logs``. ``files`` are keyed by path.

    If ``token`` is given, the dataset is private.
    """

    def __init__(self, files: dict[str, bytes], *, token: str | None = None) -> None:
        super().__init__()
        self.files = files
        self.token = token

    def application(self) -> web.Application:
        """Return the routes that huggingface_hub's file system needs: the repository, its trees, its files."""
        application = web.Application()
        application.router.add_get("/api/datasets/owner/logs", self._repository)
        application.router.add_get("/api/datasets/owner/logs/tree/main", self._tree)
        application.router.add_get("/api/datasets/owner/logs/tree/main/{folder:.*}", self._tree)
        application.router.add_get("/datasets/owner/logs/resolve/main/{path:.*}", self._content)
        return application

    def _is_stranger(self, request: web.Request) -> bool:
        return self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}"

    async def _repository(self, request: web.Request) -> web.Response:
        if self._is_stranger(request):  # a private repository is not there for strangers
            return web.json_response({"error": "Repository not found"}, status=401)
        document = {"id": "owner/logs", "_id": "1", "sha": COMMIT, "private": False, "tags": [], "siblings": []}
        return web.json_response(document)

    async def _tree(self, request: web.Request) -> web.Response:
        folder = request.match_info.get("folder", "").strip("/")
        within = [path for path in self.files if not folder or path.startswith(f"{folder}/")]
        depth = folder.count("/") + 1 if folder else 0
        prefixes = {"/".join(path.split("/")[: depth + 1]) for path in within}
        if not prefixes:
            return web.json_response({"error": "no such folder"}, status=404)
        return web.json_response([self._entry(path) for path in sorted(prefixes)])

    def _entry(self, path: str) -> dict[str, object]:
        if path in self.files:
            return {"type": "file", "path": path, "size": len(self.files[path]), "oid": "0" * 40}
        return {"type": "directory", "path": path, "size": 0, "oid": "0" * 40}

    async def _content(self, request: web.Request) -> web.Response:
        content = self.files.get(request.match_info["path"])
        if content is None or self._is_stranger(request):
            return web.Response(status=404)
        wanted = request.http_range
        headers = {"Accept-Ranges": "bytes", "ETag": '"x"', "X-Repo-Commit": COMMIT}
        if wanted.start is None:
            return web.Response(body=content, headers=headers)
        part = content[wanted.start : wanted.stop]
        headers["Content-Range"] = f"bytes {wanted.start}-{wanted.start + len(part) - 1}/{len(content)}"
        return web.Response(status=206, body=part, headers=headers)
