"""Judges by Anthropic's SDK: one verdict, or a batch of them. The only home of ``anthropic``.

``messages.create`` and not ``messages.parse``, which raises on a truncated or refused reply and loses what was
spent. The SDK's own retries are off, because it honours any Retry-After without a cap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from monitors.errors import GradingError
from monitors.judge.anthropic_answers import no_message, outcome_of, reply_of, status_error
from monitors.judge.model import JudgePrompt, Reply
from monitors.judge.retrying import Patience, TryAgain, persistently
from monitors.judge.verdict import SCHEMA

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam, OutputConfigParam, TextBlockParam
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

ADDRESS: Final = "https://api.anthropic.com"
"""Where the API is. Said here so that nothing is read from the environment behind our back."""

Effort = Literal["low", "medium", "high"]
Ttl = Literal["5m", "1h"]


class AnthropicJudge:
    """A Claude model as a judge. Use as an async context manager: it keeps connections.

    ``schema`` is what its replies must look like: a verdict, unless something else is asked of it.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = ADDRESS,
        patience: Patience,
        effort: Effort = "low",
        cache_ttl: Ttl = "5m",
        batch_cache_ttl: Ttl = "1h",
        schema: Mapping[str, Any] = SCHEMA,
    ) -> None:
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._patience = patience
        self._effort: Effort = effort
        self._cache_ttl: Ttl = cache_ttl
        self._batch_cache_ttl: Ttl = batch_cache_ttl
        self._schema = dict(schema)
        self._client: AsyncAnthropic | None = None

    @property
    def name(self) -> str:
        """The model that is asked for."""
        return self._model

    async def __aenter__(self) -> Self:
        """Load the SDK, in a thread: it takes seconds, and a page may be waiting for an answer meanwhile."""
        await asyncio.to_thread(_load)
        from anthropic import AsyncAnthropic  # heavy: four seconds

        self._client = AsyncAnthropic(
            api_key=self._key, base_url=self._base_url, max_retries=0, timeout=self._patience.try_s
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        del kind, error, trace
        if self._client is not None:
            await self._client.close()

    async def verdict(self, prompt: JudgePrompt) -> Reply:
        """Ask for one verdict, again where that can help."""
        params = self._params(prompt, self._cache_ttl)
        return await persistently(
            lambda: _once(lambda: self._sdk.messages.create(**params)), self._patience, who=self._model
        )

    async def submit(self, prompts: tuple[JudgePrompt, ...]) -> str:
        """Hand in a batch; its id."""
        requests = [{"custom_id": p.id, "params": self._params(p, self._batch_cache_ttl)} for p in prompts]

        async def attempt() -> str:
            batch = await _caught(lambda: self._sdk.messages.batches.create(requests=requests))  # pyright: ignore[reportArgumentType] - a TypedDict built as a dict
            return str(getattr(batch, "id", "") or no_message(batch))

        return await persistently(attempt, self._patience, who=self._model)

    async def has_ended(self, batch_id: str) -> bool:
        """Whether its replies can be collected."""

        async def attempt() -> bool:
            batch = await _caught(lambda: self._sdk.messages.batches.retrieve(batch_id))
            return (getattr(batch, "processing_status", None) or no_message(batch)) == "ended"

        return await persistently(attempt, self._patience, who=self._model)

    async def collect(self, batch_id: str) -> dict[str, Reply | GradingError]:
        """Reply or reason for every prompt that the batch has something for."""

        async def lines() -> dict[str, Reply | GradingError]:
            found = await self._sdk.messages.batches.results(batch_id)
            return {item.custom_id: outcome_of(item) async for item in found}

        return await persistently(lambda: _caught(lines), self._patience, who=self._model)

    async def cancel(self, batch_id: str) -> None:
        """Stop what has not been begun."""
        try:
            await _caught(lambda: self._sdk.messages.batches.cancel(batch_id))
        except (TryAgain, GradingError):
            return

    @property
    def _sdk(self) -> AsyncAnthropic:
        if self._client is None:
            raise AssertionError("an AnthropicJudge is entered before it is asked")
        return self._client

    def _params(self, prompt: JudgePrompt, ttl: Ttl) -> MessageCreateParamsNonStreaming:
        """Instructions first and marked for the cache: they are the same for every case of a task."""
        system: TextBlockParam = {
            "type": "text",
            "text": prompt.instructions,
            "cache_control": {"type": "ephemeral", "ttl": ttl},
        }
        said: MessageParam = {"role": "user", "content": [{"type": "text", "text": prompt.material}]}
        output: OutputConfigParam = {
            "format": {"type": "json_schema", "schema": self._schema},
            "effort": self._effort,
        }
        return {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "system": [system],
            "messages": [said],
            "output_config": output,
        }


def _load() -> None:
    import anthropic  # heavy: four seconds

    del anthropic


async def _once(ask: Any) -> Reply:
    return reply_of(await _caught(ask))


async def _caught(ask: Any) -> Any:
    """What ``ask`` gives. The SDK's errors become ours; of what they say only the status and kind are kept."""
    import anthropic  # loaded by now

    try:
        return await ask()
    except anthropic.APITimeoutError:
        raise TryAgain("it did not answer in time") from None
    except anthropic.APIConnectionError:
        raise TryAgain("the connection failed") from None
    except anthropic.APIStatusError as error:
        raise status_error(error) from None
    except (anthropic.AnthropicError, AttributeError, TypeError, ValueError) as error:
        # a body that is not the API's: a proxy's page with status 200 breaks inside the SDK
        raise TryAgain(f"its reply is not the API's ({type(error).__name__})") from None
