"""Lists the names that scripts, dashboards and people use, one line for each name, as the code defines them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from deployments.cli.exit_codes import SPECIAL_CODES, ExitCode
from deployments.cli.pipes.commands import answer_each_line
from deployments.cli.pipes.conversations import answer_logged_conversations
from flows.server.schedules import Cron, Every, PlannedDeployment
from tests.lookout_commands import every_command
from tests.tools import command_reference, configuration_reference
from tests.tools.configuration_reference import branch_of, inner_models
from warehouse.database.store import Store

VIEW_COLUMNS = """
select columns.table_name, columns.column_name, columns.data_type
from duckdb_columns() columns join duckdb_views() views on columns.table_name = views.view_name
where not views.internal and not views.temporary
order by columns.table_name, columns.column_index
"""


def command_lines() -> Iterator[str]:
    """Yield each command, then its arguments and options with accepted values and defaults."""
    for path, command in sorted(every_command().items()):
        yield f"lookout {path}"
        for option in sorted(command.params, key=lambda each: (each.param_type_name, each.opts)):
            names = command_reference.option_names(option)
            values = command_reference.accepted_values(option, command)
            default = command_reference.default_text(option)
            yield _joined(f"  {names}", values, default and f"default {default}").replace("`", "")


def exit_code_lines() -> Iterator[str]:
    """Yield each exit code with its general meaning, then the commands that give an exit code a special meaning."""
    yield from (f"{code.value} {code.name}" for code in ExitCode)
    for path, codes in sorted(SPECIAL_CODES.items()):
        yield f"lookout {path}: {', '.join(str(code.value) for code in sorted(codes))}"


def configuration_keys(
    model: type[BaseModel], place: str = "", shown: set[tuple[str, type[BaseModel]]] | None = None
) -> Iterator[str]:
    """Yield each key of lookout.toml as it is written in a table, with its accepted values and its default."""
    shown = set() if shown is None else shown
    if (place, model) in shown:
        return
    shown.add((place, model))
    for name, field in model.model_fields.items():
        key = f"{place}.{name}" if place else name
        inner, heading = inner_models(field.annotation)
        default = configuration_reference.default_text(field)
        if not inner:
            yield _joined(key, configuration_reference.accepted_values(field), default and f"default {default}")
        for each in inner:
            kind = branch_of(each).replace("`", "") if len(inner) > 1 else ""
            yield f"[{heading.format(key)}]{kind}" + (" required" if field.is_required() else "")
            yield from configuration_keys(each, heading.format(key), shown)


def _joined(*parts: str) -> str:
    return "  ".join(part.rstrip() for part in parts if part.strip()).replace("`", "")


def schema_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield each field of a JSON schema by its path, with its types.

    In a path, ``[]`` stands for an item of a list, and ``{}`` for a value of a mapping.
    """
    types: dict[str, set[str]] = {}
    for path, kind in _schema_fields(schema, schema.get("$defs", {}), "", ()):
        types.setdefault(path, set()).add(kind)
    yield from _lines_of(types)


def _lines_of(types: Mapping[str, set[str]]) -> Iterator[str]:
    yield from (f"{path}  {' or '.join(sorted(kinds))}" for path, kinds in types.items())


