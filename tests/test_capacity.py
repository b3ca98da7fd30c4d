"""How far a recipe can be stretched on a card, and what to change first: against plain trial, arithmetic and the whole chain."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from macros import capacity, recipes
from macros.dataset import Dataset, load
from macros.estimator import architecture_from_config, estimate, recipe_from_keys
from macros.estimator.advice import MEASURES, advise, changed
from macros.estimator.capacity import RANKS, largest_batch, largest_rank, longest_sequence, smallest_number
from macros.estimator.checks import LIMITS
from macros.estimator.recipe import METHODS, applicable_keys
from tests.recipes import OPTIONS, without_contradictions

ROOT = Path(__file__).parent.parent
GB = 10**9


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


def model(dataset: Dataset, key: str) -> Any:
    return architecture_from_config(dict(dataset.models[key].config))


def drawn(dataset: Dataset, count: int, seed: int) -> list[dict[str, Any]]:
    """Recipes over all options with a model and a card."""
    chance = random.Random(seed)
    models, gpus, presets = ([record.key for record in kind] for kind in (dataset.models, dataset.gpus, dataset.presets))
    recipes = []
    for _ in range(count):
        keys: dict[str, Any] = {"method": chance.choice(METHODS)}
        for key in applicable_keys(keys["method"]):
            if chance.random() < 0.3:
                keys.setdefault(key, chance.choice(OPTIONS[key]))
        keys = without_contradictions(keys)
        if len(keys) < 5 and chance.random() < 0.6:
            keys["preset"] = chance.choice(presets)
        recipes.append({**keys, "model": chance.choice(models), "gpu": chance.choice(gpus)})
    return recipes


# ---- how far ----

CASES = [
    ("llama-3.1-8b", {"method": "qlora"}, 24 * 2**30),
    ("llama-3.1-8b", {"method": "lora", "loss": "chunked"}, 24 * 2**30),
    ("llama-3.2-1b", {"method": "full", "precision": "bf16"}, 16 * 2**30),
    ("gemma-3-4b-text", {"method": "lora", "loss": "fused"}, 24 * 2**30),
    ("qwen3.5-4b", {"method": "qlora", "attention": "eager"}, 16 * 2**30),
]


@pytest.mark.parametrize(("key", "keys", "memory"), CASES)
def test_the_longest_sequence_is_the_last_that_fits(dataset, key, keys, memory):
    """Against every length in steps of 128 up to where none fits any more."""
    arch, recipe = model(dataset, key), recipe_from_keys(keys)
    found = longest_sequence(arch, recipe, memory)
    verdicts = {}
    for length in range(128, found.tight + 1280, 128):
        verdicts[length] = estimate(arch, replace(recipe, sequence_length=length), memory).verdict
    assert found.tight == max(length for length, verdict in verdicts.items() if verdict != "does_not_fit")
    assert found.comfortable == max((length for length, verdict in verdicts.items() if verdict == "comfortable"), default=0)
    assert all(verdict != "does_not_fit" for length, verdict in verdicts.items() if length <= found.tight)
    assert 0 < found.comfortable < found.tight


def test_the_largest_batch_is_the_last_that_fits(dataset):
    arch, recipe = model(dataset, "llama-3.2-1b"), recipe_from_keys({"method": "lora", "sequence_length": 500})
    memory = 24 * 2**30
    found = largest_batch(arch, recipe, memory)
    verdicts = [estimate(arch, replace(recipe, micro_batch_size=n), memory).verdict for n in range(1, found.tight + 10)]
    assert found.tight == sum(verdict != "does_not_fit" for verdict in verdicts)
    assert found.comfortable == sum(verdict == "comfortable" for verdict in verdicts)


def test_the_largest_rank_is_a_power_of_two(dataset):
    """16 bytes for each adapter weight in float32: rank 64 of an 8B model on all layers has 167.8 million, 2.7 GB."""
    arch, recipe = model(dataset, "llama-3.1-8b"), recipe_from_keys({"method": "qlora", "loss": "chunked"})
    memory = 16 * 2**30
    found = largest_rank(arch, recipe, memory)
    for rank in (2**power for power in range(12)):
        verdict = estimate(arch, replace(recipe, lora_r=rank), memory).verdict
        assert (verdict == "comfortable") == (rank <= found.comfortable)
        assert (verdict != "does_not_fit") == (rank <= found.tight)
    assert largest_rank(arch, recipe_from_keys({"method": "full"}), memory) is None


def test_bounds_at_both_ends(dataset):
    """Nothing fits a card of half a gigabyte; on the largest one the model's context or the limit of a recipe is the end."""
    arch, recipe = model(dataset, "llama-3.2-1b"), recipe_from_keys({"method": "lora"})
    none = longest_sequence(arch, recipe, 2**29)
    assert (none.comfortable, none.tight) == (0, 0)
    assert (largest_batch(arch, recipe, 2**29).tight, largest_rank(arch, recipe, 2**29).tight) == (0, 0)
    whole = longest_sequence(arch, replace(recipe, loss="chunked"), 2**40, 8192)
    assert (whole.comfortable, whole.tight, whole.most) == (8192, 8192, 8192)
    assert largest_batch(arch, replace(recipe, sequence_length=128, loss="chunked"), 2**44).tight == LIMITS["micro_batch_size"]
    assert largest_rank(arch, recipe, 2**40).comfortable == LIMITS["lora_r"]


