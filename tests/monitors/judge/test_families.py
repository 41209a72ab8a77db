"""Test that judge and target are of different model families. The family is read from common model ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import ConfigError
from monitors.judge.families import (
    OTHER_NAMES,
    find_families,
    list_families,
    require_other_family,
    resolve_family,
)

IDS = [
    ("claude-haiku-5-5", "claude"),
    ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude"),
    ("vertex_ai/claude-opus-5-5@20260801", "claude"),
    ("anthropic/claude-sonnet-5-5", "claude"),
    ("openai/gpt-5.2", "gpt"),
    ("gpt4o", "gpt"),
    ("gpt-35-turbo", "gpt"),
    ("chatgpt-4o-latest", "gpt"),
    ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt"),
    ("o3-mini", "gpt"),
    ("openai/o1", "gpt"),
    ("azure/o4-mini", "gpt"),
    ("openai/gpt-oss-20b:free", "gpt"),
    ("models/gemini-3-pro", "gemini"),
    ("google/gemma-3-27b-it", "gemini"),
    ("codegemma:7b", "gemini"),
    ("meta-llama/Llama-3.3-70B-Instruct", "llama"),
    ("meta.llama3-70b-instruct-v1:0", "llama"),
    ("accounts/fireworks/models/llama-v3p1-405b-instruct", "llama"),
    ("TheBloke/Llama-2-7B-GPTQ", "llama"),
    ("lmsys/vicuna-13b-v1.5", "llama"),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral"),
    ("llama.cpp/mistral-7b.Q4_K_M.gguf", "mistral"),
    ("HuggingFaceH4/zephyr-7b-beta", "mistral"),
    ("ollama/qwen3:8b", "qwen"),
    ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen"),
    ("qwq-32b", "qwen"),
    ("deepseek-chat", "deepseek"),
    ("sarvam-105b", "sarvam"),
    ("x-ai/grok-4", "grok"),
    ("cohere.command-r-plus-v1:0", "command"),
    ("microsoft/Phi-3.5-mini", "phi"),
    ("amazon.nova-pro-v1:0", "nova"),
    ("zai-org/GLM-4.6", "glm"),
    ("chatglm3-6b", "glm"),
    ("groq/moonshotai/kimi-k2", "kimi"),
    ("MiniMaxAI/MiniMax-M2", "minimax"),
    ("ibm-granite/granite-3.3-8b", "granite"),
    ("tiiuae/falcon3-10b", "falcon"),
    ("01-ai/Yi-34B", "yi"),
]

TWO = [
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", {"deepseek", "llama"}),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", {"deepseek", "qwen"}),
    ("sarvamai/sarvam-m", {"sarvam", "mistral"}),
    ("nvidia/Llama-3.1-Nemotron-70B", {"llama", "nemotron"}),
]

UNKNOWN = [
    "my-deployment",
    "openrouter/auto",
    "groq/compound",
    "marco-o1",
    "llamafile/x",
    "llama-index",
    "EleutherAI/gpt-neox-20b",
    "gpt4all",
    "philosopher",
    "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc",
    "",
    "   ",
]


@pytest.mark.parametrize(("model", "family"), IDS)
def test_a_model_id_names_its_family(model, family):
    assert find_families(model) == {family}


@pytest.mark.parametrize(("model", "families"), TWO)
def test_a_model_with_teacher_and_base_is_of_both_families(model, families):
    assert find_families(model) == families


@pytest.mark.parametrize("model", UNKNOWN)
def test_unlisted_values_are_unknown_and_never_guessed(model):
    assert find_families(model) == frozenset()


@given(st.sampled_from([model for model, _ in IDS]), st.sampled_from(["upper", "lower", "title"]))
def test_case_does_not_matter(model, form):
    assert find_families(getattr(model, form)()) == find_families(model)


@given(st.text(max_size=60))
def test_any_text_names_known_families_only(text):
    assert find_families(text) <= set(list_families())


def test_a_family_may_be_called_by_its_maker():
    assert resolve_family("Anthropic") == {"claude"}
    assert resolve_family(" GPT ") == {"gpt"}
    assert resolve_family("llama-3.3-70b") == {"llama"}
    assert resolve_family("primary") == frozenset()
    assert set(OTHER_NAMES.values()) <= set(list_families())


def test_two_models_of_one_maker_share_a_family():
    assert find_families("claude-haiku-5-5") & find_families("anthropic.claude-opus-5-5")
    assert not find_families("claude-haiku-5-5") & find_families("gpt-5")
    assert not find_families("primary")
    assert find_families("DeepSeek-R1-Distill-Llama-8B") & find_families("llama-3.3-70b")


def test_a_judge_of_another_family_is_accepted():
    require_other_family("claude-haiku-5-5", target_family="llama", target_model="groq/llama-3.3-70b")


@pytest.mark.parametrize(
    ("judge", "family", "model", "said"),
    [
        ("claude-haiku-5-5", "claude", None, "to the same model family (claude)"),
        ("claude-haiku-5-5", "Anthropic", None, "to the same model family (claude)"),
        ("claude-haiku-5-5", "llama", "claude-sonnet-5-5", "to the same model family (claude)"),
        ("deepseek-r1-distill-llama-70b", "llama", None, "to the same model family"),
        ("house-model", "llama", None, 'house = ["house-model"]'),
        ("claude-haiku-5-5", "house", None, "to one of"),
        ("claude-haiku-5-5", None, "primary", "unknown"),
        ("claude-haiku-5-5", None, None, "Set model_family of targets.bot"),
    ],
)
def test_same_or_unknown_family_is_refused_with_the_way_out(judge, family, model, said):
    with pytest.raises(ConfigError) as caught:
        require_other_family(judge, target="targets.bot", target_family=family, target_model=model)
    assert said in str(caught.value)


def test_a_family_can_be_added_and_none_taken_away():
    """Settings can add families to the built-in table, but a model in the table also keeps its own family."""
    additions = {"House": ["house-*"], "gpt": ["acme-writer"], "other": ["claude-*"]}
    assert find_families("HOUSE-7", additions) == {"house"}
    assert find_families("acme-writer", additions) == {"gpt"}
    assert find_families("claude-haiku-5-5", additions) == {"claude", "other"}
    require_other_family("claude-haiku-5-5", target_family="house", additions={"house": []})
    with pytest.raises(ConfigError, match=r"to the same model family \(claude\)"):
        require_other_family("claude-haiku-5-5", target_family="claude", additions=additions)
