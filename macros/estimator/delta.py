"""Gated delta net, the linear attention of hybrid models, as a tape.

What is modelled is the pure-PyTorch path: `pip install transformers peft` brings neither flash-linear-attention nor
causal-conv1d, and without them transformers computes chunks of 64 tokens in float32 and a loop over the chunks. The
kernels of those two packages keep far less; the warning `delta_rule_torch` says so.
Source: transformers 5.24.0 models/qwen3_5/modeling_qwen3_5.py: Qwen3_5GatedDeltaNet, torch_chunk_gated_delta_rule,
causal_conv1d_fn, l2norm, Qwen3_5RMSNormGated.
"""

from __future__ import annotations

from .tape import NEW, REDUCED, SAME, WORKSPACE, Value

CHUNK = 64  # tokens, chunk_size of torch_chunk_gated_delta_rule


def gated_delta_net(builder, x: Value) -> Value:
    """Qwen3_5GatedDeltaNet.forward."""
    tape, shape = builder.tape, builder.shape.delta
    if builder.recipe.padding:
        x = tape.scale_by(x, Value(1, 0, 0, 8, False, 0))  # apply_mask_to_padding_states
    mixed = builder.linear(x, "in_proj_qkv")
    gate = builder.linear(x, "in_proj_z")
    beta = builder.linear(x, "in_proj_b")
    decay = builder.linear(x, "in_proj_a")
    mixed = causal_conv(builder, mixed)
    query, key, value = tape.split(mixed, [shape.key_size, shape.key_size, shape.value_size])
    beta = tape.unary(beta, save_output=True)
    decay = tape.scale(tape.unary(tape.scale(tape.to(decay, 4))))
    core = chunk_gated_delta_rule(builder, query, key, value, beta, decay)
    core = gated_norm(builder, core, gate)
    result = builder.linear(core, "out_proj")
    tape.hold(x, mixed, gate, core)
    return result


def causal_conv(builder, x: Value) -> Value:
    """causal_conv1d_fn: a convolution per channel, which saves its input; what it pads is cut off; silu."""
    tape, shape = builder.tape, builder.shape.delta
    weight = tape.weight(shape.conv_size * shape.kernel, builder.width, builder.full)
    source = tape.matmul_input(tape.to(x, weight.width))
    padded = Value(shape.conv_size, 0, 0, source.width, False, 0)
    tape.custom([source], padded, [source], [(source, NEW)])
    tape.product(float(shape.conv_size) * shape.kernel, 0.0, 0.0, 1, 2 if builder.full else 1)
    return tape.to(tape.unary(tape.slice(padded, shape.conv_size)), x.width)


def chunk_gated_delta_rule(builder, query: Value, key: Value, value: Value, beta: Value, decay: Value) -> Value:
    """torch_chunk_gated_delta_rule: products inside chunks, triangular systems, then a loop over the chunks."""
    tape, shape = builder.tape, builder.shape.delta
    width, heads = query.width, shape.num_value_heads
    filling = builder.filling(CHUNK)
    # A matrix of tokens by tokens for each chunk and head.
    inside = Value(heads * CHUNK, heads * CHUNK * filling, 0, 4, False, 0)
    if shape.num_key_heads != heads:
        query, key = repeat(tape, query, shape.state_key_size), repeat(tape, key, shape.state_key_size)
    given = (query, key)
    query, key, value = in_float32(tape, query), in_float32(tape, key), in_float32(tape, value)
    beta, decay = in_float32(tape, beta), in_float32(tape, decay)
    tape.hold(*given)
    query, key = l2norm(tape, query, heads), l2norm(tape, key, heads)
    query = tape.scale(query)
    unpadded = (query, key, value)
    query, key, value = pad(tape, query, filling), pad(tape, key, filling), pad(tape, value, filling)
    tape.hold(*unpadded)
    beta, decay = pad(tape, beta, filling), pad(tape, decay, filling)
    value_beta, key_beta = rows(tape, value, beta), rows(tape, key, beta)
    decay = tape.scale(decay)  # cumsum
    pairwise = tape.custom([decay], tape.like(inside), [], [(decay, REDUCED)])
    pairwise = tape.unary(tape.scale(pairwise), save_output=True)
    square = float(CHUNK) * shape.state_key_size
    products = (square, float(square) * filling, 0.0)
    system = tape.multiply(builder.batched_matmul(key_beta, key, tape.like(inside), products), pairwise)
    attention = tape.multiply(builder.batched_matmul(query, key, tape.like(inside), products), pairwise)
    decayed = rows(tape, key_beta, tape.unary(decay, save_output=True))
    new_values = solve_triangular(tape, system, value_beta)
    decayed_keys = solve_triangular(tape, system, decayed)
    core = tape.record([], tape.like(value, None, False), [], [])
    query = rows(tape, query, tape.unary(decay, save_output=True))
    key = rows(tape, key, tape.unary(tape.scale(decay), save_output=True))
    core = scan(builder, core, new_values, decayed_keys, attention, query, key)
    core = copy(tape, core)  # the triangular solver's results are stored by column, so reshape has to copy
    core = tape.view(core)  # without the padding
    core.fixed = 0
    core = tape.to(core, width)
    tape.hold(value_beta, decayed, attention, query, key)
    return core


