"""``lookout gold``: the command line of the gold set. Each command has a file of its own.

The commands build, check, freeze, compare, import, draft, translate, review, grow and vary suites, and score
mutants. ``lookout gold starter`` writes cases that fit any application, or a domain pack to be made
one's own.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flows.terminal import print_text, write_json
from monitors.records.base import Language


def register_mutants(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(mutants)


def mutants(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    config: Annotated[
        Path | None, typer.Option("--config", help="take a target's grader settings from this configuration")
    ] = None,
    target: Annotated[str | None, typer.Option(help="which target of the configuration")] = None,
    missed: Annotated[int, typer.Option(min=0, help="how many missed mutants to show")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Make known-bad mutants of every gold, and count how many the graders catch without a judge."""
    from deployments.cli.gold.mutation import mutants_command  # pydantic's models

    raise typer.Exit(int(mutants_command(suite, config=config, target=target, missed=missed, as_json=as_json)))


def register_build(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(build)


def build(
    *,
    facts: Annotated[
        Path, typer.Option("--facts", help="a folder of fact sheets (*.json), one sheet, or rows (*.jsonl)")
    ],
    out: Annotated[Path, typer.Option("--out", help="the suite; cases in it that no template made are kept")],
    domain: Annotated[
        str | None,
        typer.Option(
            help="the pack whose schema and templates are used: a name, or a folder as ./my_domain; "
            "health_insurance when left out"
        ),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="en, hi or hinglish, several times; as the templates say when left out")
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="list each fact that made no case, with its reason")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Make cases of facts: each template asks each policy, the gold traces to field and clause."""
    from deployments.cli.gold.build import BuildOptions, build_command  # pydantic's models

    options = BuildOptions(facts, out, domain, tuple(language or ()), why=why, as_json=as_json)
    raise typer.Exit(int(build_command(options)))


def register_check(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(check)


def check(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    documents: Annotated[
        Path | None, typer.Option(help="a folder with the documents as text: clauses are looked up in them")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="take a target's graders and the gate from this configuration")
    ] = None,
    target: Annotated[str | None, typer.Option(help="which target of the configuration")] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants/--no-mutants", help="try wrong replies on the severity-3 cases")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Find what makes a suite lie, leak or miss. Exit code 1 when something must be fixed."""
    from deployments.cli.gold.check import CheckOptions, check_command  # pydantic's models

    options = CheckOptions(suite, documents, config, target, mutants=mutants, as_json=as_json)
    raise typer.Exit(int(check_command(options)))


JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]


def register_freeze(app: typer.Typer) -> None:
    """Add the commands to a command line."""
    app.command()(freeze)
    app.command()(diff)


def freeze(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    into: Annotated[
        Path | None, typer.Option(help="the folder of frozen versions; `frozen` beside the suite when left out")
    ] = None,
    note: Annotated[str, typer.Option(help="why this version was made")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="only say whether the suite is its newest frozen version")
    ] = False,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="freeze also what must be mended")] = False,
    as_json: JsonOption = False,
) -> None:
    """Freeze a suite: a numbered copy with its hash and counts. Exit code 1 when it must be fixed first."""
    from deployments.cli.gold.freeze import FreezeOptions, freeze_command  # pydantic's models
    from flows.context import utc_now  # duckdb

    options = FreezeOptions(
        suite, into or suite.parent / "frozen", note, verify=verify, unchecked=unchecked, as_json=as_json
    )
    raise typer.Exit(int(freeze_command(options, at=utc_now())))


