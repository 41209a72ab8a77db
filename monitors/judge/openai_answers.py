"""What an OpenAI-compatible endpoint answers, in our words. Such endpoints differ: nothing is taken for granted."""

from __future__ import annotations

from typing import Any, Final

from monitors.errors import JudgeMisconfigured
from monitors.judge.http_status import is_worth_another_try, retry_after_s
from monitors.judge.model import BYTES_PER_TOKEN, JudgePrompt, Reply, Stop, Usage
from monitors.judge.retrying import TryAgain

_STOPS: Final = {"length": Stop.CUT, "content_filter": Stop.REFUSED}
_HINTS: Final = {
    400: "; look whether the model takes structured output (json_schema)",
    401: "; the key is not valid",
    402: "; the account has no credit",
    403: "; the key may not do this",
    404: "; are base_url and the model's name right?",
    413: "; the prompt is too large",
}


def status_error(error: Any, model: str) -> TryAgain | JudgeMisconfigured:
    """What an HTTP error means: to be asked again, or not to be asked again as it is."""
    status = int(error.status_code)
    if is_worth_another_try(status):
        return TryAgain(f"HTTP {status}", retry_after_s(error.response.headers))
    return JudgeMisconfigured(f"the endpoint of {model} refuses the request: HTTP {status}{_HINTS.get(status, '')}")


def reply_of(completion: Any, prompt: JudgePrompt) -> Reply:
    """The text of the first choice with what it cost. `TryAgain` when there is none."""
    choices: list[Any] = list(getattr(completion, "choices", None) or ())
    if not choices:
        raise TryAgain("its reply holds no choice")
    said = choices[0].message
    text = str(said.content or "")
    refused = bool(getattr(said, "refusal", None))
    return Reply(
        text=text,
        stop=Stop.REFUSED if refused else _STOPS.get(str(choices[0].finish_reason), Stop.DONE),
        answered_by=str(completion.model),
        usage=_usage(getattr(completion, "usage", None), prompt.instructions + prompt.material, text),
    )


def _usage(used: Any, asked: str, written: str) -> Usage:
    """As it was counted; some servers count nothing, and then the text is, so that a budget still holds."""
    if used is None:
        return Usage(input_tokens=_estimated(asked), output_tokens=_estimated(written))
    details = getattr(used, "prompt_tokens_details", None)
    cached = int(getattr(details, "cached_tokens", None) or 0)
    return Usage(
        input_tokens=max(0, int(used.prompt_tokens or 0) - cached),
        output_tokens=int(used.completion_tokens or 0),
        cache_read_tokens=cached,
    )


def _estimated(text: str) -> int:
    return -(-len(text.encode("utf-8")) // BYTES_PER_TOKEN)