def test_what_depends_on_the_data_is_never_comfortable(dataset):
    recipe = recipe_from_keys({"method": "qlora", "quantization": "int8"})
    found = longest_sequence(model(dataset, "llama-3.2-1b"), recipe, 24 * 2**30)
    assert found.comfortable == 0 < found.tight


def test_sharing_layers_between_recipes_changes_no_figure(dataset):
    """Estimates on an architecture that has seen others before, against those on one of their own."""
    shared: dict[str, Any] = {}
    for keys in drawn(dataset, 150, seed=5):
        keys["model"] = random.Random(str(keys)).choice(("llama-3.2-1b", "gemma-2-2b", "mixtral-8x7b", "qwen3.5-4b"))
        recipe = recipes.question(dataset, keys).recipe
        arch = shared.setdefault(keys["model"], model(dataset, keys["model"]))
        try:
            alone = estimate(model(dataset, keys["model"]), recipe)
        except ValueError:
            continue
        assert estimate(arch, recipe) == alone, keys


def test_how_many_cards(dataset):
    """Full fine-tuning of an 8B model in 16 bytes a parameter, 128.5 GB, by FSDP among cards of 80 GB and of 24 GB."""
    arch, recipe = model(dataset, "llama-3.1-8b"), recipe_from_keys({"method": "full", "sequence_length": 512})
    for memory, least, most in ((81559 * 2**20, 2, 4), (24564 * 2**20, 6, 16)):
        found = smallest_number(arch, recipe, memory)
        assert least <= found.tight <= found.comfortable <= most
        for number, wanted in ((found.tight, "does_not_fit"), (found.comfortable, "tight")):
            keys = {"method": "full", "sequence_length": 512, "parallelism": "fsdp", "num_gpus": number}
            assert RANKS.index(estimate(arch, recipe_from_keys(keys), memory).verdict) > RANKS.index(wanted)
            fewer = {**keys, "num_gpus": number - 1 if number <= 8 else number - 8}
            assert RANKS.index(estimate(arch, recipe_from_keys(fewer), memory).verdict) <= RANKS.index(wanted)
    assert smallest_number(arch, replace(recipe, sequence_length=2**19), 2**33).tight == 0
    assert smallest_number(arch, recipe_from_keys({"method": "qlora"}), 80 * 2**30).comfortable == 1


# ---- what to change first ----


# What few recipes drawn by chance need.
RARE = [
    {"model": "gemma-3-4b-text", "method": "lora", "keep_outputs": True, "kernels": "litgpt", "sequence_length": 8192, "gpu": "rtx-3060-12gb"},
    {"model": "llama-3.2-1b", "method": "lora", "attention": "eager", "sequence_length": 8192, "gpu": "rtx-3060-12gb"},
    {"model": "llama-3.2-1b", "method": "lora", "padding": True, "sequence_length": 32768, "gpu": "rtx-3060-12gb"},
    {"model": "llama-3.1-8b", "method": "full", "gpu": "rtx-4090", "parallelism": "ddp", "num_gpus": 2},
    {"model": "llama-3.1-70b", "method": "full", "gpu": "h100-sxm", "parallelism": "zero2", "num_gpus": 4},
    {"model": "llama-3.1-8b", "method": "full", "precision": "bf16", "objective": "dpo", "gpu": "h100-sxm"},
]


DEPENDENT = ("lora", "qlora", "offload_optimizer", "offload_params", "sharding", "more_cards", "shorter_sequence")


