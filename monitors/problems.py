"""Explain errors in a configuration file: the key, its value, and the accepted values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

Place = tuple[str | int, ...]
"""The location of a value, as pydantic reports it in ``loc``.

The location consists of keys, positions in lists, and names of the branches of a union.
"""

URL_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]+@")
"""Pattern that matches the user name and the password in an address."""

_NOISE = ("Input should be ", "Value error, ")


def explain_validation_error(
    root: type[BaseModel], detail: Mapping[str, Any], renamed: Mapping[str, str] | None = None
) -> str:
    """Return one line that explains a pydantic error about the settings class ``root``.

    ``detail`` is one item of ``ValidationError.errors()``. ``renamed`` maps old keys to new keys, as in
    `find_new_name_of_key`.
    """
    place: Place = detail["loc"]
    key = format_key_path_as_written(root, place)
    if detail["type"] == "extra_forbidden" and (new := find_new_name_of_key(key, renamed or {})):
        return f"{key}: renamed to {new}"
    if detail["type"] == "extra_forbidden":
        accepted_keys = [name for model in _list_models_at_place(root, place[:-1]) for name in model.model_fields]
        suggestion = format_did_you_mean_hint(str(place[-1]), accepted_keys)
        accepted = f"; accepted: {', '.join(accepted_keys)}" if accepted_keys and not suggestion else ""
        return f"{key}: unknown key{suggestion}{accepted}"
    if detail["type"] == "missing":
        return f"{key}: missing; {_find_description(root, place)}"
    if detail["type"] == "union_tag_not_found":
        name = str(detail["ctx"]["discriminator"]).strip("'")
        return f"{key}.{name}: missing; expected one of {', '.join(_list_accepted_union_tags(root, place, name))}"
    if detail["type"] == "union_tag_invalid":
        context = detail["ctx"]
        return (
            f"{key}.{context['discriminator'].strip(chr(39))}: {context['tag']!r} is not accepted; expected one of "
            + str(context["expected_tags"])
        )
    message = str(detail["msg"])
    for noise in _NOISE:
        message = message.removeprefix(noise)
    if isinstance(detail["input"], Mapping):
        return f"{key}: {message}" if key else message
    shown = "the value" if "headers" in place else URL_CREDENTIALS.sub("[secret]@", repr(detail["input"]))
    return f"{key}: {shown} is not accepted; expected {message}{_format_percentage_hint(detail)}"


def find_new_name_of_key(key: str, renamed: Mapping[str, str]) -> str | None:
    """Return the new name of ``key``, or ``None`` if the key was not renamed.

    ``renamed`` maps old names to new names. ``*`` in an old name matches one part of a key, whatever it is. In the
    new name, ``*`` stands for the same part.
    """
    for old, new in renamed.items():
        match = re.fullmatch(re.escape(old).replace(r"\*", r"([^.]+)"), key)
        if match:
            parts = iter(match.groups())
            return ".".join(next(parts) if part == "*" else part for part in new.split("."))
    return None


def _format_percentage_hint(detail: Mapping[str, Any]) -> str:
    """Return a hint to write, for example, 0.5 instead of 50.

    Return an empty string if the value does not look like a percentage.
    """
    given, limits = detail["input"], detail.get("ctx", {})
    if detail["type"] != "less_than_equal" or limits.get("le") != 1 or not isinstance(given, int | float):
        return ""
    return f" ({given / 100:g} for {given:g} %)" if 1 < given <= 100 else ""  # noqa: PLR2004 - percent


def format_did_you_mean_hint(name: str, candidates: Sequence[str] | Mapping[str, object]) -> str:
    """Return a hint with the most similar name, or an empty string if no name is similar."""
    close = difflib.get_close_matches(name, list(candidates), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _list_accepted_union_tags(root: type[BaseModel], place: Place, name: str) -> list[str]:
    """Return the accepted values of the key ``name`` at ``place``.

    The value of this key selects one of several settings classes.
    """
    fields = (model.model_fields.get(name) for model in _list_models_at_place(root, place))
    return [repr(tag) for field in fields if field is not None for tag in get_args(field.annotation)]


def _find_description(root: type[BaseModel], place: Place) -> str:
    fields = (model.model_fields.get(str(place[-1])) for model in _list_models_at_place(root, place[:-1]))
    return next((field.description for field in fields if field and field.description), "it is required")


def _list_models_at_place(root: type[BaseModel], place: Place) -> list[type[BaseModel]]:
    """Return the settings classes that a value at ``place`` may have. The search starts at the class ``root``."""
    types: list[Any] = [root]
    for part in place:
        types = [inner for annotation in types for inner in _find_inner_types(annotation, part)]
    return [annotation for annotation in types if _is_model(annotation)]


def format_key_path_as_written(root: type[BaseModel], place: Place) -> str:
    """Return the full key at ``place`` as it is written in the file, with dots between its parts.

    pydantic adds the names of union branches to ``place``. These names are omitted.
    """
    types: list[Any] = [root]
    shown: list[str] = []
    for part in place:
        branch = any(
            _is_model(annotation) and part not in annotation.model_fields and _has_union_tag(annotation, part)
            for annotation in types
        )
        if not branch:
            shown.append(str(part))
        types = [inner for annotation in types for inner in _find_inner_types(annotation, part)]
    return ".".join(shown)


def _find_inner_types(annotation: Any, part: str | int) -> list[Any]:
    """Return the types that the value under ``part`` may have. ``part`` is a key or a position in a list."""
    if _is_model(annotation):
        field = annotation.model_fields.get(str(part))
        if field is not None:
            return _list_union_types(field.annotation)
        return [annotation] if _has_union_tag(annotation, part) else []
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (dict, Mapping):
        return _list_union_types(inner[1])
    if origin in (tuple, list) and isinstance(part, int):
        return _list_union_types(inner[0])
    return []


def _list_union_types(annotation: Any) -> list[Any]:
    """Return the types in a union. If ``annotation`` is not a union, return only its own type."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _list_union_types(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [branch for argument in get_args(annotation) for branch in _list_union_types(argument)]
    return [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _has_union_tag(model: type[BaseModel], tag: str | int) -> bool:
    """Return whether the value ``tag`` selects ``model`` among the classes of a union."""
    tags = (field.annotation for field in model.model_fields.values() if get_origin(field.annotation) is Literal)
    return any(tag in get_args(tag_type) for tag_type in tags)


def refuse_password(address: str) -> str:
    """Return the address unchanged. Raises ``ValueError`` if the address contains a user name or a password."""
    if URL_CREDENTIALS.search(address):
        raise ValueError("an address without user name and password. Set credentials in the environment")
    return address
