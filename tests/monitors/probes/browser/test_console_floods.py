"""Test that hundreds of megabytes from a page, its workers and its downloads need only bounded memory."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from monitors.errors import BrowserLost
from tests.monitors.probes.conftest import MakeDriver
from tests.process_tree import all_processes, descendants

QUESTION = "is knee surgery covered?"
LINE = "const line = 'x'.repeat(100000);"
MANY = LINE + " setInterval(() => { for (let i = 0; i < 40; i++) SAY(line + i); }, 10);"
WITHOUT_END = LINE + " for (let i = 0; ; i++) SAY(line + i);"
POUR = MANY.replace("SAY", "console.error")
SCRIPTS = {
    "/worker.js": POUR,
    "/inner.js": 'new Worker("/worker.js");',
    "/at-once.js": WITHOUT_END.replace("SAY", "console.error"),
    "/post.js": MANY.replace("SAY", "postMessage"),
    "/post-at-once.js": WITHOUT_END.replace("SAY", "postMessage"),
    "/port.js": f"onconnect = (event) => {{ {MANY.replace('SAY', 'event.ports[0].postMessage')} }};",
}
"""The scripts of the workers. Each writes 400 MB a second to the console, with pauses or without."""
CHAT = """<!doctype html><meta charset=utf-8><div id=log></div><form><textarea aria-label="Message"></textarea>
<button>Send</button></form><script>
const log = document.querySelector("#log"), box = document.querySelector("textarea");
const workers = [], heard = () => { workers.heard = (workers.heard || 0) + 1; };
const worker = (script) => { workers.unshift(new Worker(script)); workers[0].onmessage = heard; };
const shared = (script) => { workers.unshift(new SharedWorker(script)); workers[0].port.onmessage = heard; workers[0].port.start(); };
const flood = {
  PAGE: () => { POUR },
  SERVICE: () => { navigator.serviceWorker?.register("/worker.js").catch(() => 0); },
  WORKER: () => worker("/worker.js"),
  INNER: () => worker("/inner.js"),
  SHARED: () => shared("/worker.js"),
  "AT-ONCE": () => worker("/at-once.js"),
  POSTED: () => worker("/post.js"),
  "POST-ENDLESS": () => worker("/post-at-once.js"),
  PORT: () => shared("/port.js"),
  NETWORK: () => { setInterval(() => fetch("/bulk").then((got) => got.arrayBuffer()), 20); },
};
document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  const said = box.value; box.value = "";
  for (const [who, text] of [["You", said], ["Bot", "Knee surgery is covered after 24 months."]]) {
    const p = document.createElement("p"); p.className = who; p.textContent = text; log.append(p);
  }
  for (const [word, begin] of Object.entries(flood)) if (said.includes(word)) begin();
};</script>""".replace("POUR", POUR)
BULK = b"x" * 1_000_000
MAX_MB, MAX_ENDLESS_MB = 400, 1_200
"""The maximum memory in MB during a flood, and during a flood from a worker's console.

The console of a worker cannot be stopped until the worker yields or Lookout ends its page.
"""


class Handler(BaseHTTPRequestHandler):
    """The request handler that serves the chat, a worker's script, and a megabyte of data."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body, kind = CHAT.encode(), "text/html"
        if self.path == "/bulk":
            body, kind = BULK, "text/plain"
        elif self.path in SCRIPTS:
            body, kind = SCRIPTS[self.path].encode(), "text/javascript"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *given: object) -> None:
        del given


@contextmanager
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def memory_mb() -> float:
    """Return the memory in MB of this process and of Playwright's driver; both store console messages.

    The browser has its own limits.
    """
    family = [all_processes()[os.getpid()], *descendants(os.getpid())]
    return sum(one.rss_mb for one in family if one.pid == os.getpid() or "run-driver" in one.command)


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in Linux's /proc")
@pytest.mark.parametrize("word", ["PAGE", "SERVICE", "NETWORK", "SHARED", "POSTED", "PORT"])
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
async def test_a_flood_costs_no_answer_and_little_memory(driver_for: MakeDriver, word):
    """A flood of console output, messages between threads or downloads needs little memory and loses no answer."""
    with site() as address:
        async with driver_for(address, patience_s=3, answer_deadline_s=60, service_workers=True) as driver:
            await driver.ask((QUESTION,))
            before_mb = memory_mb()
            assert "24 months" in (await driver.ask((f"{word}, {QUESTION}",))).visible_text
            assert "24 months" in (await driver.ask((QUESTION,))).visible_text
            assert memory_mb() - before_mb < MAX_MB
            assert driver.chromium.starts == 1


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in Linux's /proc")
@pytest.mark.parametrize("word", ["WORKER", "INNER", "AT-ONCE", "POST-ENDLESS"])
@pytest.mark.whole_only
async def test_a_flood_without_end_costs_its_own_question_at_most(driver_for: MakeDriver, word):
    """An endless flood of console output or messages makes at most its own question fail.

    Lookout cannot run code before a worker's script starts. If the worker never yields, Lookout ends the page of
    the worker. Lookout does the same if messages never end.
    """
    with site() as address:
        async with driver_for(address, patience_s=3, answer_deadline_s=60) as driver:
            await driver.ask((QUESTION,))
            before_mb = memory_mb()
            try:
                came = (await driver.ask((f"{word}, {QUESTION}",))).visible_text
            except BrowserLost as lost:
                came = str(lost)
            assert re.search(r"24 months|used [\d,]+ MB|did not end within", came)
            assert "24 months" in (await driver.ask((QUESTION,))).visible_text
            assert memory_mb() - before_mb < MAX_ENDLESS_MB
            assert driver.chromium.starts == 1
