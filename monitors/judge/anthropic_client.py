"""Ask Claude models for verdicts, one by one or in batches. This is the only module that imports Anthropic's SDK.

The module uses ``messages.create`` instead of ``messages.parse``. On a truncated or refused reply,
``messages.parse`` raises an error, and the cost of the reply is lost. The SDK's own retries are off, because the
SDK waits as long as the Retry-After header requests, without a limit.

Replies are checked without trusting the SDK's types: a response with status 200 may contain a proxy's page or an
error object, and the SDK builds a message from any body.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self

from monitors.errors import GradingError, JudgeMisconfigured, JudgeUnavailable
from monitors.judge.model import (
    JudgePrompt,
    ModelReply,
    Stop,
    Usage,
    add_estimated_usage_if_missing,
    parse_usage_counts,
)
from monitors.retry import RetryPolicy, TryAgain, is_retryable, parse_retry_after_s, retry_judge_request

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam, OutputConfigParam, TextBlockParam
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming


PROVIDER: Final = "Anthropic"

_REDIRECT_HINT: Final = (
    "; the endpoint redirects, and Lookout does not follow redirects. Set base_url to the new address"
)
_STATUS_HINTS: Final = {
    **dict.fromkeys((301, 302, 303, 307, 308), _REDIRECT_HINT),
    400: "; check that the model supports structured output",
    401: "; the key is not valid. Set a valid API key",
    402: "; the account has no credit. Add credit",
    403: "; the API key does not have the required permission",
    404: "; check the model's name",
    413: "; the prompt is too large",
}
_STOP_REASONS: Final = {
    "max_tokens": Stop.CUT,
    "model_context_window_exceeded": Stop.CUT,
    "pause_turn": Stop.CUT,
    "refusal": Stop.REFUSED,
}


def convert_status_error(error: Any) -> TryAgain | JudgeMisconfigured:
    """Return `TryAgain` if a retry may succeed after this HTTP error. Otherwise, return `JudgeMisconfigured`."""
    status = int(error.status_code)
    kind = str(error.type or "no error type")
    if is_retryable(status):
        return TryAgain(f"HTTP {status} {kind}", parse_retry_after_s(error.response.headers))
    return JudgeMisconfigured(
        f"{PROVIDER} rejected the request: HTTP {status} {kind}{_STATUS_HINTS.get(status, '')}"
    )


def parse_reply(message: Any) -> ModelReply:
    """Return the text of a message and its usage. Raises `TryAgain` if the body is not a message."""
    if getattr(message, "type", None) != "message":
        raise_missing_message(message)
    texts = [str(block.text) for block in message.content or () if block.type == "text"]
    return ModelReply(
        text="".join(texts),
        stop=_STOP_REASONS.get(str(message.stop_reason), Stop.DONE),
        answered_by=str(message.model),
        usage=_parse_usage(message),
    )


def raise_missing_message(body: Any) -> NoReturn:
    """Raise `TryAgain`, which names what the body contains instead of a message.

    A response with status 200 can contain an error.
    """
    kind = getattr(body, "error", None)
    name = kind.get("type", "error") if isinstance(kind, dict) else getattr(kind, "type", "unknown content")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the body is not what its type says
    raise TryAgain(f"the reply contains {name} instead of a message")


def _parse_usage(message: Any) -> Usage:
    used = getattr(message, "usage", None)
    written = getattr(used, "cache_creation_input_tokens", None) or 0
    hour = getattr(getattr(used, "cache_creation", None), "ephemeral_1h_input_tokens", None) or 0
    is_counted_not_estimated = isinstance(written, int) and isinstance(hour, int)
    return parse_usage_counts(
        input_tokens=getattr(used, "input_tokens", None),
        output_tokens=getattr(used, "output_tokens", None),
        cache_write_5m_tokens=max(0, written - hour) if is_counted_not_estimated else None,
        cache_write_1h_tokens=hour,
        cache_read_tokens=getattr(used, "cache_read_input_tokens", None) or 0,
        batch=getattr(used, "service_tier", None) == "batch",
    )


def parse_batch_outcome(entry: Any) -> ModelReply | GradingError:
    """Return the model's reply in one result of a batch, or an error if the result contains no reply."""
    kind = str(getattr(entry.result, "type", "no result"))
    if kind == "succeeded":
        try:
            return parse_reply(entry.result.message)
        except (TryAgain, AttributeError) as error:
            return JudgeUnavailable(f"the batch has no readable reply for this answer ({type(error).__name__})")
    if kind == "errored":
        return JudgeUnavailable(f"the provider's batch failed for this answer: {entry.result.error.error.type}")
    return JudgeUnavailable(f"the provider's batch has no reply for this answer: {kind}")


API_ADDRESS: Final = "https://api.anthropic.com"
"""The default address of the API. Without an address, the SDK would read one from the environment."""

Effort = Literal["low", "medium", "high"]
Ttl = Literal["5m", "1h"]


