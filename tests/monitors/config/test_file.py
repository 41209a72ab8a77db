"""Tests of lookout.toml: an error contains the key, the value and the accepted values."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from monitors.config.file import load_config, parse_config
from monitors.errors import ConfigError
from tests import fork_server
from tests.in_process import run_in_process

GOOD = """
[targets.bot]
url = "http://127.0.0.1:7860"
suite = "suite.jsonl"
"""

SILENCE = """
[[silences]]
every = "Sunday 02:00-04:00"
zone = "Europe/Berlin"
target = "bot"
reason = "the release window"
"""


@pytest.fixture
def write(tmp_path: Path):
    def written(text: str) -> Path:
        path = tmp_path / "lookout.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_the_smallest_configuration_is_a_target_with_a_page_and_a_suite(write, tmp_path):
    config = load_config(write(GOOD))
    target = config.require_target("bot")
    assert target.suite == tmp_path / "suite.jsonl"
    assert config.data_folder == tmp_path / ".lookout"
    assert config.gate.min_weighted_score == 0.98


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "[gate]\nmin_wieghted_score = 0.9", ["gate.min_wieghted_score", "did you mean 'min_weighted_score'"]),
        (GOOD + "[gate]\nmin_weighted_score = 98", ["gate.min_weighted_score", "98", "less than or equal to 1"]),
        (GOOD + '[gate]\nmin_weighted_score = "high"', ["gate.min_weighted_score", "'high'", "valid number"]),
        (GOOD + "[gates]\n", ["gates", "did you mean 'gate'"]),
        (GOOD + '[targets.bot.probe]\nisolation = "none"', ["targets.bot.probe.isolation", "'none'", "'context'", "'reload'"]),
        (GOOD + "[targets.bot.langsmith]", ["targets.bot.langsmith.project is missing", "or in [langsmith]"]),
        (GOOD + '[langsmith]\nprodction_project = "p"', ["langsmith.prodction_project: unknown", "'production_project'"]),
        (GOOD + 'experiments = "langsmth:gold"', ["targets.bot.experiments", "did you mean 'langsmith'", "langsmith:DATASET"]),
        (GOOD + 'experiments = "langsmith:"', ["targets.bot.experiments", "write the dataset's name"]),
        (GOOD + "[targets.bot.probe]\nisolaton = 1", ["targets.bot.probe.isolaton", "did you mean 'isolation'"]),
        ('[targets.bot]\nurl = "http://x"', ["targets.bot.suite", "missing", "gold questions"]),
        (GOOD + 'previous_url = "https://{sha}.example.org"', ["targets.bot.previous_url", "only {commit} in braces", "{sha}"]),
        (GOOD + 'previous_url = "https://example.org:{commit}"', ["targets.bot.previous_url", "a number as the port"]),
        (GOOD + 'previous_url = "https://me:secret@example.org"', ["targets.bot.previous_url", "without user name and password"]),
        (GOOD + "[recheck]\ntimes = -1", ["recheck.times", "-1"]),
        ('[targets.bot]\nurl = "ftp://x"\nsuite = "s"', ["targets.bot.url", "'ftp://x'"]),
        ('[targets."../bot"]\nurl = "http://x"\nsuite = "s"', ["targets.../bot"]),
        ("", ["targets", "missing", "the monitored applications"]),
        ("[targets\n", ["not valid TOML", "line 1", "fix this line"]),
        ("# mine\ntargets:\n  bot:\n", ["not valid TOML", "looks like YAML"]),
        (GOOD + "[gate]\nmin_weighted_score = 98", ["gate.min_weighted_score: 98", "(0.98 for 98 %)"]),
        (GOOD + "[gate]\nmin_weighted_score = nan", ["gate.min_weighted_score"]),
        (GOOD + SILENCE.replace("Sunday", "Sundy"), ["silences.0.every: 'Sundy 02:00-04:00'", "'Sundy' is not a weekday"]),
        (GOOD + SILENCE.replace("Europe/", ""), ["silences.0.zone: 'Berlin'", "did you mean 'Europe/Berlin'"]),
        (GOOD + SILENCE.replace("zone", "time_zone"), ["silences.0.time_zone: unknown key"]),
        (GOOD + SILENCE.replace('"bot"', '"bott"'), ["silences.0.target: target 'bott'", "did you mean 'bot'"]),
        (GOOD + SILENCE.replace("target", "# target"), ["silences.0: set target, case, failure or kind"]),
        (GOOD + SILENCE.replace("reason", "# reason"), ["silences.0.reason: missing"]),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key_and_what_is_accepted(write, text, said):
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    for words in said:
        assert words in str(caught.value)


def test_all_mistakes_are_named_at_once(write):
    path = write(GOOD + "[gate]\nstrikt = true\nmin_weighted_score = 2\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 2


def test_an_unknown_target_names_the_known_ones(write):
    with pytest.raises(ConfigError, match=r"target 'bto' does not exist \(did you mean 'bot'\?\); accepted: bot"):
        load_config(write(GOOD)).require_target("bto")


def test_a_byte_order_mark_before_the_first_table_is_read_over(tmp_path):
    """A byte order mark at the start of the file, which Notepad and PowerShell write, is ignored."""
    (tmp_path / "suite.jsonl").write_text('{"id": "a", "question": "How long?", "gold": "24 months"}\n', "utf-8")
    (tmp_path / "lookout.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    options = ("suite.jsonl", "--config", "lookout.toml", "--target", "bot")
    done = run_in_process("gold", "check", *options, cwd=tmp_path, env=fork_server.bare())
    assert done.returncode in {0, 1}, done.stderr


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(tmp_path / "lookout.toml")


def test_a_file_that_is_not_text_says_so(tmp_path):
    path = tmp_path / "lookout.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read as UTF-8 text"):
        load_config(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[targets.bot.traffic.sources.turns]\nkind = "file"\natt = "x"',
            "targets.bot.traffic.sources.turns.att: unknown key (did you mean 'at'?)",
        ),
        (
            '[targets.bot.traffic.sources.turns]\nkind = "fil"',
            "targets.bot.traffic.sources.turns.kind: 'fil' is not accepted; expected one of 'file', 'http', ",
        ),
        (
            '[[deploys.triggers]]\nprovider = "github"\nrepository = "a/b"\ntarget = "bot"\nbranche = "main"',
            "deploys.triggers.0.branche: unknown key (did you mean 'branch'?)",
        ),
        (
            '[deploys]\ntriggers = [{provider = "github"}]',
            "deploys.triggers.0.target: missing; the target to verify",
        ),
    ],
)
def test_a_key_inside_a_list_a_table_of_names_or_a_kind_is_named_with_what_is_accepted(text, said):
    whole = f'[targets.bot]\nurl = "https://x.example"\nsuite = "s.jsonl"\n{text}'
    with pytest.raises(ConfigError) as error:
        parse_config(tomllib.loads(whole), "lookout.toml")
    assert said in str(error.value)


def test_a_source_without_a_kind_says_which_kinds_there_are(snapshot):
    values = {"targets": {"bot": {"url": "https://example.com/", "suite": "s.jsonl"}}}
    values["targets"]["bot"]["traffic"] = {"sources": {"talks": {"at": "talks.jsonl"}}}
    with pytest.raises(ConfigError) as refused:
        parse_config(values, "lookout.toml")
    assert "targets.bot.traffic.sources.talks.kind" in str(refused.value)
    assert str(refused.value) == snapshot
