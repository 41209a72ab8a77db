"""Yes or no: what a gold says, what a reply says, also without the words.

"is not covered", "कवर नहीं है", "cover nahi hota", "excluded" are a no; "is covered", "कवर है", "cover hota hai" a yes.
"Not covered until 24 months", "for the first two years" is neither: cover begins later, so it agrees with a yes.
"""

from __future__ import annotations

import re
from enum import StrEnum

from monitors.facts.normalise import normalise
from monitors.facts.tokens import END, SIGN, Token, tokenise
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


NEITHER = "the gold is neither yes nor no"
"""Why the grader abstains where there is nothing for it to do."""


class Polarity(StrEnum):
    """What a text answers to a question for yes or no."""

    YES = "yes"
    NO = "no"
    LATER = "not at first"
    """Not until some time has passed: agrees with a yes, and with a no that has the same limit."""
    OPEN = "open"


_YES_WORDS = frozenset(
    "yes yeah yep yup haan haa han ji_haan हां हाँ जी_हां bilkul बिल्कुल बिलकुल correct absolutely certainly".split()
)
_NO_WORDS = frozenset("no nope nahi nahin nahiin नहीं ना नही".split())
_FILLERS = frozenset("ji जी well so oh in short answer the sir madam * # _ > - : , . ! \" '".split())

_POSITIVE = frozenset(
    "cover covers covered coverable coverage include includes included inclusive payable paid pays pay reimbursed "
    "reimburses reimbursable available allowed allows allow permitted eligible provides provided provide offers offered offer "
    "applies apply applicable entitled admissible required requires capped cap limit limited exists exist has have "
    "claim claimable कवर शामिल मिलता मिलती मिलेगा मिलेगी लागू उपलब्ध milta milti milega milegi shamil lagu uplabdh".split()
)
_NEGATIVE = frozenset(
    "excluded excludes exclude exclusion exclusions uncovered ineligible unavailable denied prohibited inadmissible "
    "बाहर अपवर्जित bahar disallowed waived nil".split()
)
_NEGATIONS = frozenset(
    "not no never cannot can't isn't aren't doesn't don't won't wasn't neither nor without none नहीं नही न ना nahi nahin nhi na".split()
)
_LATER = frozenset("until till unless before first initial during within तक पहले pehle tak".split())
_CLAUSE_ENDS = frozenset(".;!?\n।|•")
_NEAR = 5

_QUESTION_OPENERS = frozenset(
    "is are was were does do did can could will would has have had should may am kya क्या".split()
)

_UNSTATED = re.compile(
    r"(?:not|n't|never) (?:explicitly |specifically |clearly |directly )?(?:mention|state|specif|address|list|provid|say|contain|include)\w*"
    r"|no (?:mention|information|specific|details?)|cannot (?:confirm|determine|find)|उल्लेख नहीं|nahi likha|zikr nahi",
)


def is_yes_no_question(question: str) -> bool:
    """Whether a question asks for yes or no, by how it begins (English, Hindi, Hinglish)."""
    tokens = tokenise(normalise(question).text)
    if not tokens:
        return False
    keys = [token.key for token in tokens]
    if keys[0] in {"kya", "क्या"}:
        return True
    wh_words = {
        "what",
        "which",
        "how",
        "when",
        "where",
        "who",
        "why",
        "whose",
        "kitna",
        "kitne",
        "kitni",
        "कितना",
        "कितने",
        "कितनी",
    }
    if keys[0] in _QUESTION_OPENERS:
        return not wh_words & set(keys[:3]) and "or" not in keys
    return ("kya" in keys or "क्या" in keys) and not wh_words & set(keys)


def opening(tokens: list[Token]) -> tuple[Polarity, Token] | None:
    """A yes or no among the first words: ``Yes, …``, ``जी हां``, ``**No**``."""
    for place, token in enumerate(tokens[:6]):
        if token.key in _YES_WORDS:
            return Polarity.YES, token
        if token.key in _NO_WORDS:
            following = tokens[place + 1] if place + 1 < len(tokens) else END
            stands_alone = following is END or following.kind == SIGN or token.key in {"nahi", "नहीं", "nahin"}
            return (Polarity.NO, token) if stands_alone else None
        if token.key not in _FILLERS:
            return None
    return None


