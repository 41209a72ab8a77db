"""Write the files of ``lookout init``: ``lookout.toml``, a first suite, and instructions for webhooks.

Either all files are written or none. No existing file is overwritten.
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
"""Model family of the judge in the new configuration, unless the application's model is of this family."""

_CONFIG: Final = """\
# `lookout init` wrote this file. docs/configuration.md explains all settings. Never write secrets here: put them
# into environment variables. Lines that begin with # have no effect.

[targets.{name}]
{where}
environment = "{environment}"
{family}
domains = {domains}  # the subject of the application: docs/domains.md
suite = "suite.jsonl"  # examples for any chat: replace them with questions whose right answer you know

[targets.{name}.graders]
citation_required = false  # true: an answer without a source fails

{probe}{judge}
[alerts]
{channel}

# Webhooks about deploys: see webhooks.md. If you use one, set its secret, because `lookout up` needs it.
{triggers}"""

_JUDGE: Final = """\
# If ANTHROPIC_API_KEY is set, a judge grades the answers that rules cannot grade. A run spends at most budget_usd.
[judge]
budget_usd = 2
"""

_NO_JUDGE: Final = """\
# A judge is a model that grades the answers that rules cannot grade. The judge must be of another family than the
# model of the application. To use it: set model_family above, remove the # here, and set ANTHROPIC_API_KEY.
# [judge]
# budget_usd = 2
"""

_OTHER_JUDGE: Final = """\
# A judge is a model that grades the answers that rules cannot grade. The judge must be of another family than
# {family}. The model below needs the extra `openai`, a key, and its price from the provider's list.
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
# source = "an example: read the price in the provider's list"
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

After each deploy, Hugging Face or GitHub sends a webhook to `lookout up` (or `lookout receive`). Lookout then
verifies the commit once.{poll}

1. In `lookout.toml`, remove the `#` before the trigger that you use, and set its repository.
2. Create a random secret. Put the secret into the environment of `lookout up`, and enter it at the sender:

| sender | environment variable with the secret |
| --- | --- |
| Hugging Face | `LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET` |
| GitHub | `LOOKOUT_GITHUB_WEBHOOK_SECRET` |

       openssl rand -hex 32

3. Configure your TLS proxy so that it forwards only `/deploys/…` to port 8066 of this machine.

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

Both senders show the HTTP status of each delivery. 202: stored. 200: already known, or not for Lookout. 401:
wrong secret.
"""

_POLL: Final = (
    " Lookout also asks\nfor the running commit of the Space every minute, so a lost webhook delays a run by "
    "only one "
    "minute."
)


def format_init_files(answers: Answers, probe: str = "") -> Mapping[str, str]:
    """Return the text of each file. The keys of the result are file names.

    ``probe`` is the text of the target's `probe` table. For a page, this text is empty.
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
        space_words=f"`{target.space}`, as a Space"
        if target.space
        else "the Space `owner/name`, if the application is a Space",
    )
    return {
        FILE_NAME: config,
        SUITE_NAME: FIRST_SUITE.read_text(encoding="utf-8"),
        WEBHOOKS_NAME: webhooks,
    }


_NO_FAMILY: Final = '# model_family = "llama"  # the family of the model that the application uses'


def _format_judge(family: str | None) -> str:
    if family is None:
        return _NO_JUDGE
    return _OTHER_JUDGE.format(family=family) if OWN_FAMILY in resolve_family(family) else _JUDGE


def _format_channel(answers: Answers) -> str:
    channel = answers.channel
    if answers.by_webhook:
        return "# Alerts go to SLACK_WEBHOOK_URL. Until it is set, Lookout only prints and stores alerts."
    if channel is None:
        return '# slack_channel = "#alerts"  # with SLACK_BOT_TOKEN; SLACK_WEBHOOK_URL has its own channel'
    return f"slack_channel = {_quote_toml(channel)}  # with SLACK_BOT_TOKEN; SLACK_WEBHOOK_URL has its own channel"


def _quote_toml(text: str) -> str:
    """Format the text as a TOML string."""
    return json.dumps(text, ensure_ascii=False)


def list_init_file_paths(config_path: Path) -> Mapping[str, Path]:
    """Return the path of each file. All files are in the folder of the configuration."""
    folder = config_path.parent
    return {
        FILE_NAME: config_path,
        SUITE_NAME: folder / SUITE_NAME,
        WEBHOOKS_NAME: folder / WEBHOOKS_NAME,
    }


def refuse_existing_files(config_path: Path) -> None:
    """Raise a `ConfigError` that lists every file that already exists."""
    existing = [
        str(path) for path in list_init_file_paths(config_path).values() if path.exists() or path.is_symlink()
    ]
    if existing:
        raise ConfigError(
            f"nothing was written, because {', '.join(existing)} already "
            f"{'exists' if len(existing) == 1 else 'exist'}. Use --force to rename existing files, or --config to "
            "write into another folder"
        )


def write_init_files(config_path: Path, answers: Answers, *, force: bool, probe: str = "") -> tuple[Path, ...]:
    """Write all three files, or none. Return the new paths of renamed existing files.

    No file is overwritten. If a file exists, it is renamed if ``force`` is true; otherwise `ConfigError` is raised.
    ``probe`` is the text of the target's `probe` table.
    """
    if not force:
        refuse_existing_files(config_path)
    content = format_init_files(answers, probe)
    moved: dict[Path, Path] = {}
    written: list[Path] = []
    file_path = config_path.parent
    try:
        file_path.mkdir(parents=True, exist_ok=True)
        for key, file_path in list_init_file_paths(config_path).items():
            if force and (file_path.exists() or file_path.is_symlink()):
                moved[file_path] = move(file_path, _find_free_old_name(file_path))
            with file_path.open("x", encoding="utf-8") as file:
                written.append(file_path)
                file.write(content[key])
    except OSError as error:
        for path in written:
            path.unlink()
        for path, aside in moved.items():
            move(aside, path)
        raise ConfigError(
            f"nothing was changed, because {file_path} cannot be written: {error.strerror}"
        ) from error
    return tuple(moved.values())


def _find_free_old_name(path: Path) -> Path:
    """Return the first free name, such as ``lookout.toml.old``, ``lookout.toml.old-2`` and so on."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.old" + (f"-{number}" if number > 1 else ""))
        if not (aside.exists() or aside.is_symlink()):
            return aside
        number += 1
