"""``lookout site`` as an owner runs it: tokens, serving and exporting, with only a configuration file."""

from __future__ import annotations

import os
import subprocess

import httpx
import pytest

from deployments.demo.configuration import find_free_port
from tests import fork_server
from tests.deployments.site.site_server import filled
from tests.polling import wait_until

START_S = 120


def where(folder):
    """Return the arguments to run a command in ``folder``, in an environment without Lookout's variables."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("LOOKOUT_", "PREFECT_"))}
    return {"cwd": folder, "env": known | fork_server.WARM}


def ran(folder, *words):
    return fork_server.run(*words, **where(folder), timeout_s=START_S)


@pytest.fixture
def owned(tmp_path):
    """Return the working folder of an owner: it contains lookout.toml and the data of runs."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=2)
    (tmp_path / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.helpdesk]\nurl = "https://help.example.com"\nsuite = "suite.jsonl"\n[site]\nlogin = true\n',
        encoding="utf-8",
    )
    return tmp_path


def test_an_owner_adds_a_token_serves_and_revokes_it(owned):
    """Only users with a token can open the site. A new token opens the pages until it is revoked."""
    port = str(find_free_port("127.0.0.1", 0))
    refused = ran(owned, "site", "--port", port)
    assert refused.returncode == 2
    assert "lookout site token add" in refused.stderr
    token = ran(owned, "site", "token", "add", "asha", "--role", "operate").stdout.strip()
    assert token.startswith("lookout_")
    process = fork_server.start("site", "--port", port, **where(owned), stderr=subprocess.PIPE)
    try:
        assert f"http://127.0.0.1:{port}/" in process.stderr.readline()
        bearer = {"authorization": f"Bearer {token}"}
        status = wait_until(lambda: asked(port, "/runs.json", bearer), timeout_s=START_S, what="the site answers")
        assert (status, asked(port, "/runs.json", {})) == (200, 401)
        assert ran(owned, "site", "token", "list").stdout.startswith("asha  operate")
        assert ran(owned, "site", "token", "revoke", "asha").returncode == 0
        assert asked(port, "/runs.json", bearer) == 401
    finally:
        process.terminate()
        process.communicate(timeout=30)


def asked(port, path, headers):
    """Return the HTTP status of a response, or ``None`` if nothing listens on the port."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", headers=headers, trust_env=False).status_code
    except httpx.ConnectError:
        return None


def test_an_owner_exports_the_pages(owned):
    """`lookout site export` writes the pages to a folder and prints the path of the first page."""
    done = ran(owned, "site", "export", "copy")
    assert done.returncode == 0, done.stderr
    assert "copy/index.html" in done.stdout
    assert "helpdesk" in (owned / "copy" / "index.html").read_text(encoding="utf-8")


def test_an_unknown_name_has_no_token_to_revoke(owned, snapshot):
    """Revoking the token of an unknown name is an error that lists the known names."""
    done = ran(owned, "site", "token", "revoke", "nobody")
    assert done.returncode == 2
    assert done.stderr == snapshot
