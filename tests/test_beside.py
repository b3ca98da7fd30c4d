"""What a run needs beside its step, against figures from outside: files, reports, and the sizes of tensors by hand.

UR-… are reports of users that the guide was written for; each test says what the report gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from macros.dataset import Dataset, load
from macros.estimator.host import PROCESS
from macros.recipes import estimate_keys, result

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


@pytest.mark.parametrize("key", ["checkpoints_kept", "dataset_tokens"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "3", 10**15])
def test_a_wrong_question_is_named(dataset: Dataset, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{key} must be a whole number from 0 to "):
        answer(dataset, method="lora", **{key: value})
