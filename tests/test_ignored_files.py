"""Test that no file that may contain a secret is committed or copied into a container image by mistake."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatch

import pytest

from tests.conftest import ROOT

SECRETS = (
    *(".env", ".env.local", "secrets.env", "prod.env", "lookout.toml", "server.pem", "site.key", "store.p12"),
    *(
        "id_rsa",
        "id_ed25519",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".lookout",
        "warehouse.duckdb",
        "warehouse.duckdb.wal",
    ),
)


@pytest.mark.parametrize("folder", ["", "deployments/", "flows/verify/"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_file_with_secrets_is_neither_committed_nor_in_an_image(folder, name):
    path = f"{folder}{name}" + ("/sessions/bot.json" if name == ".lookout" else "")
    assert subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False).returncode == 0
    lines = (ROOT / "deployments" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    refused = [line.removeprefix("**/") for line in lines if line.startswith("**/")]
    assert any(fnmatch(name, pattern) for pattern in refused)


def test_what_is_committed_is_not_ignored():
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(ignored, cwd=ROOT, check=True, capture_output=True, text=True).stdout == ""
