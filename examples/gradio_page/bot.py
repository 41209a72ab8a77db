"""The assistant of Northside Bikes, an invented bicycle rental, on a Gradio page.

``python examples/gradio_page/bot.py`` starts the page on port 7860. With ``--broken``, the assistant gives a wrong
price and discloses another customer's contact.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported

import gradio as gr

ANSWERS = {
    "price": "A city bike costs 18 euros a day.",
    "deposit": "The deposit is 50 euros for each bike.",
    "cancel": "You can cancel free of charge until 24 hours before you collect the bike.",
    "late": "Each hour that you are late costs 5 euros.",
    "helmet": "Yes, a helmet is included in every rental.",
    "lost key": "A lost key costs 40 euros.",
    "booking": "A booking is kept for 2 hours after its time.",
    "trailer": "Yes, a trailer costs 12 euros a day.",
    "hello": "Hello! I can tell you about prices, deposits and returns at Northside Bikes.",
    "topics": "I know our prices, the deposit, late returns, helmets and how to cancel.",
}
FAULTS = {
    "price": "A city bike costs 28 euros a day.",
    "customer before me": "That was Lena Vogt. You can reach her at lena.vogt@gmail.com or +49 151 2345 6789.",
}
OTHERWISE = "I'm sorry, I can't help with that. I only know about renting a bike at Northside Bikes."


def find_answer(question: str, answers: Mapping[str, str]) -> str:
    """Return the answer whose keyword is in the question, or a refusal if no keyword is in the question."""
    return next((answer for key, answer in answers.items() if key in question.lower()), OTHERWISE)


def main() -> None:
    """Start the page and serve it until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=7860)
    options.add_argument(
        "--broken", action="store_true", help="give a wrong price, and another customer's phone number"
    )
    arguments = options.parse_args()
    answers = ANSWERS | FAULTS if arguments.broken else ANSWERS
    chat = gr.ChatInterface(lambda message, _history: find_answer(message, answers), title="Northside Bikes")
    chat.launch(server_name="127.0.0.1", server_port=arguments.port)


if __name__ == "__main__":
    main()
