"""A small Gradio chat. Words in a question control its reply. ``--port`` is required.

The program prints ``listening`` when it accepts connections.

`slow 3` waits three seconds before its first token, `pause 8` pauses for eight seconds in the middle, `boom` raises
an error after half of the answer, `steps` shows tool calls first, and `long` streams a list (see `tests.zoo.bot`).
`--blocks` builds the page from Blocks, with a box that stays enabled. `--interface` builds a form with two text
boxes. The chat runs on the major versions 4, 5 and 6 of Gradio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import gradio as gr

from tests.zoo.bot import ProviderLost, growing

OLD = {} if gr.__version__ >= "6" else {"type": "messages"}  # what majors 4 and 5 need, and 6 does by default


def stream(message: str) -> Iterator[str]:
    """Yield the answer so far after each piece. For `boom`, raise the error that Gradio shows in a toast."""
    try:
        yield from growing(message)
    except ProviderLost as error:
        raise gr.Error(str(error)) from error


def chat(message: str, _history: list[object]) -> Iterator[object]:
    """Yield the answer so far after each piece, for Gradio's ``ChatInterface``."""
    if "steps" in message:
        step = gr.ChatMessage(content="found 3 clauses", metadata={"title": "Searching the policy"})
        yield [step]
        time.sleep(0.3)
        for text in stream(message):
            yield [step, gr.ChatMessage(content=text)]
        return
    yield from stream(message)


def blocks() -> gr.Blocks:
    """Build a Gradio ``Blocks`` page that uses the bot of this module."""
    with gr.Blocks(title="Echo blocks") as app:
        gr.Markdown("# Echo in blocks")
        chatbot = gr.Chatbot(value=[{"role": "assistant", "content": "Welcome. Ask me about your policy."}], **OLD)
        box = gr.Textbox(placeholder="Type here", label="Message")
        send = gr.Button("Send")

        def take(message: str, history: list[dict[str, str]]) -> tuple[str, list[dict[str, str]]]:
            return "", [*history, {"role": "user", "content": message}]

        def answer(history: list[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
            asked = history[-1]["content"]
            question = asked if isinstance(asked, str) else "".join(part["text"] for part in asked)
            for text in stream(question):
                yield [*history, {"role": "assistant", "content": text}]

        for asked in (box.submit, send.click):
            asked(take, [box, chatbot], [box, chatbot], queue=False).then(answer, chatbot, chatbot)
    return app


def form() -> gr.Interface:
    """Build a form with a text box for the question and another one for the answer."""
    return gr.Interface(stream, gr.Textbox(label="Question"), gr.Textbox(label="Answer"), title="Echo form")


def main() -> None:
    """Serve until killed."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--blocks", action="store_true")
    options.add_argument("--interface", action="store_true")
    given = options.parse_args()
    app = form() if given.interface else blocks() if given.blocks else gr.ChatInterface(chat, title="Echo", **OLD)
    app.queue(default_concurrency_limit=32)
    app._queue.sleep_when_free = app._queue.progress_update_sleep_when_free = (
        0.05  # else an idle one takes 5 % of a core
    )
    app.launch(server_name="127.0.0.1", server_port=given.port, quiet=True, prevent_thread_lock=True)
    print("listening", flush=True)
    app.block_thread()


if __name__ == "__main__":
    main()
