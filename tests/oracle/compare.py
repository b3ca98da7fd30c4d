#!/usr/bin/env python3
"""Compares the estimator with rows of the oracle: `python -m tests.oracle.compare tests/oracle/rows/heldout.csv [worst]`.

Needs no torch: the rows were recorded by `generate.py`.
"""

from __future__ import annotations

import csv
import json
import pathlib
import statistics
import sys
from dataclasses import dataclass

from macros.estimator import architecture_from_config, estimate, recipe_from_keys

ROWS = pathlib.Path(__file__).parent / "rows"

# The oracle's recipes in the estimator's keys.
RECIPES = {
    "full-bf16-pure": {"method": "full", "precision": "bf16"},
    "full-bf16-autocast": {"method": "full", "precision": "bf16-autocast"},
    "full-mixed-fp32": {"method": "full", "precision": "fp32-autocast"},
    "full-mixed-master": {"method": "full", "precision": "bf16-master"},
    "full-fp32": {"method": "full", "precision": "fp32"},
    "lora-bf16": {"method": "lora", "precision": "bf16-autocast", "adapter_dtype": "float32"},
    "lora-bf16-pure": {"method": "lora", "precision": "bf16", "adapter_dtype": "bfloat16"},
    "qlora-nf4": {"method": "qlora", "prepare_kbit": True},
    "qlora-nf4-noprep": {"method": "qlora", "prepare_kbit": False},
    "lora-mixed-fp32": {"method": "lora", "precision": "fp32-autocast"},
    "qlora-trl": {"method": "qlora", "prepare_kbit": False, "adapter_dtype": "bfloat16"},
    "qlora-noautocast": {"method": "qlora", "precision": "bf16"},
    "qlora-pure": {"method": "qlora", "precision": "bf16", "prepare_kbit": False, "adapter_dtype": "bfloat16"},
}
TARGETS = {"qv": ["q_proj", "v_proj"], "attn": ["q_proj", "k_proj", "v_proj", "o_proj"]}
PHI3_TARGETS = {"qv": ["qkv_proj"], "attn": ["qkv_proj", "o_proj"]}

# Where the oracle sees the peak, by its phase, in the estimator's moments.
PHASE_MOMENTS = {
    "forward": ("forward_end",),
    "head": ("loss",),
    "loss": ("loss",),
    "backward": ("loss", "head_backward", "layer_backward", "last_layer_backward"),
    "optim": ("optimizer_step",),
    "log_probs": ("log_probs",),
    "generation": ("generation",),
}


