"""data/presets.yml says what the libraries' own classes say (tests/recorded/defaults.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from macros.estimator import recipe_from_keys

ROOT = Path(__file__).resolve().parent.parent
RECORD = json.loads((ROOT / "tests" / "recorded" / "defaults.json").read_text(encoding="utf-8"))
DEFAULTS: dict[str, Any] = RECORD["defaults"]
FACTS: dict[str, bool] = RECORD["facts"]
PRESETS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "data" / "presets.yml").read_text(encoding="utf-8"))
METHODS = ("full", "lora", "qlora")


def keys(preset: str, method: str) -> dict[str, Any]:
    """Recipe keys of one preset for one method, as data/presets.yml means them."""
    given = PRESETS[preset]["keys"]
    return {**given["all"], **given[method]}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_is_a_valid_recipe(preset: str, method: str) -> None:
    recipe = recipe_from_keys({"method": method, **keys(preset, method)})
    for key, value in keys(preset, method).items():
        assert getattr(recipe, key) == value


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precision", ("bf16", "bf16-autocast", "fp32"))
def test_an_explicit_precision_does_not_contradict_the_default_preset(method: str, precision: str) -> None:
    given = {"method": method, **keys("transformers-peft", method), "precision": precision}
    assert recipe_from_keys(given).precision == precision


def test_presets_are_those_of_today() -> None:
    assert list(PRESETS) == ["transformers-peft", "trl", "unsloth", "axolotl", "llama-factory"]
    for name in ("transformers-peft", "trl"):
        for library, version in PRESETS[name]["versions"].items():
            assert version == RECORD["versions"][library], f"{name}: {library}"


@pytest.mark.parametrize(("preset", "trainer"), (("transformers-peft", "TrainingArguments"), ("trl", "SFTConfig")))
def test_optimizer_is_the_recorded_default(preset: str, trainer: str) -> None:
    assert keys(preset, "full")["optim"] == DEFAULTS[trainer]["optim"] == "adamw_torch_fused"
    assert keys(preset, "full")["kernels"] == ("liger" if DEFAULTS[trainer]["use_liger_kernel"] else "none")


@pytest.mark.parametrize("preset", PRESETS)
def test_optimizers_are_names_of_transformers(preset: str) -> None:
    assert keys(preset, "full")["optim"] in DEFAULTS["OptimizerNames"]


def test_trl_never_builds_the_logits() -> None:
    assert FACTS["sft_uses_fused_lm_head"] and DEFAULTS["SFTConfig"]["loss_type"] == "nll"
    assert DEFAULTS["fused_lm_head"] == {"tokens_per_tile": 4096, "vocabulary_per_tile": 32768}
    assert all(keys("trl", method)["loss"] == "chunked" for method in METHODS)


def test_trl_loads_a_named_model_in_float32_under_autocast() -> None:
    assert FACTS["models_by_name_load_in_float32"] and DEFAULTS["SFTConfig"]["bf16"] is True
    assert DEFAULTS["ModelConfig"]["dtype"] == "float32"
    for method in METHODS:
        recipe = recipe_from_keys({"method": method, **keys("trl", method)})
        assert (recipe.base_dtype, recipe.autocast) == ("float32", True)


def test_trl_casts_adapters_of_a_quantized_base_only() -> None:
    assert FACTS["sft_casts_quantized_adapters_to_bf16"] and DEFAULTS["get_peft_model"]["autocast_adapter_dtype"]
    assert keys("trl", "qlora")["adapter_dtype"] == "bfloat16"
    assert keys("trl", "lora")["adapter_dtype"] == "float32"


def test_trl_calls_no_kbit_preparation() -> None:
    assert FACTS["sft_calls_kbit_preparation"] is keys("trl", "qlora")["prepare_kbit"] is False


@pytest.mark.parametrize(("objective", "trainer"), (("dpo", "DPOConfig"), ("grpo", "GRPOConfig")))
@pytest.mark.parametrize("method", METHODS)
def test_the_preset_of_trl_holds_for_its_trainers_of_preferences(objective: str, trainer: str, method: str) -> None:
    """What decides memory in SFTTrainer is the same in DPOTrainer and GRPOTrainer."""
    assert FACTS[f"{objective}_uses_fused_lm_head"] and FACTS[f"{objective}_casts_quantized_adapters_to_bf16"]
    assert not FACTS[f"{objective}_calls_kbit_preparation"] and not DEFAULTS[trainer]["use_liger_kernel"]
    for key in ("optim", "bf16", "gradient_checkpointing"):
        assert DEFAULTS[trainer][key] == DEFAULTS["SFTConfig"][key]
    recipe = recipe_from_keys({"method": method, "objective": objective, **keys("trl", method)})
    assert recipe.loss == "chunked" and recipe.gradient_checkpointing is DEFAULTS[trainer]["gradient_checkpointing"]


def test_dpo_and_grpo_begin_as_trl_has_them() -> None:
    dpo, grpo = DEFAULTS["DPOConfig"], DEFAULTS["GRPOConfig"]
    assert dpo["disable_dropout"] is True and dpo["precompute_ref_log_probs"] is False
    recipe = recipe_from_keys({"method": "full", "objective": "dpo"})
    assert recipe.reference == "model" and recipe_from_keys({"method": "lora", "objective": "dpo"}).reference == "adapter"
    recipe = recipe_from_keys({"method": "full", "objective": "grpo"})
    assert (recipe.micro_batch_size, recipe.num_generations) == (grpo["per_device_train_batch_size"], grpo["num_generations"])
    assert (recipe.reference, grpo["beta"]) == ("none", 0) and (recipe.generation, grpo["use_vllm"]) == ("transformers", False)
    beside = recipe_from_keys({"method": "full", "objective": "grpo", "generation": "vllm"})
    assert beside.vllm_memory_share == grpo["vllm_gpu_memory_utilization"] and grpo["vllm_mode"] == "colocate"


def test_peft_keeps_adapters_in_float32() -> None:
    assert DEFAULTS["get_peft_model"]["autocast_adapter_dtype"] is True
    assert keys("transformers-peft", "lora")["adapter_dtype"] == "float32"
    assert keys("transformers-peft", "qlora")["adapter_dtype"] == "float32"


def test_checkpointing_of_the_house_is_what_trl_does_and_trainer_does_not() -> None:
    assert DEFAULTS["SFTConfig"]["gradient_checkpointing"] is True
    assert DEFAULTS["TrainingArguments"]["gradient_checkpointing"] is False


def test_bitsandbytes_defaults_are_not_the_house_recipe() -> None:
    assert DEFAULTS["BitsAndBytesConfig"]["bnb_4bit_quant_type"] == "fp4"
    assert DEFAULTS["BitsAndBytesConfig"]["bnb_4bit_use_double_quant"] is False
