"""Test the recheck of a case at the target's own address and at the address of another build."""

import asyncio
import os

import pytest

from flows.clock import utc_now
from flows.explain.asking import move_url_to_address, open_case_asker
from monitors.config.file import load_config
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.records.grades import CaseOutcome
from tests.flows.chat import RIGHT, Chat, watched

WRONG = RIGHT.replace("24", "36")


def outcomes(folder, config_path, address, times):
    """Ask the first case of the suite ``times`` times at ``address``, and return the outcomes."""
    config = load_config(config_path)
    case = load_suite(config.require_target("demo").suite).cases[0]

    async def asked():
        async with open_case_asker(
            config,
            "demo",
            address,
            folder=folder / "again",
            run_id="r",
            cases=(case,),
            environment=os.environ,
            clock=utc_now,
        ) as asker:
            return await asker.ask_case(case, times, first_repeat=3)

    found = asyncio.run(asked())
    assert [one.result.repeat for one in found] == list(range(3, 3 + times))
    assert {one.assessment.run_id for one in found} == {"r"}
    return [one.assessment.outcome for one in found]


def test_a_case_is_asked_so_often_and_graded_as_the_run_grades(tmp_path):
    """A case is asked as often as requested, at any address, and each answer is graded. Nothing is stored."""
    right, failed = CaseOutcome.CORRECT, CaseOutcome.FAILED
    with Chat(WRONG, RIGHT, "Solution", WRONG, WRONG) as here, Chat() as there:
        config = watched(tmp_path, here)
        assert outcomes(tmp_path, config, f"{here.url}/chat", 5) == [failed, right, failed, failed, failed]
        assert outcomes(tmp_path, config, f"{there.url}/chat", 3) == [right, right, right]
        assert (here.asked, there.asked) == (5, 3)
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / "again").exists()


def test_an_application_that_went_away_is_not_asked_on(tmp_path):
    """After three questions in a row without an answer, no more questions are sent.

    The remaining questions count as ungraded, not as unanswered.
    """
    with Chat() as here:
        config = watched(tmp_path, here)
    silent, unasked = CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED
    assert outcomes(tmp_path, config, f"{here.url}/chat", 5) == [silent, silent, silent, unasked, unasked]


def test_an_api_elsewhere_is_not_taken_for_the_build_at_an_address(tmp_path):
    """If ``probe.api.url`` is set to another host, a build at a given address cannot be rechecked.

    The questions would reach the API at that host. The error names the setting.
    """
    with Chat() as here, Chat() as there:
        config = watched(tmp_path, here)
        text = config.read_text(encoding="utf-8")
        pinned = '[targets.demo.probe.api]\nurl = "https://api.example.org/ask"\n[gate]'
        config.write_text(text.replace("[gate]", pinned), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"probe\.api\.url is https://api\.example\.org/ask"):
            outcomes(tmp_path, config, f"{there.url}/chat", 1)


MOVED = [
    ("http://a/version", "http://a", "http://b", "http://b/version"),
    ("http://a/version", "http://a/", "http://b/old", "http://b/old/version"),
    ("http://a/api/ask", "http://a/chat", "http://b/chat", "http://b/api/ask"),
    ("http://a/api/ask", "http://a/chat", "http://a/builds/4f2a91c/chat", "http://a/builds/4f2a91c/api/ask"),
    ("http://a/chat?x=1", "http://a/chat", "http://b/chat", "http://b/chat?x=1"),
    ("http://a/api/ask", "http://a/chat", "http://b/other", None),
    ("http://a.example/version", "http://a", "http://b", None),
    ("http://c/version", "http://a", "http://b", None),
]


@pytest.mark.parametrize(("url", "own", "address", "moved"), MOVED)
def test_addresses_beside_the_targets_own_move_with_it(url, own, address, moved):
    """If a build is asked at another address, the target's second URL, such as its API, moves to that address too.

    The part that this URL has in common with the target's URL is replaced by the other address. A URL on another
    host cannot be moved.
    """
    assert move_url_to_address(url, own, address) == moved
