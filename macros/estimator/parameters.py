"""How many weights a model has, where they sit, and how many of them a method trains.

Source: the `__init__` of the modelling classes of transformers 5.24.0 and of PEFT 0.21.2's LoRA layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .recipe import Recipe


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer of one decoder layer: name as in the modelling code, sizes in elements, how many of it."""

    name: str
    inputs: int
    outputs: int
    bias: bool
    copies: int = 1

    @property
    def weight(self) -> int:
        """Elements of the weight matrix."""
        return self.inputs * self.outputs


def linears(arch: Architecture) -> tuple[Linear, ...]:
    """The linear layers of one decoder layer in the order of the forward pass."""
    h, q, kv, i = arch.hidden_size, arch.query_size, arch.key_value_size, arch.intermediate_size
    if arch.family.fused:
        return (
            Linear("qkv_proj", h, q + 2 * kv, False),
            Linear("o_proj", q, h, False),
            Linear("gate_up_proj", h, 2 * i, False),
            Linear("down_proj", i, h, False),
        )
    return (
        Linear("q_proj", h, q, arch.attention_bias),
        Linear("k_proj", h, kv, arch.attention_bias),
        Linear("v_proj", h, kv, arch.attention_bias),
        Linear("o_proj", q, h, arch.output_bias),
        Linear("gate_proj", h, i, arch.mlp_bias),
        Linear("up_proj", h, i, arch.mlp_bias),
        Linear("down_proj", i, h, arch.mlp_bias),
    )


def layer_linear_weights(arch: Architecture) -> int:
    """Elements of the weight matrices of one decoder layer: what 4-bit quantisation covers."""
    total = 0
    for linear in linears(arch):
        total += linear.weight * linear.copies
    return total


def layer_norm_weights(arch: Architecture) -> int:
    """Elements of the norms of one decoder layer."""
    norms = 4 if arch.family.norm_places == "both" else 2
    total = norms * arch.hidden_size
    if arch.family.qk_norm == "head":
        total += 2 * arch.head_dim
    if arch.family.qk_norm == "full":
        total += arch.query_size + arch.key_value_size
    return total


def layer_biases(arch: Architecture) -> int:
    """Elements of the biases of one decoder layer."""
    total = 0
    for linear in linears(arch):
        if linear.bias:
            total += linear.outputs * linear.copies
    return total


def embedding_weights(arch: Architecture) -> int:
    """Elements of the token embedding; the head has as many."""
    return arch.vocab_size * arch.hidden_size


def parameters(arch: Architecture) -> int:
    """Weights of the whole model, tied ones once.

    >>> from macros.estimator import architecture_from_config
    >>> parameters(architecture_from_config({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}))
    6738415616
    """
    layer = layer_linear_weights(arch) + layer_norm_weights(arch) + layer_biases(arch)
    tables = 1 if arch.tie_word_embeddings else 2
    return arch.num_hidden_layers * layer + arch.hidden_size + tables * embedding_weights(arch)


def targets(arch: Architecture, recipe: Recipe) -> tuple[str, ...]:
    """Names of the linear layers that get an adapter.

    PEFT's "all-linear" means every nn.Linear but the output embedding (peft/tuners/tuners_utils.py,
    _maybe_include_all_linear_layers).
    """
    names = [linear.name for linear in linears(arch)]
    if recipe.target_modules == "all-linear":
        return tuple(names)
    for name in recipe.target_modules:
        if name not in names:
            raise ValueError(f"target_modules: this model has no {name!r}; its linear layers are {', '.join(names)}")
    return tuple(name for name in names if name in recipe.target_modules)


def adapter_weights(arch: Architecture, recipe: Recipe) -> int:
    """Elements of all LoRA matrices: r · (inputs + outputs) for each adapted linear layer."""
    names = targets(arch, recipe)
    layer = 0
    for linear in linears(arch):
        if linear.name in names:
            layer += recipe.lora_r * (linear.inputs + linear.outputs) * linear.copies
    return arch.num_hidden_layers * layer


def trainable_parameters(arch: Architecture, recipe: Recipe) -> int:
    """Weights that get a gradient."""
    return adapter_weights(arch, recipe) if recipe.adapted else parameters(arch)


def trainable_tensors(arch: Architecture, recipe: Recipe) -> int:
    """Number of trained tensors: each has a step counter in a fused optimizer."""
    if recipe.adapted:
        return 2 * len(targets(arch, recipe)) * arch.num_hidden_layers
    layer = len(linears(arch)) + sum(1 for linear in linears(arch) if linear.bias)
    layer += 4 if arch.family.norm_places == "both" else 2
    layer += 0 if arch.family.qk_norm == "none" else 2
    return arch.num_hidden_layers * layer + (2 if arch.tie_word_embeddings else 3)
