"""Test a repeatability session, which asks cases twice, from its configuration to its figures."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from flows.repeatability.context import build_repeatability_context
from flows.repeatability.format import format_repeatability, format_repeatability_for_digest, format_session_briefly
from flows.repeatability.session import RepeatabilitySession, compute_repeatability_figures
from flows.repeatability.targets import list_measured_targets
from monitors.config.file import load_config
from monitors.errors import ConfigError
from monitors.records.grades import CaseOutcome
from tests.flows.chat import RIGHT, Chat, watched

WRONG = RIGHT.replace("24", "36")


class DeployedChat(Chat):
    """A chat that reports its build. Each request gets the next of ``builds``, and the last one is repeated."""

    def __init__(self, *builds: str) -> None:
        super().__init__()
        self.builds = list(builds)

    def application(self) -> web.Application:
        app = super().application()
        app.router.add_get("/chat", self._page)
        return app

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"sha": self.builds.pop(0) if len(self.builds) > 1 else self.builds[0]})

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text="a chat")


def session_of(config_path, cases=None):
    context = build_repeatability_context(load_config(config_path), "demo")
    return context, asyncio.run(RepeatabilitySession(context).run(cases))


def at_version(chat: Chat) -> str:
    return f'[targets.demo.probe.readiness]\nversion_url = "{chat.url}/version"\n'


@pytest.mark.whole_only
def test_answers_that_differ_on_the_same_build_are_flips(tmp_path, snapshot):
    """If one of two answers to a case on the same build is right and the other wrong, this is counted as a flip."""
    with DeployedChat("a" * 40) as chat:
        path = watched(tmp_path, chat, cases=24, more=at_version(chat))
        chat.answers = (RIGHT,) * 8 + (WRONG,) + (RIGHT,) * 100
        context, found = session_of(path)
    assert (found.commit, found.void, found.stopped, len(found.cases)) == ("a" * 40, "", "", 24)
    assert chat.asked == 48
    outcomes = [[ask.outcome for ask in case.asks] for case in found.cases]
    assert outcomes.count([CaseOutcome.CORRECT, CaseOutcome.FAILED]) == 1
    assert outcomes.count([CaseOutcome.CORRECT] * 2) == 23
    assert found.figures is not None
    rate = found.figures.rates[0]
    assert (rate.flips, rate.pairs, found.figures.sessions) == (1, 24, 1)
    assert len(found.figures.flipped) == 1
    again = compute_repeatability_figures(context)
    assert (again.rates, again.flipped, again.noise) == (
        found.figures.rates,
        found.figures.flipped,
        found.figures.noise,
    )
    assert format_repeatability_for_digest(again).partition(";")[0] == snapshot, (
        "the rest is simulated with a seed of the run"
    )
    assert any("wrong fact stated" in line for line in format_repeatability(again))


def test_a_deploy_in_between_voids_the_pairs(tmp_path, snapshot):
    """If the build changes during a session, the pairs of answers in this session are void and not counted."""
    with DeployedChat("a" * 40, "b" * 40) as chat:
        _, found = session_of(watched(tmp_path, chat, more=at_version(chat)))
    assert found.void == snapshot(name="void")
    assert found.figures is not None
    assert (found.figures.pairs, found.figures.void_sessions) == (0, 1)
    assert "\n".join(format_repeatability(found.figures)) == snapshot(name="figures")
    assert "not valid" in format_session_briefly(found)


def test_a_page_that_names_no_build_is_measured_all_the_same(tmp_path):
    """The session also works if the target reports no build. Each session then counts as its own build."""
    with Chat() as chat:
        _, found = session_of(watched(tmp_path, chat), 2)
    assert (found.commit, found.void, len(found.cases), found.sampled) == (None, "", 2, 2)
    assert {case.build for case in found.cases} == {found.run_id}


def test_an_application_that_is_away_is_no_pair(tmp_path):
    """If the application cannot be reached, the session stops early and says why."""
    with Chat() as chat:
        path = watched(tmp_path, chat, cases=8)
    _, found = session_of(path)
    assert "not asked" in found.stopped
    assert len(found.cases) < found.sampled == 8


def test_the_time_that_is_up_ends_the_session_between_pairs(tmp_path, snapshot):
    """When the time limit is reached, the session asks no further pair and says why it stopped."""
    limit = "[targets.demo.repeatability]\nlimit_s = 1e-9\n"
    with Chat() as chat:
        _, found = session_of(watched(tmp_path, chat, more=limit))
    assert chat.asked == 0
    assert found.cases == ()
    assert found.stopped == snapshot


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[targets.demo.repeatability]\ncases = 0\n", "targets.demo.repeatability.cases is 0"),
        ("", 'probe.driver is "job"'),
    ],
)
def test_a_target_that_is_not_to_be_asked_twice_is_not(tmp_path, more, said):
    """A target with `cases = 0`, or an agent with costly jobs, has no session. The error gives the reason."""
    with Chat() as chat:
        path = watched(tmp_path, chat, more=more)
    if not more:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('driver = "json"', 'driver = "job"'), encoding="utf-8")
    config = load_config(path)
    assert list_measured_targets(config, None) == []
    with pytest.raises(ConfigError, match=said):
        list_measured_targets(config, "demo")


def test_figures_of_nothing_are_no_data(tmp_path, snapshot):
    """If no case was ever asked twice, the output has no rates.

    The command that prints them sends no question.
    """
    with Chat() as chat:
        context = build_repeatability_context(load_config(watched(tmp_path, chat)), "demo")
        lines = list(format_repeatability(compute_repeatability_figures(context)))
    assert chat.asked == 0
    assert lines == snapshot
