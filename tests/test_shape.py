"""Test the figures of `make shape` with example files, and that the number of unclear names does not grow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools import nightly_path
from tests.tools.alert_path import MAX_FUNCTIONS, MAX_RENDERING, count_functions, record_alert_path
from tests.tools.plain_names import PRODUCT, TESTS, count_names, count_texts
from tests.tools.shape import measure, rows

LIMITS = {
    PRODUCT: {
        "participles": 9,
        "vague": 13,
        "loose": 24,
        "superlatives": 7,
        "replacements": 640,
        "quaint words": 13,
        "is no": 2,
    },
    TESTS: {
        "participles": 483,
        "vague": 954,
        "loose": 640,
        "superlatives": 5,
        "replacements": 548,
        "quaint words": 27,
        "is no": 19,
    },
}
"""The maximum number of names and texts that break a rule of `tests.tools.plain_names`.

Lower the limits when you replace such names or texts.
"""


def planted(root: Path, **modules: str) -> Path:
    """Create a git checkout with the given modules in `flows`, which are untracked. Return its root."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "flows").mkdir()
    for name, source in modules.items():
        (root / "flows" / f"{name}.py").write_text(source, encoding="utf-8")
    return root


def test_files_lines_classes_and_functions_are_counted(tmp_path, snapshot):
    long = "\n".join(f"    x = {number}" for number in range(59))
    root = planted(tmp_path, one="class Case:\n    pass\n", two=f"class Case:\n    pass\n\n\ndef f():\n{long}\n")
    (root / "flows" / "page.html").write_text("<p>")
    shape = measure(root)
    assert (shape.files, shape.lines, shape.repeated) == (3, 66, {"Case": 2})
    assert shape.functions == {"flows/two.py::f:5": 60}
    assert shape.small_modules == ["flows/one.py"]
    assert [(name, value, is_met) for name, value, _, is_met in rows(shape)] == snapshot


def test_a_folder_with_21_files_is_crowded(tmp_path):
    root = planted(tmp_path, **{f"m{number}": "def f():\n    pass\n" for number in range(21)})
    assert measure(root).crowded == {"flows": 21}


def test_the_alert_path_ends_where_slack_is_asked_and_leaves_out_what_is_excluded():
    functions = record_alert_path()
    total, counted, rendering = count_functions(functions)
    assert ("monitors/alerts/slack/client.py", "SlackBot.send") in functions
    assert total > counted > rendering > 0
    assert (counted <= MAX_FUNCTIONS, rendering <= MAX_RENDERING) == (True, True), "an alert takes a longer way"
    assert count_functions(
        [("monitors/alerts/redact.py", "redact"), ("monitors/alerts/message.py", "build_message")]
    ) == (2, 1, 1)


@pytest.mark.whole_only
def test_the_nightly_path_goes_through_workers_to_the_judge_s_grade():
    functions = nightly_path.record_nightly_path()
    total, counted = nightly_path.count_functions(functions)
    assert {
        ("flows/nightly/census_worker.py", "run_census_worker"),
        ("flows/nightly/checkpoint.py", "NightlyCheckpoint.save_judged_replies"),
        ("warehouse/journal/journal.py", "Journal.append"),
    } <= functions
    assert total > counted
    assert counted <= nightly_path.MAX_FUNCTIONS, "an item of live traffic takes a longer way"
    assert nightly_path.count_functions(
        [("monitors/graders/base.py", "give_verdict"), ("flows/nightly/run.py", "NightlyRun.run")]
    ) == (2, 1)


def test_names_and_texts_that_break_a_rule_are_counted(tmp_path):
    root = planted(
        tmp_path,
        names='"""Nobody was told: this is no story.\n\nThere is no end.\n"""\n\nMOST_ROWS = 3\nMAX_ROWS = 3\n\n\n'
        "def settled(one):\n    found = item = one\n    return found, item\n\n\n"
        "@property\ndef observed(self):\n    return self\n\n\ndef embed(case):\n    return case\n",
    )
    assert count_names(root) == {"participles": 1, "vague": 1, "loose": 1, "replacements": 1, "superlatives": 1}
    assert count_texts(root) == {"quaint words": 1, "is no": 1}


@pytest.mark.parametrize("folders", LIMITS, ids=" ".join)
def test_names_only_become_plainer(folders):
    counts = count_names(folders=folders) + count_texts(folders=folders)
    worse = {rule: counts[rule] for rule, limit in LIMITS[folders].items() if counts[rule] > limit}
    assert not worse, "name what it is, with a verb for a function and a noun for a value (CONTRIBUTING.md)"
