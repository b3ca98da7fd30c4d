"""Time of one estimate against the closest other tool: the median over 50 recipes, start-up left out.

Run by `make benchmark` in an environment that holds that tool; the estimator itself needs nothing but Python.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

import fitcheck

from macros.estimator import architecture_from_config, estimate, recipe_from_keys

MODELS = {
    "Llama 3.1 8B": ("llama", 8030261248, 4096, 32, 32, 8, 14336, 128256, 128),
    "Llama 2 7B": ("llama", 6738415616, 4096, 32, 32, 32, 11008, 32000, 128),
    "Qwen2.5 14B": ("qwen2", 14770033664, 5120, 48, 40, 8, 13824, 152064, 128),
}
GPU = fitcheck.GpuSpec("A100 80GB", 81920, 81920)
REPEATS = 30


def timed(call: Callable[[], object]) -> float:
    """Microseconds of the fastest of a few rounds, per call."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(REPEATS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / REPEATS * 1e6


def main() -> None:
    ours, theirs, cold = [], [], []
    for name, numbers in MODELS.items():
        family, count, hidden, layers, heads, kv_heads, inner, vocabulary, head_dim = numbers
        config = {
            "model_type": family,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "intermediate_size": inner,
            "vocab_size": vocabulary,
        }
        other = fitcheck.ModelConfig(
            name, count, hidden, layers, heads, kv_heads, inner, vocabulary, head_dim, False
        )
        arch = architecture_from_config(config)
        for method in ("full", "lora", "qlora"):
            for length in (512, 2048, 8192):
                for checkpointing in (True, False):
                    keys = {"method": method, "sequence_length": length, "gradient_checkpointing": checkpointing}
                    recipe = recipe_from_keys(keys)
                    fresh = architecture_from_config(config)
                    start = time.perf_counter()
                    estimate(fresh, recipe, 81920 * 2**20)
                    cold.append((time.perf_counter() - start) * 1e6)
                    training = fitcheck.TrainingConfig(
                        quantization="nf4" if method == "qlora" else "none",
                        double_quant=method == "qlora",
                        lora_rank=None if method == "full" else 16,
                        seq_len=length,
                        grad_checkpoint=checkpointing,
                        flash_attn=True,
                        lora_targets=["q_proj", "k_proj", "v_proj", "o_proj"],
                    )
                    ours.append(timed(lambda: estimate(arch, recipe, 81920 * 2**20)))
                    theirs.append(timed(lambda: fitcheck.estimate(other, training, GPU)))
    ours, theirs = ours[:50], theirs[:50]
    one, peer = statistics.median(ours), statistics.median(theirs)
    print(f"one estimate: {one:.0f} µs, fitcheck-llm {version('fitcheck-llm')}: {peer:.0f} µs, ratio {one / peer:.2f}")
    print(f"the first estimate for a model and a set of settings: {statistics.median(cold):.0f} µs")
    print(f"{1e6 / one:,.0f} estimates per second")


if __name__ == "__main__":
    main()
