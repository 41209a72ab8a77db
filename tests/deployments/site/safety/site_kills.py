"""Kills the site while people decide, and counts the stored actions.

Every confirmed action must be stored, and a repeated action must be stored once.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from deployments.cli.site.serve import serve_site
from deployments.demo.configuration import find_free_port
from monitors.goldset.drafts import read_drafts
from monitors.records.cases import DraftState
from tests.deployments.site.people_server import compute_fingerprint, with_drafts, with_people
from tests.soak.forked_process import Child, forked
from tests.warehouse.temporary_stores import store_in

START_S = 120
KINDS = ("add_to_gold", "acknowledge", "silence", "review", "draft")
SETTINGS = """data_folder = "."
[targets.helpdesk]
url = "https://help.example.com"
suite = "suite.jsonl"
[review]
share = 1.0
[site]
refresh_s = 1
"""


@dataclass
class ButtonAction:
    """A form that a person sends: its address and fields. ``status`` is ``None`` until there is a response."""

    kind: str
    number: int
    path: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    status: int | None = None


@dataclass
class KillReport:
    """The result of all button actions.

    ``missing`` lists actions without a stored result, ``twice`` those with more than one. ``leftovers`` are copies
    of the warehouse other than the newest two.
    """

    presses: list[ButtonAction]
    unanswered: int
    missing: list[str]
    twice: list[str]
    leftovers: list[str]


def kill_while_people_decide(folder: Path, kills: int, seed: int) -> KillReport:
    """Serve the site ``kills`` times, and each time kill it with SIGKILL at a random moment after a form was sent.

    A form without a response is sent again to the next site. The site is served by the function that the command
    uses.
    """
    chance, port = random.Random(seed), find_free_port("127.0.0.1", 0)
    with_people(folder, incidents=kills)
    with_drafts(folder, kills)
    (folder / "reviewer").write_text("me\n")
    (folder / "lookout.toml").write_text(SETTINGS)
    presses = [ButtonAction(KINDS[number % len(KINDS)], number) for number in range(kills)]
    waiting, unanswered = None, 0
    for press in presses:
        child = _serving(folder, port)
        try:
            if waiting is not None:
                _send(port, waiting)
            _fill_in(port, press)
            sending = threading.Thread(target=_send, args=(port, press))
            sending.start()
            sending.join(chance.choice((0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)))
        finally:
            _kill(child)
        sending.join(30)
        waiting = press if press.status is None else None
        unanswered += waiting is not None
    child = _serving(folder, port)
    try:
        if waiting is not None:
            _send(port, waiting)
        statuses = {path: _get(port, path).status_code for path in ("/", "/incidents", "/review", "/review/drafts")}
        assert set(statuses.values()) == {200}, statuses
    finally:
        _kill(child)
    return _report(folder, presses, unanswered)


def _serving(folder: Path, port: int) -> Child:
    def job(_say):
        os.chdir(folder)
        os.environ["LOOKOUT_USER"] = "me"
        serve_site(Path("lookout.toml"), host=None, port=port)

    child = forked(job)
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            if _get(port, "/now.json").status_code == 200:
                return child
        time.sleep(0.05)  # another process starts; there is no event to wait for
    raise AssertionError("the site did not start")


def _kill(child: Child) -> None:
    os.kill(child.process, signal.SIGKILL)
    child.rest()


def _get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=60)


def _fill_in(port: int, press: ButtonAction) -> None:
    """Fill in the form of ``press`` as a person does on the page, with the page's hidden fields."""
    incident = f"/incidents/{compute_fingerprint(f'user-{press.number}')}"
    match press.kind:
        case "acknowledge" | "add_to_gold":
            press.path, page = f"{incident}/decide/{press.kind}", incident
            press.fields = {"note": f"press {press.number}"}
        case "silence":
            press.path, page = f"{incident}/silence", incident
            press.fields = {"note": f"press {press.number}", "lasting": "1d"}
        case "review":
            press.path, page = "/review/answer", "/review?said=right"
            press.fields = {"verdict": "right"}
        case _:
            page = "/review/drafts?said=no"
            press.path = f"/review/drafts/{_get(port, '/review/drafts.json').json()['data']['item']['id']}"
            press.fields = {"word": "no", "target": "helpdesk"}
    shown = _get(port, page).text
    for name in ("form_token", "page_state", "answer"):
        if f'name="{name}" value="' in shown:
            press.fields[name] = shown.split(f'name="{name}" value="')[1].partition('"')[0]


def _send(port: int, press: ButtonAction) -> None:
    with suppress(httpx.HTTPError, socket.error):
        answer = httpx.post(f"http://127.0.0.1:{port}{press.path}", data=press.fields, trust_env=False, timeout=60)
        press.status = answer.status_code


def _report(folder: Path, presses: list[ButtonAction], unanswered: int) -> KillReport:
    store = store_in(folder)
    store.load_pending(30)
    missing, twice = [], []
    for press in presses:
        found = _found(folder, store, press)
        name = f"{press.kind} {press.number}, answered {press.status}"
        missing += [name] if not found else []
        twice += [f"{name}: {found}"] if found > 1 else []
    copies = [file.name for file in (folder / "snapshots").glob("warehouse-*.duckdb*")]
    return KillReport(presses, unanswered, missing, twice, copies[2:])


def _found(folder: Path, store, press: ButtonAction) -> int:
    """Count how often the result of the action ``press`` is stored."""
    key = compute_fingerprint(f"user-{press.number}")
    match press.kind:
        case "acknowledge":
            sql = "select count(*) from actions where list_contains(fingerprints, $key) and kind = 'acknowledge'"
        case "add_to_gold" if press.number:  # the question is already a gold case, so no draft is made
            sql = "select count(*) from actions where list_contains(fingerprints, $key) and kind = 'add_to_gold'"
        case "add_to_gold":
            sql = "select count(*) from case_drafts where fingerprint = $key"
        case "silence":
            sql = "select count(*) from silences where fingerprint = $key"
        case "review":
            run_id, case_id, repeat = press.fields["answer"].split("/")
            sql = f"select count(*) from labels where run_id = '{run_id}' and case_id = '{case_id}' and repeat = {repeat}"
        case _:
            name = press.path.rpartition("/")[2]
            drafts = read_drafts(folder / "gold-drafts.jsonl")
            return sum(draft.id == name and draft.state is DraftState.REJECTED for draft in drafts)
    return int(store.query(sql, {"key": key} if "$key" in sql else {}).rows[0][0])
