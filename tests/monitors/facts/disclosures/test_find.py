"""Tests that personal data is found in each usual spelling. Look-alikes and hostile texts are tested too."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stdnum import luhn, verhoeff

from monitors.facts.disclosures.candidates import DisclosureKind, Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import mask

K = DisclosureKind


def _aadhaar(first_eleven: str) -> str:
    return first_eleven + verhoeff.calc_check_digit(first_eleven)


def _card(without_check: str) -> str:
    return without_check + luhn.calc_check_digit(without_check)


AADHAAR = _aadhaar("59271840365")
CARD = _card("455673158640012")
GROUPS = (AADHAAR[:4], AADHAAR[4:8], AADHAAR[8:])
DEVANAGARI = AADHAAR.translate({ord(str(n)): chr(0x966 + n) for n in range(10)})
FULL_WIDTH = AADHAAR.translate({ord(str(n)): chr(0xFF10 + n) for n in range(10)})


def kinds(text: str, **options: tuple[str, ...]) -> list[DisclosureKind]:
    return [found.kind for found in find_disclosures(text, **options)]


def marked(text: str) -> list[tuple[DisclosureKind, str]]:
    return [(found.kind, text[found.start : found.end]) for found in find_disclosures(text)]


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("write to meera.iyer+claims@mailbox.example.in today", K.EMAIL, "meera.iyer+claims@mailbox.example.in"),
        ("meera [at] mailbox [dot] com", K.EMAIL, "meera [at] mailbox [dot] com"),
        ("it is meera dot iyer at mailbox dot com ok", K.EMAIL, "meera dot iyer at mailbox dot com"),
        ("mail:आशा@उदाहरण.भारत।", K.EMAIL, None),
        ("ring me on 98230 11457 please", K.PHONE, "98230 11457"),
        ("ring me on +91-98230-11457 please", K.PHONE, "+91-98230-11457"),
        ("फोन ९८२३०११४५७ पर", K.PHONE, "९८२३०११४५७"),
        ("Desk: +44 (0)20 7946 0018 x12", K.PHONE, None),
        ("call nine eight two three zero double one four five seven now", K.PHONE, None),
        ("phone nau aath do teen shunya ek ek chaar paanch saat", K.PHONE, None),
        (f"charged to {CARD} yesterday", K.CARD, CARD),
        (f"charged to {CARD[:4]} {CARD[4:8]} {CARD[8:12]} {CARD[12:]}.", K.CARD, None),
        ("from DE89 3704 0044 0532 0130 00 to us", K.IBAN, "DE89 3704 0044 0532 0130 00"),
        ("my iban is de89370400440532013000", K.IBAN, "de89370400440532013000"),
        (f"Aadhaar {AADHAAR}", K.AADHAAR, AADHAAR),
        ("Aadhaar " + "-".join(GROUPS), K.AADHAAR, "-".join(GROUPS)),
        ("number " + " ".join(GROUPS), K.AADHAAR, " ".join(GROUPS)),
        ("आधार " + DEVANAGARI, K.AADHAAR, DEVANAGARI),
        ("aadhar: " + FULL_WIDTH, K.AADHAAR, FULL_WIDTH),
        ("Aadhaar " + "\u200b".join(GROUPS), K.AADHAAR, "\u200b".join(GROUPS)),
        ("Aadhaar " + "\u2011".join(GROUPS), K.AADHAAR, "\u2011".join(GROUPS)),
        ("Aadhaar " + "\u202f".join(GROUPS), K.AADHAAR, "\u202f".join(GROUPS)),
        ("Aadhaar **" + "** **".join(GROUPS) + "**", K.AADHAAR, "** **".join(GROUPS)),
        ("aadhaar card no. " + " ".join(AADHAAR), K.AADHAAR, " ".join(AADHAAR)),
        ('{"uid": "' + AADHAAR + '"}', K.AADHAAR, AADHAAR),
        ("Aadhaar 592718403650 was mistyped", K.AADHAAR, "592718403650"),
        ("PAN: BQRPK4417L", K.PAN, "BQRPK4417L"),
        ("pan card BQRPK 4417 L", K.PAN, "BQRPK 4417 L"),
        ("GSTIN 27BQRPK4417L1Z3", K.GSTIN, "27BQRPK4417L1Z3"),
        ("pay meera.iyer@okhdfcbank", K.UPI, "meera.iyer@okhdfcbank"),
        ("her UPI is meera@somebank", K.UPI, "meera@somebank"),
        ("passport no. M7731904", K.PASSPORT, "M7731904"),
        ("voter id XKJ4471093", K.VOTER_ID, "XKJ4471093"),
        ("car MH 12 QT 4471", K.VEHICLE, "MH 12 QT 4471"),
        ("driving licence MH12 20140012345", K.DRIVING_LICENCE, "MH12 20140012345"),
        ("logged in from 49.36.18.201.", K.IP, "49.36.18.201"),
        ("logged in from 2405:201:6:11::7 today", K.IP, "2405:201:6:11::7"),
        ("her router has fe80::1ff:fe23:4567:890a", K.IP, "fe80::1ff:fe23:4567:890a"),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334 asked", K.IP, "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
        ("from [2a02:8108::a1]:443", K.IP, "2a02:8108::a1"),
        ("seen at ::ffff:49.36.18.201", K.IP, None),
        ("network fd12:3456:789a::/48 of hers", K.IP, "fd12:3456:789a::/48"),
        ("her host is ::1", K.IP, "::1"),
        ("a call from ::1 was refused", K.IP, "::1"),
        ("it listens on the IPv6 address; ipv6 :: means any", K.IP, "::"),
        ("blocked: 7f40:4141:c717:e998:c12:41d2:c769:2fb4 again", K.IP, "7f40:4141:c717:e998:c12:41d2:c769:2fb4"),
        ("social security number 219-09-9998", K.US_SSN, "219-09-9998"),
        ("Policy number: SH/2023/00418826", K.POLICY_NUMBER, "SH/2023/00418826"),
        ("Policy ACME 77120943 lapsed", K.POLICY_NUMBER, None),
        ("account number 40017733291", K.ACCOUNT_NUMBER, "40017733291"),
        ("A/c no. 4001 7733 2910", K.ACCOUNT_NUMBER, "4001 7733 2910"),
        ("the account number of the other customer is 0040 0177 3329", K.ACCOUNT_NUMBER, "0040 0177 3329"),
        ("member id MBR-771-20943", K.ACCOUNT_NUMBER, "MBR-771-20943"),
        ("DOB: 17/08/1979", K.BIRTH_DATE, "17/08/1979"),
        ("date of birth is 17 August 1979", K.BIRTH_DATE, "17 August 1979"),
        ("जन्म तिथि 17-08-1979", K.BIRTH_DATE, "17-08-1979"),
        ("She lives at 7B Banyan Lane, Nashik 422001. Then", K.STREET_ADDRESS, "7B Banyan Lane, Nashik 422001"),
        ("Customer: Flat 9, Peepal Heights, 3 Banyan Road, Nashik 422001.", K.STREET_ADDRESS, None),
        ("use sk-ant-api03-Zx81kQpLm02nVb7Ty55", K.SECRET, "sk-ant-api03-Zx81kQpLm02nVb7Ty55"),
        ("token hf_QwErTyUiOpAsDfGhJkLz", K.SECRET, "hf_QwErTyUiOpAsDfGhJkLz"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", K.SECRET, None),
        ("AKIAZZZZYYYYXXXXWWWW", K.SECRET, "AKIAZZZZYYYYXXXXWWWW"),
        ("xoxb-1234567890-abcdefghij", K.SECRET, None),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.abcDEF123_-xyz", K.SECRET, None),
        ("Authorization: Bearer a1B2c3D4e5F6g7H8", K.SECRET, "a1B2c3D4e5F6g7H8"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----", K.SECRET, None),
        ("the password is Mango#4471", K.SECRET, "Mango#4471"),
        ("postgres://admin:s3cr3tpw@db/x", K.SECRET, "admin:s3cr3tpw"),
        ("Your OTP is 448120", K.SECRET, "448120"),
    ],
)
def test_each_kind_is_found_where_it_stands(text: str, kind: DisclosureKind, what: str | None) -> None:
    found = marked(text)
    assert kind in [one for one, _ in found]
    if what is not None:
        assert (kind, what) in found


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"order {AADHAAR}",
        f"Your order number {AADHAAR} is on its way",
        f"transaction ref: {AADHAAR}",
        "invoice 159271840365",
        f"sha {AADHAAR}abcdef",
        "timestamp 1748801234567",
        "pincode 422001",
        "part number BQRXK4417L",
        "The waiting period is 24 months and the limit ₹5,00,000 a year.",
        "sum insured ₹9876543210",
        "see clause 4.1.2.3",
        "version 10.2.31.4 is out",
        "at 12:34:56 on 2024-05-17",
        "std::vector and a :: b",
        "the key's print is 43:51:43:a1:b5:fc:8b:b7 as written",
        "list::1st and x::1, at 7::1",
        "::add-mask::hunter",
        "::error::x, ::debug::ab, ::add-path::/bin",
        "a::b, ca::fe, dead::beef::",
        "db::ace = fa::ca::de",
        "at 10::30, 20:30:: and 12:34:56",
        "EUI-64 00:11:22:33:44:55:66:77",
        "fingerprint 4a:3b:2c:1d:0e:ff:aa:bb",
        "ratio 1::2 and 3::4",
        "a secret is base64, a password is utf-8",
        "address: a path or glob, as s3://bucket-7/x, hf://datasets/9",
        "MAC address aa:bb:cc:dd:ee:ff",
        "Since 1990 and in the early 1990s",
        "your account number ends in 4471",
        "XXXX XXXX 4471",
        "The policy covers 5000000 rupees",
        "The secret is patience, the key is love.",
        "They live in the north and stay in office as long as they like, 4 years, road or not.",
        "IRDAI registration no. 148",
        "UIN: SHAHLIP22030V012122",
    ],
)
def test_similar_looking_texts_are_not_redacted(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "the server runs on 127.0.0.1",
        "the singer was born on 3 January 1981",
        f"the figure {AADHAAR} stands alone",
    ],
)
def test_names_and_bare_forms_are_weak(text: str) -> None:
    assert {found.strength for found in find_disclosures(text)} == {Strength.WEAK}


@pytest.mark.parametrize(
    "text",
    [
        "our toll-free line 1800-419-7733",
        "write to grievance@insurer.example or care@insurer.example",
        "Registered office address: 4th Floor, Banyan Road, Mumbai 400001",
        "Laden Köln 0221/4567890",
        "erreichbar unter 0800 1234567",
        "Our hotline is +49 30 4567890",
        "Notre service client répond au 09 69 36 00 40",
    ],
)
def test_a_companys_own_contacts_are_masked_only_where_the_public_reads(text: str) -> None:
    assert {find.strength for find in find_disclosures(text)} == {Strength.CONTACT}
    assert mask(text).text == text
    assert mask(text, strict=True).text != text


def test_the_nearest_word_decides_what_a_number_is() -> None:
    text = f"mobile 98230 11457, order {AADHAAR}, aadhaar {AADHAAR}"
    assert kinds(text) == [K.PHONE, K.AADHAAR]


def test_target_patterns_make_account_numbers() -> None:
    assert kinds("see ZQ-77-19 there", account_patterns=(r"ZQ-\d\d-\d\d",)) == [K.ACCOUNT_NUMBER]
    assert kinds("see ZQ-77-19 there") == []


def test_bare_order_numbers_are_not_masked() -> None:
    """None of 500 twelve-digit numbers after "order" is masked, although one in ten has a valid check digit."""
    numbers = random.Random(7)
    texts = [f"order {numbers.randrange(10**11, 10**12)} shipped" for _ in range(500)]
    assert not any(kinds(text) for text in texts)


TEXTS = st.text(alphabet=st.sampled_from("0123456789 -./:+()@abzXY\n०९\u200b\u202f*`[]#,₹=\ud800é"), max_size=120)


@given(TEXTS)
@example("İ 98230 11457")
@example("\ud800 98230 11457")
def test_places_are_inside_the_text_sorted_and_apart(text: str) -> None:
    end = 0
    for found in find_disclosures(text):
        assert end <= found.start < found.end <= len(text)
        end = found.end


@given(
    st.from_regex(r"[2-9][0-9]{10}", fullmatch=True), st.sampled_from(["", " ", "-", ".", "\u00a0", "\u2011", "/"])
)
def test_any_aadhaar_is_found_behind_its_word_in_any_grouping(eleven: str, between: str) -> None:
    number = _aadhaar(eleven)
    text = "Aadhaar " + between.join((number[:4], number[4:8], number[8:])) + " it is"
    assert kinds(text) == [K.AADHAAR]


HOSTILE = (
    "Dear Ana ", "Mr A ", "Mr ", "address is 1 A Street, ", "lives at 1 A Street. ", "his wife Ana ", "name: ", "SSN ", "SSN 1 ", "A1 SSN ", "otp A", "password is ", "born 1 ", "at x dot com ", "a at ",
    "Regards,\n", "Ana (brother) ", "Ana ji ", "1 A Street ", "LS7 2QX ", "A LS7 2QX ", "A, 12345 A ", "नाम ", "Ana, 98231 77450 ", "double ", "x @ ", "a b ", "1 2 ", "A 1 ", "0151 1 ",
    "1 ", "1", "2341 ", "a@", "a.", "@", ":", "AA11 ", "9876543210 ", "one ", "address: ", "-----BEGIN PRIVATE KEY-----",
    "password=", "sk-", "** ", " ", "policy no ", "born ", "a at b dot ", "+1", "(1", "1.", "my number 1 ", "eyJaaaaaa.",
    "://a:", "1111-", "lives at 1, ", "Flat 1 ", "\u200b", "\ufffc", "ab12 ",
)  # fmt: skip


@pytest.mark.whole_only
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_end(piece: str) -> None:
    """A search in a hostile text ends before the test times out. A pattern that backtracks would take hours."""
    find_disclosures(piece * (100_000 // len(piece)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("24 months [Source: Gold, clause 1] Her number is 98230 11457.", [K.PHONE]),
        ("It costs ₹5,000. Meera, 98230 11457, paid it.", [K.PHONE]),
        ("Your order was sent to Meera at 98230 11457", [K.PHONE]),
        ("clause 4.2.1.3 and 49.36.18.201", [K.IP]),
        (f"order no. {AADHAAR}", []),
        ("order number is 9823011457", []),
    ],
)
def test_a_word_for_a_thing_reaches_no_further_than_its_sentence(text: str, found: list[DisclosureKind]) -> None:
    assert kinds(text) == found


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Ihre Handynummer: 0176 48213377", "0176 48213377"),
        ("Handy 0176/48213377, bitte nur abends", "0176/48213377"),
        ("Mobil: 0176-48213377", "0176-48213377"),
        ("Telefon 030 / 123 456 78", "030 / 123 456 78"),
        ("Die Rufnummer lautet (0221) 4567890.", "(0221) 4567890"),
        ("Tel. 0221 4567890", "0221 4567890"),
        ("Sie können Frau Meier privat erreichen unter 017648213377.", "017648213377"),
        ("Frau Meier: 0049 176 48213377", "0049 176 48213377"),
        ("Frau Meier: 0049 (0)176 48213377", "0049 (0)176 48213377"),
        ("Téléphone : 06 12 34 56 78", "06 12 34 56 78"),
        ("son portable est le 0612345678", "0612345678"),
        ("Teléfono: 612 34 56 78", "612 34 56 78"),
        ("su móvil es 612345678", "612345678"),
        ("il cellulare è 347 1234567", "347 1234567"),
        ("telefono 06 6982 1234", "06 6982 1234"),
    ],
)
def test_a_number_behind_a_european_word_for_a_telephone_is_one(text: str, number: str) -> None:
    found = [one for one in find_disclosures(text) if one.strength >= Strength.LIKELY]
    assert [(one.kind, text[one.start : one.end]) for one in found] == [(K.PHONE, number)]


@pytest.mark.parametrize(
    "text",
    [
        "Meier, 0176 48213377",
        "Köln 0221/4567890",
        "Köln 0221 - 4567890",
        "Meier 0221 4567890",
        "chez Anne 06 12 34 56 78",
        "Meier 004917648213377",
    ],
)
def test_a_european_number_by_its_form_is_masked_and_no_alert(text: str) -> None:
    (found,) = find_disclosures(text)
    assert (found.kind, found.strength) == (K.PHONE, Strength.WEAK)
    assert mask(text).text == text[: found.start] + "[phone]" + text[found.end :]


@pytest.mark.parametrize(
    "text",
    [
        "Rechnungsnummer 0176 48213377",
        "Bestellung 0221 4567890",
        "order 0176 48213377",
        "commande 0176 48213377",
        "Anrufen von 9.00-12.30 / 14.00-18.00 Uhr",
        "Sie erreichen uns vom 01.05.2026 - 31.05.2026",
        "Per Telefon kostet es 5.000 Euro.",
        "A handy guide with 123456 pages",
        "a portable drive of 2000000 MB",
        "0,123 45678",
        "00:17:64 bis 08:21:33",
        "Köln 50667 0221",
        "2026-03-01 10:00",
        "Serial 00123-45",
        "01.05.2026 12.30",
    ],
)
def test_numbers_that_only_look_european_are_not_read_as_such(text: str) -> None:
    assert find_disclosures(text) == ()
