"""Tests of the domain packs.

Packs are complete, a broken pack is reported with the accepted values, and several packs can be combined.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitors.config.file import load_config
from monitors.domains.pack import (
    DEFAULT_DOMAINS,
    SHIPPED_PACKS,
    VOCABULARY,
    DomainVocabulary,
    load_domain,
    read_pack_file,
)
from monitors.errors import ConfigError
from monitors.goldset.build.build import load_templates
from monitors.goldset.build.sheets import load_fact_schema

PACKS = sorted(path.parent.name for path in SHIPPED_PACKS.glob(f"*/{VOCABULARY}"))
PAGE = (Path(__file__).parents[3] / "docs" / "domains.md").read_text(encoding="utf-8")


def written(folder: Path, text: str) -> str:
    (folder / VOCABULARY).write_text(text, encoding="utf-8")
    return str(folder)


def roles_of(*packs: str) -> set[str]:
    return {role for named in load_domain(packs).roles.values() for _, role in named}


@pytest.mark.parametrize("pack", PACKS)
def test_a_shipped_pack_is_whole(pack):
    assert load_domain((pack,)).roles
    assert load_templates(load_fact_schema(pack), pack).template


def test_the_page_names_every_pack_and_every_key():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.split("## Write your own")[0], re.MULTILINE)) == set(PACKS)
    keys = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.split("## Write your own")[1], re.MULTILINE)
    assert {key.strip("`") for row in keys for key in row.split(", ")} == set(DomainVocabulary.model_fields)
    assert "`general`" in PAGE.split("Without `domains`")[1][:60]
    assert DEFAULT_DOMAINS == ("general",)


def test_the_vocabulary_of_the_page_loads(tmp_path):
    (block,) = re.findall(r"^```vocabulary\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert roles_of(written(tmp_path, block)) == {"price", "luggage allowance", "cancellation"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("role = {}", "role: unknown key (did you mean 'roles'?)"),
        ("", "roles: missing; the roles that an amount can have"),
        ('[roles]\nprice = "fare"', "roles.price: 'fare' is not accepted; expected a valid tuple"),
        ('[roles]\nprice = [" "]', "roles.price.0: ' ' is not accepted; expected a word"),
        ('yes = ["comes with"]\n[roles]\n', "yes.0: 'comes with' is not accepted; expected one word"),
        ('percent_of = ["prise"]\n[roles]\nprice = ["fare"]', "percent_of: 'prise' is not a role of this pack; accepted: price"),
        ('[roles]\na = ["Co-Pay"]\nb = ["co-pay"]', "roles.b: 'co-pay' is also a phrase of 'a'"),
        ("[roles", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_broken_pack_is_named_by_file_and_key_with_what_is_accepted(tmp_path, text, wanted):
    written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read_pack_file(tmp_path / VOCABULARY, DomainVocabulary)
    assert f"{tmp_path / VOCABULARY}: {wanted}" in str(error.value)


def test_a_configuration_names_its_packs_and_what_is_wrong_with_them(tmp_path):
    """A configuration selects its packs by name or folder, and an error says what is wrong with them.

    A folder is relative to the configuration. The error for an unknown name lists the known names.
    """
    (tmp_path / "trains").mkdir()
    config = tmp_path / "lookout.toml"
    head = '[targets.shop]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
    config.write_text(head + 'domains = ["general", "./trains"]\n')
    with pytest.raises(ConfigError, match=r"lookout\.toml: targets\.shop\.domains: .*trains/vocabulary\.toml: "):
        load_config(config)
    written(tmp_path / "trains", '[roles]\nfare = ["fare"]')
    domain = load_config(config).require_target("shop").domain
    assert {"fare", "delivery"} <= {role for named in domain.roles.values() for _, role in named}
    config.write_text(head + 'domains = ["generel"]\n')
    with pytest.raises(ConfigError, match=r"did you mean 'general'\?\); accepted: general, health_insurance"):
        load_config(config)
    config.write_text(head)
    assert load_config(config).require_target("shop").domain is load_domain()


def test_of_two_packs_all_words_count_and_the_first_decides(tmp_path):
    mine = written(tmp_path, 'yes = ["gratis"]\n[roles]\npostage = ["delivery"]')
    both, other = load_domain((mine, "general")), load_domain(("general", mine))
    assert (both.roles["delivery"][-1][1], other.roles["delivery"][-1][1]) == ("postage", "delivery")
    assert both.yes == other.yes == load_domain(("general",)).yes | {"gratis"}


def test_general_and_insurance_do_not_know_each_others_words():
    assert "premium" not in load_domain(("general",)).roles
    assert "delivery" not in load_domain(("health_insurance",)).roles
    assert roles_of() == set()
