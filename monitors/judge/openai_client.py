"""Ask models for verdicts, through any OpenAI-compatible API. This is the only module that imports ``openai``.

The SDK is an optional extra. Without it, a `ConfigError` names the command to install it. OpenAI-compatible
endpoints differ. Therefore, replies are parsed without assumptions about their fields.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from monitors.errors import ConfigError, JudgeMisconfigured
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
    from openai import AsyncOpenAI


_STOP_REASONS: Final = {"length": Stop.CUT, "content_filter": Stop.REFUSED}
_REDIRECT_HINT: Final = (
    "; the endpoint redirects, and Lookout does not follow redirects. Set base_url to the new address"
)
_STATUS_HINTS: Final = {
    **dict.fromkeys((301, 302, 303, 307, 308), _REDIRECT_HINT),
    400: "; check that the model supports structured output (json_schema)",
    401: "; the key is not valid. Set a valid API key",
    402: "; the account has no credit. Add credit",
    403: "; the API key does not have the required permission",
    404: "; check base_url and the model's name",
    413: "; the prompt is too large",
}


def convert_status_error(error: Any, model: str) -> TryAgain | JudgeMisconfigured:
    """Return `TryAgain` if a retry may succeed after this HTTP error. Otherwise, return `JudgeMisconfigured`."""
    status = int(error.status_code)
    if is_retryable(status):
        return TryAgain(f"HTTP {status}", parse_retry_after_s(error.response.headers))
    return JudgeMisconfigured(
        f"the endpoint of {model} rejected the request: HTTP {status}{_STATUS_HINTS.get(status, '')}"
    )


def parse_reply(completion: Any) -> ModelReply:
    """Return the text of the first choice and the usage. Raises `TryAgain` if the reply has no text."""
    choices: list[Any] = list(getattr(completion, "choices", None) or ())
    if not choices:
        raise TryAgain("the reply has no entry in `choices`")
    message = choices[0].message
    text = str(message.content or "")
    refused = bool(getattr(message, "refusal", None))
    return ModelReply(
        text=text,
        stop=Stop.REFUSED if refused else _STOP_REASONS.get(str(choices[0].finish_reason), Stop.DONE),
        answered_by=str(completion.model),
        usage=_parse_usage(getattr(completion, "usage", None)),
    )


def _parse_usage(used: Any) -> Usage:
    cached: object = getattr(getattr(used, "prompt_tokens_details", None), "cached_tokens", None) or 0
    asked: object = getattr(used, "prompt_tokens", None)
    if isinstance(asked, int) and isinstance(cached, int):
        asked -= min(asked, cached) if asked > 0 else 0
    return parse_usage_counts(
        input_tokens=asked,
        output_tokens=getattr(used, "completion_tokens", None),
        cache_read_tokens=cached,
    )


API_ADDRESS: Final = "https://api.openai.com/v1"
"""The address of OpenAI's own API. For vLLM, Ollama, OpenRouter, Together and others, set ``base_url``."""


class OpenAIJudge:
    """A judge that is a model behind an OpenAI-compatible endpoint. Use it as an async context manager."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = API_ADDRESS,
        retry_policy: RetryPolicy,
    ) -> None:
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._retry_policy = retry_policy
        self._client: AsyncOpenAI | None = None

    @property
    def name(self) -> str:
        """Return the id of the configured model."""
        return self._model

    async def __aenter__(self) -> Self:
        """Create the client.

        The SDK is loaded in a thread, because loading takes seconds and would block the event loop.
        """
        await asyncio.to_thread(_load_sdk)
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # slow import

        self._client = AsyncOpenAI(
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
        return await retry_judge_request(
            lambda: self._request_reply_once(prompt), self._retry_policy, provider=self._model
        )

    async def _request_reply_once(self, prompt: JudgePrompt) -> ModelReply:
        import openai  # loaded by now

        try:
            return add_estimated_usage_if_missing(parse_reply(await self._create_completion(prompt)), prompt)
        except openai.APITimeoutError:
            raise TryAgain("the API did not answer in time") from None
        except openai.APIConnectionError:
            raise TryAgain("the connection failed") from None
        except openai.APIStatusError as error:
            raise convert_status_error(error, self._model) from None
        except (openai.OpenAIError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise TryAgain(f"the reply does not have the API's format ({type(error).__name__})") from None

    async def _create_completion(self, prompt: JudgePrompt) -> Any:
        if self._client is None:
            raise AssertionError("open OpenAIJudge with `async with` before you use it")
        # OpenAI's newer models refuse the old name of the limit; most other servers know only the old name
        limit = "max_completion_tokens" if self._base_url == API_ADDRESS else "max_tokens"
        create: Any = self._client.chat.completions.create
        return await create(
            model=self._model,
            messages=[
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.material},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": prompt.schema_name, "strict": True, "schema": prompt.reply_schema},
            },
            **{limit: prompt.max_tokens},
        )


def _load_sdk() -> None:
    try:
        import openai  # slow import
    except ModuleNotFoundError:
        raise ConfigError(
            "a judge with provider \"openai\" needs the openai package: pip install 'lookout-monitor[openai]'"
        ) from None
    del openai
