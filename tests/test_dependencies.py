"""Test that the bill of materials and the licence list match the lock file."""

from __future__ import annotations

import json
import re
import tomllib

import yaml

from tests.tools.dependencies import LOCK, NOT_HERE, PAGE, ROOT, SBOM, locked, sbom, shares

PACKAGES = locked(LOCK.read_text(encoding="utf-8"))
MADE = json.loads(SBOM.read_text(encoding="utf-8"))
ROWS = re.findall(r"^\| ([a-z0-9._-]+) \| (\S+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_every_locked_package_is_in_both_with_its_version():
    wanted = [(one.name, one.version) for one in PACKAGES.values()]
    assert len(wanted) > 50
    assert [(one["name"], one["version"]) for one in MADE["components"]] == wanted
    assert [
        (name, version)
        for name, version, _, _ in ROWS
        if (name, version) not in (("package", "version"), ("---", "---"))
    ] == wanted


def test_the_bill_is_cyclonedx_and_whole():
    assert (MADE["bomFormat"], MADE["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", MADE["serialNumber"])
    refs = {one["bom-ref"] for one in MADE["components"]} | {MADE["metadata"]["component"]["bom-ref"]}
    assert len(refs) == len(PACKAGES) + 1
    named = [ref for one in MADE["dependencies"] for ref in (one["ref"], *one["dependsOn"])]
    assert set(named) == refs
    needed = {ref for one in MADE["dependencies"] for ref in one["dependsOn"]}
    assert refs - needed == {MADE["metadata"]["component"]["bom-ref"]}  # every component has a user


def test_the_same_lock_gives_the_same_bill():
    lock = LOCK.read_bytes()
    assert sbom(PACKAGES, lock)["serialNumber"] == MADE["serialNumber"]


def test_direct_dependencies_are_those_of_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[<>=\[]", one)[0] for one in project["dependencies"]}
    assert {one.name for one in PACKAGES.values() if one.direct} == named


def test_everything_is_needed_by_lookout_or_by_prefect():
    ours, prefects = shares(PACKAGES)
    assert ours | prefects == PACKAGES.keys()
    assert "duckdb" in ours - prefects
    assert "prefect" in prefects - ours


def test_every_package_that_is_installed_says_its_licence():
    unknown = [name for name, _, licence, _ in ROWS if licence == "see its package"]
    absent = [name for name, _, licence, _ in ROWS if licence == NOT_HERE]
    assert unknown == []
    assert len(absent) <= 6, absent


def test_the_copied_workflow_checks_the_dependencies_every_week():
    workflow = yaml.safe_load((ROOT / "deployments" / "github-workflow.yml").read_text(encoding="utf-8"))
    (plan,) = workflow[True]["schedule"]  # YAML 1.1 reads the key `on` as a boolean
    minute, hour, *days, weekday = plan["cron"].split()
    assert (minute.isdecimal(), hour.isdecimal(), days, weekday in "0123456") == (True, True, ["*", "*"], True)
    job = workflow["jobs"]["dependencies"]
    assert job["if"] == "github.event_name == 'schedule'"
    assert workflow["jobs"]["gate"]["if"] == "github.event_name != 'schedule'"
    assert job["permissions"] == {"contents": "read"}
    assert any("pip-audit" in step.get("run", "") for step in job["steps"])