@dataclass(frozen=True, slots=True)
class Deviation:
    """One row beside its estimate; errors are relative to the oracle's peak.

    moment_gap   by how much the estimate's peak exceeds its largest moment in the phase where the oracle sees the peak
    """

    row: dict[str, str]
    error: float
    moment: str
    same_moment: bool
    moment_gap: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row whose configuration or settings the estimator refuses, with its sentence."""

    row: dict[str, str]
    reason: str


def read(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a file; those of results.csv get their configuration from models.json."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and "config" not in rows[0]:
        models = json.loads((ROWS / "models.json").read_text(encoding="utf-8"))
        for row in rows:
            row["config"] = json.dumps(models[row["model"]])
    return rows


def recipe_keys(row: dict[str, str]) -> dict[str, object]:
    """The recipe keys that say what a row ran."""
    keys: dict[str, object] = dict(RECIPES[row["recipe"]])
    keys["micro_batch_size"] = int(row["batch"])
    keys["sequence_length"] = int(row["seq"])
    keys["attention"] = row["attn"]
    for column, key in FLAGS.items():
        if row.get(column):
            keys[key] = row[column] == "1"
    keys["optim"] = OPTIMIZERS.get(row["optimizer"], row["optimizer"])
    if row["optimizer"] == "forloop":
        keys["foreach"] = False
    for column, key in TEXTS.items():
        if row.get(column):
            keys[key] = row[column]
    if row.get("accumulation"):
        keys["gradient_accumulation_steps"] = int(row["accumulation"])
    if row.get("loss"):
        keys["loss"] = LOSSES[row["loss"]]
    if row.get("trained_token_share"):
        keys["trained_token_share"] = float(row["trained_token_share"])
    if row.get("modules_to_save"):
        keys["modules_to_save"] = row["modules_to_save"].split()
    keys |= preference_keys(row)
    if row.get("rank"):
        keys["lora_r"] = int(row["rank"])
        keys["lora_dropout"] = float(row["dropout"])
        keys["target_modules"] = targets(row["targets"], json.loads(row["config"])["model_type"])
    return keys


def preference_keys(row: dict[str, str]) -> dict[str, object]:
    """The keys of DPO and GRPO; rows without generation are of steps whose completions came from elsewhere."""
    if row.get("objective", "sft") in ("", "sft"):
        return {}
    keys: dict[str, object] = {"objective": row["objective"], "reference": row["reference"] or "none"}
    if row["objective"] == "grpo":
        keys["num_generations"] = int(row["batch"]) * int(row.get("accumulation") or 1)
        keys["prompt_length"] = int(row["prompt"])
        keys["generation"] = "transformers"
    return keys


FLAGS = {
    "checkpointing": "gradient_checkpointing",
    "padding": "padding",
    "keep_outputs": "keep_outputs",
    "double_quant": "double_quant",
    "dora": "use_dora",
}
TEXTS = {"grad32": "master_gradients", "quantization": "quantization", "kernels": "kernels"}
LOSSES = {"standard": "standard", "trl": "chunked", "liger": "fused"}
OPTIMIZERS = {"fused": "adamw_torch_fused", "foreach": "adamw_torch", "forloop": "adamw_torch"}


def targets(name: str, model_type: str) -> str | list[str]:
    """The module names behind the oracle's short names."""
    if name == "all-linear":
        return name
    short = PHI3_TARGETS if model_type == "phi3" else TARGETS
    return short.get(name) or name.split()


def compare(row: dict[str, str]) -> Deviation | Refusal:
    """A row beside the estimate of the same configuration and settings."""
    try:
        result = estimate(architecture_from_config(json.loads(row["config"])), recipe_from_keys(recipe_keys(row)))
    except ValueError as error:
        return Refusal(row, str(error))
    peak = int(row["peak_bytes"])
    phase = PHASE_MOMENTS[row["peak_phase"]]
    within = max(result.moments[name].total for name in phase)
    return Deviation(row, result.peak_bytes / peak - 1, result.moment, result.moment in phase, (result.peak_bytes - within) / peak)


def share(errors: list[float], quantile: float) -> float:
    """The error that a share of the rows does not exceed."""
    return errors[min(len(errors) - 1, int(quantile * len(errors)))]


def main() -> None:
    """Print errors by recipe and by family, then the worst rows."""
    path = pathlib.Path(sys.argv[1])
    results = [compare(row) for row in read(path)]
    refusals = [result for result in results if isinstance(result, Refusal)]
    deviations = [result for result in results if isinstance(result, Deviation)]
    for reason in sorted({refusal.reason for refusal in refusals}):
        print(sum(refusal.reason == reason for refusal in refusals), "refused:", reason)
    if not deviations:
        return
    groups: dict[str, list[Deviation]] = {"all": deviations}
    for result in deviations:
        groups.setdefault(result.row["recipe"], []).append(result)
    for result in deviations:
        groups.setdefault(json.loads(result.row["config"])["model_type"], []).append(result)
    for name, group in groups.items():
        errors = sorted(abs(result.error) for result in group)
        right = sum(result.same_moment for result in group)
        print(
            f"{name:20s} n {len(group):3d}  median {statistics.median(errors):.4f}  95 % {share(errors, 0.95):.4f}"
            f"  max {errors[-1]:.4f}  moment {right}/{len(group)}"
        )
    deviations.sort(key=lambda result: -abs(result.error))
    for result in deviations[: int(sys.argv[2]) if len(sys.argv) > 2 else 20]:
        row = dict(result.row)
        config = json.loads(row.pop("config"))
        settings = " ".join(f"{key}={value}" for key, value in row.items() if key not in HIDDEN and value not in ("", "0"))
        print(f"{result.error:+.4f} {result.moment} | {settings} | {json.dumps(config)}")


HIDDEN = ("versions", "params", "trainable_params")

if __name__ == "__main__":
    main()
