"""Words of cover and of refusal to cover, in English, Hindi and Hinglish."""

from __future__ import annotations

YES_WORDS = frozenset("yes yeah yep yup haan haa han हां हाँ bilkul बिल्कुल बिलकुल correct absolutely certainly".split())
NO_WORDS = frozenset("no nope nahi nahin नहीं ना नही".split())
FILLERS = frozenset("ji जी well so oh in short answer the sir madam * # _ > - : , . ! \" '".split())

COVERED = frozenset(
    "cover covers covered coverable include includes included inclusive payable paid pays reimbursed reimburses "
    "reimbursable claimable admissible indemnified indemnify indemnifies कवर कवरेज शामिल देय मिलता मिलती मिलेगा मिलेगी milta milti milega "
    "milegi shamil kavar".split()
)
"""A yes about cover, whatever was asked."""

NOT_COVERED = frozenset(
    "excluded excludes exclude exclusion exclusions uncovered denied inadmissible disallowed अपवर्जित बहिष्कृत बाहर bahar".split()
)
"""A no about cover."""

PREDICATES: dict[str, frozenset[str]] = {
    "have": frozenset("have has having there any exist exists apply applies applied applicable lagu लागू".split()),
    "available": frozenset("available availed avail uplabdh उपलब्ध".split()),
    "allow": frozenset(
        "allow allows allowed permit permits permitted possible can may able sakta sakte sakti सकता सकते सकती".split()
    ),
    "need": frozenset(
        "need needs needed require requires required mandatory compulsory must zaroori jaruri जरूरी चाहिए chahiye".split()
    ),
    "eligible": frozenset("eligible qualify qualifies entitled ineligible".split()),
    "limit": frozenset("cap capped caps limit limited limits restricted restriction seema सीमा".split()),
    "offer": frozenset("offer offers offered provide provides provided give gives".split()),
    "waive": frozenset("waive waives waived waiver".split()),
    "renew": frozenset("renew renewable renewed renewal".split()),
    "refund": frozenset("refund refunds refunded refundable".split()),
    "transfer": frozenset("transfer transfers transferred port ported portable portability".split()),
    "cancel": frozenset("cancel cancels cancelled cancellable".split()),
}
"""What else can be asked and answered: a group of words counts only when the question uses one of it, for cover always."""

NEGATIONS = frozenset(
    "not no never cannot can't isn't aren't doesn't don't won't wasn't neither nor without none नहीं नही न ना nahi nahin nhi "
    "na".split()
)
NEGATIONS_BEHIND = frozenset("नहीं नही nahi nahin nhi".split())
"""In Hindi the negation stands behind: कवर नहीं है."""

LATER = frozenset("until till unless before first initial during within तक पहले pehle tak".split())
"""With these a no has an end."""

STOP_WORDS = frozenset(
    "is are was were does do did can could will would has have had should may the a an of for in on under this my i "
    "me we it to and or if by with from policy plan insurance any there be at as that kya क्या hai है mein में ke ka ki "
    "के का की में से cover covers covered coverage what which how when where who much many long your you".split()
)
"""Words that no topic is made of."""

OPENERS = frozenset("is are was were does do did can could will would has have had should may am kya क्या".split())
QUESTION_WORDS = frozenset(
    "what which how when where who why whose kitna kitne kitni kaun kab kahan कितना कितने कितनी कौन कब कहां".split()
)
