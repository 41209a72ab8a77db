"""Generate docs/commands.md from the code of the commands: ``python -m tests.tools.command_reference``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from deployments.cli.app import COMMANDS, EXAMPLES, GROUP_OF_BROWSER, GROUP_OF_SITE, GROUP_OF_TOKENS, GROUPS, USERS
from deployments.cli.exit_codes import SPECIAL_CODES
from flows.terminal import write_text
from tests.lookout_commands import every_command

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"

INTRODUCTION = """\
# Commands

All commands, grouped by their main user. `lookout --help` prints the same list, and `lookout COMMAND --help` the details.

Most commands read `lookout.toml` in the current folder (for another file, use `--config`) and print text for people. With
`--json`, they print JSON on standard output, and notes on standard error. All commands have the same exit codes: 0 PASS or
success, 1 FAIL, 2 usage or configuration, 3 INCONCLUSIVE, 4 the monitor itself failed. For the meaning of each code and the
next step, see [exit codes, failure kinds and reasons](reference.md). If a code has another meaning for a command, this page
explains it.

This page is generated from the commands by `python -m tests.tools.command_reference`; the tests try each example.
"""

GROUP_LINES = {**GROUPS, "site": GROUP_OF_SITE, "site token": GROUP_OF_TOKENS, "browser": GROUP_OF_BROWSER}


def reference() -> str:
    """Return the whole page as Markdown."""
    return "".join([INTRODUCTION, *_contents(), *_sections()])


def paths_of(name: str) -> tuple[str, ...]:
    """Return the full names of the commands that ``name`` stands for: one command, or all commands of a group."""
    return tuple(path for path in EXAMPLES if path.split()[0] == name)


def _contents() -> Iterator[str]:
    yield "\n| who | commands |\n| --- | --- |\n"
    for user, names in USERS.items():
        linked = ", ".join(f"[`{path}`](#lookout-{path.replace(' ', '-')})" for n in names for path in paths_of(n))
        yield f"| {user} | {linked} |\n"


def _sections() -> Iterator[str]:
    commands = every_command()
    for user, names in USERS.items():
        yield f"\n## {user}\n"
        for name in names:
            for path in paths_of(name):
                yield from _command(path, commands[path])


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"\n### `lookout {path}`\n\n{_line(path)}\n"
    yield from (f"\n{' '.join(more.split())}\n" for more in _paragraphs(command))
    yield f"\nUsage: `{_usage(path, command)}`\n"
    yield f"\n```console\n$ {' '.join(['lookout', path, EXAMPLES[path]]).rstrip()}\n```\n"
    shown = [parameter for parameter in command.params if not parameter.hidden]
    rows = [_row(each, command) for each in sorted(shown, key=lambda each: each.param_type_name != "argument")]
    if rows:
        yield "\n| option | takes | default | what it is |\n| --- | --- | --- | --- |\n"
        yield from rows
    codes = SPECIAL_CODES.get(path, {})
    if codes:
        yield "\nExit codes: " + "; ".join(f"**{int(code)}** {meaning}" for code, meaning in codes.items()) + ".\n"


def _usage(path: str, command: Any) -> str:
    """Return the usage line of a command. Optional arguments are in brackets."""
    words = [
        parameter.name.upper() if parameter.required else f"[{parameter.name.upper()}]"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    needed = [
        f"{parameter.opts[0]} {parameter.name.upper()}"
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.required
    ]
    return " ".join(["lookout", path, *words, *needed, *(["[OPTIONS]"] if command.params else [])])


def _paragraphs(command: Any) -> list[str]:
    """Return the paragraphs of the command's help after the first paragraph."""
    text: str = command.help or ""
    return text.replace("\\[", "[").split("\n\n")[1:]


def _line(path: str) -> str:
    """Return the one-line description of a command, or of a group that can run without a subcommand."""
    group, _, name = path.rpartition(" ")
    if path in GROUP_LINES:
        return GROUP_LINES[path]
    return COMMANDS[group or "lookout"][name][1]


def _row(parameter: Any, command: Any) -> str:
    cells = (
        option_names(parameter),
        accepted_values(parameter, command),
        default_text(parameter),
        _text(parameter),
    )
    return f"| {' | '.join(cells)} |\n"


def option_names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def accepted_values(parameter: Any, command: Any) -> str:
    """Return the accepted values of a parameter, for example "number from 1", or an empty text for a flag."""
    if getattr(parameter, "is_flag", False):
        return ""
    described = parameter.display_type(command.context_class(command)).strip("<>")
    if described in KINDS:
        limits = [f"{word} {limit:g}" for word, limit in _limits(parameter, described)]
        return " ".join([KINDS[described], *limits])
    return ", ".join(f"`{value}`" for value in described.split("|"))


KINDS = {
    "str": "text",
    "path": "path",
    "list[str]": "text, repeatable",
    "int": "number",
    "int range": "number",
    "float": "number",
    "float range": "number",
    "%Y-%m-%d": "`2026-03-01`",
    "%Y-%m-%d|%Y-%m-%dT%H:%M|%Y-%m-%dT%H:%M:%S|%Y-%m-%dT%H:%M%z|%Y-%m-%dT%H:%M:%S%z": (
        "`2026-03-01`, `2026-03-01T02:00` or `2026-03-01T02:00Z`"
    ),
}


def _limits(parameter: Any, described: str) -> Iterator[tuple[str, float]]:
    if "range" in described:
        bounds = (("from", parameter.min), ("to", parameter.max))
        yield from ((word, limit) for word, limit in bounds if limit is not None)


def default_text(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        return f"`{parameter.opts[0]}`" if value and parameter.secondary_opts else ""
    if value is None or value == "" or (isinstance(value, Sequence) and not value):
        return _variables(parameter)
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _variables(parameter: Any) -> str:
    """Return the environment variables that supply the value of a parameter if the option is omitted."""
    names: str | Sequence[str] = parameter.envvar or ()
    return ", ".join(f"`${name}`" for name in ([names] if isinstance(names, str) else names))


def _text(parameter: Any) -> str:
    return " ".join((parameter.help or "").replace("\\[", "[").replace("|", "\\|").split())


def main() -> int:
    """Write the page."""
    DOCUMENT.write_text(reference(), encoding="utf-8")
    write_text(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
