"""``lookout site token``: create, list and revoke the tokens for the login to the site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.data_folder import find_data_folder
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from deployments.site.tokens import Role, TokenStore
from flows.terminal import print_text, write_json, write_text
from monitors.records.base import Record

NameArgument = Annotated[
    str, typer.Argument(help="the name of the person, which is stored with each of their decisions")
]
RoleOption = Annotated[
    Role, typer.Option(help="read (the person can only view) or operate (the person can also decide)")
]
PersonalOption = Annotated[
    bool,
    typer.Option("--personal-data", help="let the person see personal data. Lookout logs each view of such data"),
]


class NewToken(Record):
    """A new token. It is shown only once."""

    name: str
    role: Role
    sees_personal_data: bool
    token: str


def add_command(
    name: NameArgument,
    *,
    role: RoleOption = Role.READ,
    personal_data: PersonalOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a person's token for the login to the site. The token is shown only once."""
    from flows.clock import utc_now  # slow: imports duckdb and every SDK

    token = _open_token_store(config, data_folder).create_token(
        name, role, sees_personal_data=personal_data, at=utc_now()
    )
    if as_json:
        new_token = NewToken(name=name, role=role, sees_personal_data=personal_data, token=token)
        write_json(new_token.model_dump_json() + "\n")
        return
    print_text(
        f"Copy the token of {name} now. Lookout stores only its hash and cannot show the token again:", err=True
    )
    write_text(f"{token}\n")


def list_command(
    *, config: ConfigOption = DEFAULT_CONFIG, data_folder: FolderOption = None, as_json: JsonOption = False
) -> None:
    """List the people who have a token, and their permissions."""
    tokens = _open_token_store(config, data_folder).load_tokens()
    for token in tokens:
        personal = ", sees personal data" if token.sees_personal_data else ""
        if as_json:
            write_json(token.model_dump_json(exclude={"sha256"}) + "\n")
        else:
            print_text(f"{token.name}  {token.role}{personal}, since {token.made_at:%Y-%m-%d}")
    if not tokens and not as_json:
        print_text("There are no tokens. To create a token, run `lookout site token add NAME --role operate`")


def revoke_command(
    name: NameArgument, *, config: ConfigOption = DEFAULT_CONFIG, data_folder: FolderOption = None
) -> None:
    """Revoke a person's token. Their open sessions end at once."""
    _open_token_store(config, data_folder).revoke_token(name)
    print_text(f"The token of {name} is revoked.")


def _open_token_store(config: Path, data_folder: Path | None) -> TokenStore:
    from deployments.site.serve import build_token_store  # slow: imports uvicorn and starlette

    return build_token_store(find_data_folder(config, data_folder))
