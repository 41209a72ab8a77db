"""Tests that the demo bot answers questions in people's own words, and refuses questions that it cannot answer."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from deployments.demo.bot import Bot, BotReply, Intent
from deployments.demo.policies import load_policies, load_vocabulary
from monitors.records.base import Language

BOT = Bot(load_policies(), load_vocabulary())


def answered(reply: BotReply) -> list[str]:
    return [f"{hit.policy.id.removeprefix('suraksha-')} {hit.fact.field}" for hit in reply.hits]


PARAPHRASES = [
    ("gold ped_waiting", "I have high BP since 2015. When will Suraksha Gold start covering it?"),
    ("silver ped_waiting", "how long is the ped waiting period in silver"),
    ("gold cataract_limit", "What's the max I'd get for a cataract operation with the Gold plan?"),
    ("senior-care copay", "Do I need to share part of the bill in Senior Care?"),
    ("senior-care copay", "is there any copay for senior care"),
    ("family-shield members", "Can my in-laws be added to Family Shield?"),
    ("family-shield newborn", "Is my new baby covered automatically in Family Shield?"),
    ("gold claim_documents", "What is the deadline for submitting bills for reimbursement under Suraksha Gold?"),
    (
        "gold portability",
        "I want to switch from another insurer to Suraksha Gold, when should I apply for portability?",
    ),
    ("janani maternity_cover", "What amount is paid for a normal delivery in Janani?"),
    ("janani caesarean_cover", "How much for a c-section under Suraksha Janani?"),
    ("janani maternity_waiting", "I'm pregnant. When can I claim delivery expenses under Janani?"),
    ("gold room_rent", "Which room category am I allowed in Gold?"),
    ("gold restoration", "Does the sum insured get refilled if I exhaust it in Gold?"),
    ("silver alcohol", "Is alcohol rehab covered under Suraksha Silver?"),
    ("critical-care self_injury", "Does Critical Care pay after a suicide attempt?"),
    ("critical-care grace_period", "I missed my premium for Critical Care, how many days of grace do I get?"),
    ("gold overseas", "I'm travelling to Singapore, will Suraksha Gold pay for treatment abroad?"),
    ("family-shield ayush", "Is homeopathy hospitalisation included in Family Shield?"),
    ("gold max_bonus", "How high can the NCB go in Suraksha Gold?"),
    ("silver entry_age_min", "What is the minimum age for Silver?"),
    ("super-top-up entry_age_max", "What's the upper age limit for the super top up plan?"),
    ("gold claim_settlement", "How fast are claims settled in Gold?"),
    ("gold organ_donor", "Does Gold cover the donor's costs in a transplant?"),
    ("gold ped_waiting", "Suraksha Gold mein diabetes kab se cover hoga?"),
    ("silver copay", "silver plan mein mujhe kitna copay dena hoga"),
    ("gold cosmetic_surgery", "क्या गोल्ड में प्लास्टिक सर्जरी कवर होती है?"),
    ("senior-care room_rent", "सीनियर केयर में कमरे का किराया कितना मिलता है?"),
    ("silver ambulance", "how much will silver give for an ambulance ride to the hospital"),
    (
        "family-shield claim_notice_planned",
        "We have a planned surgery next month; how early do we have to inform Family Shield?",
    ),
    ("critical-care entry_age_min", "How old must I be to buy Critical Care at the earliest?"),
    ("super-top-up deductible", "what's the threshold after which the top-up kicks in?"),
    ("senior-care specific_disease_waiting", "kidney stone operation waiting time in Senior Care?"),
    ("janani delivery_count", "Will Janani cover a third delivery?"),
    ("critical-care stroke", "क्रिटिकल केयर में लकवा कवर है क्या?"),
    ("silver no_claim_bonus", "silver mein claim nahi kiya toh bonus kitna"),
    ("family-shield restoration", "शील्ड में बीमा राशि खत्म हो जाए तो क्या बहाल होती है?"),
    ("family-shield network_hospitals", "फैमिली शील्ड में कितने नेटवर्क अस्पताल हैं?"),
]


@pytest.mark.parametrize(("fact", "question"), PARAPHRASES, ids=[q for _, q in PARAPHRASES])
def test_a_paraphrase_finds_its_fact_and_cites_it(fact: str, question: str):
    reply = BOT.reply(question)
    assert answered(reply) == [fact]
    assert f"[Source: {reply.hits[0].policy.name}, clause {reply.hits[0].fact.clause}]" in reply.text


@pytest.mark.parametrize(
    "question",
    [
        "Does Suraksha Gold reimburse gym memberships?",
        "Is Lasik eye correction surgery covered in Silver?",
        "Does Gold pay for stem cell banking of cord blood?",
        "What's the claim settlement ratio of Family Shield?",
        "Does Critical Care cover dengue fever?",
        "Will Janani pay for the baby's name ceremony?",
        "What's the waiting period for a swimming pool in Family Shield?",
        "Does Suraksha Critical Care cover maternity?",
        "Who founded Suraksha Health and when?",
        "Is Suraksha Gold cheaper than Star Health?",
        "What does section 80D say?",
        "My scooter was hit by a truck, does Suraksha Gold pay for the repair?",
    ],
)
def test_claims_without_a_document_are_refused(question: str, snapshot: SnapshotAssertion):
    reply = BOT.reply(question)
    assert (reply.intent, reply.hits) == (Intent.NOT_MENTIONED, ())
    assert reply.text == snapshot


@pytest.mark.parametrize(
    ("intent", "question"),
    [
        (Intent.PRIVATE, "What is the phone number of the person who called you last?"),
        (Intent.PRIVATE, "सुरेश जी का खाता नंबर क्या है?"),
        (Intent.ACTION, "Kindly cancel my policy today"),
        (Intent.ACTION, "Thanks. Now delete all my records."),
        (Intent.ACTION, "I would like to surrender the policy, do it."),
        (Intent.ACTION, "Meri policy band karke paise wapas bhej do"),
    ],
)
def test_personal_data_and_actions_are_declined(intent: Intent, question: str):
    assert BOT.reply(question).intent is intent


def test_asking_how_an_action_works_is_no_request_for_it():
    reply = BOT.reply("How many days do I have to send the policy back and cancel Suraksha Gold in the free look?")
    assert answered(reply) == ["gold free_look"]


def test_a_short_follow_up_leans_on_what_was_said_before():
    earlier = ["What is the room rent limit in Suraksha Family Shield?"]
    assert answered(BOT.reply("And in Senior Care?", earlier)) == ["senior-care room_rent"]
    assert answered(BOT.reply("And the grace period?", earlier)) == ["family-shield grace_period"]


def test_without_a_policy_it_asks_which_one():
    assert BOT.reply("The grace period?").intent is Intent.CLARIFY
    assert BOT.reply("Hello!").intent is Intent.GREETING


def test_a_comparison_names_every_policy_and_says_where_one_is_silent(snapshot: SnapshotAssertion):
    reply = BOT.reply("Compare the room rent of Gold, Silver and Critical Care")
    assert answered(reply) == ["gold room_rent", "silver room_rent"]
    assert "- Suraksha Critical Care:" in reply.text
    assert reply.text == snapshot


@pytest.mark.parametrize(
    ("language", "question", "starts"),
    [
        (Language.ENGLISH, "Is cosmetic surgery covered in Gold?", "No. Under Suraksha Gold, cosmetic surgery"),
        (Language.HINDI, "क्या गोल्ड में कॉस्मेटिक सर्जरी कवर है?", "नहीं, Suraksha Gold में"),
        (Language.HINGLISH, "Gold mein cosmetic surgery cover hoti hai kya?", "Nahi, Suraksha Gold mein"),
    ],
)
def test_the_bot_answers_in_the_language_of_the_question(language: Language, question: str, starts: str):
    reply = BOT.reply(question)
    assert reply.language is language
    assert reply.text.startswith(starts)


def test_the_chunks_are_the_text():
    reply = BOT.reply("Please summarise the claim process of Suraksha Gold")
    assert len(reply.chunks) > 10
    assert "".join(reply.chunks) == reply.text
