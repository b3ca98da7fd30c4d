#!/usr/bin/env python3
"""Counts the FLOPs of real training steps with torch's own counter and writes tests/oracle/flop_rows.csv.

`python tests/record_flops.py [first last]`, with the packages that tests/oracle/README.md lists. The steps are those of
the oracle, on fake tensors: real models of transformers, real adapters of PEFT, torch.utils.flop_counter.FlopCounterMode.
tests/test_flops.py compares the rows with the estimator and needs no torch.

`flops` is the count; `torch_flops` is what the counter says left alone. They differ where the counter has no formula or a
wrong one, and the corrections below are made: grouped_mm (a mixture of experts' products) and the 8-bit product of
bitsandbytes have none; of a depthwise convolution's weight gradient it counts every pair of channels.
"""

from __future__ import annotations

import csv
import importlib
import json
import pathlib
import sys
from importlib.metadata import version
from math import prod

ROOT = pathlib.Path(__file__).parent
sys.path.insert(0, str(ROOT / "oracle"))

import oracle
import torch
from torch.utils import flop_counter

ROWS = ROOT / "oracle" / "flop_rows.csv"
RESULTS = ("flops", "torch_flops", "versions")
VERSIONS = " ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "peft", "trl", "liger-kernel"))
aten = torch.ops.aten


class Unwatched:
    """Stands for the oracle's tracker of storages, which this count does not need."""

    def __init__(self, log: bool):
        self.peak_info = None

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def set(self, phase: str, category: str) -> None:
        """Phases do not matter here."""

    def track(self, tensor: torch.Tensor, category: str) -> None:
        """Nor do storages."""


oracle.StorageTracker = Unwatched


def grouped_mm_flop(left, right, *args, out_shape=None, **kwargs) -> int:
    """Sorted rows with one matrix each, or the gradient of those matrices: no pair is computed twice."""
    if len(left) == 2 and len(right) == 2:
        return 2 * left[0] * left[1] * right[1]
    return 2 * left[0] * left[1] * right[-1]


def convolution_backward_flop(gradient, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, mask, out_shape=None) -> int:
    """Each gradient is as much work as the forward; groups do not meet each other."""
    one = 2 * prod(gradient) * prod(weight[1:])
    return one * (int(mask[0]) + int(mask[1]))


def int8_product_flop(left, right, *args, out_shape=None, **kwargs) -> int:
    """bitsandbytes' product of two int8 matrices, the second one transposed."""
    return 2 * prod(left) * right[0]


CORRECTED = {
    aten._grouped_mm: grouped_mm_flop,
    aten.convolution_backward: convolution_backward_flop,
    torch.ops.bitsandbytes.int8_linear_matmul: int8_product_flop,
    torch.ops.bitsandbytes.int8_mixed_scaled_mm: lambda a, ca, cb, *args, out_shape=None, **kwargs: 2 * prod(ca) * cb[0],
    torch.ops.bitsandbytes.int8_scaled_mm: int8_product_flop,
}


class Counter(flop_counter.FlopCounterMode):
    """The corrected count, and beside it the one that the counter alone would make."""

    def __init__(self) -> None:
        super().__init__(display=False, custom_mapping=CORRECTED)
        self.plain = 0

    def _count_flops(self, func_packet, out, args, kwargs):
        formula = flop_counter.flop_registry.get(func_packet)
        if formula is not None:
            self.plain += formula(*args, **kwargs, out_val=out)
        return super()._count_flops(func_packet, out, args, kwargs)


class Counted(oracle.Run):
    """One forward and backward under torch's counter; the optimizer is left out."""

    def train(self) -> None:
        self.mark_phases()
        if self.settings.loss == "trl":
            # The oracle leaves this product out, as it writes in place; here it counts.
            importlib.import_module("trl.kernels.chunked_logprob")._addmm_fp32 = lambda sums, left, right: left @ right
        with Counter() as counter:
            self.micro_step()
        self.flops, self.torch_flops = counter.get_total_flops(), counter.plain


