"""What is read of Slack's answers; everything else in them is ignored."""

from __future__ import annotations

from pydantic import BaseModel


class Posted(BaseModel):
    """chat.postMessage: where the message is now. ``channel`` is an id even when a name was asked for."""

    channel: str
    ts: str


class PostedMetadata(BaseModel):
    """The metadata that was posted with a message."""

    event_payload: dict[str, object] = {}


class PostedMessage(BaseModel):
    """One message of a channel's or a thread's history."""

    ts: str
    metadata: PostedMetadata = PostedMetadata()


class PostedMessages(BaseModel):
    """conversations.history and conversations.replies."""

    messages: tuple[PostedMessage, ...] = ()


class Refusal(BaseModel):
    """Any answer that is not a yes: Slack's name for what is wrong."""

    error: object = None
