"""Random plans of streamed answers: the transport, the position and length of pauses, and the page's controls.

Each question states where its answer pauses, and the server pauses there. The address of the page
(`html/streams.html`) selects the transport of the text and the control that the page shows. A plan has a signal if
the network or a control on the page distinguishes a pause from the end.
"""

from __future__ import annotations

import itertools
import json
import queue
import random
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.zoo.questions import conversations
from tests.zoo.websocket import Socket

if TYPE_CHECKING:
    from tests.zoo.server import Handler

TOKEN_S = 0.02
MAX_PAUSE_S = 20.0
MAX_ZOO_PAUSE_S = 10.0
"""The maximum pause in seconds. It is below the default patience.

On a page without a signal, a longer pause cannot be distinguished from the end.
"""
ENDED_AT: dict[str, float] = {}
"""The time, by `time.monotonic`, at which the last piece of the answer was sent, for each question."""


class Transport(StrEnum):
    """How the answer arrives on the page."""

    FETCH = "fetch"
    """The body of the response to the question."""
    EVENTS = "events"
    """An event stream that is opened for the question and closed at the end of the answer."""
    PUSHED = "pushed"
    """An event stream that was opened with the page."""
    SOCKET = "socket"
    """A web socket that was opened with the page."""
    POLLING = "polling"
    """Repeated requests until one reports that the answer is complete."""


class Control(StrEnum):
    """What the page shows while the answer arrives."""

    NONE = "none"
    STOP = "stop"
    """A stop button and a disabled box until the answer is complete."""
    FIRST = "first"
    """A stop button and a disabled box until the first words of the answer appear."""


class Place(StrEnum):
    """Where the answer pauses."""

    SENTENCE = "sentence"
    WORD = "word"
    TABLE = "table"
    SOURCES = "sources"


PLACES = {
    Place.SENTENCE: "24 months.",
    Place.WORD: "hos",
    Place.TABLE: "| Room | ₹4,000 |\n",
    Place.SOURCES: "a day.\n",
}
"""The end of the text before the pause, for each `Place`."""


@dataclass(frozen=True)
class Plan:
    """The plan of one stream: transport, control, place and length of the pause, and number of turns."""

    transport: Transport
    control: Control
    place: Place
    pause_s: float
    turns: int = 1
    poll_s: float = 0.0

    @property
    def address(self) -> str:
        """Return the path of the page that streams answers as planned."""
        late = f"&poll_s={self.poll_s}" if self.poll_s else ""
        return f"streams.html?transport={self.transport}&control={self.control}{late}"

    def build_questions(self, key: str) -> tuple[str, ...]:
        """Return the questions of the plan. Each has its own key, which begins with ``key``."""
        return tuple(
            f"what about {key}{turn}? pause {self.pause_s} at {self.place}" for turn in range(1, self.turns + 1)
        )

    @property
    def has_signal(self) -> bool:
        """Return whether the network traffic or a control on the page shows that an answer has only paused."""
        is_open_before = self.transport in (Transport.PUSHED, Transport.SOCKET)
        return self.control is Control.STOP or not is_open_before


def build_plans(seed: int, count: int, *, max_pause_s: float = MAX_PAUSE_S) -> list[Plan]:
    """Return ``count`` plans. Each transport, control and place is equally frequent, in random combinations."""
    chance = random.Random(seed)
    return [
        Plan(
            transport=list(Transport)[number % len(Transport)],
            control=chance.choice(list(Control)),
            place=chance.choice(list(Place)),
            pause_s=round(chance.choice((0.0, chance.uniform(0, 4), chance.uniform(0, max_pause_s))), 1),
            turns=chance.choice((1, 2)),
        )
        for number in range(count)
    ]


def build_conversations(seed: int, count: int) -> list[tuple[str, ...]]:
    """Return the conversations of the zoo, with a pause of random length in the answer to each question.

    The positions of the pauses alternate between all values of `Place`.
    """
    chance, places = random.Random(seed), itertools.cycle(Place)
    return [
        tuple(f"{text} pause {chance.uniform(0, MAX_ZOO_PAUSE_S):.1f} at {next(places)}" for text in turns)
        for turns in conversations(seed, count)
    ]


def reply(question: str) -> str:
    """Return the whole answer to a question."""
    return (
        f"For {question} the waiting period is 24 months. It counts from the first day in hospital.\n"
        "| Item | Limit |\n| Room | ₹4,000 |\n| Surgery | ₹15,000 |\n"
        "The limits are for a day.\n[Source: P-100, clause 4.2]"
    )


def stream(body: str) -> Iterator[str]:
    """Yield the pieces of the answer. Make the pauses that the question in the request body states."""
    question = json.loads(body)["question"]
    pause_s, place = next(iter(re.findall(r"pause ([\d.]+)(?: at (\w+))?", question)), ("0", ""))
    before, mark, after = reply(question).partition(PLACES[Place(place or Place.SENTENCE)])
    yield from _tokens(before + mark)
    time.sleep(float(pause_s))  # the pause of the plan
    yield from _tokens(after)
    ENDED_AT[question] = time.monotonic()


def _tokens(text: str) -> Iterator[str]:
    for token in re.findall(r"\S+\s*|\s+", text):
        time.sleep(TOKEN_S)  # as a model would send them
        yield token


def answer_post(handler: Handler, path: str, query: str, body: str) -> None:
    """Answer a question that the page sent by POST to a path of the streams."""
    match path.rsplit("/", 1)[1]:
        case "fetch":
            answer_on_stream(handler, body)
        case "push":
            handler.send(202, "application/json", "{}")
            push(handler.subscribers[urllib.parse.parse_qs(query)["id"][0]], body)
        case _:
            handler.send(200, "application/json", json.dumps({"id": handler.begin(stream(body))}))


def answer_get(handler: Handler, path: str, query: str) -> None:
    """Answer a GET request with an event stream or a web socket."""
    if path == "/streams/socket":
        answer_on_socket(handler)
    else:
        send_events(handler, query)


def answer_on_stream(handler: Handler, body: str) -> None:
    """Send the answer as the body of the response to the question."""
    handler.begin_chunks("text/plain; charset=utf-8")
    for token in stream(body):
        handler.send_chunk(token.encode())
    handler.send_chunk(b"")


def send_events(handler: Handler, query: str) -> None:
    """Send the answer as a separate event stream, which ends with the event ``end``."""
    handler.begin_chunks("text/event-stream")
    for token in stream(json.dumps(dict(urllib.parse.parse_qsl(query)))):
        handler.send_chunk(f"data: {json.dumps({'token': token})}\n\n".encode())
    handler.send_chunk(b"event: end\ndata: {}\n\n")
    handler.send_chunk(b"")


def push(inbox: queue.Queue[str], body: str) -> None:
    """Send the pieces of the answer to an open event stream, in a thread. An empty piece marks the end."""

    def work() -> None:
        for token in itertools.chain(stream(body), [""]):
            inbox.put(token)

    threading.Thread(target=work, daemon=True).start()


def answer_on_socket(handler: Handler) -> None:
    """Answer questions over a web socket with a heartbeat."""
    socket = Socket(handler)
    threading.Thread(target=socket.beat, daemon=True).start()
    try:
        while (body := socket.receive()) is not None:
            for token in stream(body):
                socket.send(json.dumps({"token": token}))
            socket.send(json.dumps({"end": True}))
    except OSError:
        pass  # the browser went away
    socket.close()
