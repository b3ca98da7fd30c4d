"""Peaks by fitcheck-llm: runs as JSON on standard input, bytes as JSON on standard output; needs that package alone.

Run by tests/record_peers.py with the Python of the environment that holds the package.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import fitcheck
from fitcheck.utils import bytes_to_mib

GPU = fitcheck.GpuSpec("A100 80GB", 81920, 81920)


def peak(run: dict[str, Any]) -> int | None:
    """Bytes of everything but its allowance for the CUDA context and the allocator.

    None for full fine-tuning without an FP32 copy of the weights: it always counts one.
    """
    shape, recipe = run["shape"], run["recipe"]
    full = recipe["method"] == "full"
    if full and recipe["precision"] not in ("bf16-master", "fp32"):
        return None
    model = fitcheck.ModelConfig(
        name="model",
        num_params=shape["parameters"],
        hidden_size=shape["hidden"],
        num_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_kv_heads=shape["key_value_heads"],
        intermediate_size=shape["inner"],
        vocab_size=shape["vocabulary"],
        head_dim=shape["hidden"] // shape["heads"],
        tie_word_embeddings=False,
    )
    training = fitcheck.TrainingConfig(
        precision="bf16",
        quantization="nf4" if recipe["method"] == "qlora" else "none",
        double_quant=bool(recipe.get("double_quant")) and recipe["method"] == "qlora",
        optimizer_dtype="fp32",
        batch_size=recipe["micro_batch_size"],
        seq_len=recipe["sequence_length"],
        lora_rank=None if full else recipe["lora_r"],
        lora_targets=[] if full else run["targets"],
        grad_checkpoint=recipe["gradient_checkpointing"],
        flash_attn=recipe["attention"] == "flash",
    )
    report = fitcheck.estimate(model, training, GPU)
    mib = report.total_mib - report.overhead_mib
    return round(mib / bytes_to_mib(1))


def main() -> None:
    json.dump({"version": version("fitcheck-llm"), "peaks": [peak(run) for run in json.load(sys.stdin)]}, sys.stdout)


if __name__ == "__main__":
    main()
