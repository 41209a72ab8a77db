"""`lookout gold vary`: a file of variants, the same for the same seed, loadable as it is."""

from __future__ import annotations

import json

from deployments.demo.policies import HERE
from monitors.goldset.load import load_suite
from tests.deployments.gold_process import gold


def test_the_same_seed_writes_the_same_file_and_it_loads(tmp_path):
    (tmp_path / "suite.jsonl").write_bytes((HERE / "gold" / "triples.jsonl").read_bytes())
    done = gold("vary", "suite.jsonl", "--kinds", "paraphrase,typo", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = tmp_path / "suite-variants.jsonl"
    first = written.read_bytes()
    suite = load_suite(written)
    assert f"{len(suite.cases)} variants in suite-variants.jsonl: 60 paraphrase" in done.stdout
    assert suite.sha256[:12] in done.stdout
    again = gold("vary", "suite.jsonl", "--kinds", "typo,paraphrase", "--seed", "3", "--json", cwd=tmp_path)
    told = json.loads(again.stdout)
    assert told["sha256"] == suite.sha256
    assert told["variants"]["paraphrase"] == 60
    assert sorted(written.read_bytes().splitlines()) == sorted(first.splitlines())


def test_the_suite_is_never_overwritten_and_what_is_accepted_is_told(tmp_path):
    (tmp_path / "suite.jsonl").write_bytes((HERE / "gold" / "triples.jsonl").read_bytes())
    itself = gold("vary", "suite.jsonl", "--output", "suite.jsonl", cwd=tmp_path)
    assert itself.returncode == 2
    assert "is the suite itself" in itself.stderr
    strange = gold("vary", "suite.jsonl", "--kinds", "typos", cwd=tmp_path)
    assert strange.returncode == 2
    assert "accepted: paraphrase, typo, code_switch" in strange.stderr