def _schema_fields(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str, inside: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    reference = schema.get("$ref", "").rpartition("/")[2]
    if reference in inside:  # a record that contains records of its own class
        yield path, "as above"
        return
    if reference:
        yield from _schema_fields(definitions[reference], definitions, path, (*inside, reference))
        return
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for branch in branches:
        yield from _schema_fields(branch, definitions, path, inside)
    for name, part in schema.get("properties", {}).items():
        yield from _schema_fields(part, definitions, f"{path}.{name}" if path else name, inside)
    if "items" in schema:
        yield from _schema_fields(schema["items"], definitions, f"{path}[]", inside)
    for part in schema.get("prefixItems", ()):
        yield from _schema_fields(part, definitions, f"{path}[]", inside)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _schema_fields(schema["additionalProperties"], definitions, f"{path}{{}}", inside)
    if path and not branches and not schema.get("properties"):
        if "const" in schema or "enum" in schema:
            values = schema.get("enum") or [schema["const"]]
            yield path, "one of " + ", ".join(json.dumps(value) for value in values)
        else:
            yield path, schema.get("format") or schema.get("type", "any")


class Recording(dict[str, Any]):
    """The fields of one input line. ``names`` collects the paths of the fields that are read."""

    def __init__(self, fields: Mapping[str, Any], names: set[str], path: str = "") -> None:
        super().__init__({name: self._recorded(value, names, f"{path}{name}") for name, value in fields.items()})
        self._names = names
        self._path = path

    @classmethod
    def _recorded(cls, value: Any, names: set[str], path: str) -> Any:
        if isinstance(value, list):
            return [cls(each, names, f"{path}[].") if isinstance(each, dict) else each for each in value]
        return cls(value, names, f"{path}.") if isinstance(value, dict) else value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value as `dict.get` does, and record that ``key`` was read."""
        self._names.add(f"{self._path}{key}")
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._names.add(f"{self._path}{key}")
        return super().__getitem__(key)


def pipe_lines(
    name: str, answer: Callable[[dict[str, Any]], dict[str, Any]], lines: Iterable[dict[str, Any]]
) -> Iterator[str]:
    """Yield the fields that a pipe command reads from ``lines``, and the fields of its answers with their types.

    An invalid line is sent last; its answer must have only an id and an error.
    """
    reads = {"id"}
    out = io.BytesIO()
    given = [json.dumps({"id": "a", **line}).encode() for line in lines]
    answer_each_line([*given, b"[]"], out, lambda fields: answer(Recording(fields, reads)))
    *answers, refusal = map(json.loads, out.getvalue().splitlines())
    assert set(refusal) == {"id", "error"}
    assert not any("error" in fields for fields in answers)
    yield f"lookout {name}"
    yield from (f"  in   {field}" for field in sorted(reads))
    yield from _answer_fields(answers)


def conversation_lines() -> Iterator[str]:
    """Yield the fields of the answers of ``lookout conversations``, with their types.

    The input fields are not listed, because the input lines may have any format.
    """
    out = io.BytesIO()
    logged = {"question": "q", "answer": "a", "context": ["p"], "ts": 1772366400}
    answer_logged_conversations(io.BytesIO(json.dumps(logged).encode() + b"\n[]\n"), out)
    yield "lookout conversations"
    yield from _answer_fields(map(json.loads, out.getvalue().splitlines()))


def _answer_fields(answers: Iterable[dict[str, Any]]) -> Iterator[str]:
    types: dict[str, set[str]] = {}
    for fields in answers:
        for path, kind in _value_fields(fields, ""):
            types.setdefault(path, set()).add(kind)
    yield from (f"  out  {line}" for line in _lines_of(dict(sorted(types.items()))))


def _value_fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _value_fields(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for part in value:
            yield from _value_fields(part, f"{path}[]")
    else:
        yield (
            path,
            {bool: "boolean", str: "string", type(None): "null", list: "empty list"}.get(type(value), "number"),
        )


def view_lines(store: Store) -> Iterator[str]:
    """Yield each view of the warehouse, then its columns with their types, in order."""
    with store.database.open_for_writing(1) as connection:
        rows = connection.execute(VIEW_COLUMNS).fetchall()
    view = None
    for name, column, kind in rows:
        if name != view:
            yield str(name)
        view = name
        yield f"  {column}  {str(kind).lower()}"


def deployment_lines(planned: Iterable[PlannedDeployment]) -> Iterator[str]:
    """Yield each deployment by its Prefect name, with its schedule, parameters and tags."""
    for each in planned:
        match each.when:
            case Cron(line=line, time_zone=zone):
                when = f"{line} {zone}"
            case Every(seconds=seconds):
                when = f"every {seconds:g} s"
            case None:
                when = "no schedule"
        yield f"{each.full_name}  {when}  ({', '.join(each.parameters)})  {' '.join(each.tags)}"


def text_of(lines: Iterable[str]) -> str:
    """Join the lines into one text."""
    return "\n".join(lines) + "\n"
