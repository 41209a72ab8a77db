"""Test that a stored conversation contains no personal data, and that redaction is idempotent and consistent."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitors.errors import ConfigError
from monitors.facts.disclosures.candidates import DisclosureKind
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS
from monitors.records.traffic import Conversation, Feedback, Thumb, Turn
from monitors.sources.privacy import PrivacyMode, Pseudonyms, normalise_value, protect_conversation

KEY = b"0123456789abcdef-night"
OTHER_KEY = b"another-key-of-16+bytes"
REDACT, PSEUDONYMISE, NONE = PrivacyMode.REDACT, PrivacyMode.PSEUDONYMISE, PrivacyMode.NONE


def conversation(user_text: str = "q", reply_text: str = "a", **changes: object) -> Conversation:
    turn = Turn(user_text=user_text, reply_text=reply_text).model_copy(
        update={name: value for name, value in changes.items() if name in Turn.model_fields}
    )
    whole = Conversation(id="c-1", origin_id="c-1", completed_at=datetime(2026, 3, 1, tzinfo=UTC), turns=(turn,))
    return whole.model_copy(
        update={name: value for name, value in changes.items() if name in Conversation.model_fields}
    )


def reply(text: str, mode: PrivacyMode = PSEUDONYMISE, key: bytes = KEY) -> str:
    return protect_conversation(conversation(reply_text=text), mode, key).turns[0].reply_text


def test_every_text_is_redacted_by_type() -> None:
    phone, mail = "98231 77450", "tara@mailbox.example"
    stored = protect_conversation(
        conversation(
            f"my phone is {phone}",
            f"we wrote to {mail}",
            citations=(f"note for {mail}",),
            context=(f"customer phone: {phone}",),
            feedback=Feedback(thumb=Thumb.DOWN, comment=f"call {phone}"),
            app_path=f"for {mail}",
            app_version=f"built by {mail}",
        ),
        REDACT,
        KEY,
    )
    turn = stored.turns[0]
    assert (turn.user_text, turn.reply_text) == ("my phone is [phone]", "we wrote to [e-mail]")
    assert (turn.citations, turn.context) == (("note for [e-mail]",), ("customer phone: [phone]",))
    assert turn.feedback == Feedback(thumb=Thumb.DOWN, comment="call [phone]")
    assert (turn.app_path, stored.app_version) == ("for [e-mail]", "built by [e-mail]")


def test_personal_data_found_in_one_text_is_redacted_in_all() -> None:
    stored = protect_conversation(conversation("I am Tara Devi, help", "Customer on file: Tara Devi"), REDACT, KEY)
    assert (stored.turns[0].user_text, stored.turns[0].reply_text) == (
        "I am [name], help",
        "Customer on file: [name]",
    )


SPELLINGS = [
    (DisclosureKind.PHONE, ["98231 77450", "9823177450", "+91 98231-77450", "०९८२३१ ७७४५०", "098231\u202f77450"]),
    (DisclosureKind.EMAIL, ["tara@mailbox.example", "Tara@Mailbox.Example"]),
    (DisclosureKind.CARD, ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spellings"), SPELLINGS, ids=[kind for kind, _ in SPELLINGS])
def test_one_number_has_one_pseudonym_however_it_is_spelled(kind: DisclosureKind, spellings: list[str]) -> None:
    replies = {reply(f"it is {spelling} now") for spelling in spellings}
    assert len(replies) == 1
    assert re.search(r"\[[a-z -]+ [b-t]{20}\]", replies.pop())
    assert len({Pseudonyms(KEY).make_pseudonym(kind, spelling) for spelling in spellings}) == 1


def test_others_have_other_pseudonyms() -> None:
    of = Pseudonyms(KEY).make_pseudonym
    phones = {of(DisclosureKind.PHONE, str(9823177450 + n)) for n in range(500)}
    assert len(phones) == 500
    assert of(DisclosureKind.PHONE, "9823177450").startswith("[phone ")
    assert of(DisclosureKind.ACCOUNT_NUMBER, "9823177450").startswith("[account number ")
    codes = [re.findall(r"[b-t]{20}", of(kind, "9823177450"))[-1] for kind in DisclosureKind]
    assert len(set(codes)) == len(codes)
    assert normalise_value(DisclosureKind.EMAIL, "a.b@x.example") != normalise_value(
        DisclosureKind.EMAIL, "ab@x.example"
    )


def test_another_key_gives_other_pseudonyms_and_a_pseudonym_of_it_is_no_key_of_mine() -> None:
    mine, theirs = (protect_conversation(conversation(user_key="asha"), NONE, key) for key in (KEY, OTHER_KEY))
    assert mine.user_key != theirs.user_key
    assert protect_conversation(theirs, NONE, KEY).user_key not in (theirs.user_key, mine.user_key)


@pytest.mark.parametrize("mode", PrivacyMode)
@pytest.mark.parametrize("user", ["asha", "tara@mailbox.example", "user-" + "b" * 20, ""])
def test_the_user_is_a_pseudonym_in_every_mode(mode: PrivacyMode, user: str) -> None:
    stored = protect_conversation(conversation(user_key=user), mode, KEY)
    assert stored.user_key is not None
    assert re.fullmatch("user-[b-t]{20}", stored.user_key)
    assert stored.user_key != user
    assert protect_conversation(stored, mode, KEY) == stored
    assert protect_conversation(conversation(), mode, KEY).user_key is None


def test_with_mode_none_texts_stay() -> None:
    whole = conversation("my phone is 98231 77450", "ok", origin_id="tara@mailbox.example")
    assert protect_conversation(whole, NONE, KEY) == whole


def test_an_id_that_tells_of_a_person_is_replaced() -> None:
    stored = protect_conversation(
        conversation(id="tara@mailbox.example", origin_id="tara@mailbox.example"), REDACT, KEY
    )
    assert "tara" not in stored.model_dump_json()
    assert stored.origin_id == stored.id


def test_a_version_that_looks_like_an_address_stays() -> None:
    assert protect_conversation(conversation(app_version="10.0.0.12"), REDACT, KEY).app_version == "10.0.0.12"


def test_the_targets_own_numbers_are_masked() -> None:
    stored = protect_conversation(
        conversation(reply_text="ZQ-77-19 is yours"), REDACT, KEY, account_patterns=(r"ZQ-\d\d-\d\d",)
    )
    assert stored.turns[0].reply_text == "[account number] is yours"


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 15])
def test_a_key_that_hides_nothing_is_refused(key: bytes) -> None:
    with pytest.raises(ConfigError, match="at least 16 random bytes"):
        protect_conversation(conversation(), REDACT, key)


def test_a_forged_pseudonym_is_no_hiding_place() -> None:
    """Text that looks like a pseudonym stays only if it was created with the key.

    Any other such text is redacted.
    """
    forged = "[phone " + "b" * 20 + "]"
    assert list(Pseudonyms(KEY).find_pseudonym_spans(forged)) == []
    mine = Pseudonyms(KEY).make_pseudonym(DisclosureKind.PHONE, "9823177450")
    assert list(Pseudonyms(KEY).find_pseudonym_spans(f"a {mine} b")) == [(2, 2 + len(mine))]


PIECES = st.sampled_from(
    [
        "account", "Aadhaar", "phone", "my number is", "address:", "born", "order", "policy no", "[e-mail]", "[phone]", "[", "]",
        "**", " ", " ", "-", ":", "\n", "98231 77450", "98231", "77450", "123456789", "tara@mailbox.example", "10.1.2.3",
        "DE89370400440532013000", "BQRPK4417L", "MH12QT4471", "7 Banyan Road, Nagpur 440001", "17/08/1979", "4111 1111 1111 1111",
        "sk-abcdefghij0123456789", "password is", "nine eight two three one seven seven four five zero", "\u200b",
        "Customer: Tara Devi", "Tara Devi", "[phone " + "b" * 20 + "]", Pseudonyms(KEY).make_pseudonym(DisclosureKind.PHONE, "9823177450"),
    ]
)  # fmt: skip
LABEL = re.compile("|".join(map(re.escape, LABELS.values())))
TEXTS = st.lists(PIECES, max_size=12).map("".join)
BOTH = st.sampled_from([REDACT, PSEUDONYMISE])


@given(TEXTS, TEXTS, BOTH)
@example("phone 98231 77450-98231 77450", "a/c 12345678 and 99887766", PSEUDONYMISE)
def test_twice_is_once(asked: str, replied: str, mode: PrivacyMode) -> None:
    stored = protect_conversation(conversation(asked, replied, user_key=asked), mode, KEY)
    assert protect_conversation(stored, mode, KEY) == stored


@given(TEXTS, TEXTS, BOTH)
@example("", "982314111 1111 1111 1111[phone " + "b" * 20 + "]982314111 1111 1111 1111", REDACT)
def test_no_find_survives_in_any_text(asked: str, replied: str, mode: PrivacyMode) -> None:
    turn = protect_conversation(conversation(asked, replied), mode, KEY).turns[0]
    for text in (asked, replied):
        tokens = Pseudonyms(KEY).find_pseudonym_spans(text) if mode is PSEUDONYMISE else ()
        masked_already = [*tokens, *(match.span() for match in LABEL.finditer(text))]
        for one in find_disclosures(text, hidden=sorted(masked_already)):
            said = text[one.start : one.end].strip()
            telling = one.kind is DisclosureKind.PERSON or re.search(r"[\d@]", said)
            if telling and len(said) >= 4:
                assert not re.search(rf"(?<!\w){re.escape(said)}(?!\w)", f"{turn.user_text}\n{turn.reply_text}")


@given(TEXTS, st.binary(min_size=16, max_size=40))
@pytest.mark.whole_only
def test_the_same_input_gives_the_same_output_and_no_key_shows(text: str, key: bytes) -> None:
    once = protect_conversation(conversation(text, user_key="asha"), PSEUDONYMISE, key)
    assert protect_conversation(conversation(text, user_key="asha"), PSEUDONYMISE, key) == once
    assert "asha" not in once.model_dump_json()
