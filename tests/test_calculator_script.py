"""What the calculator says and reads is the same in V8 as in CPython, in each language: texts, addresses, fields, problems."""

from __future__ import annotations

import json
import random
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from macros import address, calculator, configs_script, shown
from macros.configs.read import read_config
from macros.configs.write import KINDS, write_config
from macros.dataset import Dataset
from macros.estimator import QUESTIONS, Recipe
from macros.estimator.recipe import TABLES
from macros.recipes import REFERENCES, estimate_keys
from tests.recipes import random_recipes
from tests.test_configs import PUBLISHED
from tests.test_configs_export import USUAL
from tests.test_portable import browser_side, data, dataset, differences, text

LANGUAGES = ("de", "en", "tr")
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def recipes(data: dict[str, Any]) -> list[dict[str, Any]]:
    """One recipe of each structure, with questions in some."""
    chance = random.Random(7)
    drawn = [keys for keys in list(random_recipes(data, 400, seed=5))[::13] if "config" not in keys or keys["config"]]
    for keys in drawn[::3]:
        keys.update(dataset_tokens=chance.choice([1, 999_999, 50_000_000]), epochs=chance.choice([1, 2.5]), price_per_hour=chance.choice([0, 1.99]))
    for keys in drawn:
        if "modules_to_save" in keys:  # one choice, whatever the order
            keys["modules_to_save"] = [name for name in TABLES if name in keys["modules_to_save"]]
    return [{key: value for key, value in keys.items() if value is not None} for keys in drawn]


def test_every_setting_has_a_field_and_a_kind() -> None:
    keys = {field.name for field in fields(Recipe)}
    shown_keys = [key for group in calculator.GROUPS.values() for key in group] + list(calculator.MAIN)
    assert len(shown_keys) == len(set(shown_keys))
    assert set(shown_keys) == keys | set(QUESTIONS) | {"model", "gpu", "preset"}
    assert set(REFERENCES) == {"model", "gpu", "preset", "config"}
    kinds = [*address.CHOICES, *address.FLAGS, *address.SHARES, *address.LISTS, *address.LIMITS, "fsdp_version"]
    assert sorted(kinds) == sorted(keys)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_the_same(language: str, browser_side: MiniRacer, data: dict[str, Any], recipes: list[dict[str, Any]]) -> None:
    words = calculator.words_for(language)
    share = recipes[LANGUAGES.index(language) :: 3]
    calls: list[list[Any]] = [["settled_keys", [keys]] for keys in share]
    for number, keys in enumerate(share):
        kept = shown.settled_keys(data, keys)
        if kept["sentence"]:
            continue
        kept, unit = kept["keys"], ("gb", "gib")[number % 2]
        calls += [["result_texts", [words, kept, unit]], ["settings_texts", [words, kept]], ["cards_texts", [words, kept, unit]]]
        calls += [["advice_texts", [words, kept, unit]]] if number % 3 == 0 else []
        calls += [["limits_texts", [words, kept, unit]]] if number % 7 == 0 else []
        calls += [["capacity_texts", [words, kept, [kept["model"]], unit]]] if number % 9 == 0 and "model" in kept and kept.get("gpu") else []
    assert len(calls) > 300
    assert {name for name, _ in calls} >= {"limits_texts", "capacity_texts", "advice_texts"}
    assert differences(browser_side, data, calls)[:2] == []


def test_addresses_are_read_and_written_alike(browser_side: MiniRacer, data: dict[str, Any], recipes: list[dict[str, Any]]) -> None:
    pairs = [address.pairs_of(keys) for keys in recipes]
    broken = ["", "x", "-1", "1.5", "1,5", "0,05", "4.096", "99999999999999999999", "true", "wahr", "1e3", "2048 ", "5O", "50M", "1,5 Mrd", "none", "lm_head", "q_proj, v_proj", ",", "ü" * 60]
    names = [*address.SHORT, *address.CHOICES, *address.FLAGS, *address.SHARES, *address.LISTS, "fsdp_version", "epochs", "model", "gpu", "preset", "config", "nonsense"]
    pairs += [[[name, value]] for name in names for value in broken]
    calls = [["read_pairs", [each]] for each in pairs] + [["pairs_of", [keys]] for keys in recipes] + [["number_of", [value]] for value in broken]
    assert differences(browser_side, data, calls)[:3] == []
    problems = [problem for each in pairs for problem in address.read_pairs(data, each)["problems"]]
    for language in LANGUAGES:
        words = calculator.words_for(language)
        calls = [["problem_text", [words, problem]] for problem in problems]
        assert differences(browser_side, data, calls)[:3] == []
        assert not [text for _, (_, problem) in calls if "{" in (text := shown.problem_text(words, problem))]


def test_an_address_gives_back_what_was_set(data: dict[str, Any], recipes: list[dict[str, Any]]) -> None:
    for keys in recipes:
        if "config" not in keys:
            assert address.read_pairs(data, address.pairs_of(keys)) == {"keys": keys, "problems": []}


