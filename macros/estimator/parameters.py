"""How many weights a model has, where they sit, and how many of them a method trains.

Source: the `__init__` of the modelling classes of transformers 5.24.0 and of PEFT 0.21.2's LoRA layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .recipe import Recipe
from .shapes import LayerShape
from .wording import shown


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer: name as in the modelling code, sizes in elements; `experts` of it if they are stacked in one tensor."""

    name: str
    inputs: int
    outputs: int
    bias: bool = False
    experts: int = 0

    @property
    def weight(self) -> int:
        """Elements of the weight tensor."""
        return self.inputs * self.outputs * (self.experts or 1)

    @property
    def biases(self) -> int:
        """Elements of the bias."""
        return self.outputs * (self.experts or 1) if self.bias else 0


@dataclass(frozen=True, slots=True)
class Tensors:
    """Trained tensors of one shape: rows · columns elements, `copies` of them; a vector has one row.

    width       bytes of an element and of its gradient
    table       token embedding or head
    embedding   token embedding
    """

    rows: int
    columns: int
    copies: int
    width: int
    table: bool = False
    embedding: bool = False

    @property
    def count(self) -> int:
        """Elements of one of them."""
        return self.rows * self.columns


def linears(arch: Architecture, shape: LayerShape) -> tuple[Linear, ...]:
    """The linear layers of one decoder layer, in the order of the forward pass.

    A router is a plain matrix (no nn.Linear), and experts are stacked in tensors of three dimensions.
    """
    found = attention_linears(arch, shape)
    if shape.dense_size:
        found += dense_linears(arch, shape.dense_size)
    found += feed_forward_linears(arch, shape)
    if arch.per_layer_size:
        h, part = arch.hidden_size, arch.per_layer_size
        found += (Linear("per_layer_input_gate", h, part), Linear("per_layer_projection", part, h))
    return found


def outer_linears(arch: Architecture) -> tuple[Linear, ...]:
    """Linear layers outside the decoder layers, the head left out."""
    if not arch.per_layer_size:
        return ()
    return (Linear("per_layer_model_projection", arch.hidden_size, arch.per_layer_size * len(arch.layers)),)


def all_linears(arch: Architecture) -> list[tuple[Linear, int]]:
    """Every linear layer but the head, with its number."""
    found = [(linear, 1) for linear in outer_linears(arch)]
    for shape, count in arch.layer_counts():
        found += [(linear, count) for linear in linears(arch, shape)]
    return found


def attention_linears(arch: Architecture, shape: LayerShape) -> tuple[Linear, ...]:
    """The linear layers of the attention."""
    h, q, kv, delta = arch.hidden_size, shape.query_size, shape.key_value_size, shape.delta
    if delta is not None:
        return (
            Linear("in_proj_qkv", h, delta.conv_size),
            Linear("in_proj_z", h, delta.value_size),
            Linear("in_proj_b", h, delta.num_value_heads),
            Linear("in_proj_a", h, delta.num_value_heads),
            Linear("out_proj", delta.value_size, h),
        )
    latent = shape.latent
    if latent is not None:
        return (
            Linear("q_a_proj", h, latent.q_lora_rank, arch.attention_bias),
            Linear("q_b_proj", latent.q_lora_rank, q),
            Linear("kv_a_proj_with_mqa", h, latent.kv_lora_rank + latent.rope_dim, arch.attention_bias),
            Linear("kv_b_proj", latent.kv_lora_rank, q + shape.num_attention_heads * latent.nope_dim),
            Linear("o_proj", q, h, arch.output_bias),
        )
    if arch.family.fused:
        return (Linear("qkv_proj", h, q + 2 * kv), Linear("o_proj", q, h))
    query = Linear("q_proj", h, 2 * q if arch.family.output_gate else q, arch.attention_bias)
    key, value = Linear("k_proj", h, kv, arch.attention_bias), Linear("v_proj", h, kv, arch.attention_bias)
    output = Linear("o_proj", q, h, arch.output_bias)
    if shape.keys == "shared":
        return (query, output)
    return (query, key, output) if shape.keys == "values" else (query, key, value, output)


def feed_forward_linears(arch: Architecture, shape: LayerShape) -> tuple[Linear, ...]:
    """The linear layers of the MLP, or of router and experts."""
    h, i, experts = arch.hidden_size, shape.intermediate_size, shape.num_experts
    if experts:
        bias = arch.family.gated_clamp
        routed = (
            Linear("router.proj", h, experts) if shape.dense_size else Linear("gate", h, experts, bias, experts=1),
            Linear("experts.gate_up_proj", h, 2 * i, bias, experts=experts),
            Linear("experts.down_proj", i, h, bias, experts=experts),
        )
        return routed + shared_linears(arch, shape)
    if arch.family.fused:
        return (Linear("gate_up_proj", h, 2 * i), Linear("down_proj", i, h))
    return dense_linears(arch, i)


