"""The sources in the response of a JSON API: the tests go from the response to the exit code of the gate."""

from __future__ import annotations

import json

import pytest

from tests.flows.chat import Chat, watched

pytestmark = pytest.mark.prefect

TEXT = "The waiting period is 24 months."
NO_SOURCE = {
    "empty": {"sources": []},
    "null": {"sources": None},
    "left out": {},
    "no text in it": {"sources": [""]},
    "only null in it": {"sources": [None, None]},
    "an object without a name": {"sources": [{"title": None, "score": 0.4}]},
    "an empty object": {"sources": {}},
    "lists in lists": {"sources": [[], [[]]]},
    "false": {"sources": False},
    "a serialised nothing": {"sources": "[]"},
}
A_SOURCE = {
    "a text": ({"sources": "customs"}, ["customs"]),
    "a list": ({"sources": ["customs", "tariff"]}, ["customs", "tariff"]),
    "objects": (
        {"sources": [{"title": "Customs", "url": "https://a.example/c", "score": 0.9}, {"name": "Tariff"}]},
        ["Customs (https://a.example/c)", "Tariff"],
    ),
    "an address alone": ({"sources": [{"url": "https://a.example/c"}]}, ["https://a.example/c"]),
    "a retriever's document": (
        {"sources": [{"page_content": "Goods pay duty.", "metadata": {"source": "customs.pdf", "page": 4}}]},
        ["customs.pdf"],
    ),
    "grouped": ({"sources": {"docs": ["customs"], "web": []}}, ["customs"]),
}


def gate(lookout, folder, said):
    """Run ``lookout gate`` once against an API whose replies have the sources ``said``, one reply for each case.

    Return the finished process, and the result of each case by the number of the case.
    """
    answers = [{"reply": {"text": TEXT, **each}} for each in said]
    with Chat(*answers) as chat:
        config = watched(folder, chat, cases=len(said))
        mapping = '[targets.demo.probe.api]\ntext = "reply.text"\ncitations = "reply.sources"\n'
        required = "[targets.demo.graders]\ncitation_required = true\n"
        config.write_text(config.read_text(encoding="utf-8") + mapping + required, encoding="utf-8")
        done = lookout("gate", "--target", "demo", cwd=folder)
    (results,) = (folder / "data").glob("**/results.json")
    cases = json.loads(results.read_text(encoding="utf-8"))["cases"]
    return done, {int(each["case"]["id"].removeprefix("waiting-")): each for each in cases}


@pytest.mark.whole_only
def test_an_api_that_names_no_source_fails_however_it_says_so(tmp_path, lookout):
    """If a reply of an API states in any form that it has no source, such as with an empty list, it fails."""
    done, cases = gate(lookout, tmp_path, NO_SOURCE.values())
    found = {
        name: (cases[n]["assessment"]["outcome"], cases[n]["result"]["wire"]["citations"])
        for n, name in enumerate(NO_SOURCE)
    }
    assert found == dict.fromkeys(NO_SOURCE, ("failed", []))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "citation" in done.stdout


def test_an_api_that_names_its_sources_passes_and_each_stands_alone(tmp_path, lookout):
    """An API that names its sources passes.

    Each list item is a separate source, and an object is identified by its title and address.
    """
    done, cases = gate(lookout, tmp_path, [said for said, _ in A_SOURCE.values()])
    found = {
        name: (cases[n]["assessment"]["outcome"], cases[n]["result"]["wire"]["citations"])
        for n, name in enumerate(A_SOURCE)
    }
    assert found == {name: ("correct", named) for name, (_, named) in A_SOURCE.items()}
    assert done.returncode == 0, done.stdout + done.stderr
