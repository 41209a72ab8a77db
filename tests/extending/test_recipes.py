"""Each recipe of `docs/extending.md` fits the tree and changes few files.

The test of the recipe passes on a copy of the tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extending.recipes import (
    DOCUMENT,
    PACKAGES,
    ROOT,
    Edit,
    Recipe,
    RecipeError,
    apply_recipe,
    build_page,
    list_recipes,
    load_recipe,
)

RECIPES = {path.stem: load_recipe(path) for path in list_recipes()}
QUICK = ("2-alert-field", "8-word")
"""The recipes whose own test also runs in the quick tier.

The quick tier applies the other recipes to the tree but does not run their tests. The whole tier runs all tests.
"""


def copy_tree(root: Path) -> None:
    """Copy the files that a test needs to ``root``.

    Compiled files are copied too, because the same interpreter uses them.
    """
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("extending", "bench", "soak"))
    shutil.copy2(ROOT / "pyproject.toml", root)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_changes_few_files(recipe: Recipe) -> None:
    assert len(recipe.product_files) <= recipe.max_product_files
    assert all(name.split("/")[0] in PACKAGES for name in recipe.product_files)
    (test_file,) = {edit.file for edit in recipe.test}
    assert test_file.startswith("tests/")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.whole_only) for name in RECIPES]
)
def test_a_recipe_works_on_a_copy_of_the_tree(name: str, tmp_path: Path) -> None:
    copy_tree(tmp_path)
    apply_recipe(RECIPES[name], tmp_path)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    options = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, RECIPES[name].test_file],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in QUICK])
def test_a_recipe_fits_the_tree(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    for file in {edit.file for edit in (*recipe.product, *recipe.test) if not edit.creates}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tmp_path / file)
    apply_recipe(recipe, tmp_path)


@pytest.mark.parametrize(
    ("edit", "count"),
    [({"after": "one"}, 2), ({"line": "three"}, 0)],
    ids=["a line that stands twice", "a line that is gone"],
)
def test_an_edit_that_does_not_fit_is_an_error(edit: dict[str, str], count: int, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n    one\ntwo\n")
    change = Edit(file="a.py", text="new\n", **edit)
    recipe = Recipe(title="Add it", intro="", test_file="tests/a.py", product=(change,), test=())
    with pytest.raises(RecipeError, match=rf"Add it: a\.py .* {count} times"):
        apply_recipe(recipe, tmp_path)


def test_the_page_is_made_of_the_recipes() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == build_page()
