"""What Anthropic's API answers, in our words. Knows the shapes and not the SDK, whose types say less than arrives.

A body is not believed to be what its type says: with status 200 a proxy's page or an error object may come, and the
SDK builds a message out of whatever it gets.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from monitors.errors import GradingError, JudgeMisconfigured, JudgeUnavailable
from monitors.judge.http_status import is_worth_another_try, retry_after_s
from monitors.judge.model import Reply, Stop, Usage
from monitors.judge.retrying import TryAgain

PROVIDER: Final = "Anthropic"

_HINTS: Final = {
    400: "; look whether the model takes structured output",
    401: "; the key is not valid",
    402: "; the account has no credit",
    403: "; the key may not do this",
    404: "; is the model's name right?",
    413: "; the prompt is too large",
}
_STOPS: Final = {
    "max_tokens": Stop.CUT,
    "model_context_window_exceeded": Stop.CUT,
    "pause_turn": Stop.CUT,
    "refusal": Stop.REFUSED,
}


def status_error(error: Any) -> TryAgain | JudgeMisconfigured:
    """What an HTTP error means: to be asked again, or not to be asked again as it is."""
    status = int(error.status_code)
    kind = str(error.type or "no error type")
    if is_worth_another_try(status):
        return TryAgain(f"HTTP {status} {kind}", retry_after_s(error.response.headers))
    return JudgeMisconfigured(f"{PROVIDER} refuses the request: HTTP {status} {kind}{_HINTS.get(status, '')}")


def reply_of(message: Any) -> Reply:
    """The text of a message with what it cost. `TryAgain` when it is none."""
    if getattr(message, "type", None) != "message":
        no_message(message)
    texts = [str(block.text) for block in _blocks(message) if block.type == "text"]
    return Reply(
        text="".join(texts),
        stop=_STOPS.get(str(message.stop_reason), Stop.DONE),
        answered_by=str(message.model),
        usage=_usage(message),
    )


def _blocks(message: Any) -> list[Any]:
    return list(message.content or ())


def no_message(body: Any) -> NoReturn:
    """`TryAgain`: an error can come inside a 200, where something in between had begun to answer."""
    kind = getattr(body, "error", None)
    name = kind.get("type", "error") if isinstance(kind, dict) else getattr(kind, "type", "no message")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the body is not what its type says
    raise TryAgain(f"its reply holds no message but {name}")


def _usage(message: Any) -> Usage:
    used = message.usage
    written = used.cache_creation
    hour = written.ephemeral_1h_input_tokens if written else 0
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_write_5m_tokens=max(0, (used.cache_creation_input_tokens or 0) - hour),
        cache_write_1h_tokens=hour,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        batch=used.service_tier == "batch",
    )


def outcome_of(item: Any) -> Reply | GradingError:
    """What a batch has for one of its prompts."""
    kind = str(getattr(item.result, "type", "no result"))
    if kind == "succeeded":
        try:
            return reply_of(item.result.message)
        except (TryAgain, AttributeError) as error:
            return JudgeUnavailable(f"the batch holds no message for this prompt ({type(error).__name__})")
    if kind == "errored":
        return JudgeUnavailable(f"the batch could not judge this one: {item.result.error.error.type}")
    return JudgeUnavailable(f"the batch left this one {kind}")
