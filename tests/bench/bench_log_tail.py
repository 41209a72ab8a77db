"""P7: read a hallucination log at 50 MB/s with redaction and constant memory, compared with the shortest loop.

    python -m tests.bench.bench_log_tail [--megabytes 100] [--large 1000]

The bench measures all work of a poll before the journal is written, on all cores, in a separate process: splitting
bytes into lines with positions and digests, bounded batches, JSON, validation of fields, redaction of personal
data, encoding of rows. Entries have about 650 bytes and differ; one in fifty contains personal data. The first poll
of an existing log reads such a backlog. After the first 30 MB, workers process the batches. A log that is smaller
than 30 MB is read by one process. The baseline parses each line as JSON on one core and does nothing else. "P7
memory" is the peak memory of the process and its workers together for the large log, compared with a log of a tenth
of its size.

Python limits the speed. The search for personal data takes six tenths of an entry's time on a core. Half of that is
a filter, which decides that most texts do not need the rules. The other half is the rules themselves. They also
check one id in sixteen, because it could be an account number. Parsing and validation take a quarter, and encoding
the row takes a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from flows.hallucination_log.encoder_pool import EncoderPool
from flows.hallucination_log.line_encoder import LineSettings
from monitors.sources.logs.entries import is_whole_entry
from monitors.sources.logs.files import LocalLog
from monitors.sources.logs.tail import read_new_batches
from tests.bench.measurements import Figure, report
from tests.conftest import ROOT

MB = 1_000_000
MIN_MB_S = 50.0
MAX_GROWTH = 1.15
PAIRS = 5
BLOCK_BYTES = 25 * MB
"""Size in bytes of the block of different entries at the start of a log. A larger log repeats this block."""
SENTENCES = (
    "Pre-existing diseases are covered after a waiting period of {months} months of continuous cover.",
    "Room rent is paid up to ₹{amount:,} per day under the plan that you chose.",
    "A co-payment of {small}% applies to every claim above the age of {age} years.",
    "Maternity ke liye do saal ka waiting period hai, uske baad cover milta hai.",
    "मोतियाबिंद के लिए चौबीस महीने की प्रतीक्षा अवधि है।",
    "The sum insured is restored once a year. [Source: Nova Gold, clause {small}.{months}]",
    "You may choose any hospital; in those of the network the bill is settled directly.",
    "Cataract is covered after {months} months up to {amount:,} rupees per eye, see **clause {small}**.",
)
QUESTIONS = (
    "Is cataract covered under the {plan} plan, and after how many months?",
    "How much is paid for a room under {plan}?",
    "kya {plan} mein maternity cover hai?",
    "What is the co-payment above {age} years in {plan}?",
)
PLANS = ("Suraksha Gold", "Nova Gold", "Nova Silver", "Arogya Plus")
DISCLOSING = (" Call 98765 4{age}32.", " Write to user{age}@mailbox.example.", " Policy number: NG-0000{age}77.")
DISCLOSED_OF = 50


def build_entry(chance: random.Random, number: int) -> dict[str, object]:
    """Build an entry as an application writes it.

    Every entry whose number is divisible by 50 contains personal data.
    """

    def filled(text: str) -> str:
        return text.format(
            months=12 * chance.randrange(1, 5), amount=500 * chance.randrange(1, 200), small=chance.randrange(1, 20),
            age=chance.randrange(18, 80), plan=chance.choice(PLANS),
        )  # fmt: skip

    reply = " ".join(filled(sentence) for sentence in chance.sample(SENTENCES, 4))
    if number % DISCLOSED_OF == 0:
        reply += filled(chance.choice(DISCLOSING))
    return {
        "ts": f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        "user_text": filled(chance.choice(QUESTIONS)),
        "blocked_reply": reply,
        "reasons": [filled("unsupported_number: {amount:,} stands in no retrieved clause")],
        "unsupported_claims": [filled("up to {amount:,} rupees per eye")],
        "chunk_count": chance.randrange(1, 9),
        "top_score": round(chance.random(), 2),
        "policy_ids": [chance.choice(PLANS).lower().replace(" ", "-")],
        "session": f"{chance.getrandbits(64):016x}",
        "number": number,
    }


def write_log(path: Path, size: int) -> Path:
    chance, lines, length = random.Random(7), list[bytes](), 0
    while length < min(size, BLOCK_BYTES):
        line = json.dumps(build_entry(chance, len(lines)), ensure_ascii=False).encode() + b"\n"
        lines.append(line)
        length += len(line)
    block = b"".join(lines)
    with path.open("wb") as stream:
        while stream.tell() < size:
            stream.write(block)
    return path


def run_ingest(path: Path) -> dict[str, float]:
    """Read a log in a separate process.

    Return seconds, CPU seconds, entries, and the peak memory including workers.
    """
    words = [sys.executable, "-m", "tests.bench.bench_log_tail", "--ingest", str(path)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, cwd=ROOT)
    return json.loads(done.stdout)


def ingest(path: Path) -> dict[str, float]:
    cores = len(os.sched_getaffinity(0))
    pool = EncoderPool(LineSettings(target="bot"), cores, lambda: datetime.now(UTC))
    entries, stored = 0, 0
    started, before = time.perf_counter(), time.process_time()
    with LocalLog(path).poll() as files:
        for _, lines in pool.encode_batches(read_new_batches(files, "bot", None, is_whole=is_whole_entry)):
            entries += lines.entries + lines.history
            stored += len(lines.rows.body)
            assert not lines.aside_count
    wall_s = time.perf_counter() - started
    here, workers = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "wall_s": wall_s,
        "cpu_s": time.process_time() - before + workers.ru_utime + workers.ru_stime,
        "entries": entries,
        "peak_mb": (here.ru_maxrss + cores * workers.ru_maxrss) / 1024,
    }


def measure_parse_s(path: Path) -> float:
    started = time.perf_counter()
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            json.loads(line)
    return time.perf_counter() - started


def main() -> int:
    """Print the figures. Return exit code 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=100)
    options.add_argument("--large", type=int, default=1_000)
    options.add_argument("--ingest", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.ingest:
        print(json.dumps(ingest(arguments.ingest)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        path = write_log(Path(temporary) / "some.jsonl", arguments.megabytes * MB)
        size = path.stat().st_size / MB
        pairs = [(run_ingest(path), measure_parse_s(path)) for _ in range(PAIRS)]
        cpu = (
            sum(ingest_result["cpu_s"] for ingest_result, _ in pairs)
            / sum(ingest_result["entries"] for ingest_result, _ in pairs)
            * 1e6
        )
        speed = Figure(
            id="P7",
            what="log ingested, masking on",
            unit="MB/s",
            values=tuple(size / ingest_result["wall_s"] for ingest_result, _ in pairs),
            goal=MIN_MB_S,
            baseline="json.loads of each line, one core",
            baselines=tuple(size / wall_s for _, wall_s in pairs),
            better="higher",
            note=f"{cpu:.0f} µs of CPU per entry of {size * MB / pairs[0][0]['entries']:.0f} bytes, all processes, "
            f"their start too; load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores",
        )
        path.unlink()
        tenth, large = (
            run_ingest(write_log(Path(temporary) / f"{part}.jsonl", part * MB))["peak_mb"]
            for part in (arguments.large // 10, arguments.large)
        )
    memory = Figure(
        id="P7 memory",
        what=f"peak of all processes, log of {arguments.large:,} MB",
        unit="MB",
        values=(large,),
        goal=MAX_GROWTH,
        baseline="one of a tenth",
        baselines=(tenth,),
        of="ratio",
        note="one pair: the large log takes half a minute, and the peak of a process hardly varies",
    )
    return 0 if all([report(speed), report(memory)]) else 1


if __name__ == "__main__":
    sys.exit(main())
