"""Words of cover and of refusal to cover, in English, Hindi and Hinglish."""

from __future__ import annotations

from monitors.facts.normalise import keys_of

YES_WORDS = keys_of("yes yeah yep yup haan haa han हां हाँ bilkul बिल्कुल बिलकुल correct absolutely certainly")
NO_WORDS = keys_of("no nope nahi nahin नहीं ना नही")
FILLERS = frozenset(
    [
        "ji",
        "जी",
        "well",
        "so",
        "oh",
        "in",
        "short",
        "answer",
        "the",
        "sir",
        "madam",
        "*",
        "#",
        "_",
        ">",
        "-",
        ":",
        ",",
        ".",
        "!",
        '"',
        "'",
    ]
)

COVERED = keys_of(
    "cover covers covered coverable include includes included inclusive payable paid pays reimbursed "
    "reimburses reimbursable claimable admissible indemnified indemnify indemnifies कवर कवरेज शामिल देय "
    "मिलता मिलती मिलेगा मिलेगी milta milti milega milegi shamil kavar"
)
"""A yes about cover, whatever was asked."""

NOT_COVERED = keys_of(
    "excluded excludes exclude exclusion exclusions uncovered denied inadmissible disallowed अपवर्जित "
    "बहिष्कृत बाहर bahar"
)
"""A no about cover."""

_OUTSIDE = keys_of("बाहर bahar")
OUT_OF = frozenset({("से", "बाहर"), ("se", "bahar")})
"""Behind a word of cover: out of it."""
_OF_A_PLACE = keys_of("के ke")


def excludes(key: str, before: str) -> bool:
    """Whether a word says that something is not covered; ``before`` is the word before it.

    भारत के बाहर is the outside of a place, कवर से बाहर is out of cover.
    """
    return key in NOT_COVERED and not (key in _OUTSIDE and before in _OF_A_PLACE)


PREDICATES: dict[str, frozenset[str]] = {
    "have": keys_of("have has having there any exist exists apply applies applied applicable lagu लागू"),
    "available": keys_of("available availed avail uplabdh उपलब्ध"),
    "allow": keys_of(
        "allow allows allowed permit permits permitted possible can may able sakta sakte sakti सकता सकते सकती"
    ),
    "need": keys_of(
        "need needs needed require requires required mandatory compulsory must zaroori jaruri जरूरी चाहिए chahiye"
    ),
    "eligible": keys_of("eligible qualify qualifies entitled ineligible"),
    "limit": keys_of("cap capped caps limit limited limits restricted restriction seema सीमा"),
    "offer": keys_of("offer offers offered provide provides provided give gives"),
    "waive": keys_of("waive waives waived waiver"),
    "renew": keys_of("renew renewable renewed renewal"),
    "refund": keys_of("refund refunds refunded refundable"),
    "transfer": keys_of("transfer transfers transferred port ported portable portability"),
    "cancel": keys_of("cancel cancels cancelled cancellable"),
}
"""What else can be asked and answered: a group of words counts only when the question uses one of it."""

NEGATIONS = keys_of(
    "not no never cannot can't isn't aren't doesn't don't won't wasn't neither nor without none नहीं नही "
    "न ना nahi nahin nhi na"
)
NEGATIONS_BEHIND = keys_of("नहीं नही nahi nahin nhi")
"""In Hindi the negation stands behind: कवर नहीं है."""

LATER = keys_of("until till unless before first initial during within तक पहले pehle tak")
"""With these a no has an end."""

STOP_WORDS = keys_of(
    "is are was were does do did can could will would has have had should may the a an of for in on under "
    "this my i me we it to and or if by with from policy plan insurance any there be at as that kya क्या "
    "hai है mein में ke ka ki के का की में से cover covers covered coverage what which how when where who "
    "much many long your you"
)
"""Words that no topic is made of."""

OPENERS = keys_of("is are was were does do did can could will would has have had should may am kya क्या")
QUESTION_WORDS = keys_of(
    "what which how when where who why whose kitna kitne kitni kaun kab kahan कितना कितने कितनी कौन कब कहां"
)
