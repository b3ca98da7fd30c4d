"""Gemma 4's decoder layer and its per-layer embeddings, as tapes.

Its layers differ in head size, may take keys and values from an earlier layer, may use keys as values, may run experts
beside the MLP, and may mix in a slice of a second embedding. scaled_dot_product_attention has no flash kernel for
heads of 512 elements and takes the memory-efficient one.
Source: transformers 5.24.0 models/gemma4/modeling_gemma4.py: Gemma4TextAttention, Gemma4TextRouter,
Gemma4TextDecoderLayer, Gemma4TextModel.project_per_layer_inputs.
"""

from __future__ import annotations

from .experts import experts
from .tape import NEW, Value


def decoder_layer(builder, x: Value) -> Value:
    """Gemma4TextDecoderLayer.forward."""
    tape, arch, shape = builder.tape, builder.arch, builder.shape
    part = per_layer_input(builder) if arch.per_layer_size else None
    branch = attention(builder, builder.rms_norm(x))
    hidden = tape.add(x, builder.rms_norm(branch))
    branch = builder.mlp(builder.rms_norm(hidden))
    if shape.num_experts:
        dense = builder.rms_norm(branch)
        routing = router(builder, hidden)
        routed = builder.rms_norm(experts(builder, builder.rms_norm(hidden), routing))
        branch = tape.add(dense, routed)
        tape.hold(dense)
    hidden = tape.add(hidden, builder.rms_norm(branch))
    if part is not None:
        mixed = tape.multiply(tape.unary(builder.linear(hidden, "per_layer_input_gate")), part)
        mixed = builder.rms_norm(builder.linear(mixed, "per_layer_projection"))
        hidden = tape.add(hidden, mixed)
    # layer_scalar, a number kept as a buffer: multiplied in place, saved for the gradient.
    scalar = Value(0, 1, 0, builder.width, False, 0)
    output = tape.like(hidden)
    output.view_of = hidden
    return tape.custom([hidden, scalar], output, [scalar], [(hidden, NEW)])


def attention(builder, x: Value) -> Value:
    """Gemma4TextAttention.forward."""
    tape, shape = builder.tape, builder.shape
    tables = Value(0, 0, 0, 4, False, 0)
    q = builder.rms_norm(builder.linear(x, "q_proj"), shape.num_attention_heads, shape.head_dim)
    q = builder.rotary(q, tables)
    if shape.keys == "shared":
        # Made and counted by the layer that stores them.
        k = Value(shape.key_value_size, 0, 0, q.width, True, 0)
        v = Value(shape.key_value_size, 0, 0, q.width, True, 0)
    else:
        k = builder.linear(x, "k_proj")
        v = builder.linear(x, "v_proj") if shape.keys == "own" else k
        k = builder.rotary(builder.rms_norm(k, shape.num_key_value_heads, shape.head_dim), tables)
        v = norm_without_weight(builder, v, shape.num_key_value_heads)
        if shape.stores:
            builder.stored = [k, v]
    output = builder.attend(q, k, v)
    result = builder.linear(output, "o_proj")
    tape.hold(x, q, k, v, output)
    return result


def norm_without_weight(builder, x: Value, rows: int) -> Value:
    """Gemma4RMSNorm(with_scale=False)."""
    tape = builder.tape
    x32 = tape.to(x, 4)
    variance = tape.mean(builder.square(x32))
    variance.per_token = rows
    return tape.to(tape.multiply_rows(x32, tape.unary(variance, save_output=True)), x.width)


def router(builder, x: Value) -> Value:
    """Gemma4TextRouter: norm, scale, projection, softmax in float32, the largest few; weights stay in float32."""
    tape, shape = builder.tape, builder.shape
    hidden = norm_without_weight(builder, x, 1)
    hidden = tape.multiply_rows(hidden, tape.weight(builder.arch.hidden_size, builder.width, builder.full))
    logits = builder.linear(tape.scale(hidden), "router.proj")
    probabilities = tape.unary(tape.to(logits, 4), save_output=True)
    top = tape.custom([probabilities], Value(shape.num_experts_per_tok, 0, 0, 4, True, 0), [], [(probabilities, NEW)])
    return tape.unary(top)


def per_layer_input(builder) -> Value:
    """This layer's slice of the per-layer inputs, which all layers share."""
    arch = builder.arch
    trained = builder.full or "per_layer_model_projection" in builder.targets
    whole = Value(arch.per_layer_size * len(arch.layers), 0, 0, builder.width, trained, 0)
    return builder.tape.slice(whole, arch.per_layer_size)


def per_layer_inputs(builder, x: Value) -> Value:
    """get_per_layer_inputs and project_per_layer_inputs: a second embedding and a projection of the first, for all layers."""
    tape, arch, width = builder.tape, builder.arch, builder.width
    count = len(arch.layers)
    total = arch.per_layer_size * count
    table = tape.weight(arch.per_layer_vocab * total, width, builder.full)
    looked_up = tape.scale(tape.custom([], Value(total, 0, 0, width, False, 0), [], [(table, NEW)]))
    projected = tape.scale(builder.linear(x, "per_layer_model_projection"))
    projected = builder.rms_norm(projected, count, arch.per_layer_size)
    result = tape.scale(tape.add(projected, looked_up))
    tape.hold(looked_up, projected)
    return result
