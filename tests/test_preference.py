"""DPO and GRPO: what each reference costs, the cache of a generation, what vLLM leaves of a card, and what is refused.

How near the step's peak is to the real one: tests/test_oracle.py, file "preference".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macros import recipes
from macros.capacity import advice
from macros.dataset import Dataset, load
from macros.estimator import Architecture, Estimate, architecture_from_config, estimate, recipe_from_keys
from macros.estimator.advice import proposal

ROOT = Path(__file__).parent.parent
GB = 10**9


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


def model(dataset: Dataset, key: str) -> Architecture:
    return architecture_from_config(dataset.models[key].config)


def run(arch: Architecture, memory: int | None = None, **keys: Any) -> Estimate:
    return estimate(arch, recipe_from_keys(keys), memory)


def test_a_second_model_takes_its_weights_and_an_adapter_switched_off_none(dataset: Dataset) -> None:
    """Llama 3.1 8B has 8,030,261,248 parameters, of two bytes in bfloat16."""
    arch = model(dataset, "llama-3.1-8b")
    weights = 2 * 8_030_261_248
    for method, precision in (("lora", "bf16-autocast"), ("full", "bf16")):
        second = run(arch, method=method, precision=precision, objective="dpo", reference="model")
        without = run(arch, method=method, precision=precision, objective="dpo", reference="precomputed")
        assert {moment.parts["reference_weights"] for moment in second.moments.values()} == {weights}
        assert all(second.moments[name].total - without.moments[name].total == weights for name in ("forward_end", "optimizer_step"))
    adapter = run(arch, method="lora", objective="dpo")
    assert adapter.conditions["reference"] == "adapter"
    assert all("reference_weights" not in moment.parts for moment in adapter.moments.values())
    # A quantised second model: 4.127 bits for each weight of the linear layers, bfloat16 for the rest.
    quantised = run(arch, method="qlora", objective="dpo", reference="model", prepare_kbit=False)
    assert quantised.moments["load"].parts["reference_weights"] == quantised.moments["load"].parts["weights"]


def test_dpo_has_two_sequences_for_each_one_of_sft(dataset: Dataset) -> None:
    """In tiles and with log-probabilities from before, a pair needs what two sequences need but for masks and labels."""
    arch = model(dataset, "qwen2.5-1.5b") if "qwen2.5-1.5b" in dataset.models else model(dataset, "llama-3.2-1b")
    for method in ("full", "lora", "qlora"):
        pair = run(arch, method=method, objective="dpo", reference="precomputed", loss="chunked", micro_batch_size=3)
        two = run(arch, method=method, loss="chunked", micro_batch_size=6)
        assert pair.moments["layer_backward"].total - two.moments["layer_backward"].total == 8 * 6 * 2048
        assert abs(pair.peak_bytes / two.peak_bytes - 1) < 0.001


def test_all_logits_of_a_pair_beside_those_of_the_reference(dataset: Dataset) -> None:
    """Under autocast both are float32, and the entropy is taken of a copy: 3 × 2 × 2048 positions × 128256 × 4 bytes."""
    arch = model(dataset, "llama-3.2-1b")
    loss = run(arch, method="lora", objective="dpo", sequence_length=2048).moments["loss"].parts
    one = 2 * 2048 * 128_256 * 4
    assert loss["logits"] + loss["loss_tensors"] == pytest.approx(3 * one, rel=0.04)
    tiles = run(arch, method="lora", objective="dpo", sequence_length=2048, loss="chunked").moments["loss"].parts
    assert tiles["logits"] < one / 2


def test_the_cache_holds_keys_and_values_of_all_completions(dataset: Dataset) -> None:
    """Llama 3.1 8B: 32 layers, 8 key-value heads of 128 elements, keys and values, two bytes: 131,072 bytes a token."""
    arch = model(dataset, "llama-3.1-8b")
    found = run(arch, method="lora", objective="grpo", micro_batch_size=2, gradient_accumulation_steps=8, sequence_length=4096, prompt_length=64)
    assert found.moments["generation"].parts["kv_cache"] == 131_072 * 16 * 4096
    # After the k-bit preparation hidden states are float32, to which 4-bit layers cast their results back.
    prepared = run(arch, method="qlora", objective="grpo", sequence_length=4096, prompt_length=64)
    assert prepared.moments["generation"].parts["kv_cache"] == 131_072 * 2 * 8 * 4096


def test_a_window_bounds_the_cache(dataset: Dataset) -> None:
    """Gemma 3 1B: one key-value head of 256 elements; 22 of 26 layers see 512 tokens, of which the cache keeps 511."""
    arch = model(dataset, "gemma-3-1b")
    found = run(arch, method="lora", objective="grpo", sequence_length=4096, prompt_length=16)
    each = 2 * 2 * 256
    assert found.moments["generation"].parts["kv_cache"] == each * 8 * (4 * 4096 + 22 * 511)


def test_grpo_has_no_reference_unless_it_is_asked_for(dataset: Dataset) -> None:
    arch = model(dataset, "llama-3.2-1b")
    plain = run(arch, method="lora", objective="grpo")
    assert plain.conditions["reference"] == "none" and plain.conditions["num_generations"] == 8
    assert run(arch, method="lora", objective="grpo", micro_batch_size=3, gradient_accumulation_steps=2).conditions["num_generations"] == 6
    assert "log_probs" not in plain.moments and "generation" in plain.moments
    held = run(arch, method="lora", objective="grpo", reference="adapter")
    assert held.moments["log_probs"].total > held.moments["load"].total
    elsewhere = run(arch, method="lora", objective="grpo", generation="vllm-server")
    assert "generation" not in elsewhere.moments and "log_probs" in elsewhere.moments


def test_completions_alone_have_logits(dataset: Dataset) -> None:
    """Of 8 sequences of 1024 tokens with prompts of 768, the logits are those of 8 × 257 positions.

    The backward of the division by the temperature, in place, holds four float32 tensors of that size.
    """
    arch = model(dataset, "llama-3.2-1b")
    keys = {"method": "lora", "objective": "grpo", "sequence_length": 1024, "prompt_length": 768}
    parts = run(arch, **keys).moments["loss"].parts
    assert parts.get("logits", 0) + parts["loss_tensors"] == pytest.approx(4 * 8 * 257 * 128_256 * 4, rel=0.01)


def test_vllm_leaves_the_rest_of_the_card(dataset: Dataset) -> None:
    """Training has 70 of 100 GB beside a share of 0.3; 8 billion parameters do not fit a share of 15 GB."""
    arch = model(dataset, "llama-3.1-8b")
    keys = {"method": "lora", "objective": "grpo", "loss": "chunked", "sequence_length": 1024}
    beside = run(arch, 100 * GB, **keys, generation="vllm", vllm_memory_share=0.3)
    alone = run(arch, 70 * GB, **keys, generation="vllm-server")
    assert (beside.peak_bytes, beside.verdict, beside.headroom_bytes) == (alone.peak_bytes, "comfortable", alone.headroom_bytes)
    assert "vllm_beside" in beside.warnings and "vllm_beside" not in alone.warnings
    assert run(arch, 100 * GB, **keys, generation="vllm", vllm_memory_share=0.15).verdict == "does_not_fit"
    # A run that fits 80 GB does not fit beside nine tenths of it, which vLLM once took by default (trl issue 2688).
    assert run(arch, 80 * GB, **keys, generation="vllm", vllm_memory_share=0.9).verdict == "does_not_fit"


def test_zero3_gathers_the_whole_model_to_generate(dataset: Dataset) -> None:
    arch = model(dataset, "llama-3.1-8b")
    keys = {"method": "full", "precision": "bf16", "objective": "grpo", "parallelism": "zero3", "num_gpus": 8}
    parts = run(arch, **keys).moments["generation"].parts
    assert parts["weights"] + parts["gathered_shards"] > 2 * 8_030_261_248
    shared = {name: run(arch, **{**keys, "objective": "dpo", "reference": "model", "parallelism": name}) for name in ("zero2", "zero3", "fsdp")}
    whole, divided, fsdp = (each.moments["load"].parts["reference_weights"] for each in shared.values())
    assert whole == 2 * 8_030_261_248 and divided == fsdp == whole // 8


def test_what_stands_behind_the_figures(dataset: Dataset) -> None:
    arch = model(dataset, "llama-3.2-1b")
    assert run(arch, method="lora", objective="dpo").evidence == "oracle"
    assert run(arch, method="lora", objective="grpo", gradient_accumulation_steps=2).evidence == "oracle"
    for keys in (
        {"objective": "grpo", "generation": "vllm"},
        {"objective": "dpo", "kernels": "liger"},
        {"objective": "dpo", "parallelism": "fsdp", "num_gpus": 2},
    ):
        assert run(arch, method="lora", **keys).evidence == "arithmetic", keys


def test_flops_of_a_reference_are_those_of_a_forward(dataset: Dataset) -> None:
    """A full run's forward is a third of forward and backward, without recomputation; LoRA's adapter is off for it."""
    arch = model(dataset, "llama-3.2-1b")
    keys = {"method": "full", "precision": "bf16", "gradient_checkpointing": False, "loss": "standard"}
    plain = run(arch, **keys, objective="dpo", reference="precomputed").flops_per_step
    with_reference = run(arch, **keys, objective="dpo", reference="model").flops_per_step
    assert (with_reference - plain) / plain == pytest.approx(1 / 3, rel=0.02)


def test_the_reference_precomputed_is_a_measure(dataset: Dataset) -> None:
    keys = {"model": "llama-3.1-8b", "method": "full", "precision": "bf16", "objective": "dpo", "loss": "chunked", "gpu": "h100-sxm"}
    found = {measure.name: measure for measure in advice(dataset, keys).measures}
    assert found["precompute_reference"].changes == {"reference": "precomputed"}
    assert found["precompute_reference"].saving_bytes >= 2 * 8_030_261_248
    # With adapters no second model is needed.
    recipe = recipe_from_keys({"method": "full", "precision": "bf16", "objective": "dpo"})
    assert proposal(model(dataset, "llama-3.1-8b"), recipe, "lora", None, True).reference == "adapter"


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"objective": "ppo"}, "objective 'ppo': PPO is not modelled; it is one of sft, dpo, grpo"),
        ({"objective": "kto"}, "objective 'kto': KTO is not modelled"),
        ({"objective": "orpo"}, "objective 'orpo': ORPO is not modelled"),
        ({"objective": "reward"}, "objective 'reward': a reward model is not modelled"),
        ({"objective": "rloo"}, "objective 'rloo': RLOO is not modelled"),
        ({"reward_model": "x"}, "'reward_model': a reward model is not modelled"),
        ({"objective": "rlhf"}, "objective must be one of sft, dpo, grpo"),
        ({"reference": "model"}, "reference does not apply here; it belongs to objective dpo and grpo"),
        ({"objective": "dpo", "reference": "none"}, "reference none contradicts objective dpo"),
        ({"objective": "grpo", "reference": "precomputed"}, "reference precomputed contradicts objective grpo"),
        ({"method": "full", "objective": "dpo", "reference": "adapter"}, "reference adapter belongs to method lora and qlora"),
        ({"objective": "dpo", "num_generations": 8}, "num_generations does not apply here; it belongs to objective grpo"),
        ({"objective": "dpo", "generation": "vllm"}, "generation does not apply here"),
        ({"objective": "grpo", "num_generations": 8, "micro_batch_size": 3}, "num_generations 8 must divide micro_batch_size"),
        ({"objective": "grpo", "sequence_length": 1}, "sequence_length 1 has no room for a prompt and a completion"),
        ({"objective": "grpo", "prompt_length": 2048}, "prompt_length 2048 leaves nothing to generate"),
        ({"objective": "grpo", "vllm_memory_share": 0.3}, "vllm_memory_share does not apply here; it belongs to generation vllm"),
        ({"objective": "grpo", "generation": "vllm", "vllm_memory_share": 1.2}, "vllm_memory_share must be a number from 0 to below 1"),
        ({"objective": "grpo", "trained_token_share": 0.5}, "trained_token_share does not apply here"),
        ({"objective": "dpo", "loss": "fused"}, "loss fused belongs to objective sft"),
        ({"objective": "dpo", "kernels": "unsloth"}, "kernels 'unsloth' are modelled for objective sft alone"),
        ({"objective": "dpo", "lora_dropout": 0.1}, "lora_dropout does not apply here"),
    ],
)
def test_contradictions_are_named(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence.replace("(", r"\(")):
        recipe_from_keys({"method": "lora", **keys})


def test_every_result_can_be_given_back(dataset: Dataset) -> None:
    for keys in (
        {"method": "lora"},
        {"method": "full", "objective": "dpo"},
        {"method": "qlora", "objective": "dpo", "reference": "model"},
        {"method": "lora", "objective": "grpo", "generation": "vllm"},
        {"method": "lora", "objective": "grpo"},
    ):
        found = recipe_from_keys(keys)
        named = {key: value for key, value in found.conditions().items() if key in {*keys, "objective", "reference", "num_generations", "prompt_length", "generation", "vllm_memory_share", "micro_batch_size"}}
        assert recipe_from_keys(named) == found


SAID = {
    "de": ("GRPO · ohne Referenzmodell", "Antworten je Prompt: 8", "30 % der GPU für vLLM", "vLLM reserviert seinen Anteil"),
    "en": ("GRPO · no reference model", "completions per prompt: 8", "30% of the GPU for vLLM", "vLLM reserves its share"),
    "tr": ("GRPO · referans model yok", "prompt başına yanıt: 8", "vLLM için GPU payı: %30", "vLLM kendi payını"),
}


@pytest.mark.parametrize("code", SAID)
def test_captions_name_objective_reference_and_generation(code: str, say: Callable[..., str]) -> None:
    call = '{{ bars(estimate(model="llama-3.2-1b", method="lora", objective="grpo", generation="vllm", gpu="h100-sxm")) }}'
    plain = re.sub("<[^>]+>", "", say(call, code)).replace("\u00a0", " ").replace("\u202f", " ")
    for words in SAID[code]:
        assert words in plain
    table = say('{{ table(compare(model="llama-3.2-1b", objective="dpo", reference=["precomputed", "adapter"], method="lora"), rows="reference", across="method", cell="peak") }}', code)
    assert "reference." not in table and "caption" in table


SMALL = architecture_from_config(
    {"model_type": "llama", "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 3, "num_attention_heads": 8,
     "num_key_value_heads": 4, "vocab_size": 5000, "tie_word_embeddings": False}
)  # fmt: skip


@st.composite
def drawn(draw: st.DrawFn, method: st.SearchStrategy[str]) -> dict[str, Any]:
    chosen = draw(method)
    keys: dict[str, Any] = {
        "method": chosen,
        "loss": draw(st.sampled_from(("standard", "chunked"))),
        "gradient_checkpointing": draw(st.booleans()),
        "micro_batch_size": draw(st.integers(1, 6)),
        "sequence_length": draw(st.sampled_from((64, 200, 1024))),
        "attention": draw(st.sampled_from(("sdpa", "flash", "eager"))),
        "padding": draw(st.booleans()),
    }
    if chosen == "qlora":
        # A second model is loaded without the preparation, so its activations would be narrower.
        keys["prepare_kbit"] = False
    if draw(st.booleans()):
        keys |= {"num_gpus": 2, "parallelism": draw(st.sampled_from(("ddp", "zero2", "zero3", "fsdp")))}
    return keys


@settings(max_examples=60, deadline=None)
@given(drawn(st.sampled_from(("lora", "qlora"))))
def test_less_of_a_reference_never_needs_more(keys: dict[str, Any]) -> None:
    precomputed, adapter, second = (
        run(SMALL, **keys, objective="dpo", reference=reference).peak_bytes for reference in ("precomputed", "adapter", "model")
    )
    assert precomputed <= adapter <= second


@settings(max_examples=60, deadline=None)
@given(drawn(st.sampled_from(("full", "lora", "qlora"))), st.sampled_from(("dpo", "grpo")))
def test_more_sequences_never_need_less(keys: dict[str, Any], objective: str) -> None:
    recipe = recipe_from_keys({**keys, "objective": objective, **({"num_generations": 1} if objective == "grpo" else {})})
    found = [estimate(SMALL, replace(recipe, micro_batch_size=count)) for count in (1, 2, 4, 8)]
    assert [each.peak_bytes for each in found] == sorted(each.peak_bytes for each in found)
    for each in found:
        assert all(moment.total == sum(moment.parts.values()) for moment in each.moments.values())


@settings(max_examples=40, deadline=None)
@given(drawn(st.sampled_from(("full", "lora", "qlora"))))
def test_supervised_fine_tuning_is_as_it_was(keys: dict[str, Any]) -> None:
    said, unsaid = run(SMALL, **keys, objective="sft"), run(SMALL, **keys)
    assert said == unsaid
    assert list(said.moments) == ["load", "forward_end", "loss", "head_backward", "layer_backward", "last_layer_backward", "optimizer_step"]


def test_the_command_line_and_pages_know_the_keys(dataset: Dataset) -> None:
    answer = recipes.result(recipes.estimate_keys(dataset, {"model": "llama-3.2-1b", "method": "lora", "objective": "grpo", "preset": "trl"}))
    assert answer["conditions"]["loss"] == "chunked" and answer["moments"]["generation"]["parts"]["kv_cache"] > 0
    assert "evaluation" not in answer["events"]
