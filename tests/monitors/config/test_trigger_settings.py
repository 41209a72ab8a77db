"""A trigger that could never match, or that is ambiguous, is refused in the configuration."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from monitors.config.sections import DeploySender, DeploySettings, TriggerSettings

WHOLE = """
deployment = "verify-deploy/after-deploy"
first_poll = "verify"

[[triggers]]
provider = "github"
repository = "acme/helpdesk"
environment = "production"
target = "bot"

[[triggers]]
provider = "github"
repository = "acme/helpdesk"
event = "workflow_run"
workflow = "Deploy"
target = "bot"

[[triggers]]
provider = "huggingface"
repository = "acme/helpdesk-space"
target = "bot"
"""


def row(**values):
    defaults = {"provider": "github", "repository": "acme/helpdesk", "target": "bot"}
    return TriggerSettings.model_validate(defaults | values)


def test_triggers_are_read_from_toml_with_defaults():
    settings = DeploySettings.model_validate(tomllib.loads(WHOLE))
    assert settings.providers == {DeploySender.GITHUB, DeploySender.HUGGINGFACE}
    assert [(one.event_name, one.branch_filter) for one in settings.triggers] == [
        ("deployment_status", None),
        ("workflow_run", "main"),
        (None, "main"),
    ]


@pytest.mark.parametrize(
    ("values", "event", "branch"),
    [
        ({"event": "push"}, "push", "main"),
        ({"event": "push", "branch": "*"}, "push", None),
        ({"branch": "main"}, "deployment_status", "main"),
        ({"provider": "standard", "repository": "helpdesk"}, "deploy.succeeded", None),
        ({"provider": "standard", "event": "release.done"}, "release.done", None),
    ],
)
def test_omitted_fields_come_from_the_sender(values, event, branch):
    assert (row(**values).event_name, row(**values).branch_filter) == (event, branch)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"event": "issues"}, "one of deployment_status, workflow_run, push"),
        ({"provider": "huggingface", "event": "push"}, "remove `event`"),
        ({"event": "push", "environment": "production"}, "remove `environment`"),
        ({"provider": "huggingface", "environment": "production"}, "remove `environment`"),
        ({"workflow": "Deploy"}, "remove `workflow`"),
        ({"repository": "helpdesk"}, "owner/name"),
        ({"repository": "https://github.com/acme/helpdesk"}, "String should match"),
        ({"target": "../bot"}, "String should match"),
        ({"provider": "gitlab"}, "'github', 'huggingface' or 'standard'"),
        ({"branch": "two words"}, "String should match"),
    ],
)
def test_meaningless_values_are_refused(values, said):
    with pytest.raises(ValidationError, match=said):
        row(**values)


def test_the_deployment_has_two_parts():
    with pytest.raises(ValidationError, match="String should match"):
        DeploySettings(deployment="verify-deploy")
