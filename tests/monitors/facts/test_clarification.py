"""A clarifying question is recognised by its wording; precision and recall are tested in three languages.

The rules were tuned on `ROWS`. `HELD_OUT` was written before the rules were tested on it, and the rules were not
changed afterwards.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.clarification import is_counter_question

Row = tuple[str, bool]

ROWS: dict[str, list[Row]] = {
    "en": [
        ("Which plan do you have, Silver or Gold?", True),
        ("Could you share your policy number? It is on the first page of the certificate.", True),
        ("Happy to check that. Is the treatment planned or was it an emergency?", True),
        ("Please tell me which city the hospital is in.", True),
        ("Do you mean the room rent limit or the ICU limit?", True),
        ("I can look that up. When did your policy start?", True),
        ("To answer this I need your date of birth.", True),
        ("For which family member is the claim?", True),
        ("How old is the person you want to insure?", True),
        ("Which one?", True),
        ("Are you asking about the day-care procedure or the overnight stay?", True),
        ("Kindly confirm whether the bill is from 2025 or 2026, so that I can check the right limit.", True),
        ("What was the diagnosis on your discharge summary?", True),
        ("Cataract surgery is covered after 24 months. Is there anything else I can help you with?", False),
        ("The waiting period is 24 months. Would you like to know more?", False),
        ("Hello! How can I help you today?", False),
        ("Please show your card at the hospital desk.", False),
        ("Please provide the discharge summary to the insurer within 15 days of discharge.", False),
        ("Never share your OTP with anyone.", False),
        ("I cannot find this in the documents. Please contact customer care.", False),
        ("Let me know if you have any other questions!", False),
        ("You may ask: what is a sub-limit? It is the most that is paid for one head of expense, whatever the sum insured.", False),
        ("Maternity is covered up to ₹50,000.", False),
        ("Shall I explain how the claim works?", False),
        ("Does that answer your question?", False),
        ("You have to inform us within 48 hours, okay?", False),
        ("What is covered: room rent, ICU and ambulance. What is not covered: cosmetic surgery.", False),
        ("", False),
        ("You need your policy number and an ID proof to file a claim.", False),
        ("Yes, it is.", False),
    ],
    "hi": [
        ("आपके पास कौन सा प्लान है?", True),
        ("कृपया अपना पॉलिसी नंबर बताएं।", True),
        ("यह इलाज कब हुआ था?", True),
        ("क्या आप सिल्वर प्लान के बारे में पूछ रहे हैं या गोल्ड के बारे में?", True),
        ("मैं देख सकता हूँ। मरीज की उम्र कितनी है?", True),
        ("किस अस्पताल में भर्ती होना है?", True),
        ("कृपया बीमारी का नाम साझा करें ताकि मैं सीमा देख सकूँ।", True),
        ("आपकी पॉलिसी किस तारीख से शुरू हुई?", True),
        ("क्या यह दावा आपके लिए है या आपकी पत्नी के लिए?", True),
        ("मोतियाबिंद 24 महीने बाद कवर होता है। क्या आप कुछ और जानना चाहेंगे?", False),
        ("नमस्ते! मैं आपकी कैसे मदद कर सकता हूँ?", False),
        ("कृपया 48 घंटे के भीतर बीमा कंपनी को बताएं।", False),
        ("अपना ओटीपी किसी को न बताएं।", False),
        ("कृपया अस्पताल में अपना कार्ड दिखाएं।", False),
        ("प्रतीक्षा अवधि दो साल है।", False),
        ("दस्तावेज़ में यह नहीं लिखा है।", False),
        ("भर्ती से पहले टीपीए को बताएं।", False),
        ("क्या मैं आपकी और सहायता कर सकता हूँ?", False),
    ],
    "hinglish": [
        ("Aapka policy number kya hai?", True),
        ("Aap kaunsa plan dekh rahe hain, Silver ya Gold?", True),
        ("Kripya hospital ka naam bata dijiye.", True),
        ("Ye claim kiske liye hai?", True),
        ("Patient ki age kitni hai?", True),
        ("Treatment kab hua tha, taaki main limit check kar sakun?", True),
        ("Kya aap room rent ki baat kar rahe hain ya ICU ki?", True),
        ("Please apni policy ki start date share karein.", True),
        ("Kaunse city mein admit hona hai?", True),
        ("Cataract do saal baad cover hota hai. Kuch aur jaanna chahenge?", False),
        ("Hello! Main aapki kaise madad kar sakta hoon?", False),
        ("Apna OTP kisi ko mat batayein.", False),
        ("48 ghante ke andar insurer ko bataiye.", False),
        ("Waiting period teen saal hai, theek hai?", False),
        ("Hospital mein apna card dikhayein.", False),
        ("Ye document mein nahi likha hai.", False),
        ("Aur koi sawaal hai aapka?", False),
        ("Admit hone se pehle TPA ko batayein.", False),
    ],
}  # fmt: skip

HELD_OUT: dict[str, list[Row]] = {
    "en": [
        ("Sure! What's the name of the procedure?", True),
        ("I see two policies in your account. Which of them is this about?", True),
        ("Was the patient admitted for more than 24 hours?", True),
        ("Please specify the year of the policy.", True),
        ("Could you tell me a bit more about the symptoms?", True),
        ("Before I answer: is your policy individual or family floater?", True),
        ("Thanks for asking! Where do you live?", True),
        ("I'm not sure what you mean by 'the second thing'. Can you rephrase?", True),
        ("Ambulance charges are paid up to ₹2,000. Can I do anything else for you?", False),
        ("Glad to help! Have a nice day.", False),
        ("Call 1800 200 200 and tell your agent about the accident.", False),
        ("Do you want me to walk you through the steps?", False),
        ("Your claim may be rejected if you do not tell us about earlier illnesses.", False),
        ("Was this helpful?", False),
        ("Remember to mention your policy number on the claim form.", False),
        ("Who can buy this plan? Anyone between 18 and 65 years can buy it.", False),
    ],
    "hi": [
        ("आप किस शहर में रहते हैं?", True),
        ("कृपया बताएं कि इलाज कहाँ हुआ।", True),
        ("क्या मरीज को पहले से कोई बीमारी थी?", True),
        ("आपका मतलब कमरे का किराया है या आईसीयू का?", True),
        ("क्या यह जानकारी उपयोगी थी?", False),
        ("आप 15 दिन के भीतर दस्तावेज़ जमा करें।", False),
        ("और कोई सवाल?", False),
        ("हाँ, यह कवर होता है।", False),
    ],
    "hinglish": [
        ("Policy kab li thi aapne?", True),
        ("Thoda aur detail bata sakte hain, kaunsi bimari hai?", True),
        ("Aapki umar kya hai?", True),
        ("Confirm kijiye ki bill 2025 ka hai ya 2026 ka.", True),
        ("Kya isse aapko help mili?", False),
        ("Claim form branch mein jama karein.", False),
        ("Kya main aapko steps samjhaun?", False),
        ("Haan, ye covered hai.", False),
    ],
}


def measured(rows: list[Row]) -> tuple[float, float, list[str]]:
    """Return the precision and the recall of the rules, and the replies that were classified wrongly."""
    said = [(reply, truth, is_counter_question(reply)) for reply, truth in rows]
    right = sum(truth and found for _, truth, found in said)
    wrong = [reply for reply, truth, found in said if truth != found]
    return right / sum(found for *_, found in said), right / sum(truth for _, truth, _ in said), wrong


@pytest.mark.parametrize("language", ROWS)
def test_the_rows_that_shaped_the_rules_are_classified(language: str) -> None:
    precision, recall, wrong = measured(ROWS[language])
    assert (precision, recall) == (1.0, 1.0), wrong


def test_held_out_rows_are_classified_nine_times_of_ten() -> None:
    precision, recall, wrong = measured([row for rows in HELD_OUT.values() for row in rows])
    assert precision >= 0.9, wrong
    assert recall >= 0.9, wrong


def test_a_long_answer_that_ends_with_a_question_is_an_answer() -> None:
    answer = "The plan covers room rent, ICU, ambulance and day-care procedures. " * 8
    assert not is_counter_question(answer + "Which plan do you have?")
    assert is_counter_question("Which plan do you have? [Source: Gold Plan, clause 4]")


@given(st.text(max_size=300))
def test_any_text_is_one_or_the_other(text: str) -> None:
    assert is_counter_question(text) in (True, False)
