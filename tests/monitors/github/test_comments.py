"""Each target has one comment, which is found, updated and recreated; other users' comments are never changed."""

from __future__ import annotations

import asyncio

import pytest

from monitors.errors import NotifyRejected, NotifyTransient
from monitors.github.api import open_github_api
from monitors.github.pull_requests import (
    CommentStatus,
    PullComment,
    format_body,
    format_hidden_gate_mark,
    post_or_update_comment,
)
from monitors.records.targets import PullRequest
from tests.monitors.github.waits import Waits
from tests.servers.github import (
    BOT,
    OTHER_BOT,
    PERSON,
    PERSON_TOKEN,
    PULL,
    READING_TOKEN,
    REPOSITORY,
    STRANGER,
    WORKFLOW_TOKEN,
    GitHub,
    broken,
    cut_off,
    too_many,
)

PULL_REQUEST = PullRequest(repository=REPOSITORY, number=PULL)


def said(text: str = "PASS", *, target: str = "demo", run: str = "20260301T120000Z-demo-aa") -> PullComment:
    return PullComment(name=target, run_id=run, text=text)


@pytest.fixture
def github():
    with GitHub(per_page=3) as server:
        yield server


async def post(github, comment, token=WORKFLOW_TOKEN):
    async with open_github_api(github.url, token, Waits().patience) as api:
        return await post_or_update_comment(api, PULL_REQUEST, comment)


@pytest.mark.parametrize(("token", "author"), [(WORKFLOW_TOKEN, BOT), (PERSON_TOKEN, PERSON)])
async def test_the_second_run_updates_the_comment_of_the_first(github, token, author):
    assert (await post(github, said("FAIL"), token)).done is CommentStatus.MADE
    for number in range(7):  # it is found on a later page too
        github.says(f"talk {number}")
    done = await post(github, said("PASS", run="20260301T130000Z-demo-bb"), token)
    assert done.done is CommentStatus.UPDATED
    (mine,) = github.by(author)
    assert mine.body.endswith("PASS")
    assert mine.edits == 1
    assert done.address.endswith(f"#issuecomment-{mine.id}")


async def test_each_target_has_a_comment_of_its_own(github):
    for target in ("demo", "demo-2", "demo--2", "demo-"):
        await post(github, said(target=target))
    for target in ("demo", "demo-2", "demo--2", "demo-"):
        await post(github, said(target=target))
    assert len(github.by(BOT)) == 4


@pytest.mark.parametrize("user", [STRANGER, None], ids=["a person", "an account that is gone"])
@pytest.mark.parametrize("token", [WORKFLOW_TOKEN, PERSON_TOKEN])
async def test_a_stranger_who_copies_the_mark_gets_nothing(github, user, token):
    """Another user's comment that contains the same marker is not changed and does not prevent a new comment."""
    theirs = github.says(format_body(said("All is well, merge it")))
    theirs.user = user
    assert (await post(github, said("FAIL"), token)).done is CommentStatus.MADE
    assert theirs.edits == 0
    assert "FAIL" in github.comments[-1].body


async def test_a_bot_that_quotes_the_mark_is_not_us(github):
    github.says(f"> {format_body(said())}", OTHER_BOT)
    assert (await post(github, said())).done is CommentStatus.MADE


async def test_who_may_ask_who_he_is_takes_no_other_s_comment(github):
    github.says(format_body(said()), OTHER_BOT)
    assert (await post(github, said(), PERSON_TOKEN)).done is CommentStatus.MADE


async def test_a_deleted_comment_is_created_again(github):
    await post(github, said("FAIL"))

    def delete(asked):
        if asked.method == "PATCH":
            github.comments.clear()

    github.wrong.before_answering = delete
    assert (await post(github, said("PASS"))).done is CommentStatus.MADE
    assert [one.body for one in github.comments] == [format_body(said("PASS"))]


