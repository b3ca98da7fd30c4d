"""What a run needs beside its step, against figures from outside: files, reports, and the sizes of tensors by hand.

UR-… are reports of users that the guide was written for; each test says what the report gives.
"""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from macros.dataset import Dataset, load
from macros.estimator import architecture_from_config, recipe_from_keys
from macros.estimator.events import events
from macros.estimator.host import PROCESS
from macros.recipes import estimate_keys, result
from macros.run import Run
from tests.oracle.compare import RECIPES

ROOT = Path(__file__).parent.parent
LLAMA_7B = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "vocab_size": 32000}  # fmt: skip
LLAMA_8B = 8_030_261_248  # parameters of Llama 3.1 8B
TABLE = 128_256 * 4_096  # its embedding, and its head


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


def answer(dataset: Dataset, **keys: Any) -> dict[str, Any]:
    named = keys if "config" in keys else {"model": "llama-3.1-8b", **keys}
    return result(estimate_keys(dataset, named))


def simulated(event: str) -> list[float]:
    """Relative errors against the oracle's runs of one event, which tests/oracle/events.py recorded."""
    losses = {"standard": "standard", "trl": "chunked"}
    optimizers = {"fused": "adamw_torch_fused", "foreach": "adamw_torch"}
    found = []
    with open(ROOT / "tests" / "oracle" / "event_rows.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["event"] != event:
                continue
            keys = {**RECIPES[row["recipe"]], "sequence_length": int(row["seq"]), "attention": row["attn"]}
            keys |= {"loss": losses[row["loss"]], "optim": optimizers[row["optimizer"]]}
            if keys["method"] != "full":
                keys["lora_r"] = int(row["rank"])
            if event == "kbit_preparation":
                keys["prepare_kbit"] = True  # the row's recipe is the model before it
            size = events(architecture_from_config(json.loads(row["config"])), recipe_from_keys(keys))[event]
            found.append(abs(size / int(row["peak_bytes"]) - 1))
    return sorted(found)


def test_evaluation_equals_the_simulation() -> None:
    """36 seeded mixes; the largest errors are where a small vocabulary leaves the peak to the attention."""
    errors = simulated("evaluation")
    assert len(errors) == 36
    assert statistics.median(errors) <= 0.001
    assert errors[int(0.9 * len(errors))] <= 0.015
    assert errors[-1] <= 0.045


def test_the_preparation_equals_the_simulation() -> None:
    errors = simulated("kbit_preparation")
    assert len(errors) == 18
    assert errors[-1] <= 0.001


def test_kept_logits_outgrow_any_card() -> None:
    """UR-045: 500 sequences of 1024 tokens and Gemma 3's vocabulary are an array of 500 GiB in float32."""
    gemma = {"model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
             "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 262_144,
             "sliding_window": 1024, "query_pre_attn_scalar": 256, "tie_word_embeddings": True}  # fmt: skip
    estimate = estimate_keys(load(ROOT), {"config": gemma, "method": "lora"})
    assert Run(estimate, {}, None, None, None, lambda _: None).kept_logits(500 * 1024) == 500 * 2**30


def test_evaluation_is_the_logits_of_eight_sequences_and_what_rests(dataset: Dataset) -> None:
    """bf16 logits, their float32 copy and the log-probabilities: ten bytes a token and vocabulary entry."""
    found = answer(dataset, method="lora", sequence_length=2048)
    logits = 10 * 8 * 2048 * 128_256
    resting = 2 * LLAMA_8B + 3 * 4 * 41_943_040
    assert found["events"]["evaluation"] == pytest.approx(resting + logits, rel=0.01)
    assert "Evaluation" in " ".join(found["warnings"])


def test_evaluation_without_logits_needs_none_of_them(dataset: Dataset) -> None:
    found = answer(dataset, method="lora", loss="chunked", sequence_length=2048)
    assert found["events"]["evaluation"] < 2 * LLAMA_8B + 3 * 4 * 41_943_040 + 4e9


def test_evaluation_does_not_depend_on_the_training_batch(dataset: Dataset) -> None:
    events = [answer(dataset, method="qlora", micro_batch_size=size)["events"] for size in (1, 4, 32)]
    assert len({each["evaluation"] for each in events}) == 1


def test_the_preparation_holds_the_head_in_both_dtypes(dataset: Dataset) -> None:
    """At its end everything but the 4-bit layers is float32, and the 16-bit head is still there."""
    found = answer(dataset, method="qlora")
    after = found["moments"]["load"]["total"]
    assert found["events"]["kbit_preparation"] == after + 2 * TABLE


def test_the_preparation_is_not_there_where_it_does_not_run(dataset: Dataset) -> None:
    assert "kbit_preparation" not in answer(dataset, method="qlora", prepare_kbit=False)["events"]
    assert "kbit_preparation" not in answer(dataset, method="lora")["events"]


def test_loading_holds_the_largest_matrix_in_16_bits_beside_its_4_bits(dataset: Dataset) -> None:
    """Gate, up and down have 14336 · 4096 weights; constants in float32, one for 64 weights, exist twice."""
    with_16_bit_tables = answer(dataset, method="qlora", prepare_kbit=False)["moments"]["load"]["total"]
    weights = 14_336 * 4_096
    found = answer(dataset, method="qlora")["events"]["load"]
    assert found == with_16_bit_tables + 2 * weights + 2 * 4 * weights // 64


def test_a_merge_on_the_card_needs_the_16_bit_model(dataset: Dataset) -> None:
    """UR-053, UR-051: merging needs the whole model in 16 bits, whatever training needed."""
    found = answer(dataset, method="qlora")
    product = 2 * 4 * 14_336 * 4_096
    assert found["events"]["merge"] == pytest.approx(2 * LLAMA_8B + 4 * 41_943_040 + product, rel=0.0001)
    assert "merge" not in answer(dataset, method="full")["events"]


def test_a_4_bit_model_loads_on_a_free_colab_machine(dataset: Dataset) -> None:
    """UR-060: Mistral 7B in 4 bits loads with about 12 GB of RAM from safetensors."""
    mistral = {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
               "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000}  # fmt: skip
    host = answer(dataset, config=mistral, method="qlora")["host_bytes"]
    assert host["load"] < 12e9 < host["mapped"]


def test_a_float32_model_is_made_in_the_hosts_memory(dataset: Dataset) -> None:
    """Measured with transformers 5.24.0 on Linux: from_pretrained of 334 million weights grows the process by 1.34 GB
    if it casts to float32, and by less than 0.05 GB if it keeps the file's bfloat16 (RssAnon)."""
    wide = answer(dataset, method="full", precision="fp32-autocast")["host_bytes"]["load"]
    assert wide == PROCESS + 4 * LLAMA_8B
    assert answer(dataset, method="full", precision="bf16")["host_bytes"]["load"] == PROCESS


def test_merging_a_7b_model_kills_a_small_machine(dataset: Dataset) -> None:
    """UR-053: the process is killed; 30 GB are quoted for a merge that then still began in float32 (27 GB)."""
    host = answer(dataset, config=LLAMA_7B, method="lora", target_modules=["q_proj", "v_proj"], lora_r=8)["host_bytes"]
    assert 13.4e9 < host["merge"] < 30e9
    assert host["peak"] == host["merge"]


def test_offloaded_checkpoints_lie_in_the_hosts_memory(dataset: Dataset) -> None:
    """32 layers, 2 bytes, 4096 elements a token."""
    kept = answer(dataset, method="lora", sequence_length=8192)["host_bytes"]["training"]
    moved = answer(dataset, method="lora", sequence_length=8192, checkpoint_offload=True)["host_bytes"]["training"]
    assert moved - kept == 32 * 2 * 4096 * 8192


def test_paged_states_can_lie_in_the_hosts_memory(dataset: Dataset) -> None:
    """Two moments of one byte for nearly all weights: 16 GB for 8B; embeddings stay in 32 bits."""
    found = answer(dataset, method="full", precision="bf16", optim="paged_adamw_8bit")["host_bytes"]
    plain = answer(dataset, method="full", precision="bf16", optim="adamw_bnb_8bit")["host_bytes"]
    states = 2 * (LLAMA_8B - TABLE) + 8 * TABLE
    assert found["training"] - plain["training"] == pytest.approx(states, rel=0.001)


def test_a_checkpoint_of_an_adapter(dataset: Dataset) -> None:
    """Rank 16 on all linear layers of Llama 3.1 8B trains 41 943 040 weights: 168 MB in float32, and twice that of moments."""
    disk = answer(dataset, method="lora", lora_r=16)["disk_bytes"]
    assert disk["weights"] == 167_772_160
    assert disk["checkpoint"] - disk["weights"] == pytest.approx(2 * 167_772_160, rel=0.001)
    assert disk["checkpoints"] == 3 * disk["checkpoint"]
    assert disk["merged"] == disk["download"] == 2 * LLAMA_8B


def test_checkpoints_of_full_fine_tuning(dataset: Dataset) -> None:
    """16 bytes a weight in training are 12 on disk: weights and two moments in float32, no gradients."""
    disk = answer(dataset, method="full", precision="fp32-autocast", checkpoints_kept=1)["disk_bytes"]
    assert disk["checkpoint"] == pytest.approx(12 * LLAMA_8B, rel=0.001)
    assert disk["checkpoints"] == 2 * disk["checkpoint"]
    assert disk["merged"] == 0


def test_paged_states_are_saved_like_others(dataset: Dataset) -> None:
    paged, plain = (
        answer(dataset, method="lora", optim=optim)["disk_bytes"]["checkpoint"]
        for optim in ("paged_adamw_8bit", "adamw_bnb_8bit")
    )
    assert paged == plain


def test_a_prepared_dataset_has_12_bytes_a_token(dataset: Dataset) -> None:
    """datasets 5.2.0 made 12 008 000 bytes of 1000 rows with 1000 ids and labels each."""
    disk = answer(dataset, method="qlora", dataset_tokens=1_000_000)["disk_bytes"]
    assert disk["dataset"] == 12_000_000
    assert disk["total"] == disk["download"] + disk["checkpoints"] + disk["merged"] + disk["dataset"]


def test_a_process_has_the_memory_that_others_measured(dataset: Dataset) -> None:
    """deepspeedexamples-2023-630: eight processes of ZeRO-2 without offload settled at 21 GB of RAM."""
    host = answer(dataset, method="full", parallelism="zero2", num_gpus=8)["host_bytes"]
    assert host["training"] == pytest.approx(21e9, rel=0.15)


def test_every_process_that_loads_for_itself_takes_the_whole_model(dataset: Dataset) -> None:
    """UR-062: 40 billion weights on 8 cards wanted 1280 GB, 32 bytes a weight; loading on the first only ends that."""
    host = answer(dataset, method="full", parallelism="fsdp", num_gpus=8)["host_bytes"]
    assert host["load_by_each"] - 8 * PROCESS == 32 * LLAMA_8B
    assert host["load"] - 8 * PROCESS == 4 * LLAMA_8B


@pytest.mark.parametrize(("params", "bytes_each"), [(False, 16), (True, 18)])
def test_offload_lies_between_deepspeeds_own_figures(dataset: Dataset, params: bool, bytes_each: int) -> None:
    """deepspeed-2021-1536: 2851 million weights on 8 cards, 63.74 and 71.71 GiB, 1.5 times 16 and 18 bytes each.

    The factor is DeepSpeed's for buffers; without it there is no room for what it pins.
    """
    gib = {False: 63.74, True: 71.71}[params]
    assert gib * 2**30 == pytest.approx(1.5 * bytes_each * 2_851_000_000, rel=0.001)
    host = answer(dataset, method="full", parallelism="zero3", num_gpus=8, offload_optimizer=True, offload_params=params)
    each = (host["host_bytes"]["training"] - 8 * PROCESS) / LLAMA_8B
    assert bytes_each < each < 1.5 * bytes_each


def test_a_32b_model_does_not_train_comfortably_in_744_gb_of_ram(dataset: Dataset) -> None:
    """UR-100: full fine-tuning of Qwen2.5 32B, ZeRO-3 with offload on one card, is killed by the host."""
    found = answer(dataset, model="qwen2.5-32b", method="full", parallelism="zero3", offload_optimizer=True, offload_params=True)
    assert found["host_bytes"]["training"] > 0.8 * 744e9


def test_host_memory_shows_whether_offload_is_active(dataset: Dataset) -> None:
    """UR-183: a script that meant to offload a 7B model with LoRA used 4.08 GB of RAM: it did not."""
    keys = {"config": LLAMA_7B, "method": "lora", "target_modules": ["q_proj", "v_proj"]}
    active = answer(dataset, **keys, parallelism="zero3", offload_optimizer=True, offload_params=True)["host_bytes"]
    idle = answer(dataset, **keys)["host_bytes"]
    assert idle["training"] < 4.08e9 < 3 * 4.08e9 < active["training"]


def test_a_divided_4_bit_model_is_whole_on_every_card_while_it_loads(dataset: Dataset) -> None:
    """UR-089, UR-091: a 70B model in 4 bits fails on four cards of 24 GB before training; about 10 GB would train."""
    found = answer(dataset, model="llama-3.1-70b", method="qlora", parallelism="fsdp", num_gpus=4, quant_storage="bfloat16",
                   prepare_kbit=False, offload_params=True, sequence_length=512)  # fmt: skip
    assert found["events"]["load"] > 24e9 > 12e9 > found["peak_bytes"]
    assert "Loading the model needs more" in " ".join(found["warnings"])


def test_a_checkpoint_of_deepspeed(dataset: Dataset) -> None:
    """gpt-neox-2023-836 lists 32 optimizer files of 607 567 191 bytes beside 3 240 441 358 bytes of 16-bit weights:
    14 bytes a weight. Trainer adds a file of its own."""
    listed = (3_240_441_358 + 32 * 607_567_191) / (3_240_441_358 / 2)
    disk = answer(dataset, method="full", parallelism="zero1", num_gpus=8)["disk_bytes"]
    assert (disk["checkpoint"] - disk["weights"]) / LLAMA_8B == pytest.approx(listed, rel=0.001)


def test_fsdp_saves_shards_or_everything_twice(dataset: Dataset) -> None:
    """Version 2 saves shards, 12 bytes a weight; version 1 a full state dict beside Trainer's own file, 16."""
    new, old = (
        answer(dataset, method="full", parallelism="fsdp", num_gpus=4, fsdp_version=version)["disk_bytes"]["checkpoint"]
        for version in (2, 1)
    )
    assert new == pytest.approx(12 * LLAMA_8B, rel=0.001)
    assert old == pytest.approx(16 * LLAMA_8B, rel=0.001)


def test_ddp_resumes_with_the_states_twice_where_bitsandbytes_copies_them(dataset: Dataset) -> None:
    """UR-057, UR-058: loading the optimizer's states onto the card ends a run that fitted."""
    events = [
        answer(dataset, method="full", precision="bf16", optim=optim, parallelism="ddp", num_gpus=2)["events"]
        for optim in ("adamw_bnb_8bit", "adamw_torch_fused")
    ]
    states = 2 * (LLAMA_8B - TABLE) * 257 / 256 + 8 * TABLE
    assert events[0]["resume"] - events[0]["save"] == pytest.approx(states, rel=0.02)
    assert events[1]["resume"] == events[1]["save"]


@pytest.mark.parametrize("keys", [{"method": "qlora"}, {"method": "full"}, {"method": "lora", "loss": "chunked"}])
@pytest.mark.parametrize("parallelism", ["zero1", "zero2", "zero3", "fsdp"])
def test_more_cards_need_no_more_each(dataset: Dataset, keys: dict[str, Any], parallelism: str) -> None:
    """Every event but those of one card alone: each card's part shrinks; DDP stays as it is."""
    few, many = (answer(dataset, **keys, parallelism=parallelism, num_gpus=count)["events"] for count in (2, 8))
    assert all(many[name] <= few[name] for name in few)


@pytest.mark.parametrize("key", ["checkpoints_kept", "dataset_tokens"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "3", 10**15])
def test_a_wrong_question_is_named(dataset: Dataset, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{key} must be a whole number from 0 to "):
        answer(dataset, method="lora", **{key: value})


def test_a_run_that_cannot_be_loaded_does_not_fit(dataset: Dataset) -> None:
    """70B in NF4 is about 40 GB and lies whole on every card while it loads: steps of 8 GB on 24 GB cards are of no use."""
    keys = {"model": "llama-3.3-70b", "method": "qlora", "loss": "chunked", "gpu": "rtx-3090", "parallelism": "fsdp", "num_gpus": 2}
    keys |= {"quant_storage": "bfloat16", "prepare_kbit": False, "offload_optimizer": True, "offload_params": True}
    found = estimate_keys(dataset, keys)
    assert found.peak_bytes < 12e9 and found.beside.events["load"] > 35e9
    assert found.verdict == "does_not_fit" and found.headroom_bytes < 24e9 - 35e9
    assert estimate_keys(dataset, {**keys, "gpu": "rtx-6000-ada"}).verdict == "comfortable"
    # Version 4 quantised on the card and kept the result in the host's memory, as huggingface-2026-peft-fsdp did on 2 × 24 GB.
    assert estimate_keys(dataset, {**keys, "transformers": "4.45", "fsdp_version": 1}).verdict == "comfortable"
