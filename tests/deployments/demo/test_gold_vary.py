"""`lookout gold vary` writes a file of variants.

The same seed gives the same file, and the file loads unchanged.
"""

from __future__ import annotations

import json

from deployments.demo.policies import HERE
from monitors.goldset.load import load_suite
from tests.deployments.gold_process import gold
from tests.stable_text import replace_volatile


def test_the_same_seed_writes_the_same_file_and_it_loads(tmp_path, snapshot):
    (tmp_path / "suite.jsonl").write_bytes((HERE / "gold" / "triples.jsonl").read_bytes())
    done = gold("vary", "suite.jsonl", "--kinds", "paraphrase,typo", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = tmp_path / "suite-variants.jsonl"
    first = written.read_bytes()
    suite = load_suite(written)
    assert replace_volatile(done.stdout, sha256=suite.sha256[:12]) == snapshot
    again = gold("vary", "suite.jsonl", "--kinds", "typo,paraphrase", "--seed", "3", "--json", cwd=tmp_path)
    summary = json.loads(again.stdout)
    assert summary["sha256"] == suite.sha256
    assert summary["variants"]["paraphrase"] == 60
    assert sum(summary["variants"].values()) == len(suite.cases)
    assert sorted(written.read_bytes().splitlines()) == sorted(first.splitlines())


def test_the_suite_is_never_overwritten_and_an_unknown_kind_is_refused(tmp_path, snapshot):
    (tmp_path / "suite.jsonl").write_bytes((HERE / "gold" / "triples.jsonl").read_bytes())
    itself = gold("vary", "suite.jsonl", "--output", "suite.jsonl", cwd=tmp_path)
    assert itself.returncode == 2
    strange = gold("vary", "suite.jsonl", "--kinds", "typos", cwd=tmp_path)
    assert strange.returncode == 2
    assert itself.stderr + strange.stderr == snapshot
    assert [path.name for path in tmp_path.iterdir()] == ["suite.jsonl"]
