"""What the words before a number say that it is. The nearest one decides.

"Mobile 98765 43210, order 482910573829" holds a phone number and an order number although "mobile" stands
before both: of all the words in reach the last one counts.
"""

from __future__ import annotations

import re
from enum import StrEnum

REACH = 48
"""Characters before a number in which a word counts. The longest natural label measured ("account number of
the other policy holder is") has 46."""


class Context(StrEnum):
    """What a number is said to be."""

    NONE = "none"
    ORDER = "order"
    """A thing's number, not a person's: an order, an invoice, a parcel, a time stamp, a part, a clause."""
    MONEY = "money"
    PHONE = "phone"
    MINE = "mine"
    """"My … number is": someone's, of an unknown kind. Counts only where no other word does."""
    AADHAAR = "aadhaar"
    PAN = "pan"
    CARD = "card"
    IBAN = "iban"
    ACCOUNT = "account"
    POLICY = "policy"
    PASSPORT = "passport"
    VOTER = "voter"
    VEHICLE = "vehicle"
    LICENCE = "licence"
    SSN = "ssn"
    UPI = "upi"
    IP = "ip"
    VERSION = "version"


# Alternatives are tried in this order at each place, so that "policy number" is about a policy.
_WORDS: tuple[tuple[Context, str], ...] = (
    (Context.AADHAAR, r"\ba+dh?a+r(?: cards?)?\b|\buidai\b|\buid\b|आधार(?: कार्ड)?"),
    (Context.PAN, r"\bpan(?: cards?)?\b|पैन(?: कार्ड)?"),
    (Context.IBAN, r"\biban\b|\bswift\b"),
    (Context.SSN, r"\bssn\b|\bsocial security\b"),
    (Context.LICENCE, r"\blicen[cs]e\b|\bdl no\b|लाइसेंस"),
    (Context.PASSPORT, r"\bpassport\b|पासपोर्ट"),
    (Context.VOTER, r"\bvoter(?: id)?(?: cards?)?\b|\bvote\b|\bepic\b|\belection\b|वोटर|मतदाता"),
    (
        Context.VEHICLE,
        r"\bvehicle\b|\bnumber plate\b|\bregistration\b|\bregd?\b|\bcar\b|\bbike\b|\bgaa?di\b|गाड़ी|वाहन",
    ),
    (Context.POLICY, r"\bpolic(?:y|ies)\b|पॉलिसी|पालिसी"),
    (
        Context.ACCOUNT,
        r"\ba/c\b|\bacc(?:oun)?t\b|\bacc\b|\bfolio\b|\bcif\b|\bloan\b|\bkhaa?ta\b|खाता|खाते"
        r"|\b(?:customer|member|client|subscriber|patient|claim|uhid)(?: id\b| no\b| number\b| #|-id\b)|\buhid\b",
    ),
    (Context.CARD, r"\bcards?\b|\bcc\b|\bvisa\b|\bmastercard\b|\brupay\b|\bamex\b|\bdebit\b|\bcredit\b|कार्ड"),
    (Context.UPI, r"\bupi\b|\bvpa\b|यूपीआई"),
    (
        Context.VERSION,
        r"\bversions?\b|\bver\b|\bv\.?(?=\s*\d)|\brelease\b|\bbuild\b|\bsections?\b|\bclauses?\b|\bpara(?:graph)?s?\b"
        r"|\barticles?\b|\brules?\b|\bchapters?\b|\bannexures?\b|§",
    ),
    (Context.IP, r"\bip(?:s|v4|v6)?\b|\bunspecified\b|\blisten\w*\b|\bbind\b|\bloopback\b|\bhost\b|\bserver\b"),
    (
        Context.ORDER,
        r"\borders?\b|\binvoices?\b|\bbills?\b|\breceipts?\b|\btransactions?\b|\btxn\b|\butr\b|\brrn\b|\bref(?:erence)?\b"
        r"|\btracking\b|\bawb\b|\bconsignment\b|\bshipment\b|\bparcel\b|\bbooking\b|\bpnr\b|\bserial\b|\bsku\b|\bparts?\b"
        r"|\bbatch\b|\blot\b|\bisbn\b|\bean\b|\bbarcode\b|\bimei\b|\btime ?stamp\b|\bepoch\b|\bsha\d*\b|\bhash\b|\buuid\b"
        r"|\bcommit\b|\bform\b|\buin\b|\bऑर्डर|आर्डर|रसीद|बिल",
    ),
    (
        Context.PHONE,
        r"\b(?:tele)?phones?\b|\bmob(?:ile)?\b|\bcell\b|\btel\b|\bcall\w*\b|\bdial\b|\bring\b|\bwhats ?app\b|\bfax\b|\bsms\b"
        r"|\btext\b|\bhelpline\b|\bhotline\b|\blandline\b|\bdesk\b|\bcontact\b|\breach\b|\bph\b|\bregistered\b"
        r"|\bmessages? to\b|\bsampark\b|फ़ोन|फोन|मोबाइल|मोबाईल|संपर्क|सम्पर्क|कॉल|व्हाट्सएप",
    ),
    (Context.MONEY, r"₹|\brs\b|\binr\b|\brupees?\b|\busd\b|[$€£]|रुपये|रुपए|\bsum insured\b|\bpremium\b"),
    (Context.MINE, r"\bmy\b|\bmer[aie]\b|मेरा|मेरी|मेरे"),
)
_CONTEXT = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _WORDS))


def context_before(lowered: str, at: int, reach: int = REACH) -> Context:
    """What the nearest telling word in the ``reach`` characters before ``at`` says; ``lowered`` is lower case."""
    found = Context.NONE
    # One character of the number is shown, so that "text192" does not end in the word "text".
    for match in _CONTEXT.finditer(lowered, max(0, at - reach), at + 1):
        context = Context(match.lastgroup or Context.NONE)
        if context is not Context.MINE or found is Context.NONE:
            found = context
    return found
