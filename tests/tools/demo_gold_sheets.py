"""Build the template cases of the demo's suite from the demo's policies.

To update ``suraksha.jsonl``, run ``python -m tests.tools.demo_gold_sheets``. A test checks that it is up to date.
"""

from __future__ import annotations

from pathlib import Path

from deployments.demo.policies import Policy, PolicyBook, PolicyFact, load_policies
from flows.terminal import write_text
from monitors.facts.quantities.fact import Bound
from monitors.goldset.build.build import build_cases, load_templates
from monitors.goldset.build.sheets import (
    DurationUnit,
    FactField,
    FactSchema,
    FactSheet,
    FieldKind,
    GivenFact,
    load_fact_schema,
)
from monitors.goldset.versions import replace_template_generated_cases
from monitors.records.cases import GoldCase

HERE = Path(__file__).parents[2] / "deployments" / "demo"
SUITE = HERE / "suraksha.jsonl"
PACK = str(HERE / "gold")
_UNITS = {FieldKind.MONEY: "inr", FieldKind.PERCENT: "percent"}


def template_cases(book: PolicyBook) -> tuple[GoldCase, ...]:
    """Return the cases that the demo's templates build from ``book``."""
    schema = load_fact_schema(PACK)
    return build_cases(sheets_of(book, schema), schema, load_templates(schema, PACK)).cases


def sheets_of(book: PolicyBook, schema: FactSchema) -> tuple[FactSheet, ...]:
    """Return one fact sheet for each policy, with the facts for which the schema has a field."""
    return tuple(_sheet(policy, book.insurer, schema) for policy in book.policies)


def _sheet(policy: Policy, insurer: str, schema: FactSchema) -> FactSheet:
    facts = (_fact(fact, schema.fields[fact.field]) for fact in policy.facts if fact.field in schema.fields)
    return FactSheet(
        id=policy.id,
        name=policy.name,
        publisher=insurer,
        document=policy.name,
        facts=tuple(fact for fact in facts if fact is not None),
    )


def _fact(fact: PolicyFact, field: FactField) -> GivenFact | None:
    """Convert a fact of a demo policy to a fact of a sheet.

    Return ``None`` if the units of fact and field differ, for example percent and rupees.
    """
    wanted = _UNITS.get(field.kind)
    if fact.amount is not None and wanted is not None and fact.unit != wanted:
        return None
    return GivenFact(
        field=fact.field,
        value=fact.covered if field.kind is FieldKind.COVER else _amount(fact),
        unit=fact.unit if fact.unit in tuple(DurationUnit) else None,
        bound=Bound(fact.bound) if fact.bound else None,
        clause=fact.clause,
        quote=fact.text,
    )


def _amount(fact: PolicyFact) -> str | None:
    """Return the amount of a fact as text.

    Without an amount, return "0" if the item is excluded (such as a co-payment), and ``None`` otherwise.
    """
    if fact.amount is not None:
        return str(fact.amount)
    return "0" if fact.covered is False else None


def main() -> None:
    """Replace the cases of the demo's suite that come from templates by newly built ones."""
    renewed = replace_template_generated_cases(SUITE, template_cases(load_policies()))
    write_text(f"{SUITE.name}: {renewed}\n")


if __name__ == "__main__":
    main()
