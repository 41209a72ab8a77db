"""The systemd unit and the compose file declare what ``lookout up`` needs."""

from __future__ import annotations

import configparser
import shutil
import subprocess

import pytest
import yaml

from deployments.up.guard import GRACE_S, ORPHANS_GRACE_S
from deployments.up.supervisor import STOP_S
from monitors.config.sections import DEFAULT_SITE_PORT
from tests.conftest import ROOT

FOLDER = ROOT / "deployments"
UNIT = FOLDER / "lookout.service"
STOPS_WITHIN_S = 2 * max(STOP_S, GRACE_S + ORPHANS_GRACE_S)
"""The maximum time for stopping, in seconds.

All parts except the server stop first, and then the server stops, so the time of a part counts twice.
"""


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return parser


def test_systemd_tells_the_command_alone_and_waits_as_long_as_stopping_may_take():
    service = unit()["Service"]
    assert service["KillMode"] == "mixed"
    assert float(service["TimeoutStopSec"]) > STOPS_WITHIN_S
    assert service["RestartPreventExitStatus"] == "2"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_knows_every_line_of_the_unit():
    done = subprocess.run(["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert [line for line in said if "lookout.service" in line] == []


def test_the_container_has_its_time_to_stop_and_listens_on_loopback_only():
    service = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]["lookout"]
    assert service["init"] is True
    assert service["stop_grace_period"] == "2m"
    assert STOPS_WITHIN_S < 120
    ports = {int(port.rpartition(":")[2]) for port in service["ports"]}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert ports == {8066, 8067, DEFAULT_SITE_PORT}
    exposed = next(line for line in (FOLDER / "Dockerfile").read_text("utf-8").splitlines() if "EXPOSE" in line)
    assert {int(port) for port in exposed.split()[1:]} == ports
    assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_the_image_holds_what_the_build_copies_and_no_secret():
    lines = (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert (ROOT / "requirements" / "runtime.lock").is_file()
    assert "USER lookout" in lines
    assert not any(word in line for line in lines for word in ("TOKEN", "SECRET", "KEY="))