def test_each_measure_gives_what_it_promises(dataset):
    """Its keys, typed beside those before it, lead through presets and defaults to the peak and the verdict it names."""
    seen = set()
    for keys in [*RARE, *drawn(dataset, 250, seed=6)]:
        try:
            found = capacity.advice(dataset, keys)
        except ValueError:
            continue
        start = recipes.estimate_keys(dataset, keys)
        assert (found.peak_bytes, found.verdict) == (start.peak_bytes, start.verdict)
        peak, typed = start.peak_bytes, keys
        verdicts = [start.verdict]
        for measure in found.measures:
            typed = changed(typed, measure.changes)
            after = recipes.estimate_keys(dataset, typed)
            assert (after.peak_bytes, after.verdict) == (measure.peak_bytes, measure.verdict), (keys, measure)
            assert measure.saving_bytes == peak - after.peak_bytes > 0
            assert verdicts[-1] != "comfortable"
            # Where a measure's values depend on those before it, alone it has others.
            if measure.alone_bytes is not None and measure.name not in DEPENDENT:
                one = recipes.estimate_keys(dataset, changed(keys, measure.changes)).peak_bytes
                assert measure.alone_bytes == start.peak_bytes - one, (keys, measure)
            peak = after.peak_bytes
            verdicts.append(after.verdict)
            seen.add(measure.name)
        assert found.fits_after == next((n for n, verdict in enumerate(verdicts) if verdict != "does_not_fit"), None)
        names = [measure.name for measure in found.measures]
        assert len(set(names)) == len(names) and set(names) <= set(MEASURES)
    assert seen == set(MEASURES)


def measures(dataset: Dataset, key: str, keys: dict[str, Any], memory: int | None = None) -> dict[str, Any]:
    found = advise(model(dataset, key), recipe_from_keys(keys), memory, alone=True)
    return {measure.name: measure for measure in found.measures}


def test_savings_by_hand(dataset):
    """Of Llama 3.1 8B with its 8 030 261 248 parameters, 1 050 939 392 of them in the two tables."""
    parameters, tables = 8_030_261_248, 2 * 128_256 * 4096
    # A base model in bfloat16 instead of float32: two bytes a parameter.
    found = measures(dataset, "llama-3.1-8b", {"method": "lora", "base_dtype": "float32", "sequence_length": 128})
    assert found["base_in_16_bits"].saving_bytes >= 2 * parameters
    # Adam's two states in one byte each and a float32 for 256 of them, instead of eight bytes: all but the embedding.
    found = measures(dataset, "llama-3.1-8b", {"method": "full", "sequence_length": 128})
    small = 2 * (parameters - tables // 2) * (1 + 4 / 256) + 8 * tables // 2
    assert found["optimizer_8bit"].alone_bytes == pytest.approx(8 * parameters - small, rel=0.01)
    # Four bits and a constant for 64 weights, 4.127 bits, instead of 16; embeddings and head stay in 16.
    found = measures(dataset, "llama-3.1-8b", {"method": "lora", "sequence_length": 128})
    assert found["qlora"].saving_bytes < (parameters - tables) * (2 - 4.127 / 8)


def test_the_logits_are_only_worth_a_word_where_they_set_the_peak(dataset):
    long = measures(dataset, "gemma-3-4b-text", {"method": "qlora", "sequence_length": 8192})
    assert next(iter(long)) == "loss_in_chunks"
    short = measures(dataset, "llama-3.1-8b", {"method": "full", "sequence_length": 512}, 80 * 2**30)
    assert next(iter(short)) == "optimizer_8bit" and "loss_in_chunks" not in short


def test_a_run_that_fits_needs_no_advice(dataset):
    found = advise(model(dataset, "llama-3.2-1b"), recipe_from_keys({"method": "qlora"}), 80 * 2**30)
    assert (found.verdict, found.fits_after, found.measures) == ("comfortable", 0, ())


def test_the_published_cure_is_found(dataset):
    """LLaMA-Factory's issue 6285: added tokens train both tables beside the adapters, and 24 GB no longer do."""
    keys = {"method": "lora", "lora_r": 8, "modules_to_save": ["embed_tokens", "lm_head"], "loss": "chunked"}
    found = advise(model(dataset, "llama-3.1-8b"), recipe_from_keys(keys), 24 * 2**30)
    assert found.verdict == "does_not_fit"
    assert "frozen_tables" in [measure.name for measure in found.measures]


# ---- what a card can train ----


def test_every_model_with_every_method_on_a_card(dataset):
    """Keys that suit only some methods are left out for the others, so that a matrix has no holes."""
    for keys in drawn(dataset, 40, seed=7):
        try:
            rows = capacity.capacity(dataset, keys, [keys["model"]])
        except ValueError as error:
            assert "target_modules" in str(error) or "typing mistake" in str(error), (keys, error)
            continue
        assert [row["method"] for row in rows] == list(METHODS)
        for row in rows:
            assert row["verdict"] in ("comfortable", "tight", "does_not_fit")