def diff(
    old: Annotated[Path, typer.Argument(help="a suite, or the manifest of a frozen version")],
    new: Annotated[Path, typer.Argument(help="a suite, or the manifest of a frozen version")],
    *,
    most: Annotated[int, typer.Option(min=1, help="how many cases of each group to list")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Say in words what changed between two versions of a suite, severity changes first."""
    from deployments.cli.gold.freeze import diff_command  # pydantic's models

    raise typer.Exit(int(diff_command(old, new, most=most, as_json=as_json)))


def register_import(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("import")(import_)


def import_(
    array: Annotated[Path, typer.Argument(help="a JSON array of another project: question, expected_answer, …")],
    *,
    out: Annotated[Path, typer.Option("--out", help="the suite to write; it must not be there yet")],
    severity: Annotated[
        list[str],
        typer.Option(help="TYPE=1, 2 or 3 for each question_type, or a bare number for all others; never guessed"),
    ],
) -> None:
    """Take over a suite of another project; it has no severities, so they are given here by type."""
    from deployments.cli.gold.import_array import import_command  # pydantic's models

    raise typer.Exit(int(import_command(array, out, severity)))


ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
DraftsOption = Annotated[Path, typer.Option("--drafts", help="where drafts are kept, JSON lines")]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="a model of [[judge.models]]; the first one when left out")
]
ByOption = Annotated[str | None, typer.Option("--as", help="who reviews; asked once and remembered when left out")]
DEFAULT_CONFIG = Path("lookout.toml")
DEFAULT_DRAFTS = Path("gold-drafts.jsonl")


def register_drafts(app: typer.Typer) -> None:
    """Add the commands to a command line."""
    app.command()(draft)
    app.command()(review)
    app.command()(translate)
    app.command()(grow)
    app.command()(vary)


def draft(
    *,
    document: Annotated[Path, typer.Option("--document", help="plain text or Markdown, UTF-8")],
    count: Annotated[int, typer.Option("--count", min=1, max=40, help="how many questions")] = 5,
    name: Annotated[
        str | None, typer.Option("--name", help="what the document is called; its file's name when left out")
    ] = None,
    citation: Annotated[
        str | None, typer.Option("--citation", help="text that a citation of the answers must contain")
    ] = None,
    language: Annotated[Language, typer.Option("--language", help="what the questions are in")] = Language.ENGLISH,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="a suite whose questions are not to be asked again")
    ] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Let a model draft buyers' questions over a document. A draft is gold only after `lookout gold review`."""
    from deployments.cli.gold.draft import DraftOptions, draft_command  # pydantic's models, an SDK
    from flows.context import environment

    options = DraftOptions(
        document=document,
        config=config,
        drafts=drafts,
        count=count,
        name=name,
        citation=citation,
        language=language,
        model=model,
        suite=suite,
        as_json=as_json,
    )
    raise typer.Exit(int(draft_command(options, environment())))


def review(
    drafts: Annotated[Path, typer.Argument(help="the file of drafts")] = DEFAULT_DRAFTS,
    *,
    suite: Annotated[Path, typer.Option("--suite", help="the suite that accepted cases join; made when not there")],
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[
        Path | None, typer.Option("--data-folder", help="where your name is remembered; the configuration's")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="show texts as they are, personal data too")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read each draft beside its clause and say yes, no, or how it must read. Only a yes makes it gold."""
    from deployments.cli.gold.draft import graders_for
    from deployments.cli.gold.review import review_drafts_command  # rich, pydantic's models
    from monitors.config.file import load_config

    folder = data_folder or (load_config(config).data_folder if config.exists() else None)
    graders, domain = graders_for(config, suite)
    code = review_drafts_command(
        drafts,
        suite=suite,
        by=by,
        remember_in=folder,
        raw=raw,
        as_json=as_json,
        graders=graders,
        domain=domain,
    )
    raise typer.Exit(int(code))


def translate(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    to: Annotated[str, typer.Option("--to", help="hi, hinglish, or both with a comma")] = "hi,hinglish",
    case: Annotated[list[str] | None, typer.Option("--case", help="only this case, by id; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="most cases for each language")] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Let a model draft translations of the English cases that have none. Gold only after `lookout gold review`."""
    from deployments.cli.gold.translate import TranslateOptions, translate_command  # as for draft
    from flows.context import environment

    options = TranslateOptions(
        suite=suite,
        to=to,
        cases=tuple(case or ()),
        limit=limit,
        drafts=drafts,
        config=config,
        model=model,
        as_json=as_json,
    )
    raise typer.Exit(int(translate_command(options, environment())))


def grow(
    *,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="the suite that cases join; without it, what waits is listed")
    ] = None,
    take: Annotated[
        str | None, typer.Option("--take", help="RUN/CASE: make a draft of this conversation first")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="of this target only")] = None,
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[
        Path | None, typer.Option("--data-folder", help="instead of the configuration's")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make gold of what went wrong: drafts of incidents, of Slack's "Add to gold", of reviews, of live traffic."""
    from deployments.cli.gold.grow import GrowOptions, grow_command  # rich, duckdb, pydantic's models

    options = GrowOptions(
        suite=suite, config=config, data_folder=data_folder, target=target, take=take, by=by, as_json=as_json
    )
    raise typer.Exit(int(grow_command(options)))


def vary(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    kinds: Annotated[
        str, typer.Option("--kinds", help="paraphrase, typo, code_switch; several with commas")
    ] = "paraphrase,typo,code_switch",
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same file")] = 1,
    each: Annotated[int, typer.Option("--each", min=1, max=20, help="variants of each kind for a case")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", help="where they go; SUITE-variants.jsonl when left out")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write other wordings of a suite's questions with the same expected answers. No model; always the same."""
    from deployments.cli.gold.vary import vary_command  # pydantic's models

    code = vary_command(suite, kinds=kinds, seed=seed, each=each, output=output, as_json=as_json)
    raise typer.Exit(int(code))


_MONITORS = Path(__file__).parents[3] / "monitors"
ADVERSARIAL = _MONITORS / "goldset" / "starter" / "adversarial.jsonl"
EXAMPLE = Path("facts/example-returns.json")
PACK = _MONITORS / "domains" / "general"
MY_PACK = Path("my_domain")


class StarterKind(StrEnum):
    """What to begin with."""

    ADVERSARIAL = "adversarial"
    DOMAIN = "domain"


def register_starter(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("starter")(starter)


def starter(
    what: Annotated[
        StarterKind,
        typer.Argument(
            help="adversarial: twenty severity-3 cases for any application; domain: a domain pack with an "
            "example of facts, to be made your own"
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="a new file, or a folder for the pack (my_domain); adversarial cases are printed without it",
        ),
    ] = None,
) -> None:
    """Write a starter: attacks that any application must decline, or a first domain pack."""
    if what is StarterKind.ADVERSARIAL and out is None:
        write_json(ADVERSARIAL.read_text(encoding="utf-8"))
    elif what is StarterKind.ADVERSARIAL and out is not None:
        _write({out: ADVERSARIAL})
        print_text(f"{out}: twenty cases of severity 3. Look at them: lookout gold check {out}")
    else:
        _domain(out or MY_PACK)


def _domain(folder: Path) -> None:
    copies = {folder / file.name: file for file in sorted(PACK.glob("*.toml"))}
    copies[folder / EXAMPLE] = ADVERSARIAL.parent / EXAMPLE
    _write(copies)
    place = str(folder) if folder.is_absolute() else f"./{folder}"
    print_text("Written: " + ", ".join(map(str, copies)))
    print_text(f'Put your own words, fields, questions and facts there; in lookout.toml: domains = ["{place}"]')
    print_text("Make the cases:")
    print_text(f"lookout gold build --facts {folder / EXAMPLE.parent} --domain {place} --out suite.jsonl")


def _write(copies: dict[Path, Path]) -> None:
    """Write all of them or none, and never over another file. Raises `ConfigError`."""
    from monitors.errors import ConfigError  # pydantic's models

    there = [str(place) for place in copies if place.exists() or place.is_symlink()]
    if there:
        raise ConfigError(f"nothing was written, as there is already {', '.join(there)}; name another --out")
    written: list[Path] = []
    place = Path()
    try:
        for place, source in copies.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8") as file:
                written.append(place)
                file.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        for one in written:
            one.unlink()
        raise ConfigError(f"{place}: cannot be written ({error.strerror}); nothing was left there") from error


app = typer.Typer(help="Build, check, freeze and compare suites of gold questions.", no_args_is_help=True)

register_build(app)
register_mutants(app)
register_check(app)
register_freeze(app)
register_import(app)
register_drafts(app)
register_starter(app)
