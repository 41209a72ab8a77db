"""Test that the examples in the documents are valid: configurations, cases, stored jobs and commands."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import get_args

import pytest

from monitors.config.file import parse_config
from monitors.facts.triage_report import read_report
from monitors.goldset.load import load_suite
from monitors.sources.traffic.settings import Fields, FileTraffic, HttpTraffic, LangSmithTraffic, PageTraffic
from monitors.sources.traffic.turns import read_turns_or_empty
from tests.lookout_commands import every_command
from tests.tools.configuration_reference import reference

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [
    *(ROOT / name for name in TOP),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MINIMAL_CONFIG = '[targets.bot]\nurl = "https://bot.example.com"\nsuite = "suite.jsonl"\n'
GLOSSARY_ROW = re.compile(r"^\| ([^|`]+?) \| [^|]+ \| (`[^|]+`) \|$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def blocks(kind: str) -> list[pytest.param]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] == kind:
                line = text[: match.start()].count("\n") + 1
                found.append(pytest.param(match[2], id=f"{page.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("block", blocks("toml"))
def test_a_configuration_in_the_documents_is_accepted(block):
    before = MINIMAL_CONFIG if block.startswith("# at the end of lookout.toml") else ""
    parse_config(tomllib.loads(before + block), "the document")


@pytest.mark.parametrize("block", blocks("json"))
def test_a_case_in_the_documents_loads(block, tmp_path):
    suite = tmp_path / "suite.jsonl"
    suite.write_text(block, encoding="utf-8")
    assert load_suite(suite).cases


@pytest.mark.parametrize("block", blocks("jsonl"))
def test_a_stored_job_in_the_documents_is_read_with_its_report(block):
    for line in block.splitlines():
        (turn,) = read_turns_or_empty(json.loads(line), Fields())
        assert turn.is_report
        assert read_report(turn.reply_text).root_cause
        assert turn.steps


@pytest.mark.whole_only
@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_in_the_documents_exists_with_its_options(block):
    commands = every_command()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in block.splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["make"]:
            assert f"\n{words[1]}:" in makefile, line
        if words[:1] == ["lookout"]:
            rest = words[1:]
            command = next(found for length in (3, 2, 1) if (found := commands.get(" ".join(rest[:length]))))
            known = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
            assert {word for word in rest if word.startswith("--")} <= known | {"--help"}, line


def test_the_configuration_page_is_the_models_own():
    """The configuration page equals the page that is generated from the settings models.

    To update the page, run `python -m tests.tools.configuration_reference`.
    """
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == reference()


def test_the_configuration_page_names_every_key_of_every_kind_of_source():
    page = reference()
    for kind in (FileTraffic, HttpTraffic, LangSmithTraffic, PageTraffic):
        (tag,) = get_args(kind.model_fields["kind"].annotation)
        table = page.split(f"""`[targets.NAME.traffic.sources.NAME]` with `kind = "{tag}"`""")[1].split("\n## ")[0]
        tables = page.split("## `[targets.NAME.traffic.sources.NAME")
        named = [name for name in kind.model_fields if f"| `{name}` |" in table]
        inner = [name for name in kind.model_fields if any(one.startswith(f".{name}]") for one in tables)]
        assert {*named, *inner} == set(kind.model_fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_glossary_names_each_noun_once_with_a_class_that_exists():
    table = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").partition("\n## Glossary\n")[2]
    rows = GLOSSARY_ROW.findall(table)
    assert len(rows) == table.count("\n|") - 2, "a row of the glossary lacks its word, meaning or class"
    nouns = [noun for words, _ in rows for noun in words.split(", ")]
    assert len(nouns) == len(set(nouns))
    for path in re.findall(r"`([\w.]+)`", "".join(classes for _, classes in rows)):
        module, _, name = path.rpartition(".")
        assert isclass(getattr(import_module(module), name, None)), path
