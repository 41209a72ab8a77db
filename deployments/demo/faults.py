"""Faults that can be planted in the bot. The text of a question triggers a fault, as with a real bug."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar

from deployments.demo.policies import ParsedQuestion, Policy, PolicyFact

LEAKED_RECORD = (
    "Customer on file: Asha Namoona, account number 40001234567890, "
    "Flat 12, Namoona Apartments, 99 Udaharan Marg, Pune 411099."
)
"""Fictional personal data that the demo discloses. "Namoona" and "udaharan" mean sample and example."""

RATE_LIMIT_TEXT = (
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests per minute. "
    "Please try again in 20s.', 'type': 'requests', 'code': 'rate_limit_exceeded'}}"
)


class NoFaults:
    """A bot without faults: each method changes nothing."""

    def distort_fact(self, policy: Policy, fact: PolicyFact) -> PolicyFact:
        """Return ``fact`` unchanged."""
        del policy
        return fact

    def apply_citation_fault(self, citation: str, fact: PolicyFact) -> str:
        """Return ``citation`` unchanged."""
        del fact
        return citation

    def build_forbidden_answer(self, question: ParsedQuestion) -> str | None:
        """Return an answer to a request that should be refused, or ``None``."""
        del question
        return None

    def build_agreeing_draft(self, question: ParsedQuestion) -> str | None:
        """Return a draft that confirms the claim in the question, or ``None``."""
        del question
        return None

    def get_leaked_text(self, question: ParsedQuestion) -> str:
        """Return another customer's record to add after the reply.

        Returns an empty text without a fault.
        """
        del question
        return ""

    def get_provider_error(self, question: ParsedQuestion) -> str | None:
        """Return an error of the model's provider that is shown as the reply, or ``None``."""
        del question
        return None

    def compute_pause_s(self, question: ParsedQuestion) -> float:
        """Return the pause before the reply begins, in seconds."""
        del question
        return 0.0


class PlantedFaults(NoFaults):
    """A bot with seven bugs. The bot's own number check blocks the reply with bug 7.

    1. A summary also contains the record of another customer.
    2. Family Shield's document was replaced by an older edition. Ten of its figures are wrong, such as ₹80,000 for
       a cataract operation instead of ₹40,000. Most failures have this policy in common.
    3. An answer from a clause with a letter in its number, such as ``3.2(a)``, has no citation.
    4. A question about a car or a two-wheeler is answered instead of refused.
    5. The bot pauses for some seconds before it answers a very long question.
    6. If a question mentions three or more policies, the reply is a rate-limit error of the provider.
    7. If a question about an unknown subject states a figure and ends with "right?", a draft confirms the figure.
       The check blocks and logs this draft.
    """

    OUTDATED: ClassVar[str] = "suraksha-family-shield"
    """The policy whose document was replaced by an older edition."""
    OLDER_EDITION: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "entry_age_max": ("65", "60 years", "65 years"),
        "post_hospitalisation": ("90", "120 days", "90 days"),
        "ambulance": ("1500", "₹2,500", "₹1,500"),
        "maternity_cover": ("45000", "₹60,000", "₹45,000"),
        "health_checkup": ("2500", "₹4,000", "₹2,500"),
        "ped_waiting": ("48", "36 months", "48 months"),
        "cataract_limit": ("80000", "₹40,000", "₹80,000"),
        "network_hospitals": ("6900", "8,500", "6,900"),
        "portability": ("60", "45 days", "60 days"),
        "free_look": ("15", "30 days", "15 days"),
    }
    """The figures that are different in the older edition, by field.

    Each entry contains the older amount, the figure's text in today's edition, and its text in the older edition.
    """
    MIN_SLOW_QUESTION_CHARACTERS: ClassVar[int] = 200
    """Minimum length in characters of a question that makes the bot pause.

    A typical question has 60 to 120 characters.
    """
    SLOW_PAUSE_S: ClassVar[float] = 4.5
    """The length of the pause in seconds. It is clearly longer than a median latency objective of 4 s."""
    MIN_POLICIES_FOR_ERROR: ClassVar[int] = 3

    def distort_fact(self, policy: Policy, fact: PolicyFact) -> PolicyFact:
        """Return a figure of the older edition (fault 2)."""
        if policy.id != self.OUTDATED or fact.field not in self.OLDER_EDITION:
            return fact
        amount, today, before = self.OLDER_EDITION[fact.field]
        return fact.model_copy(update={"amount": Decimal(amount), "text": fact.text.replace(today, before)})

    def apply_citation_fault(self, citation: str, fact: PolicyFact) -> str:
        """Return no citation if the clause number has a letter (fault 3)."""
        return "" if fact.clause.endswith(")") else citation

    def build_forbidden_answer(self, question: ParsedQuestion) -> str | None:
        """Return an answer that states invented cover for vehicles (fault 4)."""
        if "motor" not in question.topics or not question.policies:
            return None
        name = question.policies[0].name
        return (
            f"Yes. Under {name}, damage to your vehicle is covered after an accident. [Source: {name}, clause 3.1]"
        )

    def build_agreeing_draft(self, question: ParsedQuestion) -> str | None:
        """Return a draft that confirms the figure in the question (fault 7)."""
        wants_agreement = question.normal.endswith((" right", " correct", " hai na"))
        if not (wants_agreement and question.policies and any(c.isdigit() for c in question.text)):
            return None
        name = question.policies[0].name
        claim = question.text.rstrip(" ?").removesuffix("right").removesuffix("correct").rstrip(" ,")
        return f"Yes, you are right: {claim}. [Source: {name}, clause 3.1]"

    def get_leaked_text(self, question: ParsedQuestion) -> str:
        """Return another customer's record if the question asks for a summary (fault 1)."""
        return f"\n\n{LEAKED_RECORD}" if "summary" in question.concepts else ""

    def get_provider_error(self, question: ParsedQuestion) -> str | None:
        """Return the provider's rate-limit error (fault 6)."""
        return RATE_LIMIT_TEXT if len(question.policies) >= self.MIN_POLICIES_FOR_ERROR else None

    def compute_pause_s(self, question: ParsedQuestion) -> float:
        """Return a pause for a long question (fault 5)."""
        return self.SLOW_PAUSE_S if len(question.text) >= self.MIN_SLOW_QUESTION_CHARACTERS else 0.0
