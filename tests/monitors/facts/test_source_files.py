"""File names are read in the forms that people, diffs and tools write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.source_files import compute_agreement, find_files_named_in_text, to_canonical_path

SAME = "src/auth/oauth.go"


@pytest.mark.parametrize(
    "written",
    [
        "src/auth/oauth.go", "./src/auth/oauth.go", "a/src/auth/oauth.go", "b/src/auth/oauth.go", "src\\auth\\oauth.go",
        "src//auth/./oauth.go", "`src/auth/oauth.go`", "src/auth/oauth.go:12", "src/auth/oauth.go:12:7",
        "src/auth/oauth.go:10-20", "src/auth/oauth.go#L10-L20", "src/auth/oauth.go, line 12",
        "src/auth/oauth.go::Server.login", "src/auth/oauth.go (lines 3-9)", "**src/auth/oauth.go**",
        "https://github.com/acme/gateway/blob/main/src/auth/oauth.go#L7",
        "https://raw.githubusercontent.com/acme/gateway/main/src/auth/oauth.go",
    ],
)  # fmt: skip
def test_one_file_has_one_name(written: str):
    assert to_canonical_path(written) == SAME


@pytest.mark.parametrize(
    "other", ["src/auth/oauth.gp", "auth/oauth.go", "src/Auth/oauth.go", "lib/src/auth/oauth.go"]
)
def test_a_slip_or_another_folder_is_another_file(other: str):
    assert compute_agreement([other], [SAME]).f1 == 0


@pytest.mark.parametrize("root", ["/testbed/", "/home/dev/gateway/", "C:\\work\\gateway\\", "file:///srv/app/"])
def test_the_checkout_path_does_not_matter(root: str):
    assert compute_agreement([root + SAME], [SAME]).f1 == 1
    assert compute_agreement([root + "main.go"], ["main.go"]).f1 == 0, "a name alone could be any folder's"


def test_a_file_that_is_named_twice_counts_once():
    found = compute_agreement(["./x/a.py", "x/a.py:3", "x/b.py"], ["x/a.py", "a/x/a.py"])
    assert (found.found, found.missed, found.extra) == (("x/a.py",), (), ("x/b.py",))
    assert (found.precision, found.recall) == (0.5, 1.0)


def test_naming_every_file_is_precise_about_none():
    every = [f"pkg/m{n}.py" for n in range(200)]
    found = compute_agreement(every, ["pkg/m7.py"])
    assert found.recall == 1
    assert found.f1 < 0.02


def test_nothing_named_and_nothing_wanted():
    assert compute_agreement([], ["a.py"])[0] == ()
    assert (compute_agreement([], ["a.py"]).precision, compute_agreement([], ["a.py"]).f1) == (0, 0)
    assert compute_agreement(["", "`"], []).extra == ()


PATHS = st.lists(st.from_regex(r"[c-z]{1,6}/[c-z]{1,8}\.py", fullmatch=True), max_size=6)


@given(PATHS, PATHS)
def test_order_and_repetition_change_nothing(named: list[str], wanted: list[str]):
    found = compute_agreement(named, wanted)
    assert found == compute_agreement([f"./{one}" for one in reversed(named)] + named, wanted[::-1])
    assert 0 <= found.precision <= 1
    assert 0 <= found.recall <= 1
    assert min(found.precision, found.recall) <= found.f1 + 1e-9
    assert found.f1 <= max(found.precision, found.recall) + 1e-9


def test_files_stand_in_prose_in_code_and_in_links():
    text = """See `lib/pool.rb:12` and tests\\test_pool.py, then DataTable.tsx (not Node.js 18.2, e.g. v1.2.3).
    Traceback: File "/app/core/run.py", line 3; https://example.com/a/page.html and
    https://github.com/acme/x/blob/main/core/run.go#L3, Makefile, obj.method(), lib/pool.rb again."""
    assert [to_canonical_path(one) for one in find_files_named_in_text(text)] == [
        "lib/pool.rb", "tests/test_pool.py", "DataTable.tsx", "/app/core/run.py", "core/run.go", "Makefile",
    ]  # fmt: skip


def test_a_long_text_is_read_in_time():
    assert find_files_named_in_text("a/" * 200_000) == ()
    assert len(find_files_named_in_text("x.py " * 100_000)) == 1