def dense_linears(arch: Architecture, i: int) -> tuple[Linear, ...]:
    """The MLP's linear layers, i elements wide."""
    h = arch.hidden_size
    return (
        Linear("gate_proj", h, i, arch.mlp_bias),
        Linear("up_proj", h, i, arch.mlp_bias),
        Linear("down_proj", i, h, arch.mlp_bias),
    )


def shared_linears(arch: Architecture, shape: LayerShape) -> tuple[Linear, ...]:
    """The expert that every token passes, and its gate."""
    name, h, i = arch.family.shared_expert, arch.hidden_size, shape.shared_size
    if not name:
        return ()
    mlp = (
        Linear(name + ".gate_proj", h, i),
        Linear(name + ".up_proj", h, i),
        Linear(name + ".down_proj", i, h),
    )
    return mlp + (Linear(name + "_gate", h, 1),) if arch.family.shared_gate else mlp


def layer_vectors(arch: Architecture, shape: LayerShape) -> tuple[int, ...]:
    """Sizes of the norms, and of other weights outside linear layers, of one decoder layer."""
    norms = (arch.hidden_size,) * (4 if arch.family.norm_places == "both" else 2)
    if shape.delta is not None:
        delta = shape.delta
        steps = (delta.num_value_heads, delta.num_value_heads)  # dt_bias and A_log
        return norms + steps + (delta.conv_size * delta.kernel, delta.value_head_dim)
    if shape.latent is not None:
        norms += (shape.latent.q_lora_rank, shape.latent.kv_lora_rank)
    if arch.per_layer_size:
        norms += (arch.hidden_size,)
    if shape.dense_size:
        # Norms around the experts, the router's scale and a number per expert.
        norms += (arch.hidden_size,) * 4 + (shape.num_experts,)
    if arch.family.qk_norm == "head":
        norms += (shape.head_dim,) if shape.keys == "shared" else (shape.head_dim, shape.head_dim)
    if arch.family.qk_norm == "full":
        norms += (shape.query_size, shape.key_value_size)
    if arch.family.sinks:
        norms += (shape.num_attention_heads,)
    return norms


def embedding_weights(arch: Architecture) -> int:
    """Elements of the token embedding; the head has as many."""
    return arch.vocab_size * arch.hidden_size


def per_layer_table(arch: Architecture) -> int:
    """Elements of the second embedding, one part for each layer."""
    return arch.per_layer_vocab * arch.per_layer_size * len(arch.layers)


def parameter_count(arch: Architecture) -> int:
    """Weights of the whole model, tied ones once.

    >>> from macros.estimator import architecture_from_config
    >>> parameter_count(architecture_from_config({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}))
    6738415616
    """
    total = arch.hidden_size + embedding_weights(arch) * (1 if arch.tie_word_embeddings else 2)
    total += per_layer_table(arch) + arch.per_layer_size
    for linear, count in all_linears(arch):
        total += (linear.weight + linear.biases) * count
    for shape, count in arch.layer_counts():
        total += sum(layer_vectors(arch, shape)) * count
    return total


