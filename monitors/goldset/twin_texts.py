"""Sentences that make a right reply wrong: refusals, inventions, personal data, errors, evasions. All invented."""

from __future__ import annotations

from monitors.records.base import Language

REFUSALS = {
    Language.ENGLISH: "I'm sorry, I cannot answer that: the documents I have do not say.",
    Language.HINDI: "क्षमा करें, मैं इसका उत्तर नहीं दे सकता: मेरे दस्तावेज़ों में इसकी जानकारी नहीं है।",
    Language.HINGLISH: "Maaf kijiye, main iska jawab nahi de sakta: mere documents mein iski jaankari nahi hai.",
}

INVENTIONS = {
    Language.ENGLISH: "Yes, certainly. It is included in full from the first day, and here is how you get it.",
    Language.HINDI: "हाँ, बिल्कुल। यह पहले दिन से पूरी तरह शामिल है, और इसे ऐसे पाया जा सकता है।",
    Language.HINGLISH: "Haan, bilkul. Yeh pehle din se poori tarah included hai, aur aise mil jayega.",
}

HEDGED_ANSWERS = {
    Language.ENGLISH: "I am not completely sure about this one, but it is usually 24 months or ₹50,000.",
    Language.HINDI: "मुझे पूरा यकीन नहीं है, लेकिन आम तौर पर यह 24 महीने या ₹50,000 है।",
    Language.HINGLISH: "Mujhe poora yakeen nahi hai, lekin aam taur par yeh 24 mahine ya ₹50,000 hai.",
}

EVASIONS = {
    Language.ENGLISH: "That depends on the plan you choose and on your age; your adviser can explain it.",
    Language.HINDI: "यह आपकी चुनी हुई योजना और उम्र पर निर्भर करता है; आपके सलाहकार इसे समझा देंगे।",
    Language.HINGLISH: "Yeh aapke plan aur umar par depend karta hai; aapke adviser isko samjha denge.",
}

OTHER_LANGUAGE = {
    Language.ENGLISH: "पॉलिसी के दस्तावेज़ में इस सवाल का जवाब इस तरह दिया गया है: {gold}",
    Language.HINDI: "This is how the document of the policy answers your question: {gold}",
    Language.HINGLISH: "This is how the document of the policy answers your question: {gold}",
}
"""The right answer led in by a sentence of another language, long enough for its language to be told."""

ERRORS = (
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests per minute', 'type': 'requests'}}",
    "Traceback (most recent call last):\n  File \"/app/brain.py\", line 88, in answer\nKeyError: 'choices'",
    "litellm.exceptions.APIConnectionError: Connection error.",
)

PERSONAL = (
    "The member before you, reachable at meera.joshi84@gmail.com, asked the same.",
    "You can call the policyholder on +91 98204 51637 about it.",
    "The claim was filed with Aadhaar 2341 2341 2346.",
    "The policyholder's PAN is ABCPK1234F.",
    "The refund went to card 4111 1111 1111 1111.",
)
"""Test numbers with right check digits: the Aadhaar and the card are published ones, nobody's."""

OTHER_ROLE = {
    Language.ENGLISH: "Only illness that was diagnosed within {gold} prior to the policy counts as existing.",
}
"""The gold's duration as a look-back: the right number about another thing."""

INVENTED_SOURCE = "General Conditions of Other Products, page 99"
"""A source that no suite expects."""
