"""The site in a container, as documented: it needs a token, which is created before the start."""

from __future__ import annotations

import os
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import yaml

from deployments.site.serve import SiteEnvironment, build_site_application
from monitors.config.file import load_config
from monitors.errors import ConfigError
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.site.site_server import filled, serving

PAGE = (ROOT / "docs" / "site.md").read_text(encoding="utf-8")
IN_THE_IMAGE = "/etc/lookout/lookout.toml"


def documented(kind: str, word: str) -> str:
    """Return the only code block of the documentation that contains ``word``."""
    (block,) = [
        text for text in re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if word in text
    ]
    return block


def test_the_documented_way_leads_to_a_site_that_asks_for_a_token(tmp_path):
    """The documented steps lead to a site that requires a token.

    With the documented file alone, the site does not start. After the documented command, it starts and serves
    users who have the token.
    """
    file, data = tmp_path / "lookout.toml", tmp_path / "data"
    text = documented("toml", '"0.0.0.0"')
    assert "/var/lib/lookout/data" in text
    file.write_text(text.replace("/var/lib/lookout/data", str(data)), encoding="utf-8")
    data.mkdir()
    filled(data, runs=1)
    config, outside = load_config(file), SiteEnvironment(lambda: datetime.now(UTC), "another-user")
    with pytest.raises(ConfigError, match="lookout site token add"):
        build_site_application(config, config.site.host, outside)
    made, started = documented("sh", "docker compose").splitlines()
    _, _, command = made.partition(" run --rm lookout ")
    arguments = [str(file) if word == IN_THE_IMAGE else word for word in shlex.split(command)]
    assert str(file) in arguments
    known = {name: value for name, value in os.environ.items() if not name.startswith(("LOOKOUT_", "PREFECT_"))}
    done = fork_server.run(*arguments, cwd=tmp_path, env=known | fork_server.WARM)
    assert done.returncode == 0, done.stderr
    assert started.endswith("up -d")
    with serving(build_site_application(config, config.site.host, outside)) as address:
        bearer = {"authorization": f"Bearer {done.stdout.strip()}"}
        assert httpx.get(f"{address}/runs", trust_env=False).status_code == 401
        assert httpx.get(f"{address}/runs", headers=bearer, trust_env=False).status_code == 200


def test_the_compose_file_has_what_the_documents_say():
    """The settings file, the data volume and the image's command match the documented paths."""
    compose = yaml.safe_load((ROOT / "deployments" / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["lookout"]
    mounted = {place.split(":")[-2 if place.endswith(":ro") else -1]: place for place in service["volumes"]}
    assert mounted[IN_THE_IMAGE].endswith(":ro")
    assert Path("/var/lib/lookout/data").is_relative_to(next(place for place in mounted if "var" in place))
    assert (
        next(one for one in service["volumes"] if one.endswith("/var/lib/lookout")).partition(":")[0]
        in compose["volumes"]
    )
    docker = (ROOT / "deployments" / "Dockerfile").read_text(encoding="utf-8")
    assert IN_THE_IMAGE in docker
    assert 'ENTRYPOINT ["lookout"]' in docker
    assert "deployments/compose.yaml" in documented("sh", "docker compose")
