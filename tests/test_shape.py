"""The shape is counted as it is, and private words only become fewer. Planted files prove that both counts can see."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.tools.alert_path import MAX_FUNCTIONS, MAX_RENDERING, count_functions, record_alert_path
from tests.tools.private_words import identifier_counts, message_counts
from tests.tools.shape import measure, rows

IDENTIFIERS, TEXTS = 72, 0
"""How many private words are left, in identifiers and in texts that people read. Lower these when a term is replaced."""


def planted(root: Path, **modules: str) -> Path:
    """A checkout with these modules of `flows`, known to git or not."""
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


def test_private_words_are_seen_where_they_stand_and_nowhere_else(tmp_path):
    root = planted(
        tmp_path,
        night_shift='"""What was told here is a docstring."""\n\ndef cases_told(lookout, caseUntold):\n'
        '    return "3 were told of it", "told"\n',
    )
    (root / "docs").mkdir()
    (root / "docs" / "alerts.md").write_text("Nobody was told.\n")
    assert identifier_counts(root) == {"night": 1, "told": 1, "untold": 1}
    assert message_counts(root) == {"told": 2}


def test_private_words_only_become_fewer():
    words, texts = identifier_counts(), message_counts()
    assert sum(words.values()) <= IDENTIFIERS, f"a private word came back, say it as the field does: {words}"
    assert sum(texts.values()) <= TEXTS, f"a private word came back in a text, say it as the field does: {texts}"
