"""A week of scheduled nights as its owner meets it in Slack: all true, few, useful, and what the page shows."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.flows.week_of_nights import DOCS, PER_DAY, WEEK, Week, page, shown

pytestmark = pytest.mark.prefect

QUIET, BURST, DOWN, VOID, DRIFT, BACK, EMPTY = range(7)


@pytest.fixture(scope="module")
def week(tmp_path_factory, prefect_environment):
    """Seven nights with their digests, on the tests' own Prefect server: pairs in their order."""
    happened = list(Week(tmp_path_factory.mktemp("week"), prefect_environment).run())
    nights, digests = happened[::2], happened[1::2]
    assert {one.flow for one in nights} == {"grade-traffic"}
    assert {one.flow for one in digests} == {"digest"}
    assert len(nights) == len(WEEK) == 7
    return nights, digests


def texts(happened):
    return [sent.text for sent in happened.sent]


def headlines(happened):
    """Channel, kind of message and first line of each."""
    return [(sent.channel, sent.kind, sent.text.splitlines()[0]) for sent in happened.sent]


def test_each_night_ends_as_what_it_was(week):
    """Partial where the judge did not speak or was not believed; Empty, not Graded, where nothing came."""
    nights, digests = week
    named = ["Graded", "Graded", "Partial", "Partial", "Graded", "Graded", "Empty"]
    assert [one.state for one in nights] == [("COMPLETED", name) for name in named]
    assert "not whole: the judge graded 0 of 100 answers" in nights[DOWN].message
    assert "not whole: 100 grades of the judge are void" in nights[VOID].message
    assert {one.state for one in digests} == {("COMPLETED", "Completed")}


def test_few_messages_each_in_its_owners_channel(week):
    """Ten beside the seven digests: five new ones, each followed by one reply in its thread once it is over."""
    nights, digests = week
    said = [headlines(one) for one in nights]
    reply = "reply in its thread"
    assert said[QUIET] == []
    assert said[BURST] == [("#alerts", "message", "🟠 SEV 2 · Error shown as an answer · shop")]
    assert said[DOWN] == [
        ("#monitor", "message", "🛠️ SEV 2 · Lookout itself is in trouble · shop"),
        ("#alerts", reply, "✅ Recovered · Error shown as an answer · shop"),
    ]
    assert sorted(said[VOID]) == [
        ("#monitor", "message", "🛠️ SEV 2 · Judge's grades do not count · shop"),
        ("#monitor", reply, "✅ Recovered · Lookout itself is in trouble · shop"),
    ]
    assert said[DRIFT] == [
        ("#alerts", "message", "🟠 SEV 2 · Quality drifts · shop"),
        ("#monitor", reply, "✅ Recovered · Judge's grades do not count · shop"),
    ]
    assert said[BACK] == [("#alerts", reply, "✅ Recovered · Quality drifts · shop")]
    assert said[EMPTY] == [("#monitor", "message", "🛠️ SEV 2 · Lookout itself is in trouble · shop")]
    assert [[(one.channel, one.kind) for one in digest.sent] for digest in digests] == [
        [("#alerts", "message")]
    ] * 7


def test_the_first_line_of_each_digest_says_how_it_stands(week):
    """It is all that a lock screen shows: a night that nobody could grade is not good news."""
    _, digests = week
    assert [texts(one)[0].splitlines()[0] for one in digests] == [
        "✅ Nothing open · shop · night of 2026-03-02",
        "🟠 1 open, 1 of them SEV 2 · shop · night of 2026-03-03",
        "❔ Nothing open, failures unknown · shop · night of 2026-03-04",
        "❔ Nothing open, failures unknown · shop · night of 2026-03-05",
        "🟠 1 open, 1 of them SEV 2 · shop · night of 2026-03-06",
        "✅ Nothing open · shop · night of 2026-03-07",
        "❔ Nothing open, no new conversation · shop · night of 2026-03-08",
    ]


def test_what_the_messages_say_is_true(week):
    """What is over is not "since", what was counted is no less in the estimate, and nothing new is not nothing."""
    nights, digests = week
    (burst,) = texts(nights[BURST])
    assert "found 2026-03-03 02:00 UTC" in burst
    assert "scores follow" not in burst
    assert (
        "25 of 300 conversations (8.3 %), from 2026-03-02 14:02 to 2026-03-02 15:57 UTC; before: 0 of 300" in burst
    )
    assert "overloaded_error" in burst
    morning = texts(digests[BURST])[0]
    (rate,) = [line for line in morning.splitlines() if line.startswith("*any failure*")]
    assert "8.3 % (95 % CI 8.3 to " in rate, "no less than rules counted in all of them"
    assert morning.count("Error shown as an answer") == 2, "as a figure and as an incident"
    fault = texts(nights[DOWN])[0]
    assert "HTTP 500" in fault
    assert "is unknown for this night, and the drift test did not count the night" in fault
    for digest in (digests[DOWN], digests[VOID]):
        assert "*any failure* unknown" in texts(digest)[0]
        assert "*drift*" not in texts(digest)[0]
    drift = texts(nights[DRIFT])[0]
    assert (
        "worse since 2026-03-06: 1.0 % of conversations failed before (95 % CI 0.1 to 3.7), 41.0 % since (31.3 to 51.3)"
        in drift
    )
    assert "*Asked*" in drift, "an example says what is meant"
    assert "*Got*" in drift
    assert "back at 2.0 % since 2026-03-07" in texts(nights[BACK])[0]
    (nothing,) = texts(nights[EMPTY])
    assert "no new conversation until 2026-03-08 02:00 UTC" in nothing
    assert f"graded already ({2 * PER_DAY})" in nothing


def test_nobody_reads_the_same_twice(week):
    nights, digests = week
    every = [text for pair in zip(nights, digests, strict=True) for one in pair for text in texts(one)]
    assert all(sum(1 for _ in same) == 1 for _, same in groupby(sorted(every)))


def test_the_page_shows_this_week(week):
    """`python -m tests.flows.week_of_nights` renews it."""
    nights, digests = week
    made = page(shown([one for pair in zip(nights, digests, strict=True) for one in pair]))
    assert made == DOCS.read_text(encoding="utf-8")