def polarity_of(text: str, topic: frozenset[str] = frozenset()) -> tuple[Polarity, tuple[Token, ...]]:
    """What ``text`` answers, with the tokens that say so; ``topic`` are the question's words.

    An opening yes or no decides. Else the clauses that speak of the topic do, if they agree.
    """
    tokens = tokenise(normalise(text).text)
    opened = opening(tokens)
    if opened is not None:
        return opened[0], (opened[1],)
    clauses = _clauses(tokens)
    told = [found for clause in clauses if (found := _clause(clause)) is not None]
    near = [found for found in told if found[2] & topic] or told
    if not near:
        return Polarity.OPEN, ()
    said = {found[0] for found in near}
    if len(said) == 1:
        return near[0][0], (near[0][1],)
    first = near[0]
    if said <= {Polarity.YES, Polarity.LATER}:
        return Polarity.YES, (first[1],)
    return Polarity.OPEN, tuple(found[1] for found in near[:4])


def _clauses(tokens: list[Token]) -> list[list[Token]]:
    clauses: list[list[Token]] = [[]]
    for token in tokens:
        if token.key in _CLAUSE_ENDS:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _clause(clause: list[Token]) -> tuple[Polarity, Token, frozenset[str]] | None:
    """The polarity of one clause by its first word of cover, and the negation around it."""
    keys = [token.key for token in clause]
    words = frozenset(keys)
    for place, token in enumerate(clause):
        positive = token.key in _POSITIVE
        if not positive and token.key not in _NEGATIVE:
            continue
        around = keys[max(0, place - _NEAR) : place] + keys[place + 1 : place + 4]
        negated = any(key in _NEGATIONS for key in keys[max(0, place - _NEAR) : place]) or any(
            key in {"नहीं", "नही", "nahi", "nahin", "nhi"} for key in keys[place + 1 : place + 4]
        )
        negative = negated == positive
        if negative and any(key in _LATER for key in [*around, *keys[place + 1 : place + 12]]):
            return Polarity.LATER, token, words
        return (Polarity.NO if negative else Polarity.YES), token, words
    return None


def gold_polarity(case: GoldCase, text: str) -> Polarity:
    """What a gold text answers: only where it opens with yes or no, or the question asks for yes or no."""
    opened = opening(tokenise(normalise(text).text))
    if opened is not None:
        return opened[0]
    if not is_yes_no_question(case.question):
        return Polarity.OPEN
    return polarity_of(text)[0]


_STOP_WORDS = frozenset(
    "is are was were does do did can could will would has have had should may the a an of for in on under this my i "
    "me we it to and or if by with from policy plan insurance any there be at as that kya क्या hai है mein में ke ka ki "
    "के का की में se से cover covers covered coverage".split()
)


def topic_of(question: str) -> frozenset[str]:
    """The content words of a question."""
    return frozenset(
        token.key
        for token in tokenise(normalise(question).text)
        if len(token.key) > 2 and token.key not in _STOP_WORDS  # noqa: PLR2004
    )


class PolarityGrader:
    """Yes/no golds are compared by polarity. It abstains when the gold is neither, or the reply does not tell."""

    name = "polarity"
    version = "1"
    aspect = Aspect.FACTUAL_MATCH

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Compare the reply's yes or no with the gold's and its alternatives'."""
        wanted = {gold_polarity(case, text) for text in (case.gold, *case.alternatives)} - {Polarity.OPEN}
        if not wanted:
            return self._abstain(NEITHER)
        text = exchange.graded_text
        if (
            _UNSTATED.search(normalise(text[:600]).text.lower())
            and opening(tokenise(normalise(text[:200]).text)) is None
        ):
            return self._abstain("the reply says that this is not stated")
        said, tokens = polarity_of(text, topic_of(case.question))
        if said is Polarity.OPEN:
            return self._abstain("the reply says neither yes nor no, or both")
        agrees = said in wanted or (said is Polarity.LATER) or (Polarity.LATER in wanted)
        places = normalise(text)
        spans = tuple(
            _span(places.original_span(token.start, token.end), said, exchange.graded_channel) for token in tokens
        )
        expected = " or ".join(sorted(wanted))
        return Judged(
            grader=self.name,
            version=self.version,
            aspect=self.aspect,
            passed=agrees,
            failure_kind=None if agrees else FailureKind.WRONG_FACT,
            reason=f"says {said}" if agrees else f"expected {expected}, the reply says {said}",
            evidence=spans,
        )

    def _abstain(self, reason: str) -> Abstained:
        return Abstained(grader=self.name, version=self.version, aspect=self.aspect, reason=reason)


def _span(place: tuple[int, int], said: Polarity, channel: Channel) -> Span:
    return Span(where=channel, start=place[0], end=place[1], label=f"says {said}")
