"""Published training configurations become the recipes that their frameworks' code says; what cannot be expressed is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from macros import configs_script, dataset
from macros.configs.read import read_config
from macros.configs.yamltext import read_yaml
from macros.language import CODES, load
from macros.recipes import estimate_keys

ROOT = Path(__file__).parent.parent
PUBLISHED = yaml.safe_load((ROOT / "tests" / "configs" / "training.yml").read_text(encoding="utf-8"))
DATA = dataset.load(ROOT)
LISTS = ("understood", "ignored", "assumed", "errors")


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return configs_script.known(DATA)


def name(published: dict[str, Any]) -> str:
    return "/".join(published["at"].split("/")[7:])


@pytest.mark.parametrize("published", PUBLISHED, ids=name)
def test_a_published_configuration_becomes_its_recipe(published: dict[str, Any], known: dict[str, Any]) -> None:
    answer = read_config(known, published["text"])
    wanted = published.get("recipe", {})
    assert {key: answer["recipe"].get(key) for key in wanted} == wanted
    assert [item["key"] for item in answer["errors"]] == published.get("refused", [])
    if "refused" not in published:
        assert estimate_keys(DATA, answer["recipe"]).peak_bytes > 10**9


def test_there_are_enough_of_them() -> None:
    assert len(PUBLISHED) >= 15 and len({published["at"] for published in PUBLISHED}) == len(PUBLISHED)
    frameworks = {published["at"].split("/")[4] for published in PUBLISHED}
    assert frameworks == {"axolotl", "LLaMA-Factory", "alignment-handbook"}


@pytest.mark.parametrize("published", PUBLISHED, ids=name)
def test_every_key_is_told_of_once_with_its_line(published: dict[str, Any], known: dict[str, Any]) -> None:
    answer = read_config(known, published["text"])
    given_keys = set(yaml.safe_load(published["text"]))
    told = [item["key"] for kind in ("understood", "ignored", "errors") for item in answer[kind]]
    told += [item["key"] for item in answer["assumed"] if item["key"] in given_keys]
    tops = {key.split(".")[0] for key in told}
    model = {"base_model", "model_name_or_path"}
    assert given_keys - model <= tops
    lines = published["text"].splitlines()
    for kind in ("understood", "ignored", "errors"):
        for item in answer[kind]:
            if item["line"]:
                assert lines[item["line"] - 1].strip().lstrip("- ").startswith(item["key"].split(".")[-1]), item


@pytest.mark.parametrize("code", CODES)
def test_each_language_says_it(code: str, known: dict[str, Any]) -> None:
    words = load(code)
    for published in PUBLISHED:
        answer = read_config(known, published["text"])
        for item in [item for kind in LISTS for item in answer[kind]]:
            values = {"key": item["key"], "value": item["value"], "line": item["line"], **item["values"]}
            assert words.text(item["says"], **values)


@pytest.mark.parametrize("published", PUBLISHED, ids=name)
def test_yaml_is_read_as_pyyaml_reads_it(published: dict[str, Any]) -> None:
    """BaseLoader leaves every value a text, as the reader does."""
    tree = read_yaml(published["text"])
    assert tree.errors == []
    assert tree.value == yaml.load(published["text"], Loader=yaml.BaseLoader)


PLAIN = st.text("abcXYZ019_./", min_size=1, max_size=8)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(PLAIN, inner, min_size=1, max_size=3), max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(PLAIN, VALUES, min_size=1, max_size=4), st.sampled_from([False, None, True]))
def test_what_pyyaml_writes_is_read_back(value: dict[str, Any], flow: bool | None) -> None:
    text = yaml.dump(value, default_flow_style=flow, width=10_000)
    tree = read_yaml(text)
    assert tree.errors == []
    assert tree.value == yaml.load(text, Loader=yaml.BaseLoader)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.lists(st.sampled_from(["base_model: x\n", "adapter: qlora\n", "  - a\n", "--lora_r 8 ", "SFTConfig(", "'", "[", "{", ": ", "\t", "r=16)", "&a", "|\n", "stage: ppo\n"]), max_size=8).map("".join))
def test_no_text_breaks_it(text: str) -> None:
    answer = read_config(configs_script.known(DATA), text)
    assert set(answer) == {"framework", "recipe", *LISTS}


def test_a_command_of_trl(known: dict[str, Any]) -> None:
    """After https://huggingface.co/docs/trl/sft_trainer, with a model that the guide has; 1024 is SFTConfig's max_length."""
    text = "accelerate launch sft.py --model_name_or_path Qwen/Qwen3-0.6B --dtype bfloat16 --use_peft --lora_r 32 --per_device_train_batch_size=2 --gradient_accumulation_steps 8"
    answer = read_config(known, text)
    assert (answer["framework"], answer["errors"]) == ("trl", [])
    wanted = {"model": "qwen3-0.6b", "method": "lora", "lora_r": 32, "micro_batch_size": 2, "gradient_accumulation_steps": 8}
    wanted |= {"sequence_length": 1024, "base_dtype": "bfloat16", "preset": "trl"}
    assert {key: answer["recipe"].get(key) for key in wanted} == wanted


def test_calls_of_a_script(known: dict[str, Any]) -> None:
    text = '''
model = AutoModelForCausalLM.from_pretrained(
    "meta-llama/Llama-3.1-8B",
    quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
    dtype=torch.bfloat16,
)
peft_config = LoraConfig(r=64, lora_alpha=16, target_modules=["q_proj", "v_proj"])
args = SFTConfig(output_dir="out", max_length=4096, per_device_train_batch_size=1, gradient_accumulation_steps=16)
'''
    answer = read_config(known, text)
    assert answer["errors"] == []
    wanted = {"model": "llama-3.1-8b", "method": "qlora", "double_quant": True, "lora_r": 64, "target_modules": ["q_proj", "v_proj"]}
    wanted |= {"sequence_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 16}
    assert {key: answer["recipe"].get(key) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("base_model: mistralai/Mistral-7B-v0.1\nadapter: qlora\nload_in_4bit: true\nsequence_len: long\nmicro_batch_size: 1\n", "sequence_len", "config.no_count"),
        ("model_name_or_path: meta-llama/Llama-3.1-8B\nstage: ppo\nfinetuning_type: lora\n", "stage", "config.not_modelled"),
        ("base_model: &x mistralai/Mistral-7B-v0.1\nadapter: lora\n", "", "config."),
        ("", "", "config.nothing"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, key: str, says: str, known: dict[str, Any]) -> None:
    errors = read_config(known, text)["errors"]
    assert any(error["key"] == key and error["says"].startswith(says) for error in errors), errors
