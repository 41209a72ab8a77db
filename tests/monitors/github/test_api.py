"""Tests of a single request to GitHub, on a local server: rate limits, faults, pagination and refusals."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from monitors.errors import NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.github.api import Comment, GitHubRecord, build_comment_purpose, open_github_api
from tests.monitors.github.waits import Waits
from tests.servers.github import (
    PERSON_TOKEN,
    PULL,
    READING_TOKEN,
    REPOSITORY,
    WORKFLOW_TOKEN,
    GitHub,
    broken,
    cut_off,
    too_many,
)

PATH = f"/repos/{REPOSITORY}/issues/{PULL}/comments"
PURPOSE = build_comment_purpose(f"{REPOSITORY}#{PULL}")
LIST = TypeAdapter(list[Comment])
ONE = TypeAdapter(Comment)


@pytest.fixture
def github():
    with GitHub(per_page=2) as server:
        yield server


async def listed(github, waits, token=WORKFLOW_TOKEN):
    async with open_github_api(github.url, token, waits.patience) as api:
        return await api.read_all(PATH, LIST, PURPOSE)


async def made(github, waits, token=WORKFLOW_TOKEN):
    async with open_github_api(github.url, token, waits.patience) as api:
        return await api.write("POST", PATH, {"body": "hello"}, ONE, PURPOSE, is_repeatable=False)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6])
async def test_all_pages_are_read_in_order(github, count):
    said = [github.says(f"comment {number}").body for number in range(count)]
    assert [one.body for one in await listed(github, Waits())] == said


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1030"}, 31.0),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "900"}, 1.0),
        ({}, 60.0),
    ],
    ids=["retry-after", "reset", "reset in the past", "nothing said"],
)
@pytest.mark.parametrize("status", [403, 429])
async def test_a_limit_is_waited_out_as_long_as_github_asks(github, status, headers, waited):
    """A request waits for a rate limit as long as GitHub demands.

    A response with status 403 is a rate limit if its headers or its text say so. Otherwise, it is a missing
    permission.
    """
    github.wrong.faults = [too_many(status, "You have exceeded a secondary rate limit", **headers)]
    waits = Waits(now=1000.0)
    assert await listed(github, waits) == []
    assert waits.slept == [waited]


async def test_a_limit_that_lasts_too_long_is_not_waited_for(github):
    github.wrong.faults = [too_many(retry_after="3600")]
    waits = Waits()
    with pytest.raises(NotifyTransient, match="too many requests"):
        await listed(github, waits)
    assert waits.slept == []


async def test_a_limit_without_end_ends(github):
    github.wrong.faults = [too_many(retry_after="1")] * 10
    waits = Waits()
    with pytest.raises(NotifyTransient, match="too many requests"):
        await listed(github, waits)
    assert (len(github.asked), waits.slept) == (4, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("fault", [broken(502), broken(500), cut_off], ids=["502", "500", "cut off"])
async def test_faults_are_retried_with_longer_pauses(github, fault):
    github.says("here")
    github.wrong.faults = [fault, fault]
    waits = Waits()
    assert len(await listed(github, waits)) == 1
    assert waits.slept == [1.0, 2.0]


async def test_a_permanent_fault_is_blamed_on_github(github):
    github.wrong.faults = [broken(503)] * 10
    with pytest.raises(NotifyTransient, match=r"returned an error \(HTTP 503\)"):
        await listed(github, Waits())
    assert len(github.asked) == 4


@pytest.mark.parametrize("lost", [broken(502), cut_off], ids=["502", "cut off"])
async def test_a_possibly_completed_request_is_not_repeated_blindly(github, lost):
    """A request that may have been completed is not repeated.

    If the response of the first attempt is lost, a repetition would create a second comment.
    """
    github.wrong.after_taking = [lost]
    with pytest.raises(NotifyUnsure):
        await made(github, Waits())
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("ghs_" + "x" * 36, ["401", "expired"]),
        (READING_TOKEN, ["403", "pull-requests: write", "fork", f"{REPOSITORY}#{PULL}"]),
    ],
)
async def test_a_refusal_names_what_to_do_and_is_not_asked_again(github, token, said):
    waits = Waits()
    with pytest.raises(NotifyRejected) as refusal:
        await made(github, waits, token)
    assert all(words in str(refusal.value) for words in said)
    assert token not in str(refusal.value)
    assert github.url not in str(refusal.value)
    assert waits.slept == []


@pytest.mark.parametrize("status", [410, 423])
async def test_a_locked_conversation_is_named_and_not_asked_again(github, status):
    github.wrong.faults = [broken(status)]
    waits = Waits()
    with pytest.raises(NotifyRejected, match="locked"):
        await made(github, waits)
    assert waits.slept == []


async def test_a_missing_resource_names_the_permission_too(github):
    async with open_github_api(github.url, WORKFLOW_TOKEN, Waits().patience) as api:
        with pytest.raises(NotifyRejected, match="pull-requests: write"):
            await api.read_all(f"/repos/{REPOSITORY}/issues/13/comments", LIST, PURPOSE)


async def test_an_address_other_than_github_is_reported(github):
    github.wrong.faults = [broken(200)]
    with pytest.raises(NotifyRejected, match="GITHUB_API_URL"):
        await listed(github, Waits())


async def test_an_unreachable_server_is_reported():
    async with open_github_api("http://127.0.0.1:9", WORKFLOW_TOKEN, Waits().patience) as api:
        with pytest.raises(NotifyTransient, match="does not answer"):
            await api.read("/user", TypeAdapter(GitHubRecord), PURPOSE)


async def test_a_server_that_hangs_is_not_waited_for_without_end(github):
    github.wrong.is_slow = True
    with pytest.raises(NotifyTransient, match="does not answer"):
        await listed(github, Waits(deadline_s=1))
    assert len(github.asked) == 4


async def test_the_token_goes_to_no_other_server(github):
    """The token is sent to no other server: a link to a next page on another server is not followed."""
    with GitHub() as elsewhere:
        github.wrong.faults = [_next_page_at(elsewhere.url)]
        with pytest.raises(NotifyRejected, match="another server"):
            await listed(github, Waits(), PERSON_TOKEN)
        assert elsewhere.tokens == set()


def _next_page_at(url):
    from aiohttp import web

    return lambda _request: web.json_response([], headers={"Link": f'<{url}{PATH}>; rel="next"'})
