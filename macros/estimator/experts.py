"""Mixture-of-experts blocks as tapes: router, grouped products of all chosen pairs of token and expert, shared expert.

Balance between experts does not matter: all chosen pairs are one tensor, sorted by expert. Source: transformers 5.24.0
integrations/moe.py (grouped_mm_experts_forward), models/mixtral, qwen3_moe, gpt_oss; PEFT 0.21.2 tuners/lora/layer.py
(ParamWrapper).
"""

from __future__ import annotations

from .parameters import Linear, adapter_rank
from .tape import CAST, DEQUANTIZED, NEW, SAME, Value


def sparse_block(builder, x: Value) -> Value:
    """MixtralSparseMoeBlock, Qwen3_5MoeSparseMoeBlock, GptOssMLP: shared expert, router, experts."""
    family, tape = builder.arch.family, builder.tape
    if builder.recipe.transformers != "5":
        return separate_experts(builder, x, router(builder, x))
    if family.gated_clamp:
        return experts(builder, x, router_gpt_oss(builder, x))
    if family.router == "sigmoid":
        routed = experts(builder, x, router_sigmoid(builder, x))
        result = tape.add(routed, builder.mlp(x, family.shared_expert + "."))
        tape.hold(routed, x)
        return result
    if not family.shared_gate:
        return experts(builder, x, router(builder, x))
    shared = builder.mlp(x, family.shared_expert + ".")
    routed = experts(builder, x, router(builder, x))
    gate = tape.unary(builder.linear(x, family.shared_expert + "_gate"), save_output=True)
    gated = tape.multiply_rows(shared, gate)
    tape.hold(x, shared)
    return tape.add(routed, gated)


def experts(builder, x: Value, routing: Value) -> Value:
    """grouped_mm_experts_forward: each token once per chosen expert, sorted by expert, and the weighted results summed."""
    tape, shape, arch = builder.tape, builder.shape, builder.arch
    chosen = shape.num_experts_per_tok
    bias = arch.family.gated_clamp
    index = tape.record([], Value(chosen, 0, 0, 8, False, 0), [], [])
    selected = tape.gather(x, chosen * arch.hidden_size, index)
    weights = tape.gather(routing, chosen, index)
    biases = expert_biases(builder, "experts.gate_up_proj") if bias else None
    both = tape.grouped_matmul(
        selected, expert_weight(builder, "experts.gate_up_proj"), 2 * chosen * shape.intermediate_size, chosen
    )
    product = clamped_gate(tape, both) if bias else gate(tape, both)
    if biases is not None:
        biases_down = expert_biases(builder, "experts.down_proj")
        tape.hold(biases)
    output = tape.grouped_matmul(product, expert_weight(builder, "experts.down_proj"), chosen * arch.hidden_size, chosen)
    weighted = tape.multiply_rows(output, weights)
    ordered = tape.gather(weighted, weighted.per_token, index)
    # autocast sums in float32; the gradient, one row for all experts of a token, is copied to each of them.
    width = 4 if builder.recipe.autocast else ordered.width
    total = tape.custom([ordered], Value(arch.hidden_size, 0, 0, width, True, 0), [], [(ordered, NEW)])
    tape.hold(x, output, selected)
    if biases is not None:
        tape.hold(biases_down)
    return tape.to(total, x.width)


def separate_experts(builder, x: Value, routing: Value) -> Value:
    """MixtralSparseMoeBlock before transformers 5: a loop over experts, each three layers that quantise like any other.

    Every expert gets its share of the chosen pairs, and index_add_ writes its result into the sum.
    """
    tape, shape, arch, recipe = builder.tape, builder.shape, builder.arch, builder.recipe
    chosen, inner, count = shape.num_experts_per_tok, shape.intermediate_size, shape.num_experts
    rows, columns = chosen * arch.hidden_size // count, chosen * inner // count

    multiplied = float(chosen) * arch.hidden_size * inner / count

    def product(source: Value, outputs: int) -> Value:
        if recipe.method == "qlora":
            dequantized = Value(0, arch.hidden_size * inner, 0, 2, False, DEQUANTIZED)
            result = tape.quantized_matmul(tape.to(source, 2), outputs, dequantized, recipe.quantized_inputs_kept)
            tape.product(multiplied, 0.0, 0.0)
            return tape.to(result, source.width)
        weight = tape.weight(arch.hidden_size * inner, recipe.weight_bytes, builder.full)
        result = tape.matmul(source, weight, outputs)
        tape.product(multiplied, 0.0, 0.0)
        return result

    total = tape.record([], Value(arch.hidden_size, 0, 0, x.width, True, 0), [], [])
    for _ in range(count):
        index = tape.record([], Value(1, 0, 0, 8, False, 0), [], [])
        selected = tape.gather(x, rows, index)
        weights = tape.gather(routing, 1, index)
        hidden = tape.multiply(tape.unary(product(selected, columns)), product(selected, columns))
        weighted = tape.multiply_rows(product(hidden, rows), weights)
        added = tape.like(total)
        added.view_of = total
        total = tape.custom([total, weighted], added, [index], [(total, SAME), (weighted, NEW)])
    tape.hold(x)
    return tape.to(total, x.width)


