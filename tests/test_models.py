"""data/models.yml: counts equal those of Transformers' classes and the published ones, to the last parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from macros.estimator import architecture_from_config, parameter_count

ROOT = Path(__file__).resolve().parent.parent
RECORD = json.loads((ROOT / "tests" / "recorded" / "parameters.json").read_text(encoding="utf-8"))
COUNTS: dict[str, dict[str, Any]] = RECORD["models"]
MODELS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "data" / "models.yml").read_text(encoding="utf-8"))

# Published by others than Transformers: the sums of the safetensors headers on the Hugging Face Hub, or the "params"
# of KerasHub's presets (github.com/keras-team/keras-hub, commit 71453d0).
PUBLISHED = {
    "codellama-34b": 33_743_970_304,
    "gemma-2-27b": 27_227_128_320,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-3-1b": 999_885_952,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "llama-2-13b": 13_015_864_320,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.3-70b": 70_553_706_496,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-small-24b": 23_572_403_200,
    "mixtral-8x7b": 46_702_792_704,
    "olmo-2-7b": 7_298_617_344,
    "phi-3-mini-4k": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "phi-4-mini": 3_836_021_760,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-72b": 72_706_203_648,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-14b": 14_768_307_200,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "smollm2-1.7b": 1_711_376_384,
    "smollm3-3b": 3_075_098_624,
    "yi-34b": 34_388_917_248,
}

# The whole published model and the part that data/models.yml leaves out: the vision tower with its projector.
# Totals: KerasHub (Qwen3.5, without the extra head for several tokens), Hugging Face Hub (Ministral 3); the towers
# were counted on the meta device from Transformers' vision classes with the published vision_config.
WHOLE = {
    "ministral-3-3b": (3_849_090_048, 420_083_712),
    "qwen3.5-0.8b": (852_985_920, 100_592_896),
    "qwen3.5-27b": (27_356_728_560, 460_730_096),
    "qwen3.5-4b": (4_539_265_536, 333_514_240),
    "qwen3.5-9b": (9_409_813_744, 456_010_480),
    "qwen3.6-27b": (27_356_728_560, 460_730_096),
}


@pytest.mark.parametrize("key", MODELS)
def test_count_is_the_recorded_one(key: str) -> None:
    assert MODELS[key]["parameters"] == COUNTS[key]["parameters"]


@pytest.mark.parametrize("key", PUBLISHED)
def test_count_is_the_published_one(key: str) -> None:
    assert COUNTS[key]["parameters"] == PUBLISHED[key]


@pytest.mark.parametrize("key", WHOLE)
def test_text_part_is_the_whole_without_the_vision_tower(key: str) -> None:
    whole, vision = WHOLE[key]
    assert COUNTS[key]["parameters"] == whole - vision


@pytest.mark.parametrize("key", MODELS)
def test_estimator_counts_the_same(key: str) -> None:
    assert parameter_count(architecture_from_config(MODELS[key]["config"])) == COUNTS[key]["parameters"]


def test_every_model_is_recorded() -> None:
    assert set(MODELS) <= set(COUNTS)


def test_history_comes_last() -> None:
    history = [model.get("history", False) for model in MODELS.values()]
    assert history == sorted(history)


@pytest.mark.parametrize("key", MODELS)
def test_embedding_and_head_fit_the_configuration(key: str) -> None:
    config, count = MODELS[key]["config"], COUNTS[key]
    table = config["vocab_size"] * config["hidden_size"]
    assert count["embedding"] == count["head"] == table
    assert count["tied"] == (config.get("tie_word_embeddings", False) or config["model_type"].startswith("gemma"))


def test_there_are_at_least_60_models() -> None:
    assert len(MODELS) >= 60


def test_at_least_8_models_are_of_the_last_twelve_months() -> None:
    assert sum(model["released"] >= "2025-12" for model in MODELS.values()) >= 8
