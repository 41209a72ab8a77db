"""A small Streamlit chat that streams its reply, shows a status of its steps, and fails on `boom`."""

from __future__ import annotations

import time

import streamlit as st

from tests.zoo.bot import tokens

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
        said = st.write_stream(tokens(asked))
    st.session_state.talk.append(("assistant", said))
