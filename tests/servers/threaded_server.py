"""A real HTTP server in its own thread, for async and synchronous tests."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import Self

from aiohttp import web


class ThreadedServer(ABC):
    """A server that serves ``self.application()`` on the loopback interface while its ``with`` block runs.

    Subclasses build the application. If ``port`` is 0, a free port is chosen, which is part of `url`.
    """

    def __init__(self, port: int = 0) -> None:
        self._wanted_port = port
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._closing = asyncio.Event()
        self._port = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def application(self) -> web.Application:
        """Build the aiohttp application that the server serves."""

    @property
    def url(self) -> str:
        """Return the URL of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def closing(self) -> asyncio.Event:
        """Return the event that is set when the server stops, so that handlers that never answer can end."""
        return self._closing

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the port
            self._failure = error
            self._ready.set()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        runner = web.AppRunner(self.application(), shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._wanted_port)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._closing.wait()
        await runner.cleanup()
