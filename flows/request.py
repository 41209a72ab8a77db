"""What a flow is asked to do: plain values that Prefect may store and show. Never a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.config import Config
from monitors.records.base import Identifier
from monitors.records.deploys import PullRequest

AUTO: Final = "auto"
NO_BASELINE: Final = "none"


class VerifyRequest(BaseModel):
    """Verify one target of a configuration, which is given whole or as the path of a lookout.toml.

    ``commit`` is the deploy to verify, when it is known. ``fresh`` starts anew where a run could be resumed.
    ``pull_request`` is where the deploy belongs; the results of a staging target are posted there. ``baseline`` is
    what the run is held against: a run's id, the path of a results.json, ``none``, or ``auto``: the last accepted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Identifier
    config_path: Path | None = None
    config: Config | None = None
    commit: Identifier | None = None
    fresh: bool = Field(default=False)
    pull_request: PullRequest | None = None
    baseline: str = Field(default=AUTO, min_length=1)

    @model_validator(mode="after")
    def _has_one_configuration(self) -> Self:
        if (self.config_path is None) == (self.config is None):
            raise ValueError("give either `config_path` or `config`")
        return self
