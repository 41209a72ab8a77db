"""Starts to ask a target before the Prefect server is ready. The flow continues the run when the server answers.

    prepare_run ─▶ ask questions ──────────────────────▶ ask_and_grade waits for them ─▶ …
              └──▶ start the server ─▶ import Prefect ─▶ verify_deploy ┘

Every result is stored in the journal immediately. If no server starts, asking stops, and alerts are sent about the
severe failures so far and about the missing server. If the same command is started again, it resumes the run.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from typing import TypeVar, cast

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault
from flows.runtime.run import load_request_config, start_or_connect_to_prefect
from flows.server.prefect_server import PrefectUnavailable, is_server_gone
from flows.verify.asking import ask_until_deadline, prepare_run
from flows.verify.progress import ProgressListener
from flows.verify.run_folder import VerifyRequest, is_run_complete
from flows.verify.run_state import LiveRun
from monitors.errors import ConfigError
from monitors.records.runs import RunReport

Result = TypeVar("Result")


async def verify(request: VerifyRequest, listener: ProgressListener) -> RunReport:
    """Verify a target and return the report. Asking begins while the Prefect server starts.

    Raises the errors of `verify_deploy`, and `PrefectUnavailable`.
    """
    config = load_request_config(request)
    run = await prepare_run(request, listener, unreported=(ConfigError,))
    async with _ask_in_background(run) as asking:
        with _cancel_on_sigterm(), _show_server_wait(asking, listener):
            await _run_in_daemon_thread(lambda: start_or_connect_to_prefect(config))
            await _run_in_daemon_thread(
                lambda: import_module("flows.verify.flow")
            )  # the import takes 3 s, and answers must be received meanwhile
        from flows.verify.flow import build_flow_for_run  # Prefect reads its server's address at import

        # A flow that returns a state returns the state's data to its caller.
        return cast("RunReport", await build_flow_for_run(run)(request))


@asynccontextmanager
async def _ask_in_background(run: LiveRun) -> AsyncGenerator[asyncio.Task[None]]:
    """Ask in a background task, which is cancelled at the end of the ``with`` block.

    Lookout's owners are notified if no server starts, or if the server is lost before the run is complete. If
    asking also fails, the error from asking is raised.
    """
    with run.context.run_folder:
        run.asking = asking = asyncio.create_task(ask_until_deadline(run))
        try:
            yield asking
        except Exception as error:  # Prefect raises errors of several types; all are raised again
            asking_error = asking.exception() if asking.done() and not asking.cancelled() else None
            await _cancel_asking(asking)
            if not is_run_complete(run.context.folder) and (
                isinstance(error, PrefectUnavailable) or is_server_gone(error)
            ):
                await notify_fault(run.context.notifier, _build_server_fault(error), commit=run.commit)
            if asking_error is not None and isinstance(error, PrefectUnavailable):
                raise asking_error from error
            raise
        finally:
            await _cancel_asking(asking)


async def _cancel_asking(asking: asyncio.Task[None]) -> None:
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def _build_server_fault(error: Exception) -> Fault:
    """Build the fault that is reported if no Prefect server is available."""
    detail = (
        f"No Prefect server is available: {build_fault_from_error(error).detail}. The answers so far are stored, "
        "and severe failures were reported. To continue, run the same command within one hour."
    )
    return Fault(PrefectUnavailable.__name__, detail)


@contextmanager
def _show_server_wait(asking: asyncio.Task[None], listener: ProgressListener) -> Generator[None]:
    """Show the stage "waiting for the Prefect server" if all questions are asked before the server answers."""

    def show(_: asyncio.Task[None]) -> None:
        listener.on_stage("waiting for the Prefect server")

    asking.add_done_callback(show)
    yield
    asking.remove_done_callback(show)


async def _run_in_daemon_thread(work: Callable[[], Result]) -> Result:
    """Run ``work`` in a daemon thread, so that Ctrl-C ends the process immediately."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def set_outcome(result: Result | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("Result", result))

    def run_work_and_set_outcome() -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - every error is raised again in the task that waits for it
            problem = error
        with suppress(RuntimeError):  # the loop is closed, so nobody needs the result
            loop.call_soon_threadsafe(set_outcome, result, problem)

    threading.Thread(target=run_work_and_set_outcome, name="server-start", daemon=True).start()
    return await done


@contextmanager
def _cancel_on_sigterm() -> Generator[None]:
    """Cancel the current task on SIGTERM, as on Ctrl-C. Inside a flow, Prefect cancels the task."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        raise AssertionError("internal error: the coroutine must run in a task")
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
