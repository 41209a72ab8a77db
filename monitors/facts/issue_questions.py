"""Decide by rules whether an agent's question about an issue is needless, because the issue answers it.

This module is pure. A question is classified by its subject: a version, an operating system, the error, the
steps, the frequency. Then the issue is searched for the subject. Unknown subjects, partial matches and
contrasts ("it works on Linux") are rated unsure, because wrong criticism of an agent is worse than a missed
needless question. Only English is supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from monitors.facts.text import normalise
from monitors.records.exchanges import AgentQuestion
from monitors.records.triage import Issue


class QuestionWorth(StrEnum):
    """The rating of a question that an agent asks: needless, useful or unsure."""

    NEEDLESS = "needless"
    """The issue already has the answer."""
    USEFUL = "useful"
    """The issue does not have the answer."""
    UNSURE = "unsure"


class QuestionReading(NamedTuple):
    """The rating of a question that an agent asks.

    For a needless question, ``quote`` is the line of the issue that answers the question.
    """

    worth: QuestionWorth
    quote: str = ""


UNSURE: Final = QuestionReading(QuestionWorth.UNSURE)
USEFUL: Final = QuestionReading(QuestionWorth.USEFUL)

Search = Callable[[str, str, frozenset[str]], QuestionReading]
"""A function that searches an issue for the answer to a question.

Its arguments are the question, the issue and the names of the project.
"""

_MAX_QUOTE_LENGTH: Final = 120
_MIN_NAME_LENGTH: Final = 3
_CONTRAST: Final = re.compile(
    r"\b(?:work(?:s|ed|ing)? (?:fine|well|on|in|with|for|there)|(?:is|was|were|are) fine|unlike|except"
    r"|other than|only on"
    r"|not (?:on|in|with)|cannot say|don't know|not sure|no idea|colleague|someone else|others?)\b",
    re.IGNORECASE,
)
"""Words that show a contrast.

