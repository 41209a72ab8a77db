"""A small Streamlit chat: streams its reply, shows a status of its steps, and fails on `boom`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import streamlit as st


def _seconds(word: str, message: str) -> float:
    found = re.search(rf"{word} (\d+(?:\.\d+)?)", message)
    return float(found.group(1)) if found else 0.0


def stream(question: str) -> Iterator[str]:
    """Tokens as a model would send them."""
    time.sleep(_seconds("slow", question))
    words = f"The waiting period for {question} is **24 months** [Source: Policy P-100, clause 4.2].".split(" ")
    for number, word in enumerate(words):
        if number == len(words) // 2:
            time.sleep(_seconds("pause", question))
            if "boom" in question:
                raise RuntimeError("the model's provider is out of reach")
        time.sleep(0.02)
        yield word + " "


st.title("Echo in Streamlit")
st.sidebar.text_input("Search the documents")
if "talk" not in st.session_state:
    st.session_state.talk = [("assistant", "Welcome. Ask me about your policy.")]
for who, text in st.session_state.talk:
    st.chat_message(who).write(text)
if asked := st.chat_input("Say something"):
    st.session_state.talk.append(("user", asked))
    st.chat_message("user").write(asked)
    with st.chat_message("assistant"):
        if "steps" in asked:
            with st.status("Searching the policy"):
                st.write("found 3 clauses")
                time.sleep(0.5)
        said = st.write_stream(stream(asked))
    st.session_state.talk.append(("assistant", said))
