"""Where in an item of stored traffic its parts lie. The defaults read the common shapes without any mapping."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _many(given: object) -> object:
    return (given,) if isinstance(given, str) else given


Paths = Annotated[tuple[str, ...], BeforeValidator(_many)]
"""Paths like ``outputs.answer`` or ``messages.-1.created_at``, tried in order; one may be given as plain text."""

USER_ROLES: Final = ("user", "human", "customer", "client", "visitor", "you", "question")
REPLY_ROLES: Final = ("assistant", "ai", "bot", "model", "agent", "chatbot", "gpt", "answer")
CONTEXT_ROLES: Final = ("tool", "function", "context")


class Fields(BaseModel):
    """`[targets.NAME.traffic.fields]`: paths to the parts of an item; the first that leads to one is taken.

    Parts of a turn (texts, citations, feedback, …) are looked for in the turn, else for the last turn in the item.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Paths = Field(
        default=("id", "uuid", "run_id", "trace_id", "request_id", "message_id", "_id", "_id.$oid"),
        description="the item's own id; without one it is made from its time and texts",
    )
    conversation_id: Paths = Field(
        default=("conversation_id", "session_id", "thread_id", "chat_id"),
        description="the id of the conversation that an item is, or is a turn of; the item's own where it "
        "holds all turns and has no other",
    )
    completed_at: Paths = Field(
        default=(
            "completed_at", "ended_at", "end_time", "finished_at", "closed_at", "updated_at", "update_time",
            "last_message_at", "timestamp", "ts", "time", "datetime", "created_at", "create_time", "date",
            "messages.-1.timestamp", "messages.-1.created_at", "messages.-1.time",
            "turns.-1.completed_at", "turns.-1.timestamp", "turns.-1.created_at", "turns.-1.time",
        ),
        description="when it was completed: ISO 8601 (UTC where no zone is given), or seconds, milliseconds, "
        "microseconds or nanoseconds since 1970",
    )  # fmt: skip
    turns: Paths = Field(
        default=(
            "turns", "messages", "conversation", "conversations", "transcript", "history", "exchanges", "dialogue",
            "inputs.messages",
        ),
        description="a list of messages that have a role, of question-and-answer pairs, or of lists of two texts; "
        "left out in an item, the item itself is the one turn",
    )  # fmt: skip
    role: Paths = Field(
        default=("role", "author.role", "from", "author", "sender", "speaker", "type", "id.-1"),
        description="who wrote a message",
    )
    text: Paths = Field(
        default=("content", "text", "message", "value", "body", "parts", "content.parts", "kwargs.content"),
        description="what a message says; a list of parts is joined",
    )
    user_text: Paths = Field(
        default=(
            "user_text", "question", "query", "prompt", "user_message", "user_input", "input", "user",
            "inputs.question", "inputs.query", "inputs.input", "inputs.prompt", "inputs.user_text", "inputs.text",
        ),
        description="what the user wrote, in a turn",
    )  # fmt: skip
    reply_text: Paths = Field(
        default=(
            "reply_text", "answer", "response", "reply", "bot_message", "completion", "output", "assistant", "bot",
            "outputs.answer", "outputs.output", "outputs.response", "outputs.reply", "outputs.reply_text",
            "outputs.text", "outputs.content", "outputs.messages.-1", "outputs.generations.0.0",
        ),
        description="what came back, in a turn",
    )  # fmt: skip
    error: Paths = Field(
        default=("error", "error_message", "exception"),
        description="what went wrong instead of a reply: such a question is unanswered, and no fault of the log",
    )
    citations: Paths = Field(
        default=(
            "citations",
            "sources",
            "references",
            "metadata.citations",
            "outputs.citations",
            "outputs.sources",
        ),
        description="what the reply cites",
    )
    context: Paths = Field(
        default=(
            "context", "contexts", "chunks", "passages", "documents", "retrieved", "retrieved_context",
            "metadata.context", "outputs.context", "outputs.documents", "inputs.context",
        ),
        description="passages that the application had before it when it replied",
    )  # fmt: skip
    app_path: Paths = Field(
        default=("app_path", "model_path", "answered_by", "model", "metadata.app_path", "metadata.model"),
        description="the model or path that replied",
    )
    latency_ms: Paths = Field(
        default=("latency_ms", "duration_ms", "elapsed_ms", "metadata.latency_ms"),
        description="milliseconds from question to reply",
    )
    latency_s: Paths = Field(
        default=("latency_s", "duration_s", "latency_seconds", "elapsed_s"),
        description="the same in seconds, where no milliseconds are given",
    )
    app_version: Paths = Field(
        default=("app_version", "version", "commit", "release", "metadata.app_version", "metadata.version"),
        description="the application's version",
    )
    user: Paths = Field(
        default=(
            "user_key", "user_id", "user.id", "account_id", "customer_id", "metadata.user_id", "user_email",
            "email",
        ),
        description="who the user was; never stored but as a pseudonym",
    )  # fmt: skip
    thumb: Paths = Field(
        default=("thumb", "thumbs", "feedback.thumb", "feedback.thumbs", "feedback.value", "feedback", "vote"),
        description="what the user pressed below the reply: up or down, true or false, 1, 0 or -1, an emoji; a "
        "scale of stars is no thumb",
    )
    comment: Paths = Field(
        default=("feedback.comment", "feedback.text", "feedback_comment", "comment"),
        description="what the user wrote about the reply",
    )
    is_question: Paths = Field(
        default=("is_question", "is_clarifying", "is_clarification", "clarifying_question", "metadata.is_question"),
        description="true where the reply asks back",
    )
    user_roles: Paths = Field(default=USER_ROLES, description="roles of messages that the user wrote")
    reply_roles: Paths = Field(default=REPLY_ROLES, description="roles of messages that came back")
    context_roles: Paths = Field(
        default=CONTEXT_ROLES,
        description="roles of messages that are context of the next reply; others are skipped",
    )