A line with such a word may name a system or a version that the reporter does not use: "it works on Linux".
"""


def rate_question(question: str, issue: str, *, scripted: str | None = None, project: str = "") -> QuestionReading:
    """Rate the question of an agent: it is needless if ``issue`` answers it.

    ``scripted`` is the answer that the author of the suite wrote. If the issue contains this answer, the question
    was needless. If the issue contains no part of this answer, the question was useful. ``project`` is the name of
    the repository: a question about "the version" means the version of this project.
    """
    folded, asked = normalise(issue).text, normalise(question).text
    given = _rate_by_scripted_answer(scripted, folded) if scripted else UNSURE
    if given.worth is not QuestionWorth.UNSURE:
        return given
    names = frozenset(part for part in re.split(r"[^a-z0-9]+", project.casefold()) if len(part) >= _MIN_NAME_LENGTH)
    readings = [search(asked, folded, names) for pattern, search in _SEARCHES if pattern.search(asked)]
    if not readings:
        return _rate_yes_no_question(asked, folded)
    if any(reading.worth is QuestionWorth.USEFUL for reading in readings):
        return USEFUL
    return UNSURE if any(reading.worth is QuestionWorth.UNSURE for reading in readings) else readings[0]


def rate_questions(
    issue: Issue, asked: Sequence[AgentQuestion]
) -> tuple[tuple[AgentQuestion, QuestionReading], ...]:
    """Return the questions of an agent about an issue, each with its rating."""
    place = _REPOSITORY.search(issue.url or "")
    project = " ".join(place.groups()) if place else ""
    return tuple(
        (
            question,
            rate_question(
                question.question,
                issue.title_and_body,
                scripted=question.answer if question.scripted else None,
                project=project,
            ),
        )
        for question in asked
    )


_REPOSITORY: Final = re.compile(r"https?://[^/]+/[^/]+/([^/]+)/")
_TERM: Final = re.compile(r"[a-z0-9][a-z0-9._+-]*[a-z0-9]|[a-z0-9]")
_EMPTY: Final = frozenset(
    re.findall(
        r"\w+",
        "a about also an and any are as at be been but by can could currently did do does exactly for "
        "from had has have how i if in is it its just me my no not of on only or our please run running "
        "so some still that the their them then there these they this those to us use used using was we "
        "were what when where which who will with would yes you your ",
    )
)


def _extract_terms(text: str) -> set[str]:
    """Return the content words of a text, shortened to their first letters.

    Numbers and versions are not shortened.
    """
    terms = (term for term in _TERM.findall(text.casefold()) if term not in _EMPTY)
    return {term if re.search(r"\d", term) else term[:5] for term in terms if len(term) > 1 or term.isdigit()}


def _rate_by_scripted_answer(scripted: str, issue: str) -> QuestionReading:
    wanted = _extract_terms(scripted)
    if not wanted:
        return UNSURE
    enough = len(wanted) > 1 or any(re.search(r"\d", term) for term in wanted)
    line = next((line for line in _split_sentences(issue) if wanted <= _extract_terms(line)), None)
    if line is not None:
        return _build_needless_reading(line) if enough else UNSURE
    return UNSURE if wanted & _extract_terms(issue) else USEFUL


def _split_sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from (part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", line.strip()) if part)


def _build_needless_reading(line: str) -> QuestionReading:
    return QuestionReading(QuestionWorth.NEEDLESS, line.strip()[:_MAX_QUOTE_LENGTH])


def _build_pattern_search(sure: re.Pattern[str], hint: re.Pattern[str]) -> Search:
    """Build a search for two patterns in the issue.

    A question is needless if a line matches ``sure`` and has no contrast. It is useful if no line matches ``sure``
    or ``hint``.
    """

    def search(_question: str, issue: str, _names: frozenset[str]) -> QuestionReading:
        lines = [line for line in _split_sentences(issue) if sure.search(line)]
        plain = next((line for line in lines if not _CONTRAST.search(line)), None)
        if plain is not None:
            return _build_needless_reading(plain)
        return UNSURE if lines or hint.search(issue) else USEFUL

    return search


_NUMBER: Final = r"v?\d+(?:\.\d+)+[\w.+-]*|v\d+\b"
_ANY_VERSION: Final = re.compile(rf"(?<![\w.]){_NUMBER}", re.IGNORECASE)
_LABELLED: Final = re.compile(
    rf"(?:^|[^\w])(?:version|release)\s*(?:is|was|no\.?|number)?\s*[:=]?\s*(?:{_NUMBER}|\d+\b)", re.IGNORECASE
)
_IN_USE: Final = re.compile(
    rf"\b(?:(?:upgrad|updat)\w+ (?:it )?to|(?:i am|i'm|we are|we're) (?:on|using|running)) "
    rf"(?:version |release )?(?:{_NUMBER})",
    re.IGNORECASE,
)
_NOT_IN_USE: Final = re.compile(
    r"\b(?:work(?:s|ed|ing)?|fine|until|before|previous|earlier|older|fixed|last|not in|unlike"
    r"|from (?:version )?v?\d|latest)\b",
    re.IGNORECASE,
)
_NAMED: Final = (
    re.compile(r"\b(?:version|release) (?:number )?of (?:the |your )?([\w.+#-]+)", re.IGNORECASE),
    re.compile(r"\b([\w.+#-]+) (?:version|release)\b", re.IGNORECASE),
)
_NO_NAME: Final = frozenset(
    re.findall(
        r"\w+",
        "the your this that a which what exact current installed it its app application software package library "
        "tool project server client program you release version number specific precise product system new latest "
        "our ",
    )
)


def _rate_version_question(question: str, issue: str, names: frozenset[str]) -> QuestionReading:
    """Search the issue for the version that the question asks for.

    A question that names a product asks for the version of this product. Any other question asks for the version of
    the project (``names``).
    """
    if not _ANY_VERSION.search(issue) and not _LABELLED.search(issue):
        return USEFUL
    names_in_question = {name.casefold().strip(".,?") for pattern in _NAMED for name in pattern.findall(question)}
    named = names_in_question - _NO_NAME
    products = named or names
    lines = [
        line for line in _split_sentences(issue) if not _NOT_IN_USE.search(line) and not _CONTRAST.search(line)
    ]
    beside = [
        re.compile(rf"(?<!\w){re.escape(name)}\b[^\n\d]{{0,20}}?(?:{_NUMBER}|\b\d+\b)", re.IGNORECASE)
        for name in products
    ]
    patterns = beside if named - names else [*beside, _LABELLED, _IN_USE]
    line = next((line for line in lines for pattern in patterns if pattern.search(line)), None)
    return (
        _build_needless_reading(line)
        if line is not None and not _is_of_other_program(line, products, named)
        else UNSURE
    )


_OTHERS: Final = re.compile(
    r"\b(?:python|node(?:\.?js)?|java|ruby|go|php|postgres\w*|mysql|sqlite|redis|nginx|docker|kernel|ubuntu"
    r"|debian|browser"
    r"|chrome|firefox|os|pip|npm|database|api)\b",
    re.IGNORECASE,
)


def _is_of_other_program(line: str, products: frozenset[str] | set[str], named: set[str]) -> bool:
    """Return whether a labelled version in the line may belong to another program: "Python version: 3.11"."""
    if named or any(re.search(rf"(?<!\w){re.escape(product)}\b", line, re.IGNORECASE) for product in products):
        return False
    return _OTHERS.search(line) is not None


_HEADED: Final = r"(?:^\W*|[.!?] +)(?:{names})\b[^\n:]{{0,30}}(?::[ \t]*\S[^\n]*|\W*\n+\s*\S)"


def _build_heading_search(names: str, hint: str) -> Search:
    """Build a search for headings and labels with one of ``names``.

    A question is needless if there is text after such a heading or label. It is useful if the issue has neither
    such a heading or label nor a match of ``hint``.
    """
    headed = re.compile(_HEADED.format(names=names), re.IGNORECASE | re.MULTILINE)
    hinted = re.compile(hint, re.IGNORECASE | re.MULTILINE)

    def search(_question: str, issue: str, _names: frozenset[str]) -> QuestionReading:
        match = headed.search(issue)
        if match is not None and not _NOTHING.search(match[0]):
            return _build_needless_reading(" ".join(match[0].split()))
        return UNSURE if match is not None or hinted.search(issue) else USEFUL

    return search


_NOTHING: Final = re.compile(
    r"[:\n]\W*(?:n/?a|none|unknown|tbd|todo|not sure|see (?:above|below)|\?+)?\W*\Z", re.IGNORECASE
)
"""A pattern for the content of an empty section in an issue template, such as "N/A"."""


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_SYSTEM: Final = re.compile(
    r"\b(?:ubuntu|debian|fedora|centos|rhel|red hat|alpine|arch linux|linux|mac ?os|os x|macbook|freebsd"
    r"|android|ios \d+"
    r"|raspberry pi|wsl\d?|windows (?:\d+|xp|server))\b|(?-i:\bWindows\b)",
    re.IGNORECASE,
)
_BROWSER: Final = _compile_pattern(r"\b(?:chrome|chromium|firefox|safari|microsoft edge|edge \d+|opera|brave)\b")
_DATABASE: Final = _compile_pattern(
    r"\b(?:postgres(?:ql)?|mysql|mariadb|sqlite3?|oracle|sql server|mongodb|duckdb)\b"
)
_TRACEBACK: Final = _compile_pattern(
    r"traceback \(most recent call last\)|^\s*at [\w.$<>]+\(.*:\d+\)|panicked at|goroutine \d+ \["
)
_ERROR: Final = _compile_pattern(
    r"\b[A-Z]\w*(?:Error|Exception)\b ?[:(] ?\S|(?:error|exception|message|fails? with|says?|prints?"
    r"|raises?)\W{1,4}"
    r"[`\"“'][^`\"”'\n]{6,}[`\"”']"
)
_ERROR_HINT: Final = _compile_pattern(r"error|exception|traceback|message|says|fails? with|prints")
_OFTEN: Final = _compile_pattern(
    r"\b(?:every (?:single )?time|each time|always|intermittent(?:ly)?|sometimes|occasionally|randomly"
    r"|consistently|reliably"
    r"|now and then|about (?:once|half|one)|\d+ (?:times )?(?:out of|in|of) (?:\d+|ten|five|three)|\d+ ?% of)\b"
)
_OFTEN_HINT: Final = _compile_pattern(
    _OFTEN.pattern + r"|\b(?:often|rarely|never|once|twice|seldom|whenever|most)\b"
)
_SINCE: Final = _compile_pattern(
    r"\b(?:since (?:v?\d|version|release|(?:the|our|an?) (?:\w+ )?(?:upgrade|update|release|deploy\w*)|(?:last"
    r"|this) \w+"
    r"|\w+day\b|upgrading|updating|yesterday)|(?:start|beg[aiu]n|first (?:seen|noticed))\w* (?:it )?"
    r"(?:after|with|when|on|last|this|in)|used to work|work(?:ed|s) (?:fine )?(?:until|before|in|with|on) |after "
    r"(?:upgrading|updating|the (?:upgrade|update)|we (?:upgraded|updated)))"
)
_SINCE_HINT: Final = _compile_pattern(
    r"\b(?:since|start|beg[aiu]n|used to|work(?:ed|s)|regress|upgrad|updat|yesterday|last |ago\b|until|before"
    r"|new)"
)
_LOG: Final = _compile_pattern(r"\b(?:INFO|WARN(?:ING)?|DEBUG|CRITICAL)\b|\blogs?\b|```")
_CODE: Final = _compile_pattern(r"```|^ {4}\S|^\s*[\w.]+ ?[=:] ?\S|`[^`]+`")
_PICTURE: Final = _compile_pattern(r"!\[[^\]]*\]\(|<img\b")

_HAPPENS: Final = (
    r"\b(?:it|this|that|bug|problem|issue|error|failure|crash|hang)\b[^?]{0,40}"
    r"\b(?:happen|occur|fail|appear|reproduc|crash|hang|show|break)"
)
_OF_TIME: Final = (
    r"\b(?:how often|how frequent\w*|every time|each time|always|intermittent\w*|sometimes"
    r"|consistent\w*|reliabl\w*)"
)
_NO_CONDITION: Final = (
    r"^(?![^?]*\b(?:when|if|after|with|without|while|during|under|(?:every|each) time (?:you"
    r"|we|i|the|a|an|someone|somebody|it))\b)"
)

_SEARCHES: Final[tuple[tuple[re.Pattern[str], Search], ...]] = (
    (
        _compile_pattern(
            r"\b(?:which|what|exact|name|tell|know|share|confirm|provide|specify)\b[^?.]{0,50}\b(?:version"
            r"|release)\b"
            r"|^\W*versions?\W*$|\bversion[^?.]{0,30}\b(?:are you|do you|is (?:it|this|installed))"
        ),
        _rate_version_question,
    ),
    (
        _compile_pattern(r"\b(?:operating system|os|platform|distro|distribution)\b"),
        _build_pattern_search(
            _SYSTEM, _compile_pattern(r"\bwindows\b|\bmac\b|\bserver\b|\bdocker\b|\bcontainer\b|\bplatform\b")
        ),
    ),
    (
        _compile_pattern(r"\b(?:which|what)\b[^?.]{0,30}\bbrowsers?\b|\bbrowser (?:are|do|did) you"),
        _build_pattern_search(_BROWSER, _compile_pattern(r"\bbrowser|\bedge\b|\bmobile\b|\bphone\b")),
    ),
    (
        _compile_pattern(r"\b(?:which|what)\b[^?.]{0,30}\b(?:database|db|dbms)\b"),
        _build_pattern_search(_DATABASE, _compile_pattern(r"\bdatabase|\bsql\b|\bdb\b")),
    ),
    (
        _compile_pattern(r"\b(?:stack ?trace|traceback|backtrace)\b"),
        _build_pattern_search(_TRACEBACK, _compile_pattern(r"traceback|stack ?trace|backtrace|line \d+")),
    ),
    (
        _compile_pattern(
            r"\b(?:error message|exact (?:error|message)|error text|(?:what|which) (?:exact )?(?:error|exception)s?"
            r"|what (?:does|did) (?:the error|it) say)\b"
        ),
        _build_pattern_search(_ERROR, _ERROR_HINT),
    ),
    (
        _compile_pattern(r"\b(?:share|send|post|paste|attach|provide|show|see|have|there)\b[^?.]{0,40}\blogs?\b"),
        _build_pattern_search(_compile_pattern(r"(?!)"), _LOG),
    ),
    (
        _compile_pattern(
            r"\bsteps\b[^?.]{0,30}\breproduc|\bhow (?:do|can|could|would|to|did|may) ?(?:you|we|i"
            r"|one)?\b[^?.]{0,20}\breproduc"
            r"|\breproduction steps|\bminimal (?:reproduc\w+ )?example|\brepro(?:duction)? (?:steps|case)"
            r"|\bwhat (?:exactly )?"
            r"did you do\b|\b(?:provide|share|give|post)\b[^?.]{0,30}\brepro(?:duc\w+)?\b"
        ),
        _build_heading_search(
            r"(?:steps|how) to reproduce|to reproduce|reproduction|steps|repro",
            r"reproduc|^\s*\d[.)] |```|\bsteps?\b",
        ),
    ),
    (
        _compile_pattern(
            r"\bwhat (?:\w+ )?(?:did|do|would|were) you expect|\bexpected (?:behaviou?r|result|output|outcome)"
            r"|\bwhat should (?:happen|it)"
        ),
        _build_heading_search(r"expected", r"expect|should|supposed|ought|instead"),
    ),
    (
        _compile_pattern(
            r"\bwhat (?:happens|happened|do you (?:see|get)|did you (?:see|get)) instead|\bactual (?:behaviou?r"
            r"|result|output)"
        ),
        _build_heading_search(r"actual", r""),
    ),
    (
        _compile_pattern(_NO_CONDITION + rf"(?=[^?]*{_OF_TIME})[^?]*{_HAPPENS}"),
        _build_pattern_search(_OFTEN, _OFTEN_HINT),
    ),
    (
        _compile_pattern(
            r"\b(?:when|since when)\b[^?]{0,20}\b(?:it|this|problem|issue|bug|error)\b[^?]{0,20}\b(?:start"
            r"|begin|began|first)"
            r"|\bsince (?:when|which)\b|\bdid (?:it|this) (?:ever |previously |once )?(?:use to )?work\b"
            r"|\bregression\b"
            r"|\bwhen did you (?:first )?(?:notice|see)"
        ),
        _build_pattern_search(_SINCE, _SINCE_HINT),
    ),
    (
        _compile_pattern(
            r"\b(?:share|send|post|paste|provide|show|see|what (?:is|are"
            r"|does))\b[^?.]{0,30}\b(?:config(?:uration)?|settings)\b"
        ),
        _build_pattern_search(_compile_pattern(r"(?!)"), _CODE),
    ),
    (
        _compile_pattern(r"\b(?:screenshot|screen ?shot|picture)\b"),
        _build_pattern_search(_PICTURE, _compile_pattern(r"screenshot|picture|image")),
    ),
)
"""The subjects of questions, each with the function that searches the issue for the answer."""

_YES_NO: Final = _compile_pattern(
    r"^\W*(?:so,? |and |just to (?:be sure|confirm),? )?(?:is|are|does|do|did|has|have|was|were)\b"
)
_NARROWS: Final = _compile_pattern(
    r"\b(?:also|only|other|another|else|still|too|even|any|all|more|same|or|instead|ever|always|currently|first)\b"
)
_DENIES: Final = _compile_pattern(r"\b(?:no|not|never|none|nothing|without|cannot)\b|n't\b")
MIN_SHARED_WORDS: Final = 4
"""The issue is searched only for yes-or-no questions with at least this many content words."""


def _rate_yes_no_question(question: str, issue: str) -> QuestionReading:
    """Rate a yes-or-no question: it is needless if one sentence of the issue answers it."""
    wanted = _extract_terms(question)
    if not _YES_NO.search(question) or _NARROWS.search(question) or len(wanted) < MIN_SHARED_WORDS:
        return UNSURE
    for line in _split_sentences(issue):
        same = len(_DENIES.findall(line)) == len(_DENIES.findall(question))
        if wanted <= _extract_terms(line) and same and not line.endswith("?") and not _CONTRAST.search(line):
            return _build_needless_reading(line)
    return UNSURE
