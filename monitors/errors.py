"""The exception tree. Every error says what to do, whether a retry can help, and who is to blame.

    MonitorError                          retryable  blame
    ├─ ConfigError                        no         monitor    names file, key or line, value, accepted values
    │   ├─ GoldSetError                   no         monitor
    │   └─ AlreadyRuns                    no         monitor    the same job runs already; nothing is wrong
    ├─ ProbeError                                                → NoAnswer
    │   ├─ Unreachable                    yes        app
    │   ├─ NotReady                       yes        app
    │   │   ├─ DeployFailed               no         app
    │   │   └─ ReadinessUnknown           no         monitor
    │   ├─ AnswerTimeout                  yes        app
    │   ├─ AnswerIncomplete               yes        app
    │   │   └─ EndNotFound                yes        monitor    no stream of the run had the configured end event
    │   ├─ AppErrorShown                  yes        app
    │   ├─ LeftTarget                     no         app
    │   ├─ AccessDenied                   no         monitor
    │   │   ├─ LoginWall                  no         monitor
    │   │   ├─ LoginFailed                no         monitor    its text names the command that fixes it
    │   │   └─ SessionEnded               yes        monitor
    │   ├─ RateLimited                    yes        monitor    Lookout waits, see probes/request_limit.py
    │   ├─ NoSuchPath                     yes        monitor    also occurs while an app behind a proxy restarts
    │   ├─ PageNotUnderstood              no         monitor
    │   │   └─ AnswerNotFound             no         monitor
    │   ├─ CaptureUnsure                  no         monitor
    │   ├─ OldJob                         no         monitor
    │   └─ BrowserLost                    yes        monitor
    │       └─ BrowserMissing             no         monitor
    ├─ GradingError                                              → Abstained
    │   ├─ JudgeUnavailable               yes        provider
    │   ├─ JudgeRefused                   no         provider
    │   ├─ JudgeMisconfigured             no         monitor
    │   ├─ VerdictUnreadable              yes        monitor
    │   └─ BudgetReached                  no         monitor
    ├─ SourceError
    │   └─ SourceUnavailable              yes        app
    ├─ WarehouseError
    │   ├─ WarehouseBusy                  yes        monitor
    │   │   └─ WarehouseInUse             yes        monitor    Lookout itself uses the file: wait and load later
    │   ├─ WarehouseDamaged               no         monitor
    │   ├─ WarehouseUnwritable            no         monitor
    │   ├─ QueryInvalid                   no         monitor
    │   └─ SchemaTooNew                   no         monitor
    └─ NotifyError                                               its text never contains an address or a token
        ├─ NotifyTransient                yes        provider
        │   └─ NotifyUnsure               yes        provider   the message may have arrived: check before a repeat
        └─ NotifyRejected                 no         monitor

``→`` names the record that replaces the exception. Only three parts replace an exception with such a record: the
probe's runner, the graders' panel and the judge.
"""

from __future__ import annotations

from typing import ClassVar

from monitors.records.base import Blame
from monitors.records.exchanges import Evidence, NoAnswerReason


class MonitorError(Exception):
    """Base class of all errors that Lookout raises. ``str(error)`` is one line for a person."""

    retryable: ClassVar[bool] = False
    blame: ClassVar[Blame] = Blame.MONITOR


class ConfigError(MonitorError):
    """The configuration is invalid. The error text states the file, the key or line, and the accepted values."""


class GoldSetError(ConfigError):
    """A suite cannot be loaded. The error text states the file, the line and the accepted values."""


class AlreadyRuns(ConfigError):
    """The same job is already running: a nightly run of this target, or ``lookout up`` with this data folder."""


class ProbeError(MonitorError):
    """A question got no gradable answer. ``partial_text`` is the text that was read before the error.

    The driver sets ``evidence`` while the page is still open.
    """

    reason: ClassVar[NoAnswerReason] = NoAnswerReason.BROWSER_LOST

    def __init__(self, message: str, *, partial_text: str = "") -> None:
        super().__init__(message)
        self.partial_text = partial_text
        self.evidence = Evidence()


class Unreachable(ProbeError):
    """No server answers at the target's address, or the answer is an HTTP error."""

    retryable = True
    blame = Blame.APP
    reason = NoAnswerReason.UNREACHABLE


class NotReady(ProbeError):
    """The target is up but was not ready by the deadline: asleep, building, loading or serving an older commit."""

    retryable = True
    blame = Blame.APP
    reason = NoAnswerReason.NOT_READY


class DeployFailed(NotReady):
    """The deploy itself failed: a build or runtime error, or a Space that someone paused."""

    retryable = False


class ReadinessUnknown(NotReady):
    """The deployed commit could not be determined, or the Hugging Face Hub did not answer.

    The app itself may be healthy.
    """

    retryable = False
    blame = Blame.MONITOR


class AnswerTimeout(ProbeError):
    """No answer began before the deadline."""

    retryable = True
    blame = Blame.APP
    reason = NoAnswerReason.ANSWER_TIMEOUT


class AnswerIncomplete(ProbeError):
    """An answer began but did not finish before the deadline, or its stream broke."""

    retryable = True
    blame = Blame.APP
    reason = NoAnswerReason.INCOMPLETE


