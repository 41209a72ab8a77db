"""The deployments for work pools equal those of `lookout up`. The installed Prefect accepts their format."""

from __future__ import annotations

import importlib
import json
import re
from datetime import timedelta

import jsonschema
import pytest
import yaml

from deployments.prefect.prefect_yaml import DOCUMENT, EXAMPLE, INSTALLED_AT, format_prefect_yaml
from flows.server.schedules import plan_deployments
from monitors.config.file import load_config
from tests.conftest import ROOT
from tests.tools import pool_templates

pytestmark = pytest.mark.prefect

SECRET_WORDS = re.compile(r"token|secret|password|passphrase|credential|api_?key|private_?key|auth|webhook")
NAMES_ONE = ("_variable", "_env", "_block")
"""Suffixes of parameters that contain the name of a secret.

The value is the name of an environment variable or of a Prefect block.
"""
NO_SECRETS = {"max_tokens", "prompt_tokens_up_to", "password_field"}


@pytest.fixture
def config():
    return load_config(EXAMPLE)


@pytest.fixture
def content():
    return yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))


def planned(config):
    return {one.full_name: one for one in plan_deployments(config, INSTALLED_AT, config.schedules)}


def test_the_file_is_made_from_the_schedules(config):
    """The committed file matches the schedules.

    If it does not, run `python -m deployments.prefect.prefect_yaml`.
    """
    assert DOCUMENT.read_text(encoding="utf-8") == format_prefect_yaml(config, INSTALLED_AT)


@pytest.mark.parametrize("kind", pool_templates.MAKERS)
def test_a_pool_s_template_is_made_from_the_one_that_prefect_ships(kind):
    """A pool's template is built from the template that Prefect ships.

    If it is outdated, run `python -m tests.tools.pool_templates`.
    """
    path = pool_templates.FOLDER / f"{kind}.json"
    assert path.read_text(encoding="utf-8") == pool_templates.text_of(kind)


def test_the_installed_prefect_reads_every_key(content):
    """The installed Prefect reads every key of the file.

    Prefect's model ignores unknown keys, so the test also compares the keys.
    """
    from prefect.cli.deploy._models import (
        ConcurrencyLimitSpec,
        DeploymentConfig,
        PrefectYamlModel,
        RawScheduleConfig,
    )

    PrefectYamlModel.model_validate(content)
    assert set(content) <= set(PrefectYamlModel.model_fields)
    for one in content["deployments"]:
        assert set(one) <= set(DeploymentConfig.model_fields)
        assert set(one.get("concurrency_limit", {})) <= set(ConcurrencyLimitSpec.model_fields)
        for schedule in one["schedules"]:
            RawScheduleConfig.model_validate(schedule)


def test_every_entry_point_is_a_flow_that_takes_its_parameters(content):
    from prefect.flows import load_flow_from_entrypoint

    for one in content["deployments"]:
        flow = load_flow_from_entrypoint(one["entrypoint"])
        if one["name"] != "verify-deploy":  # the notifier of a deploy gives them
            flow.validate_parameters(one["parameters"])


async def test_names_times_and_parameters_are_those_that_lookout_up_registers(config, content):
    from prefect.cli.deploy._models import RawScheduleConfig

    from flows.server.registration import build_runner_deployment

    by_name = {one.name: one for one in planned(config).values()}
    assert [one["name"] for one in content["deployments"]] == list(by_name)
    for one in content["deployments"]:
        ours = await build_runner_deployment(by_name[one["name"]])
        assert (one["entrypoint"], one["parameters"], one["tags"]) == (ours.entrypoint, ours.parameters, ours.tags)
        theirs = [RawScheduleConfig.model_validate(schedule) for schedule in one["schedules"]]
        times = [(s.cron, s.timezone if s.cron else None, s.interval) for s in theirs]
        assert times == [_time(schedule.schedule) for schedule in ours.schedules or []]


