"""Define the settings `[langfuse]`: the Langfuse project for suites and runs, and the project of production."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from monitors.problems import refuse_password
from monitors.records.targets import HttpUrl

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Duration = Annotated[float, Field(gt=0, le=3600)]


class LangfuseSettings(BaseModel):
    """Settings in `[langfuse]`: the project to which `langfuse:DATASET` refers.

    Langfuse keys belong to one project. Before Lookout reads or writes, it asks Langfuse for the project of the
    keys. Lookout accepts only the keys of `project`, and never the keys of `production_project`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str = Field(
        min_length=1, description="name or id of the Langfuse project. Lookout accepts only keys of this project"
    )
    production_project: str | None = Field(
        default=None,
        min_length=1,
        description="name or id of the production project. Lookout refuses keys of this project",
    )
    host: HttpUrl = Field(
        default="https://cloud.langfuse.com",
        description="URL of Langfuse. Set it for another region or for your own server (version 4)",
    )
    public_key_env: VariableName = Field(
        default="LANGFUSE_PUBLIC_KEY", description="name of the environment variable with the project's public key"
    )
    secret_key_env: VariableName = Field(
        default="LANGFUSE_SECRET_KEY", description="name of the environment variable with the project's secret key"
    )
    request_deadline_s: Duration = Field(default=30.0, description="timeout of one request to Langfuse, in seconds")
    trace_patience_s: Duration = Field(
        default=30.0,
        description="maximum time in seconds to wait until a trace is complete and two readings in a row are the "
        "same",
    )

    @field_validator("host")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return refuse_password(url)

    @model_validator(mode="after")
    def _refuse_production_project(self) -> Self:
        if self.project == self.production_project:
            raise ValueError(
                "project and production_project are the same project. Set project to the project for evaluations"
            )
        return self
