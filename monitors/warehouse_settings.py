"""`[warehouse]`: what the nightly care of the warehouse does. The warehouse itself needs no settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from monitors.config_words import USER

_PLACE: Final = r"^[a-z][a-z0-9+.-]*://\S+$"


def _holds_no_key(place: str) -> str:
    if USER.search(place) or "?" in place:
        raise ValueError(
            "a place without keys in it: an object store's come from the environment, as its own tools read them "
            "(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, …)"
        )
    return place


JournalPlace = Annotated[str, Field(pattern=_PLACE), AfterValidator(_holds_no_key)]


class WarehouseSettings(BaseModel):
    """The ``[warehouse]`` table of ``lookout.toml``. The key for pseudonyms is a secret and never a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    journal: JournalPlace | None = Field(
        default=None,
        description="where runs write their journal, past one machine: an object store's address such as "
        "s3://bucket/lookout/journal (S3 needs the extra `s3`); left out, beside the warehouse in the data folder",
    )
    personal_data_days: int | None = Field(
        default=None,
        ge=1,
        description="days after which questions and answers are emptied and ids of real conversations become "
        "pseudonyms, made with LOOKOUT_AGE_KEY; without it, nothing is ever removed",
    )
    export_folder: Path | None = Field(
        default=None,
        description="where each day's tables are written as Parquet, relative to this file; without it, nothing is",
    )
    export_days: int = Field(
        default=3,
        ge=1,
        description="how many days up to yesterday are exported each night: what came late is then in them too",
    )
    compact_after_days: int = Field(
        default=7,
        ge=0,
        description="days after which segments of finished runs are moved into Parquet archives",
    )
    check: bool = Field(
        default=True,
        description="compare journal and tables row by row each night; takes as long as a rebuild",
    )