class EndNotFound(AnswerIncomplete):
    """A stream ended without the configured end event, and so did all earlier streams of the run.

    The end event is probably configured incorrectly.
    """

    blame = Blame.MONITOR
    reason = NoAnswerReason.END_NOT_FOUND


class AppErrorShown(ProbeError):
    """The page shows an error message."""

    retryable = True
    blame = Blame.APP
    reason = NoAnswerReason.APP_ERROR_SHOWN


class LeftTarget(ProbeError):
    """The page navigated to an address outside the app. Lookout asks no questions there."""

    blame = Blame.APP
    reason = NoAnswerReason.LEFT_TARGET


class AccessDenied(ProbeError):
    """The page requires a login or a higher quota, or Lookout may not connect to an address."""

    reason = NoAnswerReason.ACCESS_DENIED


class RateLimited(ProbeError):
    """The app rate-limited the request (HTTP 429).

    ``retry_after_s`` is the wait in seconds that the app requested.
    """

    retryable = True
    reason = NoAnswerReason.RATE_LIMITED

    def __init__(self, message: str, *, retry_after_s: float | None = None, partial_text: str = "") -> None:
        super().__init__(message, partial_text=partial_text)
        self.retry_after_s = retry_after_s


class LoginWall(AccessDenied):
    """The page shows a login form instead of the chat."""


class LoginFailed(AccessDenied):
    """Lookout is not signed in: the session has ended, or the login failed. The error text says what to do."""

    reason = NoAnswerReason.LOGIN_FAILED


class SessionEnded(AccessDenied):
    """The session ended during a question. The next attempt signs in again."""

    retryable = True
    reason = NoAnswerReason.LOGIN_FAILED


class NoSuchPath(ProbeError):
    """The API answered HTTP 404 or 405. The API accepts no questions at the configured path."""

    retryable = True
    reason = NoAnswerReason.NO_SUCH_PATH


class PageNotUnderstood(ProbeError):
    """Lookout found no message box or no answer on the page."""

    reason = NoAnswerReason.PAGE_NOT_UNDERSTOOD


class AnswerNotFound(PageNotUnderstood):
    """The API answered, but the response has no text at the configured path."""

    reason = NoAnswerReason.ANSWER_NOT_FOUND


class CaptureUnsure(ProbeError):
    """The text from the page may not be the answer, or not the whole answer. The text is not graded."""

    reason = NoAnswerReason.CAPTURE_UNSURE


class OldJob(ProbeError):
    """The app did not start a new job for the question, but returned the result of an older job."""

    reason = NoAnswerReason.OLD_JOB


class BrowserLost(ProbeError):
    """The page or the browser crashed, or does not respond."""

    retryable = True
    reason = NoAnswerReason.BROWSER_LOST


class BrowserMissing(BrowserLost):
    """No browser that Lookout can use is installed. The error text gives the command that installs a browser."""

    retryable = False


class GradingError(MonitorError):
    """A grader could not grade the answer."""


class JudgeUnavailable(GradingError):
    """The judge's provider did not answer in time."""

    retryable = True
    blame = Blame.PROVIDER


class JudgeRefused(GradingError):
    """The judge's model refused to grade the answer."""

    blame = Blame.PROVIDER


class JudgeMisconfigured(GradingError):
    """The judge's provider rejected the request: a wrong key, an unknown model or no credit."""


class VerdictUnreadable(GradingError):
    """The judge's reply is not a valid verdict."""

    retryable = True


class BudgetReached(GradingError):
    """The run's budget for judging is spent."""


class SourceError(MonitorError):
    """Traffic or a log could not be read."""


class SourceUnavailable(SourceError):
    """The source does not answer or does not exist."""

    retryable = True
    blame = Blame.APP


class WarehouseError(MonitorError):
    """The warehouse could not be read or written."""


class WarehouseBusy(WarehouseError):
    """Another process has locked the warehouse file.

    Until that process ends, data is stored only in the journal.
    """

    retryable = True


class WarehouseInUse(WarehouseBusy):
    """Another Lookout process uses the warehouse for a short time.

    A job that runs every minute then skips a run.
    """


class WarehouseDamaged(WarehouseError):
    """A file of the warehouse or the journal is damaged, incomplete or missing, or a stored record is invalid."""


class WarehouseUnwritable(WarehouseError):
    """Lookout cannot write to the data folder."""


class SchemaTooNew(WarehouseError):
    """A file of the warehouse or the journal was written by a newer version of Lookout."""


class QueryInvalid(WarehouseError):
    """A user's query cannot be run. The error text is the explanation from the database."""


class NotifyError(MonitorError):
    """A message could not be sent. The error text never contains an address or a token."""


class NotifyTransient(NotifyError):
    """The message could not be sent now. The message is stored and will be sent later."""

    retryable = True
    blame = Blame.PROVIDER


class NotifyUnsure(NotifyTransient):
    """The reply of the service was lost: the message may have been sent.

    The next attempt first looks for the message if the service allows this.
    """


class NotifyRejected(NotifyError):
    """The message can never be sent, for example because the token was revoked or the channel does not exist."""
