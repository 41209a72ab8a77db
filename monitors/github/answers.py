"""The few fields of GitHub's answers that are read."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """The part of an answer that is read; everything else stays where it is."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class User(Answer):
    """Who wrote something. ``type`` is ``User``, ``Bot`` or ``Organization``; a person cannot be a ``Bot``."""

    login: str = ""
    type: str = ""


class Comment(Answer):
    """A comment on a pull request. ``user`` is ``None`` where the account is gone."""

    id: Annotated[int, Field(ge=1)]
    body: str | None = None
    user: User | None = None
    html_url: str = ""


class Refused(Answer):
    """What GitHub says where it does not do what was asked."""

    message: str = ""


Read = TypeVar("Read", bound=Answer)