def _time(schedule):
    cron = getattr(schedule, "cron", None)
    interval = getattr(schedule, "interval", None)
    return (cron, schedule.timezone if cron else None, interval if isinstance(interval, timedelta) else None)


def test_the_image_is_a_variable_of_every_pool_of_containers(config):
    document = yaml.safe_load(
        format_prefect_yaml(config, INSTALLED_AT, pool="k8s", image="registry.example/lookout:1")
    )
    for one in document["deployments"]:
        assert one["work_pool"] == {"name": "k8s", "job_variables": {"image": "registry.example/lookout:1"}}
        for kind in pool_templates.MAKERS:
            variables = pool_templates.shipped(kind)["variables"]
            jsonschema.validate(one["work_pool"]["job_variables"], variables)


@pytest.mark.parametrize("kind", pool_templates.MAKERS)
def test_a_pool_s_template_has_only_what_prefect_s_own_has_and_its_defaults_fit(kind):
    """The template has the same keys as Prefect's own template, and its defaults match its schema."""
    ours = json.loads((pool_templates.FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    theirs = pool_templates.shipped(kind)
    assert set(ours["variables"]["properties"]) == set(theirs["variables"]["properties"])
    assert set(ours["job_configuration"]) == set(theirs["job_configuration"])
    properties = ours["variables"]["properties"]
    defaults = {
        name: definition["default"]
        for name, definition in properties.items()
        if definition.get("default") is not None
    }
    jsonschema.validate(defaults, ours["variables"])


def test_a_pool_s_template_names_secrets_and_holds_none():
    docker = json.loads((pool_templates.FOLDER / "docker.json").read_text(encoding="utf-8"))
    env = docker["variables"]["properties"]["env"]["default"]
    assert all(re.fullmatch(r"\{\{ prefect\.blocks\.secret\.[a-z-]+ \}\}", value) for value in env.values())
    kubernetes = json.loads((pool_templates.FOLDER / "kubernetes.json").read_text(encoding="utf-8"))
    (container,) = kubernetes["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "lookout-secrets"}}]
    assert container["env"] == "{{ env }}"  # Prefect's own variables: a run needs them to find its server


def all_flows():
    """Return all flows of Lookout, keyed by name."""
    from prefect.flows import Flow

    found = {}
    for file in (ROOT / "flows").glob("*/flow.py"):
        if "@flow" in file.read_text(encoding="utf-8"):
            name = file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            loaded = vars(importlib.import_module(name)).values()
            found |= {one.name: one for one in loaded if isinstance(one, Flow)}
    return found


def secrets_in(schema):
    """Yield the names of properties in a schema that look like a secret, and the markers of secret values.

    Properties that contain only the name of a secret are skipped.
    """
    for key, value in schema.items():
        if key == "properties":
            yield from (
                name
                for name, kind in value.items()
                if SECRET_WORDS.search(name) and not name.endswith(NAMES_ONE) and name not in NO_SECRETS
                if "/FromEnvironment'" not in str(kind)  # the name of a variable, in a table of its own
            )
        if (key, str(value)) in {("writeOnly", "True"), ("format", "password")}:
            yield f"{key}={value}"
        if isinstance(value, dict):
            yield from secrets_in(value)
        if isinstance(value, list):
            for part in value:
                yield from secrets_in(part) if isinstance(part, dict) else ()


def test_parameters_of_flows_carry_names_of_secrets_and_never_secrets(config):
    """Flow parameters contain no secrets, because Prefect shows them to every user of its pages."""
    from prefect.utilities.callables import parameter_schema

    known = all_flows()
    assert {one.flow for one in planned(config).values()} <= set(known)
    for name, flow in known.items():
        assert list(secrets_in(parameter_schema(flow).model_dump())) == [], name


def test_a_planted_secret_is_found():
    schema = {
        "properties": {"a": {"$ref": "#/d"}, "token_block": {}},
        "definitions": {"d": {"properties": {"api_key": {}}}},
    }
    assert list(secrets_in(schema)) == ["api_key"]
