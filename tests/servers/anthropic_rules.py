"""Check requests like the Messages API: the errors for invalid requests, according to its documentation.

Sources: docs.anthropic.com, api/messages, api/errors, build-with-claude/structured-outputs and batch-processing;
parameter names from the SDK's own ``MessageCreateParams`` (2.12).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
TYPE_OF = {status: name for name, status in STATUS_OF.items()}

PARAMETERS = {
    "model", "max_tokens", "messages", "system", "metadata", "output_config", "service_tier", "stop_sequences",
    "stream", "thinking", "tools", "tool_choice", "cache_control", "container", "inference_geo",
}  # fmt: skip
"""The accepted parameters, without ``temperature``, ``top_p`` and ``top_k``, which are no longer supported."""

CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
CONTEXT_TOKENS = 200_000
UNSUPPORTED_IN_SCHEMA = {"minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems"}
"""Bounds in a JSON schema that structured output does not enforce. A schema with one of them is rejected."""


class Refusal(NamedTuple):
    """An error that the API returns, with its type and its message."""

    type: str
    message: str

    @property
    def status(self) -> int:
        """Return the HTTP status of the error."""
        return STATUS_OF[self.type]

    def body(self) -> dict[str, Any]:
        """Return the response body."""
        return {"type": "error", "error": {"type": self.type, "message": self.message}, "request_id": "req_test"}


def wrong_with(body: Any) -> Refusal | None:
    """Return the API's error for the request ``body``, or ``None`` if its parameters are valid."""
    if not isinstance(body, dict):
        return _invalid("Input should be an object")
    unknown = sorted(set(body) - PARAMETERS)
    if unknown:
        return _invalid(f"{unknown[0]}: Extra inputs are not permitted")
    missing = next((name for name in ("model", "max_tokens", "messages") if name not in body), None)
    if missing:
        return _invalid(f"{missing}: Field required")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        return _invalid("max_tokens: Input should be greater than or equal to 1")
    if not body["messages"] or body["messages"][0].get("role") != "user":
        return _invalid("messages: first message must use the user role")
    if not str(body["model"]).startswith("claude-"):
        return Refusal("not_found_error", f"model: {body['model']}")
    return _wrong_format(body.get("output_config") or {})


def _wrong_format(output: dict[str, Any]) -> Refusal | None:
    unknown = sorted(set(output) - {"effort", "format"})
    if unknown:
        return _invalid(f"output_config.{unknown[0]}: Extra inputs are not permitted")
    form = output.get("format")
    if form is None:
        return None
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        return _invalid("output_config.format: a json_schema with a schema is required")
    return _wrong_schema(form["schema"], "schema")


def _wrong_schema(schema: dict[str, Any], place: str) -> Refusal | None:
    bound = sorted(UNSUPPORTED_IN_SCHEMA & set(schema))
    if bound:
        return _invalid(f"output_config.format.{place}: '{bound[0]}' is not supported")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return _invalid(f"output_config.format.{place}: 'additionalProperties' must be explicitly set to false")
        inner = (_wrong_schema(value, f"{place}.{name}") for name, value in schema.get("properties", {}).items())
        return next((refusal for refusal in inner if refusal), None)
    if schema.get("type") == "array":
        return _wrong_schema(schema.get("items", {}), f"{place}.items")
    return None


def wrong_with_batch(body: Any) -> Refusal | None:
    """Return the API's error for the batch in ``body``, or ``None`` if the batch is valid.

    The requests in the batch are validated later, one by one.
    """
    requests = body.get("requests") if isinstance(body, dict) else None
    if not requests:
        return _invalid("requests: List should have at least 1 item")
    ids = [str(request.get("custom_id", "")) for request in requests]
    bad = next((request_id for request_id in ids if not CUSTOM_ID.match(request_id)), None)
    if bad is not None:
        return _invalid(f"requests: custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$': {bad}")
    if len(set(ids)) < len(ids):
        return _invalid("requests: custom_id must be unique")
    return None


def _invalid(message: str) -> Refusal:
    return Refusal("invalid_request_error", message)
