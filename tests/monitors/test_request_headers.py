"""Test that the error for a rejected request names the environment variables from which its headers come."""

from __future__ import annotations

import pytest

from monitors.request_headers import HeaderValue, build_request_headers, find_variables_in_refusal

KEY_HEADER = {"X-Api-Key": HeaderValue(env="BOT_KEY"), "X-Tenant": HeaderValue(value="acme")}


@pytest.mark.parametrize(
    ("table", "environment", "variables"),
    [
        ({}, {"BOT_TOKEN": "a-token"}, ("BOT_TOKEN",)),
        ({}, {"BOT_TOKEN": ""}, ("BOT_TOKEN",)),
        ({}, {}, ("BOT_TOKEN",)),
        (KEY_HEADER, {"BOT_KEY": "a-key"}, ("BOT_KEY",)),
        (KEY_HEADER, {"BOT_KEY": "a-key", "BOT_TOKEN": "a-token"}, ("BOT_TOKEN", "BOT_KEY")),
    ],
    ids=["token", "empty token", "no token", "key", "token and key"],
)
def test_an_explanation_contains_the_variables_to_check(table, environment, variables):
    headers = build_request_headers(table, environment, key="probe.headers", token_variable="BOT_TOKEN")
    assert find_variables_in_refusal(headers.explain_refusal(401)) == variables


@pytest.mark.parametrize("text", ["", "HTTP 500: the server has an error from THE_DATABASE and is down"])
def test_other_texts_contain_no_variables(text):
    assert find_variables_in_refusal(text) == ()
