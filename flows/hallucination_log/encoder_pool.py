"""Encodes the lines of a long log on all cores, and returns the batches in order.

Worker processes start only after a poll has read about 30 MB. The command of a worker is `python -m
flows.hallucination_log.encoder_pool`. A worker reads the settings and then batches of lines from its standard
input, and writes the encoded rows to its standard output. It stores nothing, and ends when its input ends.
"""

from __future__ import annotations

import gc
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from queue import SimpleQueue
from typing import BinaryIO, Final, cast

from flows.hallucination_log.line_encoder import EncodedLines, LineEncoder, LineSettings
from monitors.sources.logs.tail import LogBatch

MODULE: Final = "flows.hallucination_log.encoder_pool"
MIN_BATCHES_FOR_WORKERS: Final = 8
"""The number of batches (about 30 MB) that this process encodes before workers start.

Workers start late, because most polls read less and a worker takes a second to start.
"""
MAX_WORKERS: Final = 8
"""Maximum number of worker processes. It is limited, because each worker needs about 80 MB of memory."""


class EncoderPool:
    """Encodes batches on ``cores`` cores. With one core or few batches, this process itself encodes the batches."""

    def __init__(self, settings: LineSettings, cores: int, now: Callable[[], datetime]) -> None:
        self._settings, self._now = settings, now
        self._local_encoder = LineEncoder(settings)
        self._max_workers = min(MAX_WORKERS, cores)

    def encode_batches(self, batches: Iterable[LogBatch]) -> Generator[tuple[LogBatch, EncodedLines]]:
        """Yield every batch with its encoded lines, in the original order.

        All workers end when the generator ends or is closed.
        """
        remaining = iter(batches)
        for number, batch in enumerate(remaining, start=1):
            yield batch, self._local_encoder.encode(batch.lines, batch.cursor, self._now())
            if number == MIN_BATCHES_FOR_WORKERS and self._max_workers > 1:
                break
        with self._start_workers() as submit:
            waiting: deque[tuple[LogBatch, Future[EncodedLines]]] = deque()
            for batch in remaining:
                waiting.append((batch, submit(batch)))
                if len(waiting) > 2 * self._max_workers:
                    done_batch, answer = waiting.popleft()
                    yield done_batch, answer.result()
            while waiting:
                done_batch, answer = waiting.popleft()
                yield done_batch, answer.result()

    @contextmanager
    def _start_workers(self) -> Generator[Callable[[LogBatch], Future[EncodedLines]]]:
        """Create the workers and yield a function that submits a batch. A worker starts with its first batch."""
        free: SimpleQueue[_EncoderProcess] = SimpleQueue()
        workers = [_EncoderProcess(self._settings) for _ in range(self._max_workers)]
        for worker in workers:
            free.put(worker)

        def encode(batch: LogBatch, read_at: datetime) -> EncodedLines:
            worker = free.get()
            try:
                return worker.encode(batch, read_at)
            except (
                OSError,
                EOFError,
                pickle.UnpicklingError,
            ):  # the worker was killed, e.g. because memory ran out
                return self._local_encoder.encode(batch.lines, batch.cursor, read_at)
            finally:
                free.put(worker)

        threads = ThreadPoolExecutor(self._max_workers)
        try:
            yield lambda batch: threads.submit(encode, batch, self._now())
        finally:
            threads.shutdown(cancel_futures=True)
            for worker in workers:
                worker.stop()


class _EncoderProcess:
    """A worker process that encodes one batch at a time."""

    def __init__(self, settings: LineSettings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def encode(self, batch: LogBatch, read_at: datetime) -> EncodedLines:
        """Encode a batch. Raises `OSError` or `EOFError` if the process has ended."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((batch.lines, batch.cursor, read_at), process.stdin)
            process.stdin.flush()
            return cast("EncodedLines", pickle.load(process.stdout))  # noqa: S301 - from a process of our own
        except BaseException:  # a cancellation, too, can leave an unread answer in the pipe
            self.stop()  # the next batch must not read that answer
            raise

    def stop(self) -> None:
        """End the process. The next batch starts a new process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", MODULE]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own
        assert process.stdin is not None
        process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        return process


def run_encoder_worker(source: BinaryIO, answers: BinaryIO) -> None:
    """Encode batches from ``source`` and write the results to ``answers`` until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    encoder = LineEncoder(LineSettings.model_validate_json(source.readline()))
    gc.freeze()  # imported objects are never freed, so garbage collection need not scan them
    while True:
        try:
            lines, cursor, read_at = pickle.load(source)  # noqa: S301 - from the process that started this one
            pickle.dump(encoder.encode(lines, cursor, read_at), answers)
            answers.flush()
        except (EOFError, BrokenPipeError):
            return


if __name__ == "__main__":
    run_encoder_worker(sys.stdin.buffer, sys.stdout.buffer)
