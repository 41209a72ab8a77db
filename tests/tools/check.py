"""Run the checks and tests for the changed files, in a minute or two: ``make check``.

Changed files differ from the commit at which the branch left ``main``, and may be uncommitted. On ``main``, they
differ from the last push or, if nothing is unpushed, from the last commit. Changed Python files are linted and
type-checked, their format is checked, and the tests of their folders run. Tests that start a browser or Prefect are
skipped; run them with ``make test-all``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("flows", "monitors", "warehouse", "deployments", "examples")
SLOW = "browser or prefect"
NO_TESTS = 5
"""Pytest's exit code when no test was selected."""


def git(*arguments: str, root: Path = ROOT) -> list[str]:
    """Run git and return its output lines, or an empty list if git fails, for example if a branch is missing."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def base(root: Path = ROOT) -> str:
    """Return the commit that the working tree is compared with to find the changed files."""
    (head, *_) = git("rev-parse", "HEAD", root=root)
    for branch in ("main", "origin/main", "HEAD~1"):
        for commit in git("merge-base", "HEAD", branch, root=root):
            if commit != head or git("status", "--porcelain", root=root):
                return commit
    return head


def touched(root: Path = ROOT) -> list[str]:
    """Return the added and modified files, without deleted files. The paths are relative to ``root``."""
    changed = git("diff", "--name-only", "--diff-filter=d", base(root), root=root)
    new = git("ls-files", "--others", "--exclude-standard", root=root)
    return sorted({*changed, *new})


def folders_to_test(files: list[str], root: Path = ROOT) -> list[str]:
    """Return the test folders of the changed product files, and the changed test files outside these folders."""
    folders = set[str]()
    for file in files:
        path = Path(file)
        if path.parts[0] in PRODUCT:
            folders.add(_mirrored(path.parent, root))
        elif path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py":
            folders.add(file)
    return sorted(path for path in folders if not any(str(parent) in folders for parent in Path(path).parents))


def _mirrored(folder: Path, root: Path) -> str:
    """Return the test folder that mirrors a product folder, or the nearest existing parent of that test folder."""
    while not (root / "tests" / folder).is_dir():
        folder = folder.parent
    return str(Path("tests") / folder)


def main() -> int:
    """Run ruff, the format check, pyright and the tests, even if one fails. Return 1 if one failed, else 0."""
    files = touched()
    python = [file for file in files if file.endswith(".py")]
    tests = folders_to_test(files)
    print(f"{len(files)} files touched since {base()[:7]}; tests: {' '.join(tests) or 'none'}", flush=True)
    tool = Path(sys.executable).parent
    commands = [[str(tool / "ruff"), "check", *python], [str(tool / "ruff"), "format", "--check", *python]]
    commands.append([str(tool / "pyright"), *python])
    done = [subprocess.run(command, cwd=ROOT, check=False).returncode for command in commands if python]
    if tests:
        selected = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "auto",
            "--dist",
            "worksteal",
            "-m",
            f"not ({SLOW})",
        ]
        tested = subprocess.run([*selected, *tests], cwd=ROOT, check=False).returncode
        done.append(0 if tested == NO_TESTS else tested)
        print(f"Tests that start a browser or Prefect were left out ({SLOW}): make test-all runs them.")
    return int(any(done))


if __name__ == "__main__":
    raise SystemExit(main())
