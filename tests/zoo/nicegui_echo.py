"""A small NiceGUI chat like the framework's own example: tabs, a box in the footer, a spinner during the answer."""

from __future__ import annotations

import argparse
import asyncio

from nicegui import run, ui

from tests.zoo.bot import growing


@ui.page("/")
def chat() -> None:
    """Show one conversation. It is rendered again at each piece of an answer."""

    async def send() -> None:
        question, text.value = text.value, ""
        with messages:
            ui.chat_message(text=question, name="You", sent=True)
            answer = ui.chat_message(name="Bot", sent=False)
            spinner = ui.spinner(type="dots")
        pieces = growing(question)
        while (so_far := await run.io_bound(next, pieces, None)) is not None:
            answer.clear()
            with answer:
                ui.markdown(so_far)
            await asyncio.sleep(0)
        messages.remove(spinner)

    with ui.tabs() as tabs:
        talk = ui.tab("Chat")
        logs = ui.tab("Logs")
    with ui.tab_panels(tabs, value=talk).classes("w-full"):
        messages = ui.tab_panel(talk)
        with ui.tab_panel(logs):
            ui.log()
    with ui.footer().classes("bg-white"), ui.column().classes("w-full"):
        text = ui.input(placeholder="message").props("rounded outlined").classes("w-full")
        text.on("keydown.enter", send)
        ui.markdown("A chat built with NiceGUI")


if __name__ in {"__main__", "__mp_main__"}:
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    ui.run(host="127.0.0.1", port=options.parse_args().port, reload=False, show=False, title="Echo in NiceGUI")