DENSE: tuple[dict[str, object], ...] = (
    dict(model_type="llama", hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=32,
         num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True),
    dict(model_type="llama", hidden_size=4096, intermediate_size=14336, num_hidden_layers=3, num_attention_heads=32,
         num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=False),
    dict(model_type="llama", hidden_size=4096, intermediate_size=11008, num_hidden_layers=3, num_attention_heads=32,
         vocab_size=32000),
    dict(model_type="mistral", hidden_size=4096, intermediate_size=14336, num_hidden_layers=3, num_attention_heads=32,
         num_key_value_heads=8, vocab_size=32768, sliding_window=None),
    dict(model_type="qwen2", hidden_size=3584, intermediate_size=18944, num_hidden_layers=3, num_attention_heads=28,
         num_key_value_heads=4, vocab_size=152064, tie_word_embeddings=False),
    dict(model_type="qwen3", hidden_size=2560, intermediate_size=9728, num_hidden_layers=4, num_attention_heads=32,
         num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True),
    dict(model_type="gemma2", hidden_size=2304, intermediate_size=9216, num_hidden_layers=4, num_attention_heads=8,
         num_key_value_heads=4, head_dim=256, vocab_size=256000, sliding_window=4096),
    dict(model_type="gemma3_text", hidden_size=2560, intermediate_size=10240, num_hidden_layers=6, num_attention_heads=8,
         num_key_value_heads=4, head_dim=256, vocab_size=262208, sliding_window=1024),
    dict(model_type="phi3", hidden_size=3072, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=32,
         num_key_value_heads=32, vocab_size=32064, pad_token_id=0),
    dict(model_type="olmo2", hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=16, vocab_size=100352),
    dict(model_type="granite", hidden_size=4096, intermediate_size=12800, num_hidden_layers=3, num_attention_heads=32,
         num_key_value_heads=8, vocab_size=49159, tie_word_embeddings=True),
    dict(model_type="smollm3", hidden_size=2048, intermediate_size=11008, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=4, vocab_size=128256, tie_word_embeddings=True),
)  # fmt: skip

# Ways to run a dense model; batch and length vary with the model.
WAYS: tuple[dict[str, object], ...] = (
    dict(recipe="full-bf16-pure", checkpointing=False, attn="sdpa"),
    dict(recipe="full-mixed-fp32", checkpointing=True, attn="flash"),
    dict(recipe="full-bf16-autocast", checkpointing=True, attn="eager"),
    dict(recipe="full-bf16-pure", checkpointing=True, attn="sdpa", loss="trl", trained_token_share=0.5),
    dict(recipe="full-bf16-pure", checkpointing=True, attn="sdpa", loss="liger", kernels="liger"),
    dict(recipe="lora-bf16", checkpointing=False, attn="sdpa", targets="all-linear", rank=16, dropout=0.05),
    dict(recipe="lora-bf16", checkpointing=True, attn="sdpa", targets="all-linear", rank=64, dropout=0.0),
    dict(recipe="lora-bf16-pure", checkpointing=False, attn="eager", targets="qv", rank=8, dropout=0.0),
    dict(recipe="lora-bf16", checkpointing=True, attn="flash", targets="qv", rank=8, dropout=0.1),
    dict(recipe="lora-bf16", checkpointing=True, attn="sdpa", targets="attn", rank=16, dropout=0.0, loss="trl"),
    dict(recipe="lora-bf16", checkpointing=True, attn="sdpa", targets="all-linear", rank=16, dropout=0.0, dora=True),
    dict(recipe="qlora-nf4", checkpointing=True, attn="sdpa", targets="all-linear", rank=16, dropout=0.05),
    dict(recipe="qlora-trl", checkpointing=True, attn="flash", targets="attn", rank=32, dropout=0.0, loss="trl"),
    dict(recipe="qlora-nf4", checkpointing=False, attn="sdpa", targets="qv", rank=16, dropout=0.0, quantization="int8"),
    dict(recipe="lora-bf16", checkpointing=True, attn="sdpa", targets="all-linear", rank=16, dropout=0.0,
         modules_to_save="embed_tokens lm_head"),
)  # fmt: skip
# Real sizes of whole models, and a long sequence.
WHOLE: tuple[dict[str, object], ...] = (
    dict(DENSE[1], num_hidden_layers=32, recipe="lora-bf16", checkpointing=True, attn="sdpa", targets="all-linear", rank=16,
         dropout=0.0, batch=1, seq=8192),
    dict(DENSE[1], num_hidden_layers=32, recipe="full-bf16-pure", checkpointing=True, attn="flash", batch=2, seq=32768),
    dict(DENSE[0], num_hidden_layers=16, recipe="full-bf16-pure", checkpointing=False, attn="sdpa", batch=4, seq=2048),
    dict(DENSE[4], num_hidden_layers=28, recipe="qlora-nf4", checkpointing=True, attn="sdpa", targets="all-linear", rank=16,
         dropout=0.0, batch=1, seq=4096),
)  # fmt: skip