def scan(builder, core: Value, new_values: Value, decayed_keys: Value, attention: Value, query: Value, key: Value) -> Value:
    """The loop over the chunks: keeps the new values and, for each chunk, the recurrent state that it began with.

    In its backward each chunk's slice gives a gradient of the whole tensor (select_backward), and writing into a slice
    of the result copies the whole of its gradient (CopySlices). Under autocast each product casts its chunks, and the
    casts are kept: of states and of new values twice, as two products use them.
    """
    tape, shape = builder.tape, builder.shape.delta
    state = shape.num_value_heads * shape.key_head_dim * shape.value_head_dim
    chunk = CHUNK * shape.value_size
    filling = builder.filling(CHUNK)
    states_filling = state // CHUNK * filling
    inputs = [attention, query, new_values, decayed_keys, key]
    if builder.recipe.autocast:
        # The first chunk needs no gradient of its state of zeros, and what only the last state depends on is dropped.
        saved = [cast(tape, attention, 0), cast(tape, query, 1), cast(tape, decayed_keys, 1), cast(tape, key, 1)]
        saved = saved + [cast(tape, new_values, 0), cast(tape, new_values, 1)]
        for width, missing in ((2, 0), (2, 0), (4, 1)):
            saved.append(tape.record([], Value(state // CHUNK, states_filling - missing * state, 0, width, False, 0), [], []))
    else:
        states = tape.record([], Value(state // CHUNK, states_filling, 0, 4, False, 0), [], [])
        values = tape.record([], tape.like(new_values, None, False), [], [])
        saved = [states, values, attention, query, decayed_keys, key]
    forward = Value(0, 3 * state + chunk, 0, 4, False, WORKSPACE)
    backward = Value(shape.value_size, shape.value_size * filling + 2 * chunk, 0, 4, False, WORKSPACE)
    grads = [(tensor, NEW) for tensor in inputs]
    output = tape.custom([core] + inputs + saved, tape.view(core), saved, grads, forward, backward)
    # Three products with states and one inside the chunk. A triangular system is no product and not counted.
    products = 3.0 * state + float(CHUNK) * shape.value_size
    tape.product(products, float(products) * filling, 0.0, 1, 2)
    return output


def cast(tape, x: Value, missing: int) -> Value:
    """The bfloat16 copies of all chunks of a tensor but so many."""
    return tape.record([], Value(x.per_token, x.fixed - missing * x.per_token * CHUNK, 0, 2, False, 0), [], [])


def solve_triangular(tape, system: Value, right: Value) -> Value:
    """torch.linalg.solve_triangular: saves the system and the solution."""
    result = tape.like(right)
    return tape.custom([system, right], result, [system, result], [(right, NEW), (system, REDUCED)])


def l2norm(tape, x: Value, heads: int) -> Value:
    """x over the root of the sum of its squares, head by head."""
    square = tape.multiply(x, x)
    total = tape.custom([square], Value(heads, 0, 0, 4, False, 0), [], [(square, SAME)])
    return rows(tape, x, tape.unary(total, save_output=True))


def rows(tape, value: Value, factor: Value) -> Value:
    """Product with one number per token and head; its gradient is summed from a full product."""
    return tape.custom(
        [value, factor], tape.like(value), [value, factor], [(value, NEW), (factor, REDUCED)]
    )


def repeat(tape, x: Value, size: int) -> Value:
    """repeat_interleave: each key head serves several value heads."""
    output = tape.like(x)
    output.per_token = size
    return tape.custom([x], output, [], [(x, NEW)])


def in_float32(tape, x: Value) -> Value:
    """Transposed and contiguous in float32: always a copy."""
    return tape.to(x, 4) if x.width != 4 else copy(tape, x)


def pad(tape, x: Value, filling: int) -> Value:
    """F.pad up to whole chunks; it copies even where there is nothing to pad."""
    output = tape.like(x)
    output.fixed = x.per_token * filling
    return tape.custom([x], output, [], [(x, SAME)])


def copy(tape, x: Value) -> Value:
    """reshape copies where strides do not fit."""
    return tape.custom([x], tape.like(x), [], [(x, SAME)])


def gated_norm(builder, x: Value, gate: Value) -> Value:
    """Qwen3_5RMSNormGated: norm per head, weight, times silu(gate) in float32."""
    tape, shape = builder.tape, builder.shape.delta
    weight = tape.weight(shape.value_head_dim, builder.width, builder.full)
    x32 = tape.to(x, 4)
    variance = tape.mean(builder.square(x32))
    variance.per_token = shape.num_value_heads
    normed = tape.to(tape.multiply_rows(x32, tape.unary(variance, save_output=True)), x.width)
    normed = tape.multiply_rows(normed, weight)
    gate32 = tape.to(gate, 4)
    product = tape.multiply(normed, tape.unary(gate32), 4)
    tape.hold(x, gate)
    return tape.to(product, x.width)
