"""Multi-head latent attention as a tape: queries, keys and values through narrow projections.

Source: transformers 5.24.0 models/glm4_moe_lite/modeling_glm4_moe_lite.py: Glm4MoeLiteAttention.forward, expand_kv,
apply_rotary_pos_emb_interleave.
"""

from __future__ import annotations

from .tape import NEW, WORKSPACE, Value


def latent_attention(builder, x: Value) -> Value:
    """Glm4MoeLiteAttention.forward."""
    tape, shape = builder.tape, builder.shape
    latent, heads = shape.latent, shape.num_attention_heads
    query = builder.linear(x, "q_a_proj")
    query = builder.linear(builder.rms_norm(query, 1, latent.q_lora_rank), "q_b_proj")
    query_plain, query_turning = tape.split(query, [heads * latent.nope_dim, heads * latent.rope_dim])
    compressed = builder.linear(x, "kv_a_proj_with_mqa")
    narrow, key_turning = tape.split(compressed, [latent.kv_lora_rank, latent.rope_dim])
    narrow = builder.rms_norm(narrow, 1, latent.kv_lora_rank)
    query_turned, key_turned = rotary_pairs(tape, query_turning), rotary_pairs(tape, key_turning)
    q = tape.cat([query_plain, query_turned])
    expanded = builder.linear(narrow, "kv_b_proj")
    key_plain, v = tape.split(expanded, [heads * latent.nope_dim, shape.query_size])
    k = join_key(tape, key_plain, key_turned, shape.query_size)
    output = builder.attend(q, k, v)
    result = builder.linear(output, "o_proj")
    tape.hold(x, query, compressed, narrow, query_turned, key_turned, q, k, v, output)
    return result


def rotary_pairs(tape, x: Value) -> Value:
    """apply_rotary_pos_emb_interleave: even and odd elements of each head, rotated and joined."""
    half = x.per_token // 2
    table = Value(0, 0, 0, 4, False, 0)
    even, odd = tape.slice(x, half), tape.slice(x, half)
    first = tape.add(tape.scale_by(even, table), tape.scale_by(odd, table))
    second = tape.add(tape.scale_by(odd, table), tape.scale_by(even, table))
    return tape.cat([first, second])


def join_key(tape, plain: Value, turned: Value, size: int) -> Value:
    """Keys in a tensor of their own, written part by part; each write copies the whole gradient (CopySlices)."""
    key = tape.like(plain)
    key.per_token = size
    whole = Value(size, 0, 0, plain.width, False, WORKSPACE)
    return tape.custom([plain, turned], key, [], [(turned, NEW), (plain, NEW)], None, whole)
