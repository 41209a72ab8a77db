"""docs/configuration.md, made from the models themselves: `python -m deployments.configuration_reference`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from monitors.config import Config

DOCUMENT = Path("docs/configuration.md")

INTRODUCTION = """\
# Configuration

Everything is in one file, `lookout.toml`; `--config` names another. The smallest one that works:

```toml
[targets.bot]
url = "https://owner-name.hf.space"
suite = "suite.jsonl"
```

A wrong key or value is named with what would be accepted, all of them at once. Secrets are never in this file:

| environment variable | is |
| --- | --- |
| `SLACK_BOT_TOKEN` | a bot token with `chat:write`; alerts go to `alerts.slack_channel` |
| `SLACK_WEBHOOK_URL` | an incoming webhook instead; without either, alerts are printed and stored |
| `SLACK_FALLBACK_WEBHOOK_URL` | an incoming webhook for what the main way refuses for good |
| `LOOKOUT_HEARTBEAT_URL` | healthchecks address, pinged when a run starts, ends, breaks; `{target}` is filled in |
| `PREFECT_API_URL`, `PREFECT_API_AUTH_STRING` | a Prefect server of yours; without one, a local server is started |
| `HF_TOKEN` | opens a private Space and its state on the Hub |
| `LOOKOUT_API_TOKEN` | sent as a bearer token to a target that is asked through an API |
| `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` | keys of the judges in `[judge]`; without one the judge is off |
| `CHROMIUM_PATH` | the browser to drive, where it should not be looked for |
| `LOOKOUT_AGE_KEY` | what pseudonyms are made with, when data ages and in live traffic; the same every time |
| `LOOKOUT_LOG_TOKEN` | bearer token of a hallucination log at an address; the Hub's is `HF_TOKEN` |
| `LOOKOUT_GITHUB_WEBHOOK_SECRET`, `LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET`, `LOOKOUT_STANDARD_WEBHOOK_SECRET` | \
what senders of deploys prove themselves with; two with a comma while one is changed |
| `GITHUB_TOKEN`, `GITHUB_API_URL` | posts results on pull requests (`pull-requests: write`, `statuses: write`), \
and where GitHub is, when it is not github.com |
| `LOOKOUT_DEBUG` | set to 1, errors come with their traceback |

A page that hides its sources is graded by what was sent, when the response, event stream or web socket that carries
the answer is named; `lookout doctor URL --ask` proposes these lines:

```toml
[targets.bot]
url = "https://owner-name.hf.space"
suite = "suite.jsonl"

[targets.bot.probe.wire]
url = '/api/chat(\\?|$)'
text = "reply.text"
citations = "sources.*.title"
app_path = "model"
```

An agent that works on a job is started, followed, and its report fetched. What it did on the way is kept as
evidence, and a run that was killed takes its jobs up again instead of starting new ones:

```toml
[targets.triage]
url = "https://agent.example.com/jobs"
suite = "triage.jsonl"

[targets.triage.probe]
driver = "job"

[targets.triage.probe.job]
request = '{"issue": "{question}", "thread": "{conversation}"}'
status_url = "{start}/{job}"
events_url = "{start}/{job}/events"
text = "result.report"
steps = "result.tool_calls.*"
deadline_s = 1800
```

What the plain graders leave open is judged by a model of another family than the one that answers. Two more judges
are asked where the first is unsure or severity is 3:

```toml
[targets.bot]
url = "https://owner-name.hf.space"
suite = "suite.jsonl"
model_family = "llama"

[judge]
budget_usd = 2

[[judge.models]]
model = "claude-sonnet-5-5"

[[judge.models]]
provider = "openai"
model = "gpt-5.1"

[[judge.models]]
provider = "openai"
model = "mistral-large-3"
base_url = "https://api.mistral.ai/v1"
key_variable = "MISTRAL_API_KEY"

[[judge.prices]]
model = "gpt-5.1*"
input = 1.25
output = 10
as_of = 2026-11-22
source = "an example: read it in the maker's price list"

[[judge.prices]]
model = "mistral-*"
input = 2
output = 6
as_of = 2026-11-22
source = "an example: read it in the maker's price list"
```

The tables below are made from the code that checks the file.
"""


def reference() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(_table("", Config))


def _table(place: str, model: type[BaseModel]) -> Iterator[str]:
    plain: list[str] = []
    tables: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        key = f"{place}.{name}" if place else name
        inner, many = _inner(field.annotation)
        if inner is not None:
            tables.append((many.format(key), inner))
        if inner is None or field.default is None:
            plain.append(
                f"| `{name}` | {_accepted(field)} | {_default(field)} | {_cell(field.description or '')} |\n"
            )
    if plain:
        yield f"\n## `[{place}]`\n\n" if place else "\n## At the top\n\n"
        yield "| key | accepted | default | what it is |\n| --- | --- | --- | --- |\n"
        yield from plain
    for key, inner in tables:
        yield from _table(key, inner)


ONE, BY_NAME, IN_A_ROW = "{}", "{}.NAME", "[{}]"
"""How a table is headed: by its key, by a name of the user's, or several in a row."""


def _inner(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The settings class that a key holds, and how its tables are headed."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ONE
    if get_origin(annotation) is dict:
        return _inner(get_args(annotation)[1])[0], BY_NAME
    if get_origin(annotation) is tuple:
        return _inner(get_args(annotation)[0])[0], IN_A_ROW
    for part in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ():
        found, many = _inner(part)
        if found is not None:
            return found, many
    return None, ONE


def _accepted(field: FieldInfo) -> str:
    if _inner(field.annotation)[0] is not None:
        return "table"
    schema = _schema_of(field)
    choices = schema.get("enum") or [part.get("const") for part in schema.get("anyOf", []) if "const" in part]
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    kinds = [part["type"] for part in schema.get("anyOf", [schema]) if part.get("type") not in (None, "null")]
    bounds = [
        f"{words} {schema[key]:g}" for key, words in BOUNDS.items() if isinstance(schema.get(key), int | float)
    ]
    return " ".join([" or ".join(dict.fromkeys(kinds)) or "text", ", ".join(bounds)]).strip()


BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def _schema_of(field: FieldInfo) -> dict[str, Any]:
    """The field's JSON schema with its references followed."""
    from pydantic import TypeAdapter

    annotated: Any = field.annotation
    for constraint in field.metadata:
        annotated = _with(annotated, constraint)
    schema = TypeAdapter(annotated).json_schema()
    reference = schema.get("$ref", "")
    return schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else schema


def _with(annotated: Any, constraint: Any) -> Any:
    from typing import Annotated

    return Annotated[annotated, constraint]


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return ""
    value = field.default
    text = str(value) if isinstance(value, Path) else json.dumps(value, default=_plain, ensure_ascii=False)
    return f"`{_cell(text)}`"


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main() -> int:
    """Write the page."""
    DOCUMENT.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
