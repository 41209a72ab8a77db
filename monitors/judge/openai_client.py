"""Judges of other families, by the OpenAI SDK, wherever its chat API is spoken. The only home of ``openai``.

The SDK is an optional extra: without it, `ConfigError` says how to get it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from monitors.errors import ConfigError
from monitors.judge.model import JudgePrompt, Reply
from monitors.judge.openai_answers import reply_of, status_error
from monitors.judge.retrying import Patience, TryAgain, persistently
from monitors.judge.verdict import SCHEMA

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ADDRESS: Final = "https://api.openai.com/v1"
"""OpenAI's own; vLLM, Ollama, OpenRouter, Together and others are given by ``base_url``."""


class OpenAIJudge:
    """A model behind an OpenAI-compatible endpoint as a judge. Use as an async context manager.

    ``schema`` is what its replies must look like: a verdict, unless something else is asked of it.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = ADDRESS,
        patience: Patience,
        schema: Mapping[str, Any] = SCHEMA,
    ) -> None:
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._patience = patience
        self._schema = dict(schema)
        self._client: AsyncOpenAI | None = None

    @property
    def name(self) -> str:
        """The model that is asked for."""
        return self._model

    async def __aenter__(self) -> Self:
        """Load the SDK, in a thread: it takes seconds, and a page may be waiting for an answer meanwhile."""
        await asyncio.to_thread(_load)
        from openai import AsyncOpenAI  # heavy

        self._client = AsyncOpenAI(
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
        return await persistently(lambda: self._once(prompt), self._patience, who=self._model)

    async def _once(self, prompt: JudgePrompt) -> Reply:
        import openai  # loaded by now

        try:
            return reply_of(await self._create(prompt), prompt)
        except openai.APITimeoutError:
            raise TryAgain("it did not answer in time") from None
        except openai.APIConnectionError:
            raise TryAgain("the connection failed") from None
        except openai.APIStatusError as error:
            raise status_error(error, self._model) from None
        except (openai.OpenAIError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise TryAgain(f"its reply is not the API's ({type(error).__name__})") from None

    async def _create(self, prompt: JudgePrompt) -> Any:
        if self._client is None:
            raise AssertionError("an OpenAIJudge is entered before it is asked")
        # OpenAI's newer models refuse the old name of the limit, most other servers know no other
        limit = "max_completion_tokens" if self._base_url == ADDRESS else "max_tokens"
        create: Any = self._client.chat.completions.create
        return await create(
            model=self._model,
            messages=[
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.material},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": prompt.schema_name, "strict": True, "schema": self._schema},
            },
            **{limit: prompt.max_tokens},
        )


def _load() -> None:
    try:
        import openai  # heavy
    except ModuleNotFoundError:
        raise ConfigError(
            "a judge with provider \"openai\" needs the openai package: pip install 'lookout-monitor[openai]'"
        ) from None
    del openai
