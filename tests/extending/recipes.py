"""Reads the recipes of `docs/extending.md`, applies one to a copy of the tree, and writes the page.

A recipe is a TOML file of `recipes/`: a title, a text, and edits. An edit creates a file, inserts lines after one
line of a file (`after`), or replaces one line (`line`). That line is written without its indentation and must occur
once in the file. Therefore a recipe still fits after changes elsewhere in the file. To update the page, run
``python -m tests.extending.recipes``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Final

from pydantic import BaseModel, ConfigDict

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs" / "extending.md"
FOLDER: Final = Path(__file__).with_name("recipes")
PACKAGES: Final = ("deployments", "flows", "monitors", "warehouse")

LINE_WIDTH: Final = 116
MAX_PRODUCT_FILES: Final = 3
MAX_PRODUCT_FILES_WITH_SETTING: Final = 4

INTRODUCTION: Final = """\
# Extending Lookout

Each recipe on this page adds one thing to Lookout. A recipe lists the files to change, and the test that proves
that the change works. The code of a recipe is a small, complete example: copy it and adapt it to your needs.

`tests/extending` applies every recipe to a copy of the repository and runs its test there, so every recipe works
with this version of Lookout. `python -m tests.extending.recipes` generates this page from the files of the recipes,
`tests/extending/recipes/*.toml`.

After a change, run `make docs` to update the reference pages, `make snapshots` to update the snapshots of messages
and reports, and `make check` to run lint, types and the tests of your changes. To add a word for graders, you do
not need Python: see [words](words.md).
"""


class RecipeError(Exception):
    """Raised if a recipe does not fit the tree. The message contains the recipe, the file and the line."""


class Edit(BaseModel):
    """One change of one file. `text` is the whole new file, the lines to insert, or the replacement of `line`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    text: str
    after: str = ""
    line: str = ""

    @property
    def creates(self) -> bool:
        """Return whether the edit creates a new file."""
        return not (self.after or self.line)


class Recipe(BaseModel):
    """The steps that add one extension.

    ``product`` and ``test`` are its edits of product files and of test files. ``test_file`` is the test to run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    intro: str
    outro: str = ""
    has_setting: bool = False
    test_file: str
    product: tuple[Edit, ...]
    test: tuple[Edit, ...]

    @property
    def product_files(self) -> set[str]:
        """Return the files of the product (not of its tests) that the recipe changes."""
        return {edit.file for edit in self.product}

    @property
    def max_product_files(self) -> int:
        """Return the maximum number of product files that the recipe may change."""
        return MAX_PRODUCT_FILES_WITH_SETTING if self.has_setting else MAX_PRODUCT_FILES


def load_recipe(path: Path) -> Recipe:
    """Load a recipe. Raises ``ValueError`` for an invalid format."""
    return Recipe.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def list_recipes() -> Sequence[Path]:
    """List the files of all recipes, in the order of the page."""
    return sorted(FOLDER.glob("*.toml"))


def apply_recipe(recipe: Recipe, root: Path) -> None:
    """Apply every edit to the tree at ``root``. Raises `RecipeError` if an edit does not fit."""
    for edit in (*recipe.product, *recipe.test):
        path = root / edit.file
        if edit.creates:
            if path.exists():
                raise RecipeError(f"{recipe.title}: {edit.file} exists already")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(edit.text, encoding="utf-8")
            continue
        if not path.exists():
            raise RecipeError(f"{recipe.title}: {edit.file} does not exist")
        path.write_text(_apply_edit(recipe, edit, path.read_text(encoding="utf-8")), encoding="utf-8")


def _apply_edit(recipe: Recipe, edit: Edit, source: str) -> str:
    anchor = edit.after or edit.line
    lines = source.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == anchor.strip()]
    if len(places) != 1:
        raise RecipeError(f"{recipe.title}: {edit.file} has the line {anchor!r} {len(places)} times, expected once")
    (place,) = places
    before = lines[: place + 1] if edit.after else lines[:place]
    return "".join([*before, edit.text, *lines[place + 1 :]])


def build_page() -> str:
    """Build the text of the page."""
    recipes = [load_recipe(path) for path in list_recipes()]
    return "\n".join([INTRODUCTION, *chain.from_iterable(map(_format_recipe, recipes))])


def _format_recipe(recipe: Recipe) -> Iterator[str]:
    yield f"## {recipe.title}\n\n{_wrap(recipe.intro)}\n"
    for edit in (*recipe.product, *recipe.test):
        yield f"{_format_place(edit)}\n\n```{_find_syntax(edit)}\n{edit.text.strip(chr(10))}\n```\n"
    test = f"Test: `python -m pytest {recipe.test_file}`."
    yield f"{_wrap(f'{test} {recipe.outro}')}\n"


def _wrap(text: str) -> str:
    return fill(text.strip(), width=LINE_WIDTH, break_long_words=False, break_on_hyphens=False)


def _format_place(edit: Edit) -> str:
    if edit.creates:
        return f"New file `{edit.file}`:"
    place, anchor = ("after", edit.after) if edit.after else ("instead of", edit.line)
    return f"`{edit.file}`, {place} `{anchor.strip()}`:"


def _find_syntax(edit: Edit) -> str:
    """Return the language of the edit's code block in the page.

    A data file gets ``text``, because its block is only a part of the file and cannot be checked on its own.
    """
    return "python" if edit.file.endswith(".py") else "text"


if __name__ == "__main__":
    DOCUMENT.write_text(build_page(), encoding="utf-8")
