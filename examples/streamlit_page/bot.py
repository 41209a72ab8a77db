"""The assistant of Quiet Garden, an invented plant shop, on a Streamlit page: ``streamlit run bot.py``."""

from __future__ import annotations

import streamlit as st

ANSWERS = {
    "basil": "Basil needs water every 2 days.",
    "delivery": "Delivery costs 6 euros.",
    "guarantee": "We replace a plant that dies within 30 days.",
    "cactus": "No, a cactus needs hardly any water.",
    "gift": "Yes, we wrap plants as a gift.",
}
OTHERWISE = "I'm sorry, I can't help with that. I only know plants and our shop."


def find_answer(question: str) -> str:
    """Return the answer whose keyword is in the question, or a refusal if no keyword is in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


st.title("Quiet Garden")
if "talk" not in st.session_state:
    st.session_state.talk = [("assistant", "Welcome to Quiet Garden. What would you like to know?")]
for who, text in st.session_state.talk:
    st.chat_message(who).write(text)
if question := st.chat_input("Ask about plants"):
    for who, text in (("user", question), ("assistant", find_answer(question))):
        st.session_state.talk.append((who, text))
        st.chat_message(who).write(text)
