"""Write the files of ``lookout init``: ``lookout.toml``, a first suite, and instructions for senders.

All of them are written or none, and never over another file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deployments.cli.init.answers import Answers
from monitors.config.file import FILE_NAME
from monitors.errors import ConfigError
from monitors.judge.families import resolve_family
from monitors.storage import move

SUITE_NAME: Final = "suite.jsonl"
WEBHOOKS_NAME: Final = "webhooks.md"
FIRST_SUITE: Final = Path(__file__).with_name("first_suite.jsonl")
OWN_FAMILY: Final = "claude"
"""The family of the judge that is written when another one answers."""

_CONFIG: Final = """\
# Written by `lookout init`. docs/configuration.md has every key. Never write secrets here: put them in
# environment variables. Lines that begin with # are switched off.

[targets.{name}]
{where}
environment = "{environment}"
{family}
domains = {domains}  # what it talks about: docs/domains.md
suite = "suite.jsonl"  # examples that fit any chat: replace them with questions whose right answer you know

[targets.{name}.graders]
citation_required = false  # true: an answer that does not name its source is wrong

{probe}{judge}
[alerts]
{channel}

# Webhooks that report deploys: see webhooks.md. `lookout up` starts only after the secret is set.
{triggers}"""

_JUDGE: Final = """\
# If ANTHROPIC_API_KEY is set, a judge grades the answers that rules cannot grade; a run spends at most this.
[judge]
budget_usd = 2
"""

_NO_JUDGE: Final = """\
# A judge (a model) can grade the answers that rules cannot grade. It must be of another family than the model
# that answers. Set model_family above, remove the # here, and set ANTHROPIC_API_KEY.
# [judge]
# budget_usd = 2
"""

_OTHER_JUDGE: Final = """\
# A judge of another family than {family}, for example this model, can grade the answers that rules cannot grade.
# It needs the extra `openai`, the key, and the model's price from the provider's present price list.
# [judge]
# budget_usd = 2
# [[judge.models]]
# provider = "openai"
# model = "mistral-large-3"
# base_url = "https://api.mistral.ai/v1"
# key_variable = "MISTRAL_API_KEY"
# [[judge.prices]]
# model = "mistral-*"
# input = 2
# output = 6
# as_of = 2026-11-22
# source = "an example: read it in the maker's price list"
"""

_HUB_TRIGGER: Final = """\
# [[deploys.triggers]]
# provider = "huggingface"
# repository = {space}
# target = "{name}"
"""

_GITHUB_TRIGGER: Final = """\
# [[deploys.triggers]]
# provider = "github"
# repository = "owner/name"
# target = "{name}"
"""

_WEBHOOKS: Final = """\
# A run after every deploy of {name}

Your deployment notifies `lookout up` (or `lookout receive`), which verifies each commit once.{poll}

1. In `lookout.toml`, remove the `#` before the trigger that you use, and set its repository.
2. Create a secret of random characters, put it into the environment of `lookout up`, and enter it at the sender:

| sender | environment variable with the secret |
| --- | --- |
| Hugging Face | `LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET` |
| GitHub | `LOOKOUT_GITHUB_WEBHOOK_SECRET` |

       openssl rand -hex 32

3. Configure your TLS proxy to forward only `/deploys/…` of a host of yours to port 8066 of this machine.

## At Hugging Face

Settings → Webhooks → Add a new webhook:

- Watched repositories: {space_words}
- Webhook URL: `https://YOUR-HOST/deploys/huggingface`
- Secret: the value of `LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET`
- Events: only Repo update (content)

## At GitHub

The repository's Settings → Webhooks → Add webhook:

- Payload URL: `https://YOUR-HOST/deploys/github`
- Content type: `application/json`
- Secret: the value of `LOOKOUT_GITHUB_WEBHOOK_SECRET`
- Events: `Deployment statuses` (`deployment_status`). If you do not use GitHub's own deployments:
  `Workflow runs`, with `event = "workflow_run"` in the trigger, or `Pushes`, with `event = "push"`

## Check that deliveries arrive

    curl http://127.0.0.1:8066/readyz

