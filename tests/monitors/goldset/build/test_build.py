"""Facts and templates produce the same cases every time, each with its source field and clause."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.domains.pack import SHIPPED_PACKS, TEMPLATES
from monitors.errors import GoldSetError
from monitors.facts.quantities.fact import Bound
from monitors.facts.similarity import collect_quantities
from monitors.goldset.build.build import BuildResult, build_cases, load_templates
from monitors.goldset.build.sheets import (
    DurationUnit,
    FactSheet,
    FieldKind,
    load_fact_schema,
    read_fact_sheets,
)
from monitors.goldset.build.values import (
    AcceptPolicy,
    Amount,
    Several,
    UnusableFact,
    YesNo,
    parse_usable_fact_value,
    phrase_value,
)
from monitors.goldset.lines import format_case_line
from monitors.records.base import Language
from tests.monitors.goldset.fact_examples import SHEET, fact, sheet

PACK = "health_insurance"
SCHEMA = load_fact_schema(PACK)
BOOK = load_templates(SCHEMA, PACK)
REAL = Path(__file__).parents[5] / "shared" / "data" / "seed_app" / "policy_facts.jsonl"
THREE = (Language.ENGLISH, Language.HINDI, Language.HINGLISH)


def built_of(*sheets, languages=()) -> BuildResult:
    return build_cases([FactSheet.model_validate(one) for one in sheets], SCHEMA, BOOK, languages)


def by_template(built: BuildResult, language="en"):
    return {case.id.split(".")[1]: case for case in built.cases if case.language == language}


def test_about_twenty_templates_over_eight_types_ship():
    """The package contains about twenty templates in three languages each, for eight types of case."""
    assert 15 <= len(BOOK.template) <= 25
    assert {one.type for one in BOOK.template} | {one.type_no for one in BOOK.template if one.type_no} == {
        "waiting_period", "coverage_scope", "exclusions", "sub_limit", "eligibility", "claim", "network", "bonus",
    }  # fmt: skip
    assert all(one.find_phrasing(language) for one in BOOK.template for language in THREE)


def test_a_gold_traces_to_field_clause_and_document():
    """Each gold states the field, clause and document that it comes from."""
    case = by_template(built_of(SHEET))["ped-waiting"]
    assert (case.gold, case.cluster, case.expected_citation) == (
        "36 months",
        "tara-basic",
        "Tara Basic, clause 4.2",
    )
    source = case.provenance
    assert (source.pipeline, source.field) == ("template", "pre_existing_disease_waiting_months")
    assert (source.document, source.clause) == ("tara-basic.pdf", SHEET["facts"][0]["quote"])


def test_negatives_are_honest():
    """Gold answers about what is not covered or not stated are correct.

    If an item is excluded or an amount is zero, the gold is an answer. If the document does not state a field, the
    gold is a refusal. A field that was not read gives no case.
    """
    cases = by_template(built_of(SHEET))
    assert set(cases) == {"ped-waiting", "ayush", "co-payment", "deductible"}
    assert (cases["ayush"].gold, cases["ayush"].type) == ("No, AYUSH treatment is not covered", "exclusions")
    assert (cases["co-payment"].gold, cases["co-payment"].alternatives) == ("0%", ("There is no co-payment",))
    assert [cases[name].expected_refusal for name in ("ayush", "co-payment", "deductible")] == [False, False, True]
    assert cases["deductible"].expected_citation is None


def test_languages_are_joined_as_pairs():
    """Cases in different languages are joined as pairs for the parity metric."""
    built = built_of(SHEET, languages=THREE)
    ped = [case for case in built.cases if "ped-waiting" in case.id]
    assert [case.gold for case in ped] == ["36 months", "36 महीने", "36 mahine"]
    assert {case.pair for case in ped} == {"tara-basic.ped-waiting"}
    assert "तारा बेसिक" in ped[1].question


def test_a_policy_more_adds_its_cases_and_changes_no_other():
    """A new policy adds only its own cases. It changes no other case and needs no change to a template."""
    before, after = built_of(SHEET), built_of(SHEET, sheet(id="tara-plus", name="Tara Plus"))
    assert after.cases[: len(before.cases)] == before.cases
    assert {case.cluster for case in after.cases[len(before.cases) :]} == {"tara-plus"}


def test_two_documents_of_one_policy_are_asked_about_once():
    """A policy with two documents is asked about once, because questions name the policy."""
    both = built_of(SHEET, sheet(id="tara-brochure", facts=[SHEET["facts"][0], fact("grace_period", value=15)]))
    assert len([case for case in both.cases if "ped-waiting" in case.id]) == 1
    assert {case.cluster for case in both.cases} == {"tara-basic"}


def test_contradicting_documents_are_reported_and_give_no_case():
    """Documents that contradict each other are reported and give no case."""
    other = fact("pre_existing_disease_waiting_months", value=24, quote="after 24 months")
    built = built_of(SHEET, sheet(id="tara-brochure", facts=[other]))
    assert not [case for case in built.cases if "ped-waiting" in case.id]
    assert any("tara-basic, tara-brochure" in one.reason for one in built.not_asked)


def test_silence_counts_only_when_every_document_is_silent():
    """A field counts as not stated only if no document of the policy states it."""
    states = fact("deductible_amount", value=50000, quote="A deductible of ₹50,000 applies.")
    built = built_of(SHEET, sheet(id="tara-wording", facts=[states]))
    (case,) = [case for case in built.cases if "deductible" in case.id]
    assert (case.gold, case.expected_refusal, case.id) == ("₹50,000", False, "tara-wording.deductible.en")


def test_a_name_that_two_publishers_use_is_asked_with_the_publisher():
    """If two publishers use the same policy name, the question also names the publisher."""
    built = built_of(SHEET, sheet(id="other", publisher="Niva"))
    asked = [case.question for case in built.cases if "ped-waiting" in case.id]
    assert len(set(asked)) == 2
    assert "Tara Basic (Niva)" in asked[1]


@pytest.mark.parametrize(
    ("field", "given", "found"),
    [
        ("co_payment_pct", {"value": "20"}, Amount(FieldKind.PERCENT, Decimal(20), None, Bound.EXACT)),
        ("min_entry_age", {"value": 91, "unit": "day", "quote": "from 91 days"},
         Amount(FieldKind.DURATION, Decimal(91), DurationUnit.DAY, Bound.AT_LEAST)),
        ("initial_waiting_period_days", {"value": 30, "quote": "thirty (30) days"},
         Amount(FieldKind.DURATION, Decimal(30), DurationUnit.DAY, Bound.EXACT)),
        ("pre_existing_disease_waiting_months", {"value": 48, "quote": "four years"},
         Amount(FieldKind.DURATION, Decimal(48), DurationUnit.MONTH, Bound.EXACT)),
        ("maternity_coverage", {"value": True, "quote": "Maternity is payable"}, YesNo(True)),
        ("co_payment_pct", {"value": 20, "quote": "as in the schedule"}, UnusableFact("the quote does not contain the value")),
        ("co_payment_pct", {"quote": None}, UnusableFact("the fact has no quote, so its source cannot be checked")),
        ("co_payment_pct", {"confidence": "low"}, UnusableFact("the confidence is low; the minimum is unrated")),
        ("co_payment_pct", {"value": "a fifth"}, UnusableFact('"a fifth" is not a valid value for a field of kind percent')),
        ("co_payment_pct", {"value": True}, UnusableFact("true is not a valid value for a field of kind percent")),
        ("co_payment_pct", {"value": -5}, UnusableFact("-5 is not a valid value for a field of kind percent")),
        ("maternity_coverage", {"value": "partly"}, UnusableFact('"partly" is not a valid value for a field of kind cover')),
        ("co_payment_pct", {"value": [10, 20]}, UnusableFact("the value is a list; give one value")),
    ],
)  # fmt: skip
def test_a_fact_is_read_by_its_fields_kind(field, given, found):
    """The kind of a field decides how its fact is read. An unusable fact is omitted with a reason."""
    one = FactSheet.model_validate(sheet(facts=[fact(field, **given)])).facts[0]
    assert parse_usable_fact_value(one, SCHEMA.fields[field], AcceptPolicy()) == found


def test_accepted_values_are_configured():
    """The settings decide which values are accepted, such as values of low confidence and unproven values.

    They also decide whether fields on which the documents are silent are left out.
    """
    low = FactSheet.model_validate(sheet(facts=[fact(confidence="low", quote="as in the schedule")])).facts[0]
    loose = AcceptPolicy(confidence="low", unproven=True)
    assert isinstance(parse_usable_fact_value(low, SCHEMA.fields["co_payment_pct"], loose), Amount)
    silent = FactSheet.model_validate(sheet(facts=[fact(value=None, silent=True)])).facts[0]
    assert isinstance(
        parse_usable_fact_value(silent, SCHEMA.fields["co_payment_pct"], AcceptPolicy(silence=False)), UnusableFact
    )


NUMBERS = st.integers(1, 10**8).map(Decimal) | st.decimals(Decimal("0.5"), Decimal(99), places=1)


MEASURED = [name for name, one in SCHEMA.fields.items() if one.kind not in ("cover", "choice", "text")]


@given(number=NUMBERS, field=st.sampled_from(MEASURED), language=st.sampled_from(THREE))
def test_a_value_that_is_phrased_can_be_read_back(number, field, language):
    """A formatted value is read back as the same single quantity in every language, so that graders can grade it."""
    definition = SCHEMA.fields[field]
    value = Amount(definition.kind, number, definition.unit, definition.bound)
    (read,) = collect_quantities(phrase_value(value, definition, language))
    match definition.unit:
        case DurationUnit.YEAR:
            assert read.value == number * 12
        case DurationUnit.DAY:
            assert read.days == number
        case DurationUnit.HOUR:
            assert abs(read.days * 24 - number) < Decimal("1e-9")
        case _:
            assert read.value == number


def test_a_quote_in_another_currency_proves_no_amount(snapshot):
    """An amount in euros in the document never becomes rupees in the gold, and the build reports the reason."""
    built = built_of(sheet(facts=[fact("deductible_amount", value=2500, quote="A deductible of €2,500 applies.")]))
    assert not [case for case in built.cases if "deductible" in case.id]
    assert [one.reason for one in built.not_asked] == snapshot


@pytest.mark.parametrize(
    ("quote", "currency", "gold"),
    [
        ("A deductible of €150,000 applies.", None, "€150,000"),
        ("A deductible of €150.000 applies.", None, "€150,000"),
        ("A deductible of ₹1,50,000 applies.", None, "₹1,50,000"),
        ("A deductible of CHF 150,000 applies.", None, "CHF 150,000"),
        ("A deductible of $150,000 applies.", "USD", "US$150,000"),
        ("Deductible: 150,000", "EUR", "€150,000"),
        ("A deductible of $150,000 applies.", None, None),
        ("Deductible: 150,000", None, None),
    ],
)
def test_an_amount_is_in_the_currency_of_its_quote(quote, currency, gold):
    """The currency comes from the quote, else from the field; without either, no case is built."""
    field = SCHEMA.fields["deductible_amount"].model_copy(update={"currency": currency})
    schema = SCHEMA.model_copy(update={"fields": {**SCHEMA.fields, "deductible_amount": field}})
    given = sheet(facts=[fact("deductible_amount", value=150000, quote=quote)])
    built = build_cases([FactSheet.model_validate(given)], schema, BOOK)
    assert [case.gold for case in built.cases] == ([gold] if gold else [])
    if gold is None:
        assert "the currency is unknown" in built.not_asked[0].reason


def test_lists_are_joined_in_the_language():
    """A list of values, such as several sums insured, is joined in the language of the case."""
    numbers = (100000, 200000, 500000)
    many = Several(tuple(Amount(FieldKind.MONEY, Decimal(n), None, Bound.EXACT, "INR") for n in numbers))
    said = phrase_value(many, SCHEMA.fields["sum_insured_options"], Language.HINDI)
    assert said == "₹1,00,000, ₹2,00,000 और ₹5,00,000"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('field = "ayush_coverage"', 'field = "ayush"', "ayush"),
        ("under {name}?", "under {policy}?", "{policy}"),
        ("under {name}?", "under it?", "must contain {name}"),
        ('id = "ayush"', 'id = "maternity"', "two templates have the id"),
        ('field = "ayush_coverage"', 'field = "grace_period"', "en.gold is missing"),
        ("severity = 2", "severity = 4", "severity"),
        ("version = 1", "version = ", "TOML"),
    ],
)
def test_a_template_that_cannot_work_is_named(tmp_path, old, new, wanted):
    """An invalid template is reported with its file when it is loaded."""
    shipped = (SHIPPED_PACKS / PACK / TEMPLATES).read_text(encoding="utf-8")
    (tmp_path / TEMPLATES).write_text(shipped.replace(old, new), encoding="utf-8")
    with pytest.raises(GoldSetError) as error:
        load_templates(SCHEMA, str(tmp_path))
    assert TEMPLATES in str(error.value)
    assert wanted in str(error.value)


@pytest.mark.whole_only
@pytest.mark.skipif(not REAL.exists(), reason="the facts of a real bot are not on this machine")
def test_eighty_real_policies_are_the_same_twice():
    """Eighty real policies in three languages give the same cases twice; one more policy only adds its cases."""
    sheets = read_fact_sheets(REAL, SCHEMA)
    first = build_cases(sheets[:80], SCHEMA, BOOK, THREE)
    text = "".join(map(format_case_line, first.cases))
    again = build_cases(read_fact_sheets(REAL, SCHEMA)[:80], SCHEMA, BOOK, THREE)
    assert "".join(map(format_case_line, again.cases)) == text
    assert len(first.cases) > 2000
    alone = [one for one in sheets if one.name == sheets[0].name]
    rest = [one for one in sheets[:80] if one.name != sheets[0].name]
    less = build_cases(rest, SCHEMA, BOOK, THREE)
    more = build_cases([*rest, *alone], SCHEMA, BOOK, THREE)
    assert more.cases[: len(less.cases)] == less.cases
    assert {case.cluster for case in more.cases[len(less.cases) :]} == {alone[0].id}