async def test_one_that_is_deleted_again_and_again_is_given_up(github):
    await post(github, said())

    def instead(asked):
        if asked.method == "PATCH":
            github.comments.clear()
        elif asked.method == "GET" and not github.comments:
            github.says(format_body(said()), BOT)

    github.wrong.before_answering = instead
    with pytest.raises(NotifyTransient, match="deletes the comment at each attempt"):
        await post(github, said())


@pytest.mark.parametrize("lost", [broken(502), cut_off], ids=["502", "cut off"])
async def test_a_lost_reply_makes_no_second_comment(github, lost):
    github.wrong.after_taking = [lost]
    done = await post(github, said())
    assert done.done is CommentStatus.UPDATED
    assert len(github.comments) == 1


async def test_two_runs_that_begin_at_once_leave_one_comment(github):
    """If two runs begin at the same time and each creates a comment, one comment remains.

    It contains the result of the newer run.
    """
    for order in ((0, 1), (1, 0)):
        github.comments.clear()
        runs = [said(f"run {n}", run=f"20260301T12000{n}Z-demo-aa") for n in order]
        await asyncio.gather(*(post(github, one) for one in runs))
        assert len(github.by(BOT)) == 1
        assert github.comments[0].body.endswith("run 1")


async def test_a_comment_made_between_our_looking_and_our_making_is_the_one_that_stays(github):
    seen = []

    def rival(asked):
        if asked.method == "POST" and not seen:
            seen.append(github.says(format_body(said("rival", run="20260301T110000Z-demo-aa")), BOT))

    github.wrong.before_answering = rival
    await post(github, said("ours"))
    assert github.by(BOT) == seen
    assert seen[0].body.endswith("ours")


async def test_a_newer_run_s_comment_made_meanwhile_is_the_only_one_that_stays(github):
    """If a newer run creates its comment at the same time, the older run deletes its own comment."""
    seen = []

    def rival(asked):
        if asked.method == "POST" and not seen:
            seen.append(github.says(format_body(said("newer", run="20260301T130000Z-demo-aa")), BOT))

    github.wrong.before_answering = rival
    assert (await post(github, said("ours"))).done is CommentStatus.NEWER
    assert github.by(BOT) == seen
    assert seen[0].body.endswith("newer")


async def test_two_of_ours_become_one(github):
    first = github.says(format_body(said("old")), BOT)
    github.says(format_body(said("older")), BOT)
    await post(github, said("new", run="20260302T120000Z-demo-aa"))
    assert github.comments == [first]
    assert first.body.endswith("new")


async def test_an_older_run_does_not_take_the_place_of_a_newer_one(github):
    await post(github, said("newer", run="20260301T130000Z-demo-aa"))
    done = await post(github, said("older", run="20260301T120000Z-demo-bb"))
    assert done.done is CommentStatus.NEWER
    assert github.comments[0].body.endswith("newer")


async def test_the_same_run_may_say_it_again(github):
    await post(github, said("first"))
    assert (await post(github, said("resumed"))).done is CommentStatus.UPDATED


async def test_a_limit_on_the_way_is_waited_out(github):
    github.wrong.faults = [too_many(retry_after="1")]
    assert (await post(github, said())).done is CommentStatus.MADE


async def test_a_read_only_token_names_the_missing_permission(github):
    with pytest.raises(NotifyRejected, match="pull-requests: write"):
        await post(github, said(), READING_TOKEN)
    assert github.comments == []


@pytest.mark.parametrize("target", ["demo", "a--b", "a-.-b", "x-", "a@b:c+d"])
def test_a_mark_is_one_html_comment_and_each_target_s_own(target):
    mark = format_hidden_gate_mark(target)
    assert mark.startswith("<!-- ")
    assert "--" not in mark.removeprefix("<!--").removesuffix("-->")


def test_no_two_targets_share_a_mark():
    names = ["a--b", "a-.-b", "a-b", "a---b", "a-", "a"]
    assert len({format_hidden_gate_mark(name) for name in names}) == len(names)
