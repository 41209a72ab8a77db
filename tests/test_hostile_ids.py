"""Test that an id that leads outside its folder is rejected, whether it is typed or read from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployments.cli.report import report_command
from flows.verify.run_folder import VerifyRequest
from monitors.config.file import parse_config
from monitors.errors import ConfigError, GoldSetError, MonitorError
from monitors.goldset.load import load_suite

HOSTILE = (
    "../../etc/passwd",
    "..",
    "a/../../b",
    "/etc/passwd",
    "..\\windows",
    "a/b",
    ".hidden",
    "x\0y",
    "%2e%2e/x",
)
LINE = {
    "question": "What is the waiting period?",
    "gold": "24 months",
    "expected_refusal": False,
    "severity": 3,
    "language": "en",
    "provenance": {"pipeline": "template"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_f85_a_case_id_that_leads_elsewhere_does_not_load(tmp_path, name):
    suite = tmp_path / "suite.jsonl"
    suite.write_text(json.dumps(LINE | {"id": name}) + "\n", encoding="utf-8")
    with pytest.raises(GoldSetError, match="line 1"):
        load_suite(suite)


@pytest.mark.parametrize("name", HOSTILE)
def test_f85_a_target_whose_name_leads_elsewhere_is_refused(name):
    target = {"url": "http://127.0.0.1:9", "suite": "suite.jsonl"}
    with pytest.raises(ConfigError, match="targets"):
        parse_config({"targets": {name: target}}, "lookout.toml")
    with pytest.raises(ValueError, match="target"):
        VerifyRequest(target=name, config_path=Path("lookout.toml"))
    with pytest.raises(ValueError, match="commit"):
        VerifyRequest(target="demo", config_path=Path("lookout.toml"), commit=name)


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\0" not in name])
def test_f85_a_run_that_leads_elsewhere_is_an_error_and_nothing_is_written(tmp_path, name):
    (tmp_path / "data" / "runs").mkdir(parents=True)
    (tmp_path / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n', encoding="utf-8"
    )
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(MonitorError):
        report_command(name, config=tmp_path / "lookout.toml", as_json=True)
    assert sorted(tmp_path.rglob("*")) == before