def plan() -> list[dict[str, object]]:
    """Every dense family a few ways, all ways covered; then mixtures of experts and hybrids; then whole models."""
    runs: list[dict[str, object]] = []
    for index, config in enumerate(DENSE):
        for offset, way in enumerate(WAYS):
            if (offset + index) % 3 and index > 1:
                continue  # the first two go every way
            way = dict(way)
            if config["model_type"] == "gemma2" and way["attn"] == "sdpa":
                way["attn"] = "eager"  # its code refuses sdpa
            if config["model_type"] in ("phi3", "olmo2", "gemma3_text", "smollm3", "granite", "qwen3") and way.get("kernels"):
                way = {key: value for key, value in way.items() if key != "kernels"}
            sizes = dict(batch=(1, 2, 4)[(index + offset) % 3], seq=(512, 1536, 2048, 1000, 4096)[(index + 2 * offset) % 5])
            runs.append(dict(config=config, optimizer="fused") | sizes | way)
    for config in importlib.import_module("plan_families").CONFIGS:
        runs += [run for run in family(config)]
    settings = {field for field in oracle.Settings.__dataclass_fields__}
    for whole in WHOLE:
        config = {key: value for key, value in whole.items() if key not in settings}
        runs.append(dict(config=config, optimizer="fused") | {key: whole[key] for key in whole if key in settings})
    return runs


def family(config: dict[str, object]) -> list[dict[str, object]]:
    """Mixtures of experts and hybrids in 16 bits, whose grouped products torch runs as one op."""
    families = importlib.import_module("plan_families")
    kind = config["model_type"]
    attention = families.ONLY.get(kind, ("sdpa", "flash"))
    adapted = dict(rank=16, dropout=0.0)
    named = families.TARGETS.get(kind) or families.LATENT_ATTENTION.get(kind, "attn")
    everywhere = families.TARGETS.get(kind, "all-linear")
    return [
        dict(config=config, optimizer="fused", recipe="full-bf16-pure", checkpointing=True, attn=attention[0], batch=2, seq=1024),
        dict(config=config, optimizer="fused", recipe="full-bf16-pure", checkpointing=False, attn=attention[1], batch=1, seq=2048),
        dict(config=config, optimizer="fused", recipe="lora-bf16", checkpointing=True, attn=attention[0], batch=1, seq=2048,
             targets=named, **adapted),
        dict(config=config, optimizer="fused", recipe="lora-bf16", checkpointing=True, attn=attention[1], batch=2, seq=1536,
             targets=everywhere, **adapted),
    ]  # fmt: skip


def row(run: dict[str, object]) -> dict[str, object]:
    """One run as a row: its configuration, its settings, the count."""
    settings = dict(run)
    config = settings.pop("config")
    counted = Counted(config, oracle.Settings(**settings), log=False)
    written: dict[str, object] = {"config": json.dumps(config)}
    for key, value in settings.items():
        written[key] = int(value) if isinstance(value, bool) else value
    return written | {"flops": counted.flops, "torch_flops": counted.torch_flops, "versions": VERSIONS}


def main() -> None:
    """Write the rows; runs that the libraries refuse are named and left out."""
    runs = plan()
    if len(sys.argv) > 2:
        runs = runs[int(sys.argv[1]) : int(sys.argv[2])]
    rows = []
    for number, run in enumerate(runs):
        try:
            rows.append(row(run))
        except Exception as error:  # a plan may ask for what the libraries refuse
            told = {**run, "config": run["config"]["model_type"]}
            print("failed:", number, told, type(error).__name__, str(error)[:160], file=sys.stderr)
    columns = list(dict.fromkeys(key for written in rows for key in written))
    columns = [column for column in columns if column not in RESULTS] + list(RESULTS)
    with open(ROWS, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows of {len(runs)}")


if __name__ == "__main__":
    main()
