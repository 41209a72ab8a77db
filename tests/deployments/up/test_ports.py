"""If a port is in use, nothing starts, and the error suggests a command that uses another port."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deployments.up.parts import raise_for_incomplete_installation, suggest_other_receiver_port
from monitors.config.file import parse_config
from monitors.errors import ConfigError
from tests.stable_text import replace_volatile

HOST = "127.0.0.1"


def taken() -> socket.socket:
    held = socket.socket()
    held.bind((HOST, 0))
    held.listen()
    return held


def suite_of(folder: Path) -> Path:
    file = folder / "suite.jsonl"
    file.write_text('{"id": "c-1", "question": "Is it covered?", "gold": "Yes", "severity": 2}\n', encoding="utf-8")
    return file


@pytest.mark.parametrize("own", [False, True], ids=["two above the receiver's", "a port of its own"])
def test_the_sites_port_is_refused_with_the_option_or_the_setting_that_moves_it(tmp_path, own, snapshot):
    """If the site's port is in use, the message names the option or the setting that changes it.

    Without its own setting, the site's port depends on the receiver's port, and the message gives the new port.
    """
    with taken() as held:
        number = held.getsockname()[1]
        site = {"enabled": True, **({"port": number} if own else {})}
        target = {"url": "https://chat.example", "environment": "staging", "suite": str(suite_of(tmp_path))}
        values = {"data_folder": str(tmp_path / "data"), "targets": {"bot": target}, "site": site}
        config = parse_config(values, "lookout.toml")
        port = 4300 if own else number - 2
        with pytest.raises(ConfigError) as refused:
            raise_for_incomplete_installation(config, host=HOST, port=port, environment={})
    proposed = suggest_other_receiver_port(port)
    ports = {"taken": str(number), "proposed": str(proposed), "proposed_of_the_site": str(proposed + 2)}
    assert replace_volatile(str(refused.value), **ports) == snapshot


@pytest.mark.parametrize("port", [1, 4300, 65_433, 65_434, 65_533])
def test_the_port_that_is_proposed_is_one(port):
    """The suggested port and the next two are valid. None of them is ``port``, ``port + 1`` or ``port + 2``."""
    assert 1 <= suggest_other_receiver_port(port) <= 65_533
    assert abs(suggest_other_receiver_port(port) - port) > 2
