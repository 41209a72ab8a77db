"""Test that every exception to a code rule has a comment with the reason.

Example lines prove that the check finds exceptions without a reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.reasons import find_unexplained

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("monitors", "warehouse", "flows", "deployments")


def test_every_exception_of_the_product_has_its_reason():
    unexplained = [
        str(row)
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for row in find_unexplained(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("try:\n    f()\nexcept Exception:\n    pass\n", "except Exception"),
        ("try:\n    f()\nexcept:\n    pass\n", "except Exception"),
        ("try:\n    f()\nexcept (KeyError, BaseException) as error:\n    pass\n", "except Exception"),
        ("with suppress(OSError):\n    f()  # the body's comment is no reason\n", "suppress()"),
        ("with open(p) as a, contextlib.suppress(OSError):\n    f()\n", "suppress()"),
        ("x = 1  # about x\nawait asyncio.sleep(x)\n", "sleep()"),
        ("self._patience.sleep(\n    left_s\n)\n", "sleep()"),
        ("x = 3  # noqa: PLR2004\n", "noqa: PLR2004"),
        ("x = 3  # noqa: PLR2004, S101\n", "noqa: PLR2004, S101"),
        ("x = 3  # noqa\n", "noqa"),
        ("x = f()  # type: ignore[override]\n", "type: ignore[override]"),
        ("x = f()  # pyright: ignore[reportCallIssue, reportArgumentType]\n", "pyright: ignore"),
        ("x = f()  # type: ignore[override]  # noqa: S101\n", "type: ignore[override]"),
        ("x = [  # fmt: skip\n    f(),  # noqa: S101\n]\n", "noqa: S101"),
    ],
)
def test_a_planted_exception_is_found(source, kind):
    assert [row.kind for row in find_unexplained("flows/x.py", source) if row.kind.startswith(kind)]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept Exception:  # its owners hear of it; raised again\n    raise\n",
        "try:\n    f()\n# its owners hear of it\nexcept Exception:\n    raise\n",
        "# mostly there is none\nwith suppress(OSError):\n    f()\n",
        "# the server said how long\nself._patience.sleep(\n    left_s\n)\n",
        "x = 3  # noqa: PLR2004 - an hour has three\n",
        "x = f()  # type: ignore[override]  # rich's keywords are untyped\n",
        '# names of ours\nx = (\n    f"select {x}"  # noqa: S608\n)\n',
        "except_exception = 'except Exception, suppress(, sleep( and noqa in a text'\n",
        "try:\n    f()\nexcept OSError:\n    pass\n",
    ],
)
def test_a_reason_on_the_line_or_above_counts(source):
    assert find_unexplained("flows/x.py", source) == []
