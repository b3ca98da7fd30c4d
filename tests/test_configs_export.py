"""Recipes as text for other programs: what is written parses, its arguments exist, and reading it gives the recipe back."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from macros import configs_script, dataset, portable
from macros.configs.read import read_config
from macros.configs.write import KINDS, write_config
from macros.options import Parser, add_recipe_options, recipe_keys
from macros.recipes import estimate_keys
from tests.recipes import random_recipes

ROOT = Path(__file__).parent.parent
DATA = dataset.load(ROOT)
KNOWN = configs_script.known(DATA)
# Written by tests/record_defaults.py from the installed libraries; it leaves out the folder to write to.
ARGUMENTS = json.loads((ROOT / "tests" / "recorded" / "defaults.json").read_text(encoding="utf-8"))["defaults"]
SAID = (
    *("model", "method", "base_dtype", "precision", "quantization", "double_quant", "lora_r", "lora_dropout", "target_modules"),
    *("use_dora", "modules_to_save", "micro_batch_size", "gradient_accumulation_steps", "sequence_length"),
    *("gradient_checkpointing", "checkpoint_offload", "attention", "optim"),
)


def written(kind: str, keys: dict[str, Any]) -> str:
    return write_config(KNOWN, kind, keys, dict(estimate_keys(DATA, keys).conditions))


USUAL = [
    {"model": "qwen3-8b", "method": "qlora", "sequence_length": 4096, "preset": "trl", "base_dtype": "bfloat16"},
    {"model": "llama-3.1-8b", "method": "lora", "lora_r": 64, "target_modules": ["q_proj", "v_proj"], "preset": "trl", "optim": "adamw_torch"},
    {"model": "llama-3.2-1b", "method": "full", "micro_batch_size": 4, "preset": "trl", "base_dtype": "float32"},
    {"model": "olmo-3-7b", "method": "lora", "use_dora": True, "modules_to_save": ["lm_head"], "lora_dropout": 0.1, "preset": "trl"},
    {"model": "ministral-3-14b", "method": "qlora", "quantization": "int8", "preset": "trl", "base_dtype": "bfloat16"},
]


@pytest.mark.parametrize("keys", USUAL, ids=lambda keys: keys["model"])
@pytest.mark.parametrize("kind", ["trl", "axolotl"])
def test_reading_gives_the_recipe_back(kind: str, keys: dict[str, Any]) -> None:
    keys = keys if kind == "trl" else {**keys, "preset": "axolotl", "base_dtype": "bfloat16"}
    if kind == "axolotl" and keys["method"] == "full":
        keys = {**keys, "precision": "bf16-autocast"}
    conditions = estimate_keys(DATA, keys).conditions
    text = written(kind, keys)
    read = read_config(KNOWN, text)
    assert read["errors"] == []
    again = estimate_keys(DATA, read["recipe"]).conditions
    adapted = keys["method"] != "full"
    for key in SAID:
        if key in conditions and (adapted or not key.startswith("lora")):
            assert again[key] == conditions[key], (key, text)


def test_what_a_tool_decides_otherwise_stands_on_top() -> None:
    keys = {"model": "qwen3-8b", "method": "qlora"}
    assert written("trl", keys).startswith(
        "# Not said below, since it goes by other settings or not at all:\n"
        "#   loss: standard (here: chunked)\n"
        "#   adapter_dtype: float32 (here: bfloat16)\n"
        "#   prepare_kbit: true (here: false)\n"
    )
    assert written("trl", {**keys, "preset": "trl", "base_dtype": "bfloat16"}).startswith("import torch\n")


def test_scripts_parse_and_libraries_know_the_arguments() -> None:
    tried = 0
    for drawn in random_recipes(portable.data(DATA), 150, seed=3):
        keys = {key: value for key, value in drawn.items() if value is not None}
        if "model" not in keys:
            continue
        try:
            text = written("trl", keys)
        except ValueError:  # a recipe that the estimator refuses
            continue
        tried += 1
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS:
                known = {*ARGUMENTS[node.func.id], "output_dir"}
                assert {word.arg for word in node.keywords} <= known, (node.func.id, keys)
        assert isinstance(yaml.safe_load(written("axolotl", keys)), dict)
    assert tried > 40


def test_commands_are_understood_again() -> None:
    for keys in USUAL:
        given = {**keys, "gpu": "rtx-4090"}
        words = shlex.split(written("command", given).replace("\\\n", " "))
        assert words[:4] == ["python", "-m", "macros", "estimate"]
        parser = Parser(prog="macros estimate")
        add_recipe_options(parser)
        assert recipe_keys(parser.parse_args(words[4:])) == given
        assert json.loads(written("json", given)) == given
        assert read_config(KNOWN, written("command", given))["recipe"] == given
        assert written("measure", given).endswith("--output measure.py\n")


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'xml' is none of command, measure, json, trl, axolotl"):
        write_config(KNOWN, "xml", {}, {})
    with pytest.raises(ValueError, match="needs a model with a name on the Hub"):
        write_config(KNOWN, "trl", {"config": {}}, {})
    assert len(KINDS) == 5
