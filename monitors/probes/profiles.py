"""Known kinds of chat page, as data. An unknown page needs none: it is read by behaviour."""

from __future__ import annotations

from monitors.errors import ConfigError
from monitors.probes.settings import Selectors
from monitors.records.base import Record


class Profile(Record):
    """What is special about a kind of page.

    ``marks`` is a selector that only such a page has. ``selectors`` say where things are, so that nothing must be
    searched. ``presses_enter`` means that Enter sends, always.
    """

    name: str
    marks: str | None = None
    selectors: Selectors = Selectors()
    presses_enter: bool = False

    def with_overrides(self, given: Selectors) -> Selectors:
        """The profile's selectors, replaced where the target gives its own."""
        own = {name: value for name, value in given.model_dump().items() if value is not None}
        return self.selectors.model_copy(update=own)


# Gradio 6.31: a chatbot is a log; the toast is the only sign of an exception, after which the box stays disabled.
# A box that is disabled while the bot answers is found by behaviour, so nothing is said of it here.
GRADIO = Profile(
    name="gradio",
    marks=".gradio-container [role=log], .gradio-container [aria-label='chatbot conversation']",
    selectors=Selectors(
        answer="[data-testid=bot]",
        steps=".thought-group",
        busy=".gradio-container [data-testid=status-tracker].generating:not(.hide)",
        error="[data-testid=toast-body].error",
    ),
    presses_enter=True,
)

# Streamlit 1.67: the app element says whether its script runs.
STREAMLIT = Profile(
    name="streamlit",
    marks="[data-testid=stApp] [data-testid=stChatInput]",
    selectors=Selectors(
        message_box="[data-testid=stChatInputTextArea]",
        busy="[data-testid=stApp][data-test-script-state=running]",
        error="[data-testid=stException]",
    ),
    presses_enter=True,
)

GENERIC = Profile(name="generic")

PROFILES = (GRADIO, STREAMLIT, GENERIC)


def profile_named(name: str) -> Profile:
    """The profile of that name; `ConfigError` names those there are."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    known = ", ".join(profile.name for profile in PROFILES)
    raise ConfigError(f"probe.profile = {name!r}: no such profile; accepted: {known}")
