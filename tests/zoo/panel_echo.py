"""A small Panel chat with ChatInterface, which uses nested shadow roots and a web socket."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator

import panel as pn

from tests.zoo.bot import growing


async def answer(question: str, _user: str, _chat: pn.chat.ChatInterface) -> AsyncIterator[str]:
    """Yield the answer so far after each piece."""
    pieces = growing(question)
    while (so_far := await asyncio.to_thread(next, pieces, None)) is not None:
        yield so_far


def page() -> pn.chat.ChatInterface:
    """Build the page. Each visitor gets a separate conversation."""
    chat = pn.chat.ChatInterface(callback=answer, callback_user="Suraj")
    chat.send("Welcome. Ask me about your policy.", user="Suraj", respond=False)
    return chat


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    pn.extension()
    pn.serve(page, address="127.0.0.1", port=options.parse_args().port, show=False, title="Echo in Panel")