class AnthropicJudge:
    """A judge that is a Claude model. Use it as an async context manager, so that requests reuse connections."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = API_ADDRESS,
        retry_policy: RetryPolicy,
        effort: Effort = "low",
        cache_ttl: Ttl = "5m",
        batch_cache_ttl: Ttl = "1h",
    ) -> None:
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._retry_policy = retry_policy
        self._effort: Effort = effort
        self._cache_ttl: Ttl = cache_ttl
        self._batch_cache_ttl: Ttl = batch_cache_ttl
        self._client: AsyncAnthropic | None = None

    @property
    def name(self) -> str:
        """Return the id of the configured model."""
        return self._model

    async def __aenter__(self) -> Self:
        """Create the client.

        The SDK is loaded in a thread, because loading takes seconds and would block the event loop.
        """
        await asyncio.to_thread(_load_sdk)
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient  # slow: four seconds

        self._client = AsyncAnthropic(
            api_key=self._key,
            base_url=self._base_url,
            max_retries=0,
            timeout=self._retry_policy.try_s,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),  # a prompt goes where it is configured to
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        del kind, error, trace
        if self._client is not None:
            await self._client.close()

    async def request_reply(self, prompt: JudgePrompt) -> ModelReply:
        """Return the reply to one prompt. A request that fails temporarily is sent again."""
        params = self._build_request(prompt, self._cache_ttl)
        reply = await retry_judge_request(
            lambda: _request_reply_once(lambda: self._sdk.messages.create(**params)),
            self._retry_policy,
            provider=self._model,
        )
        return add_estimated_usage_if_missing(reply, prompt)

    async def submit(self, prompts: tuple[JudgePrompt, ...]) -> str:
        """Submit a batch and return its id."""
        requests = [{"custom_id": p.id, "params": self._build_request(p, self._batch_cache_ttl)} for p in prompts]

        async def attempt() -> str:
            batch = await _call_api_with_translated_errors(
                lambda: self._sdk.messages.batches.create(
                    requests=requests  # pyright: ignore[reportArgumentType] - a TypedDict built as a dict
                )
            )
            return str(getattr(batch, "id", "") or raise_missing_message(batch))

        return await retry_judge_request(attempt, self._retry_policy, provider=self._model)

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended, so that its replies can be collected."""

        async def attempt() -> bool:
            batch = await _call_api_with_translated_errors(lambda: self._sdk.messages.batches.retrieve(batch_id))
            return (getattr(batch, "processing_status", None) or raise_missing_message(batch)) == "ended"

        return await retry_judge_request(attempt, self._retry_policy, provider=self._model)

    async def collect(self, batch_id: str) -> dict[str, ModelReply | GradingError]:
        """Return the reply or the error for each prompt of the batch, keyed by the id of the prompt."""

        async def collect_results() -> dict[str, ModelReply | GradingError]:
            results = await self._sdk.messages.batches.results(batch_id)
            return {item.custom_id: parse_batch_outcome(item) async for item in results}

        return await retry_judge_request(
            lambda: _call_api_with_translated_errors(collect_results), self._retry_policy, provider=self._model
        )

    async def cancel(self, batch_id: str) -> None:
        """Cancel the prompts of a batch that have not started."""
        try:
            await _call_api_with_translated_errors(lambda: self._sdk.messages.batches.cancel(batch_id))
        except (TryAgain, GradingError):
            return

    @property
    def _sdk(self) -> AsyncAnthropic:
        if self._client is None:
            raise AssertionError("open AnthropicJudge with `async with` before you use it")
        return self._client

    def _build_request(self, prompt: JudgePrompt, ttl: Ttl) -> MessageCreateParamsNonStreaming:
        """Build a request that asks the provider to cache the instructions.

        The instructions are the same for all cases of a task.
        """
        system: TextBlockParam = {
            "type": "text",
            "text": prompt.instructions,
            "cache_control": {"type": "ephemeral", "ttl": ttl},
        }
        message: MessageParam = {"role": "user", "content": [{"type": "text", "text": prompt.material}]}
        output: OutputConfigParam = {
            "format": {"type": "json_schema", "schema": prompt.reply_schema},
            "effort": self._effort,
        }
        return {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "system": [system],
            "messages": [message],
            "output_config": output,
        }


def _load_sdk() -> None:
    import anthropic  # slow: four seconds

    del anthropic


async def _request_reply_once(call: Any) -> ModelReply:
    return parse_reply(await _call_api_with_translated_errors(call))


async def _call_api_with_translated_errors(call: Any) -> Any:
    """Return the result of ``call``. Convert errors of the SDK to errors of Lookout.

    A converted error contains only the HTTP status and the kind of the error.
    """
    import anthropic  # loaded by now

    try:
        return await call()
    except anthropic.APITimeoutError:
        raise TryAgain("the API did not answer in time") from None
    except anthropic.APIConnectionError:
        raise TryAgain("the connection failed") from None
    except anthropic.APIStatusError as error:
        raise convert_status_error(error) from None
    except (anthropic.AnthropicError, AttributeError, TypeError, ValueError) as error:
        # the SDK fails on a body that is not from the API, such as a proxy's page with status 200
        raise TryAgain(f"the reply does not have the API's format ({type(error).__name__})") from None
