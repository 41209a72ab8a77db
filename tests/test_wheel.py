"""What is built for others holds every file of the product, its data too."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tools.shape import product_files

ROOT = Path(__file__).parent.parent


def test_the_wheel_holds_every_file_of_the_product(tmp_path):
    """A domain pack, a prompt or a template that stays behind is missed only where it is installed."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        held = set(files.namelist())
    assert not set(product_files()) - held
    assert "monitors/domains/general/vocabulary.toml" in held