Both senders show the answer to each delivery: 202 stored, 200 already known or not for Lookout, 401 wrong secret.
"""

_POLL: Final = (
    " Lookout also\npolls the Space's running commit every minute, so a lost delivery delays a run by one minute."
)


def format_files(answers: Answers, probe: str = "") -> Mapping[str, str]:
    """Format each file's text by its name; the configuration's is always ``lookout.toml``.

    ``probe`` are the lines of the target's `probe` table, empty for a page.
    """
    target = answers.target
    name = target.name
    space = json.dumps(target.space)
    triggers = (_HUB_TRIGGER if target.space else "") + _GITHUB_TRIGGER
    config = _CONFIG.format(
        name=name,
        where=f"space = {space}" if target.space else f"url = {_quote_toml(target.url or '')}",
        environment=target.environment.value,
        family=f"model_family = {_quote_toml(target.model_family)}" if target.model_family else _NO_FAMILY,
        domains=json.dumps(answers.domains),
        probe=f"[targets.{name}.probe]\n{probe}\n" if probe else "",
        judge=_format_judge(target.model_family),
        channel=_format_channel(answers),
        triggers=triggers.format(space=space, name=name),
    )
    webhooks = _WEBHOOKS.format(
        name=name,
        poll=_POLL if target.space else "",
        space_words=f"`{target.space}`, as a Space" if target.space else "the Space `owner/name`, if it is one",
    )
    return {
        FILE_NAME: config,
        SUITE_NAME: FIRST_SUITE.read_text(encoding="utf-8"),
        WEBHOOKS_NAME: webhooks,
    }


_NO_FAMILY: Final = '# model_family = "llama"  # of the model that answers'


def _format_judge(family: str | None) -> str:
    if family is None:
        return _NO_JUDGE
    return _OTHER_JUDGE.format(family=family) if OWN_FAMILY in resolve_family(family) else _JUDGE


def _format_channel(answers: Answers) -> str:
    channel = answers.channel
    if answers.by_webhook:
        return "# alerts go to SLACK_WEBHOOK_URL; until it is set, they are printed and stored"
    if channel is None:
        return '# slack_channel = "#alerts"  # for SLACK_BOT_TOKEN; SLACK_WEBHOOK_URL needs no channel'
    return (
        f"slack_channel = {_quote_toml(channel)}  # for SLACK_BOT_TOKEN; SLACK_WEBHOOK_URL has a channel of its own"
    )


def _quote_toml(text: str) -> str:
    """Quote a TOML string, whose escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False)


def list_file_paths(config_path: Path) -> Mapping[str, Path]:
    """Return the path of each file: all beside the configuration."""
    folder = config_path.parent
    return {
        FILE_NAME: config_path,
        SUITE_NAME: folder / SUITE_NAME,
        WEBHOOKS_NAME: folder / WEBHOOKS_NAME,
    }


def refuse_existing(config_path: Path) -> None:
    """Raise `ConfigError` naming every file that exists already."""
    existing = [str(path) for path in list_file_paths(config_path).values() if path.exists() or path.is_symlink()]
    if existing:
        raise ConfigError(
            f"nothing was written, because {', '.join(existing)} already "
            f"{'exists' if len(existing) == 1 else 'exist'}; --force renames existing files, and --config writes "
            "into another folder"
        )


def write_files(config_path: Path, answers: Answers, *, force: bool, probe: str = "") -> tuple[Path, ...]:
    """Write all three files, or none; return the new paths of files moved aside. ``probe`` as for `format_files`.

    Nothing is ever overwritten: without ``force`` a file that exists is refused, with it the file gets another
    name. Raises `ConfigError`.
    """
    if not force:
        refuse_existing(config_path)
    content = format_files(answers, probe)
    moved: dict[Path, Path] = {}
    written: list[Path] = []
    file_path = config_path.parent
    try:
        file_path.mkdir(parents=True, exist_ok=True)
        for key, file_path in list_file_paths(config_path).items():
            if force and (file_path.exists() or file_path.is_symlink()):
                moved[file_path] = move(file_path, _find_free_name(file_path))
            with file_path.open("x", encoding="utf-8") as file:
                written.append(file_path)
                file.write(content[key])
    except OSError as error:
        for path in written:
            path.unlink()
        for path, aside in moved.items():
            move(aside, path)
        raise ConfigError(f"{file_path}: cannot be written ({error.strerror}); nothing was changed") from error
    return tuple(moved.values())


def _find_free_name(path: Path) -> Path:
    """Return ``lookout.toml.old``, or the first free name of ``.old-2``, ``.old-3`` and so on."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.old" + (f"-{number}" if number > 1 else ""))
        if not (aside.exists() or aside.is_symlink()):
            return aside
        number += 1
