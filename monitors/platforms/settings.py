"""Define the settings `[langsmith]` and `[targets.NAME.langsmith]`: where LangSmith stores traces and experiments.

The settings contain no secrets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from monitors.errors import ConfigError
from monitors.platforms.langsmith.client import LangSmithAccess
from monitors.problems import format_did_you_mean_hint, refuse_password
from monitors.records.targets import HttpUrl

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""

Seconds = Annotated[float, Field(gt=0, le=3600)]


class PlatformScheme(StrEnum):
    """The names of platforms in an address such as ``langsmith:DATASET``."""

    LANGSMITH = "langsmith"
    LANGFUSE = "langfuse"


class DatasetAddress(NamedTuple):
    """A dataset on a platform, in the form that people write: ``langsmith:DATASET``."""

    scheme: PlatformScheme
    dataset: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.dataset}"


def parse_dataset_address(written: str) -> DatasetAddress:
    """Return the platform and the dataset in ``langsmith:DATASET``. Raises `ConfigError` for any other form.

    The name of a dataset may contain colons.
    """
    scheme, colon, dataset = written.partition(":")
    schemes = [str(name) for name in PlatformScheme]
    accepted = ", ".join(f"{name}:DATASET" for name in schemes)
    if not colon or scheme not in schemes:
        raise ConfigError(
            f"{written!r} is not the address of a dataset{format_did_you_mean_hint(scheme, schemes)}; "
            f"accepted: {accepted}"
        )
    if not dataset.strip():
        raise ConfigError(f"{written!r}: write the dataset's name after the colon; accepted: {accepted}")
    return DatasetAddress(PlatformScheme(scheme), dataset.strip())


class LangSmithSettings(BaseModel):
    """Settings in `[langsmith]`: the workspace for evaluations, and the production project.

    Lookout refuses to use the production project for evaluations.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str | None = Field(
        default=None,
        min_length=1,
        description="LangSmith project for the traces of evaluations: the staging project, never the production "
        "project",
    )
    api_url: HttpUrl = Field(default="https://api.smith.langchain.com", description="LangSmith's address")
    key_env: Name = Field(
        default="LANGSMITH_API_KEY", description="name of the environment variable with the key for evaluations"
    )
    workspace_id: str | None = Field(
        default=None, min_length=1, description="id of the workspace, if the key belongs to an organisation"
    )
    production_project: str | None = Field(
        default=None, min_length=1, description="the production project, to which traces of evaluations must not go"
    )
    production_api_url: HttpUrl | None = Field(
        default=None, description="LangSmith's address for production. Set it only if it differs from api_url"
    )
    production_key_env: Name | None = Field(
        default=None,
        description="name of the environment variable with the production key, if this machine has it. "
        "Evaluations must not use this key",
    )
    request_deadline_s: Seconds = Field(default=30.0, description="timeout of one request to LangSmith, in seconds")

    @field_validator("api_url", "production_api_url")
    @classmethod
    def _refuse_password(cls, url: str | None) -> str | None:
        return None if url is None else refuse_password(url)

    def build_access(self, project: str | None) -> LangSmithAccess:
        """Return the access settings for a project.

        If ``project`` is ``None``, the settings are for the whole workspace.
        """
        return LangSmithAccess(
            project=project,
            api_url=self.api_url,
            key_env=self.key_env,
            workspace_id=self.workspace_id,
            request_deadline_s=self.request_deadline_s,
        )


class TracingSettings(LangSmithSettings):
    """The tracing settings of a target: the target's own table, completed with the values of `[langsmith]`."""

    project: str = Field(min_length=1)  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    production_url: HttpUrl | None = None
    trace_patience_s: Seconds = 30.0


_SHARED: Final = "Default: the value under [langsmith]"


# Shares its fields with LangSmithSettings because every key is optional here and has its value there.
class TargetLangSmith(BaseModel):
    """Settings in `[targets.NAME.langsmith]`: where the traces of an agent are, and which project is production.

    A key that is not set here gets its value from `[langsmith]`. If a target has this table, its suite runs only
    against staging. Before the first request, Lookout compares the settings with the settings of production. The
    trace of a job must never be in the production project.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str | None = Field(
        default=None, min_length=1, description=f"the LangSmith project with this target's traces. {_SHARED}"
    )
    api_url: HttpUrl | None = Field(default=None, description=f"LangSmith's address. {_SHARED}")
    key_env: Name | None = Field(
        default=None,
        description=f"name of the environment variable with the key that can read this project. {_SHARED}",
    )
    workspace_id: str | None = Field(
        default=None,
        min_length=1,
        description=f"id of the workspace, if the key belongs to an organisation. {_SHARED}",
    )
    production_project: str | None = Field(
        default=None,
        min_length=1,
        description=f"the production project, to which traces of runs must not go. {_SHARED}",
    )
    production_api_url: HttpUrl | None = Field(
        default=None,
        description=f"LangSmith's address for production. Set it only if it differs from api_url. {_SHARED}",
    )
    production_key_env: Name | None = Field(
        default=None,
        description="name of the environment variable with the production key, if this machine has it. Runs must "
        f"not use this key. {_SHARED}",
    )
    production_url: HttpUrl | None = Field(
        default=None,
        description="address of the application in production. Set it if no target in this file has this address",
    )
    trace_patience_s: Seconds = Field(
        default=30.0,
        description="maximum time in seconds to wait for the trace of a finished job. Without the trace, Lookout "
        "does not know the agent's steps",
    )
    request_deadline_s: Seconds | None = Field(
        default=None, description=f"timeout of one request to LangSmith, in seconds. {_SHARED}"
    )

    @field_validator("api_url", "production_api_url", "production_url")
    @classmethod
    def _refuse_password(cls, url: str | None) -> str | None:
        return None if url is None else refuse_password(url)

    def merge_defaults(self, defaults: LangSmithSettings | None) -> TracingSettings:
        """Return this table, completed with the values of ``defaults``, the table `[langsmith]`.

        Raises ``ValueError`` if neither table names a project.
        """
        shared: dict[str, Any] = {} if defaults is None else defaults.model_dump()
        own = {key: value for key, value in self.model_dump().items() if value is not None}
        if "project" not in own and shared.get("project") is None:
            raise ValueError(
                "project is missing. Set the LangSmith project of this target's traces, here or in [langsmith]"
            )
        return TracingSettings.model_validate(shared | own)
