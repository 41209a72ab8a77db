"""A small Gradio chat whose replies follow words in the question. Run it with a port; it says when it listens.

`slow 3` waits before its first token, `pause 8` stops in mid-answer, `boom` raises after half an answer, `steps`
shows tool calls first, `long` streams a list. `--blocks` builds the page from Blocks, with a box that stays enabled.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator

import gradio as gr


def _seconds(word: str, message: str) -> float:
    found = re.search(rf"{word} (\d+(?:\.\d+)?)", message)
    return float(found.group(1)) if found else 0.0


def reply(message: str) -> str:
    """The whole answer to a question: it repeats the question's own key, so that a mix-up shows."""
    if "long" in message:
        return "Here is the list:\n\n" + "\n".join(f"- item {n} of **{message}**" for n in range(40)) + "\n\nEND"
    return f"The waiting period for {message} is **24 months** [Source: Policy P-100, clause 4.2]."


def stream(message: str) -> Iterator[str]:
    """Tokens as a model would send them."""
    time.sleep(_seconds("slow", message))
    whole = reply(message)
    if "instant" in message:
        yield whole
        return
    half = len(whole) // 2
    for end in range(8, len(whole), 12):
        yield whole[:end]
        time.sleep(0.02)
        if end <= half < end + 12:
            time.sleep(_seconds("pause", message))
            if "boom" in message:
                raise gr.Error("The model's provider is out of reach")
    yield whole


def chat(message: str, _history: list[object]) -> Iterator[object]:
    """What ChatInterface calls."""
    if "steps" in message:
        step = gr.ChatMessage(content="found 3 clauses", metadata={"title": "Searching the policy"})
        yield [step]
        time.sleep(0.3)
        for text in stream(message):
            yield [step, gr.ChatMessage(content=text)]
        return
    yield from stream(message)


def blocks() -> gr.Blocks:
    """The same bot on a page made of Blocks."""
    with gr.Blocks(title="Echo blocks") as app:
        gr.Markdown("# Echo in blocks")
        chatbot = gr.Chatbot(value=[{"role": "assistant", "content": "Welcome. Ask me about your policy."}])
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


def main() -> None:
    """Serve until killed."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--blocks", action="store_true")
    given = options.parse_args()
    app = blocks() if given.blocks else gr.ChatInterface(chat, title="Echo")
    app.queue(default_concurrency_limit=32)
    app.launch(server_name="127.0.0.1", server_port=given.port, quiet=True, prevent_thread_lock=True)
    print("listening", flush=True)
    app.block_thread()


if __name__ == "__main__":
    main()
