"""Peak memory by the formulas of other tools, restated from their code at one commit: what `make compare` sets beside ours.

Each function gets a run (`Shape`, recipe keys) and returns bytes of tensors, without the tool's fixed allowance for CUDA,
or None for a run that the tool has no way to describe. Their authors may find here what we take their tools to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

GIB = 2**30
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Shape:
    """A dense decoder as the tools describe one; they all take it from config.json."""

    parameters: int
    hidden: int
    inner: int
    layers: int
    heads: int
    key_value_heads: int
    vocabulary: int

    @classmethod
    def of(cls, config: Mapping[str, Any], parameters: int) -> Shape:
        return cls(
            parameters,
            config["hidden_size"],
            config["intermediate_size"],
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config.get("num_key_value_heads") or config["num_attention_heads"],
            config["vocab_size"],
        )

    @property
    def key_value(self) -> int:
        return self.hidden * self.key_value_heads // self.heads

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the linear layers of one decoder layer."""
        h, kv, f = self.hidden, self.key_value, self.inner
        sizes = ((h, h), (h, kv), (h, kv), (h, h), (h, f), (h, f), (f, h))
        return dict(zip(LINEAR, sizes, strict=True))

    @property
    def linear_parameters(self) -> int:
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears.values())

    @property
    def other_parameters(self) -> int:
        """Embedding, head and norms."""
        return 2 * self.vocabulary * self.hidden + (2 * self.layers + 1) * self.hidden

    def adapters(self, rank: int, targets: tuple[str, ...]) -> int:
        return self.layers * rank * sum(sum(self.linears[target]) for target in targets)


def targets(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """The adapted modules by name."""
    named = recipe["target_modules"]
    return LINEAR if named == "all-linear" else tuple(named)


def memory_gelato(shape: Shape, recipe: Mapping[str, Any]) -> int | None:
    """src/memory_gelato/estimator.py: what always lives, and the largest of three moments on top.

    It always has checkpointing and paged 8-bit AdamW, which decides full fine-tuning.
    """
    if not recipe["gradient_checkpointing"] or (recipe["method"] == "full" and recipe["optim"] != "paged_adamw_8bit"):
        return None
    h, f, v = shape.hidden, shape.inner, shape.vocabulary
    tokens = recipe["micro_batch_size"] * recipe["sequence_length"]
    if recipe["method"] == "qlora":
        constants = 1 / 64 + 4 / (64 * 256) if recipe["double_quant"] else 4 / 64
        weights = shape.linear_parameters * (0.5 + constants) + 4 * shape.other_parameters
    else:
        weights = 2 * (shape.linear_parameters + shape.other_parameters)
    if recipe["method"] == "full":
        trained, adapters = shape.linear_parameters + shape.other_parameters, 0
    else:
        trained = shape.adapters(recipe["lora_r"], targets(recipe))
        adapters = 2 * trained
    logits, head = 4 * tokens * v, 2 * v * h
    always = weights + adapters + (6 + 4) * trained + 4 * tokens * h * shape.layers + 8 * tokens * h
    always += 8_519_680 + recipe["sequence_length"] ** 2 + 32 * tokens + logits
    moments = (
        2 * logits + head + 8 * tokens * v,
        2 * logits + 2 * head,
        58 * tokens * h + 18 * tokens * f + 4 * f * h + logits,
    )
    return round(always + max(moments))


def unsloth_studio(shape: Shape, recipe: Mapping[str, Any]) -> int | None:
    """studio/backend/utils/hardware/vram_estimation.py, without its 1.4 GiB for CUDA."""
    h, f = shape.hidden, shape.inner
    others = shape.other_parameters - h  # it leaves the last norm out
    if recipe["method"] == "qlora":
        weights = int(shape.linear_parameters * 2 / (3.6 if recipe["double_quant"] else 3.2) + 2 * others)
    else:
        weights = 2 * (shape.linear_parameters + others)
    tokens = recipe["micro_batch_size"] * recipe["sequence_length"]
    layer = int(tokens * (h + 2 * shape.key_value + 2 + 2 * f) * 2 * 1.25)
    full = recipe["method"] == "full"
    checkpointed = 2 if full else 1
    activations = layer * (checkpointed if recipe["gradient_checkpointing"] else shape.layers)
    trained = shape.linear_parameters + others if full else shape.adapters(recipe["lora_r"], targets(recipe))
    states = 6 * trained
    least = int(0.15 * weights)
    if not full:
        least = min(least, max(activations, states))
    return weights + (0 if full else 2 * trained) + states + max(2 * trained, least) + activations


def gpu_poor(shape: Shape, recipe: Mapping[str, Any]) -> int | None:
    """src/App.js, without its 650 MB of overhead; its LoRA has rank 8 on two matrices, whatever the run has."""
    h, f, length = shape.hidden, shape.inner, recipe["sequence_length"]
    batch = recipe["micro_batch_size"]
    count = 2 * shape.vocabulary * h + shape.layers * (4 * h * h + 3 * f * h)
    if recipe["method"] == "qlora":
        weights = 2 * count / 4 - 2 * count / 64 + 0.06 * 2 * count
        curve = 0.75 * (15 * h + 6 * f) * shape.layers * 50 * max(1.0, length / 50) ** 0.5
        states = shape.layers * 8 * h * 0.5 * 4 * 3 + curve * batch
    elif recipe["method"] == "lora":
        weights, states = 2 * count, shape.layers * 8 * h * 2 * 4 * 3 * 2
    else:
        weights, states = 2 * count, 3 * 2 * count
    attention = 16 * length * h + 8 * length * length * shape.heads
    layer = attention + 4 * length * h + 12 * length * f + 8 * length + 12 * length * h
    activations = layer * shape.layers * batch * (0.15 if recipe["gradient_checkpointing"] else 1)
    return round(weights + states + activations)


def llama_factory(shape: Shape, recipe: Mapping[str, Any]) -> int | None:
    """README, "Hardware Requirement": bytes per parameter, for any batch and length."""
    each = {"lora": 2.0, "qlora": 0.5}.get(recipe["method"])
    if each is None:
        each = 8.0 if recipe["precision"].startswith("bf16") and recipe["precision"] != "bf16-master" else 18.0
    return round(each * shape.parameters)


FORMULAS: dict[str, Callable[[Shape, Mapping[str, Any]], int | None]] = {
    "memory-gelato": memory_gelato,
    "unsloth-studio": unsloth_studio,
    "gpu-poor": gpu_poor,
    "llama-factory": llama_factory,
}
