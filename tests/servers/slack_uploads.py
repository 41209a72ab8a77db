"""Slack's upload of a file: request a URL, send the bytes there, and complete the upload.

Lookout never uploads a file; the tests check this.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.servers.slack import SlackServer

METHODS = frozenset({"files.getUploadURLExternal", "files.completeUploadExternal"})


@dataclass
class Uploads:
    """Handles file uploads. ``shared`` contains the names of the completely uploaded files."""

    server: SlackServer
    shared: list[str] = field(default_factory=list)
    _asked: dict[str, str] = field(default_factory=dict)
    _sent: dict[str, int] = field(default_factory=dict)

    def answer(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a call of ``files.getUploadURLExternal`` or ``files.completeUploadExternal``."""
        if method == "files.getUploadURLExternal":
            return self._ask(body)
        files = body.get("files", ())
        wanted = [str(file["id"]) for file in (json.loads(files) if isinstance(files, str) else files)]
        if not wanted or not set(wanted) <= set(self._sent):
            return {"ok": False, "error": "file_not_found"}
        self.shared += [self._asked[file_id] for file_id in wanted]
        return {"ok": True, "files": [{"id": file_id, "title": self._asked[file_id]} for file_id in wanted]}

    async def take(self, request: web.Request) -> web.Response:
        """Handle the request with the bytes of a file. Only their number is stored."""
        file_id = request.match_info["file"]
        if file_id not in self._asked:
            return web.Response(status=404)
        self._sent[file_id] = len(await request.read())
        return web.Response(text=f"OK - {self._sent[file_id]}")

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        if not body.get("filename") or int(body.get("length", 0)) < 1:
            return {"ok": False, "error": "invalid_arguments"}
        file_id = f"F{secrets.token_hex(5).upper()}"
        self._asked[file_id] = str(body["filename"])
        return {"ok": True, "file_id": file_id, "upload_url": f"{self.server.url}/upload/{file_id}"}