@pytest.mark.parametrize(
    ("pair", "key", "value"),
    [
        (["length", "4096"], "sequence_length", 4096),
        (["length", "4.096"], "sequence_length", 4096),
        (["length", "1,048,576"], "sequence_length", 1_048_576),
        (["batch", "2"], "micro_batch_size", 2),
        (["dropout", "0,05"], "lora_dropout", 0.05),
        (["dropout", "0.05"], "lora_dropout", 0.05),
        (["price", "1,99"], "price_per_hour", 1.99),
        (["price", "0.125"], "price_per_hour", 0.125),
        (["price", "1.2340"], "price_per_hour", 1.234),
        (["tokens", "50M"], "dataset_tokens", 50_000_000),
        (["tokens", "50,000"], "dataset_tokens", 50_000),
        (["tokens", "50.000.000"], "dataset_tokens", 50_000_000),
        (["tokens", "1,5 Mio."], "dataset_tokens", 1_500_000),
        (["tokens", "2 milyar"], "dataset_tokens", 2_000_000_000),
        (["targets", "q_proj, v_proj"], "target_modules", ["q_proj", "v_proj"]),
        (["checkpointing", "false"], "gradient_checkpointing", False),
        (["modules_to_save", "none"], "modules_to_save", []),
    ],
)
def test_what_people_type(data: dict[str, Any], pair: list[str], key: str, value: object) -> None:
    assert address.read_pairs(data, [pair]) == {"keys": {key: value}, "problems": []}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (["length", "4k"], "Sequence length: a whole number from 1 to 1,048,576."),
        (["length", "4.5"], "Sequence length: a whole number from 1 to 1,048,576."),
        (["length", "40,96"], "Sequence length: a whole number from 1 to 1,048,576."),
        (["price", "2,000"], "Price per GPU and hour: a number from 0 to 1,000,000."),
        (["gpu", "rtx-9999"], "GPU: there is no “rtx-9999” here."),
        (["lenght", "5"], "There is no setting “lenght” here."),
        (["dropout", "1"], "LoRA dropout: a number from 0 to 1."),
    ],
)
def test_what_is_wrong_is_named_and_the_rest_kept(data: dict[str, Any], pair: list[str], said: str) -> None:
    read = address.read_pairs(data, [["method", "lora"], pair])
    assert read["keys"] == {"method": "lora"}
    assert [shown.problem_text(calculator.words_for("en"), problem) for problem in read["problems"]] == [said]


def test_three_decimals_come_back_from_an_address(data: dict[str, Any]) -> None:
    assert address.pairs_of({"price_per_hour": 1.234}) == [["price", "1.2340"]]
    assert address.read_pairs(data, [["price", "1.2340"]])["keys"] == {"price_per_hour": 1.234}


def test_contradictions_leave_the_rest(data: dict[str, Any]) -> None:
    keys = {"model": "llama-3.1-8b", "method": "full", "lora_r": 8, "sequence_length": 512, "offload_params": True}
    assert shown.settled_keys(data, keys) == {
        "keys": {"model": "llama-3.1-8b", "method": "full", "sequence_length": 512},
        "dropped": ["lora_r", "offload_params"],
        "sentence": "",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_script_gets_every_word_that_it_says(language: str) -> None:
    source = (ROOT / "docs/assets/javascripts/calculator.js").read_text(encoding="utf-8")
    words = calculator.words_for(language)
    asked = {f"calculator.{key}" for key in re.findall(r'say\("([\w.-]+)"', source)} | set(re.findall(r'words\["([\w.-]+)"\]', source))
    assert {key for key in asked if not key.endswith(".") and key not in words} == set()


def test_the_form_script_does_no_arithmetic() -> None:
    """Figures come from the estimator; the form counts tasks and pieces of a list, nothing else."""
    source = (ROOT / "docs/assets/javascripts/calculator.js").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    code = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', '""', code)
    assert not re.findall(r"[*/%]|Math\.|toFixed|toLocale|parseFloat|parseInt|Number\(", code)


def test_configurations_are_read_and_written_alike(dataset: Dataset) -> None:
    known = configs_script.known(dataset)
    texts = [published["text"] for published in PUBLISHED]
    # Cut short, so that quotes, brackets and indentation break off anywhere.
    texts += [text[: len(text) * part // 7] for text in texts for part in range(1, 7)]
    texts += ["python sft.py --model_name_or_path Qwen/Qwen3-8B --lora_r 8 --use_peft", "SFTConfig(max_length=512)\nLoraConfig(r=4)", "{}", "a: &b c"]
    with MiniRacer() as engine:
        engine.eval(configs_script.script(dataset))
        for text in texts:
            theirs = json.loads(engine.eval(f"JSON.stringify(vramGuideConfigs.read_config({json.dumps(text)}))"))
            assert theirs == json.loads(json.dumps(read_config(known, text))), text
        for keys in USUAL:
            conditions = dict(estimate_keys(dataset, keys).conditions)
            for kind in KINDS:
                asked = ",".join(map(json.dumps, (kind, keys, conditions)))
                assert engine.eval(f"vramGuideConfigs.write_config({asked})") == write_config(known, kind, keys, conditions)