def gate(tape, both: Value) -> Value:
    """act(gate) · up, gate and up one after the other in the last dimension."""
    gate, up = tape.chunk(both, 2)
    return tape.multiply(tape.unary(gate), up)


def clamped_gate(tape, both: Value) -> Value:
    """GptOssExperts._apply_gate: gate and up interleaved, clamped; (up + 1) · gate · sigmoid(gate · alpha)."""
    half = both.per_token // 2
    gate, up = tape.slice(both, half), tape.slice(both, half)
    gate, up = tape.unary(gate), tape.unary(up)
    glu = tape.multiply(gate, tape.unary(tape.scale(gate), save_output=True))
    product = tape.multiply(tape.add_constant(up), glu)
    tape.hold(gate, up, glu, both)
    return product


def expert_biases(builder, name: str) -> Value:
    """The bias of each chosen expert, one row per pair: added in place to the product, so that autograd keeps nothing."""
    linear, tape = builder.linears[name], builder.tape
    rows = builder.shape.num_experts_per_tok * linear.outputs
    return tape.record([], Value(rows, 0, 0, builder.recipe.weight_bytes, False, 0), [], [])


def router(builder, x: Value) -> Value:
    """MixtralTopKRouter: softmax over all experts in float32, the largest few, normalised."""
    tape, shape = builder.tape, builder.shape
    linear = builder.linears["gate"]
    weight = tape.weight(linear.weight, builder.width, builder.full)
    if linear.name in builder.targets:
        weight = merged_weight(builder, linear)
    logits = tape.matmul(x, weight, shape.num_experts)
    probabilities = tape.unary(tape.to(logits, 4), save_output=True)
    top = tape.custom([probabilities], Value(shape.num_experts_per_tok, 0, 0, 4, True, 0), [], [(probabilities, NEW)])
    return tape.to(tape.unary(top), x.width)


def router_sigmoid(builder, x: Value) -> Value:
    """Glm4MoeLiteTopkRouter: sigmoid of each logit, the largest few, normalised; computed in float32."""
    tape, shape = builder.tape, builder.shape
    linear = builder.linears["gate"]
    weight = tape.weight(linear.weight, builder.width, builder.full)
    if linear.name in builder.targets:
        weight = merged_weight(builder, linear)
    logits = tape.matmul(tape.to(x, 4), tape.to(weight, 4, cached=False), shape.num_experts)
    scores = tape.unary(logits, save_output=True)
    top = tape.custom([scores], Value(shape.num_experts_per_tok, 0, 0, scores.width, True, 0), [], [(scores, NEW)])
    return tape.scale(tape.unary(top))


def router_gpt_oss(builder, x: Value) -> Value:
    """GptOssTopKRouter: the largest few logits, then their softmax."""
    tape, shape = builder.tape, builder.shape
    weight = tape.weight(builder.linears["gate"].weight, builder.width, builder.full)
    logits = tape.matmul(x, weight, shape.num_experts)
    top = Value(shape.num_experts_per_tok, 0, 0, logits.width, True, 0)
    return tape.unary(tape.custom([logits], top, [], [(logits, NEW)]), save_output=True)


def expert_weight(builder, name: str) -> Value:
    """The stacked weights of all experts, with PEFT's adapter added if they are a target."""
    linear = builder.linears[name]
    if name in builder.targets:
        return merged_weight(builder, linear)
    return builder.tape.weight(linear.weight, builder.recipe.weight_bytes, builder.full)


def merged_weight(builder, linear: Linear) -> Value:
    """PEFT's ParamWrapper: weight + scaling · B·A as a tensor of its own for every forward (baddbmm)."""
    tape, recipe = builder.tape, builder.recipe
    rank, width = adapter_rank(linear, recipe), recipe.weight_bytes
    down = tape.to(tape.weight(rank * linear.inputs, recipe.adapter_bytes, True), width, cached=False)
    up = tape.to(tape.weight(rank * linear.outputs, recipe.adapter_bytes, True), width, cached=False)
    merged = Value(0, linear.weight, 0, width, True, CAST)
    tape.custom([down, up], merged, [down, up], [(up, NEW), (down, NEW)])
    # Registering a parametrization, as each forward does, computes the tensor once to check it (torch/nn/utils/parametrize.py).
    tape.product(0.0, float(rank) * linear.inputs * linear.outputs, 0.0, 2 if linear.experts > 1 else 1)
    return merged
