"""P7: reading a hallucination log, at least 50 MB/s in flat memory, beside the shortest loop over its lines.

    python -m tests.bench.bench_log_tail [--megabytes 400]

"Entries" is all that is done before anything is stored: lines with their places and digests, bounded batches, JSON,
checked fields. Peak memory is the process's own high-water mark, after a log of a tenth of the size and after the
whole one.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from tests.monitors.sources.logs_on_disk import NAME, Reader

MB = 1_000_000
TARGET_MB_S = 50.0
LINE = json.dumps(
    {
        "ts": "2026-03-01T10:00:00Z",
        "user_text": "Does the Suraksha plan cover a cataract operation, and after how many months?",
        "blocked_reply": "Yes, cataract is covered after 24 months up to 40,000 rupees per eye, see clause 4.2. "
        * 4,
        "reasons": ["unsupported_number: 40,000 stands in no retrieved clause"],
        "unsupported_claims": ["up to 40,000 rupees per eye"],
        "chunk_count": 6,
        "top_score": 0.81,
        "policy_ids": ["suraksha-gold"],
        "number": 1,
    }
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=400)
    size = options.parse_args().megabytes * MB
    with tempfile.TemporaryDirectory() as folder:
        small, whole = (
            written(Path(folder) / name, part) for name, part in (("small", size // 10), ("whole", size))
        )
        entries(small)
        after_small = peak_mb()
        ours = rate(entries, whole)
        after_whole = peak_mb()
        plain = rate(json_lines, whole)
    met = "met" if ours >= TARGET_MB_S else "missed"
    print(f"plain loop, json.loads: {plain:.0f} MB/s")
    print(f"P7 entries: {ours:.0f} MB/s (at least {TARGET_MB_S:.0f}: {met})")
    print(f"peak memory: {after_small:.0f} MB after a tenth of it, {after_whole:.0f} MB after all of it")


def written(folder: Path, size: int) -> Path:
    folder.mkdir()
    path = folder / NAME
    block = (LINE + "\n") * 1_000
    with path.open("w") as stream:
        while stream.tell() < size:
            stream.write(block)
    return path


def entries(path: Path) -> None:
    """What a run does, but for storing: each batch is read and let go."""
    reader, read = Reader(path), 0
    for batch in reader.batches():
        reader.keep(batch)
        read += len(reader.entries)
        reader.entries.clear()
    assert read == path.stat().st_size // (len(LINE) + 1)
    assert not reader.aside


def json_lines(path: Path) -> None:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            assert json.loads(line)["number"] == 1


def rate(job: object, path: Path) -> float:
    assert callable(job)
    started = time.process_time()
    job(path)
    return path.stat().st_size / MB / (time.process_time() - started)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


if __name__ == "__main__":
    main()
