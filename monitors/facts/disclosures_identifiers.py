"""Account, policy and customer numbers: nothing in their form says what they are, only the words before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import Context
from monitors.facts.disclosures_reading import Reading

_FEWEST_DIGITS = 5
"""Shorter numbers behind these words are counts, years or the last digits of a masked number."""

_FEWEST_ALONE = 8
"""The same where neither "number" nor a colon says that a number follows ("account for 10000 claims")."""

# Between the label and the number: "no.", "number", a verb, a colon.
_NUMBER_WORD = r"(?:no\.?|num(?:ber)?|nos\.?|id|code|#|नंबर|नम्बर|संख्या)"
_VERB = r"(?:[ \t]{1,3}(?:is|was|hai|h|ka|of)\b|[ \t]{0,3}(?:है|:|=|-|#))?[\s:\"'(]{0,4}"
# Letters may lead ("SBIN 0001234567"), separators may stand between groups that hold digits.
_ID = (
    r"((?:(?-i:[A-Z]{1,8})[ /-]?)?[A-Za-z0-9]{0,6}\d(?:[A-Za-z0-9]"
    r"|[/.\- ](?=[A-Za-z0-9]{0,6}\d)){3,28})(?![A-Za-z0-9])"
)
_ACCOUNT = re.compile(
    r"(?:\b(?:a/c|acct?|account|accounts|khaa?ta)\b\.?|खाता|खाते|\b(?:uhid|cif|crn)\b"
    r"|\b(?:customer|member|client|subscriber|patient|claim|folio|loan)(?= ?(?:id|no|num|number|#|code)\b))"
    rf"(?P<said>[ \t]{{0,3}}{_NUMBER_WORD}?{_VERB}){_ID}",
    re.IGNORECASE,
)
_POLICY = re.compile(
    rf"(?:\bpolicy|पॉलिसी|पालिसी)(?: certificate)?[ \t]{{0,3}}(?P<said>{_NUMBER_WORD}{_VERB}){_ID}", re.IGNORECASE
)
# "Policy LIC 123456789": an insurer's short name in capitals, then seven digits or more.
_CODED_POLICY = re.compile(
    r"\b[Pp]olicy(?P<said>[ \t:#-]{1,3})((?:[A-Z]{2,8}[ /-])?[A-Z]{0,4}\d{7,16}|[A-Z]{1,6}[/-]?\d[\dA-Z/\-]{5,24})"
    r"(?![A-Za-z0-9])"
)
_FORMS = (
    (DisclosureKind.POLICY_NUMBER, _POLICY),
    (DisclosureKind.POLICY_NUMBER, _CODED_POLICY),
    (DisclosureKind.ACCOUNT_NUMBER, _ACCOUNT),
)
# "account number of the other customer is 0012 3456 7890": with words between, eight digits or more.
_FAR_ACCOUNT = re.compile(r"(?<![\w.])(?=(\d(?:[ -]?\d){7,19}(?![\w])))")
_DIGIT = re.compile(r"\d")


def find_identifiers(reading: Reading, account_patterns: Sequence[re.Pattern[str]]) -> Iterator[Candidate]:
    """Numbers of accounts, policies, customers, members, claims: behind the words for them, five digits or more.

    ``account_patterns`` are the target's own: a whole match of one is an account number whatever stands before.
    """
    for kind, pattern in _FORMS:
        for match in reading.near_digits(pattern):
            fewest = (
                _FEWEST_DIGITS if match["said"].strip() or kind is DisclosureKind.POLICY_NUMBER else _FEWEST_ALONE
            )
            if len(_DIGIT.findall(match[2])) >= fewest:
                yield Candidate(kind, *match.span(2), Strength.LIKELY)
    for match in reading.behind(Context.ACCOUNT, _FAR_ACCOUNT):
        yield Candidate(DisclosureKind.ACCOUNT_NUMBER, *match.span(1), Strength.LIKELY)
    for pattern in account_patterns:
        for match in pattern.finditer(reading.text):
            if match.end() > match.start():
                yield Candidate(DisclosureKind.ACCOUNT_NUMBER, *match.span(), Strength.CERTAIN)