def quantized_weights(arch: Architecture, recipe: Recipe) -> list[tuple[Linear, int]]:
    """The layers that quantised loading covers, with their number: every nn.Linear but the head.

    Stacked experts are no nn.Linear and stay wide; before transformers 5 each expert was three layers of its own.
    """
    found = []
    for linear, count in all_linears(arch):
        if linear.experts == 0:
            found.append((linear, count))
        elif recipe.transformers != "5" and linear.name.startswith("experts."):
            halves = 2 if linear.name == "experts.gate_up_proj" else 1
            single = Linear(linear.name, linear.inputs, linear.outputs // halves)
            found.append((single, count * linear.experts * halves))
    return found


def targets(arch: Architecture, recipe: Recipe) -> tuple[str, ...]:
    """Names of the linear layers that get an adapter.

    PEFT's "all-linear" means every nn.Linear but the output embedding (peft/tuners/tuners_utils.py,
    _maybe_include_all_linear_layers). Stacked experts are no nn.Linear; PEFT reaches them in the families that
    peft/utils/transformers_weight_conversion.py lists in _MODEL_TO_CONVERSION_PATTERN, and there takes the names of
    their parts for the experts', so that no MLP beside them gets an adapter.
    """
    names, reached = [], []
    for linear, _ in all_linears(arch):
        if linear.name not in names and (linear.experts == 0 or arch.family.adapts_experts):
            names.append(linear.name)
            if linear.experts or not arch.family.adapts_experts or last_name(linear.name) not in EXPERT_NAMES:
                reached.append(linear.name)
    if recipe.target_modules == "all-linear":
        if recipe.transformers != "5" and any(shape.num_experts for shape, _ in arch.layer_counts()):
            raise ValueError(
                "target_modules all-linear adapts every single expert before transformers 5, which is not modelled; "
                "name the attention layers"
            )
        return tuple(reached)
    known = names + [last_name(name) for name in names]
    for name in recipe.target_modules:
        if name not in known:
            raise ValueError(f"target_modules: this model has no {shown(name)}; its linear layers are {', '.join(names)}")
    wanted = recipe.target_modules
    return tuple(name for name in names if name in reached and (name in wanted or last_name(name) in wanted))


# PEFT takes these for the experts' old names wherever it reaches stacked experts (_MOE_TARGET_MODULE_MAPPING).
EXPERT_NAMES = ("gate_proj", "up_proj", "down_proj")


def last_name(name: str) -> str:
    """The module's own name: PEFT compares the end of the whole one."""
    return name.rpartition(".")[2]


def adapter_rank(linear: Linear, recipe: Recipe) -> int:
    """Rows of lora_A: the rank, once per expert; PEFT adapts a fused gate and up with twice the rank.

    Source: peft/utils/transformers_weight_conversion.py.
    """
    rank = recipe.lora_r * (linear.experts or 1)
    return 2 * rank if linear.name == "experts.gate_up_proj" else rank


def trained_tensors(arch: Architecture, recipe: Recipe) -> list[Tensors]:
    """Every tensor that gets a gradient, by shape.

    PEFT casts adapters to float32 unless told otherwise, but not copies of whole modules (modules_to_save).
    """
    if recipe.adapted:
        return adapter_tensors(arch, recipe) + saved_tables(arch, recipe)
    width = recipe.weight_bytes
    tensors = [Tensors(arch.vocab_size, arch.hidden_size, 1, width, True, True)]
    if not arch.tie_word_embeddings:
        tensors.append(Tensors(arch.vocab_size, arch.hidden_size, 1, width, True))
    tensors.append(Tensors(1, arch.hidden_size, 1, width))
    if arch.per_layer_size:
        tensors.append(Tensors(arch.per_layer_vocab, arch.per_layer_size * len(arch.layers), 1, width, True, True))
        tensors.append(Tensors(1, arch.per_layer_size, 1, width))
    for linear, count in all_linears(arch):
        tensors.append(Tensors(linear.outputs * (linear.experts or 1), linear.inputs, count, width))
        if linear.bias:
            tensors.append(Tensors(1, linear.biases, count, width))
    for shape, count in arch.layer_counts():
        for size in layer_vectors(arch, shape):
            tensors.append(Tensors(1, size, count, width))
    return tensors


def adapter_tensors(arch: Architecture, recipe: Recipe) -> list[Tensors]:
    """lora_A and lora_B of every adapted layer; with DoRA a magnitude for every output.

    TRL casts the adapters of a quantised model to bfloat16, but not the magnitudes.
    """
    names, width = targets(arch, recipe), recipe.adapter_bytes
    tensors = []
    for linear, count in all_linears(arch):
        if linear.name in names:
            rank = adapter_rank(linear, recipe)
            tensors.append(Tensors(rank, linear.inputs, count, width))
            tensors.append(Tensors(linear.outputs, rank, count, width))
            if recipe.use_dora:
                tensors.append(Tensors(1, linear.outputs, count, 4 if recipe.autocast else width))
    return tensors


def saved_tables(arch: Architecture, recipe: Recipe) -> list[Tensors]:
    """Copies of embedding and head that are trained in full, in the dtype of the originals."""
    width = 4 if recipe.upcast else recipe.weight_bytes
    return [
        Tensors(arch.vocab_size, arch.hidden_size, 1, width, True, name == "embed_tokens")
        for name in recipe.modules_to_save
    ]


def trainable_parameters(arch: Architecture, recipe: Recipe) -> int:
    """Weights that get a gradient."""
    total = 0
    for tensors in trained_tensors(arch, recipe):
        total += tensors.count * tensors.copies
    return total
