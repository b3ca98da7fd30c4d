"""What the modelling code of each family of models does beyond the Llama layout, as switches.

Source of each switch: transformers 5.24.0, models/<model_type>/modeling_*.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Family:
    """What the modelling code of a family does beyond the Llama layout.

    norm           "llama": weight · x.to(dtype); "gemma": float32 throughout; "olmo": (weight · x).to(dtype)
    norm_places    "pre": before attention and MLP; "post": after them; "both"
    qk_norm        "none"; "head": one norm per head; "full": over all heads at once
    fused          one projection for q, k, v and one for gate and up
    attention_bias, output_bias, mlp_bias   "never", "always" or the config key that decides
    tied           default of tie_word_embeddings
    window, head_dim   what the configuration class fills in where config.json says nothing; 0: no window, hidden_size / heads
    softcapping    the class caps logits and scores where config.json says nothing
    rotary_width   bytes of the rotary tables' elements; 0: those of the residual stream
    rotary_tables  "one" for all layers, or one per "kind" of attention
    residual_scale   each branch is multiplied by a number before it joins the residual stream
    logits_scale     the logits are divided by a number
    query_scale      queries are multiplied by a number per position
    experts        config key of the number of experts in each feed-forward; "" for a dense model
    shared_expert    name of the MLP that every token passes beside its experts; "" without one
    router           "softmax" over all experts, or "sigmoid" of each, in float32
    shared_gate      the shared expert's result is multiplied by the sigmoid of one number per token
    adapts_experts   PEFT's "all-linear" reaches the router and the stacked experts, but then no other MLP
    gated_clamp    router and experts have biases; gate and up are interleaved, clamped, and joined as in gpt-oss
    rotary         "half": x · cos + rotate_half(x) · sin; "chunk": both halves apart, tables of half the width
    output_gate    q_proj also makes a gate, whose sigmoid multiplies the attention's output
    partial_rotary   share of each head that is rotated, unless the config says otherwise
    layer          "llama"; "gemma4": what gemma4.py writes
    sinks          a trained number per head: "column": one more score for the softmax; "scale": a factor of the output
    """

    norm: str = "llama"
    norm_places: str = "pre"
    qk_norm: str = "none"
    fused: bool = False
    attention_bias: str = "never"
    output_bias: str = "never"
    mlp_bias: str = "never"
    tied: bool = False
    window: int = 0
    head_dim: int = 0
    softcapping: bool = False
    rotary_width: int = 0
    rotary_tables: str = "one"
    residual_scale: bool = False
    logits_scale: bool = False
    query_scale: bool = False
    experts: str = ""
    shared_expert: str = ""
    shared_gate: bool = False
    router: str = "softmax"
    adapts_experts: bool = False
    gated_clamp: bool = False
    rotary: str = "half"
    output_gate: bool = False
    partial_rotary: float = 1.0
    sinks: str = ""
    layer: str = "llama"
    sdpa: bool = True


_LLAMA = Family(attention_bias="attention_bias", output_bias="attention_bias", mlp_bias="mlp_bias")
_QWEN3 = Family(head_dim=128, qk_norm="head", attention_bias="attention_bias", output_bias="attention_bias")
_OLMO = Family(
    norm="olmo",
    norm_places="post",
    qk_norm="full",
    attention_bias="attention_bias",
    output_bias="attention_bias",
    rotary_width=4,
)

_QWEN3_5 = Family(
    norm="gemma",
    qk_norm="head",
    attention_bias="attention_bias",
    output_bias="attention_bias",
    output_gate=True,
    partial_rotary=0.25,
)

FAMILIES = {
    "llama": _LLAMA,
    "mistral": Family(window=4096),
    "ministral": Family(window=4096),
    "ministral3": Family(query_scale=True),
    "mixtral": Family(experts="num_local_experts", adapts_experts=True),
    "qwen2": Family(attention_bias="always"),
    "qwen3": _QWEN3,
    "qwen3_moe": Family(
        qk_norm="head",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        experts="num_experts",
        adapts_experts=True,
    ),
    "qwen3_5_text": _QWEN3_5,
    "qwen3_5_moe_text": replace(_QWEN3_5, experts="num_experts", shared_expert="shared_expert", shared_gate=True),
    "gemma2": Family(
        norm="gemma",
        norm_places="both",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        tied=True,
        sdpa=False,
        window=4096,
        head_dim=256,
        softcapping=True,
    ),
    "gemma3_text": Family(
        norm="gemma",
        norm_places="both",
        qk_norm="head",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        tied=True,
        rotary_tables="kind",
        window=4096,
        head_dim=256,
    ),
    "gemma4_text": Family(
        norm="gemma",
        norm_places="both",
        qk_norm="head",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        tied=True,
        rotary_tables="kind",
        layer="gemma4",
    ),
    "phi3": Family(fused=True),
    "olmo2": _OLMO,
    "olmo3": replace(_OLMO, rotary_tables="kind", window=4096),
    "glm4_moe_lite": Family(
        attention_bias="attention_bias",
        output_bias="attention_bias",
        experts="n_routed_experts",
        adapts_experts=True,
        shared_expert="shared_experts",
        router="sigmoid",
    ),
    "granite_swa": Family(
        attention_bias="attention_bias",
        output_bias="attention_bias",
        mlp_bias="mlp_bias",
        residual_scale=True,
        logits_scale=True,
        tied=True,
        sinks="scale",
        sdpa=False,
    ),
    "granite": Family(
        attention_bias="attention_bias",
        output_bias="attention_bias",
        mlp_bias="mlp_bias",
        residual_scale=True,
        logits_scale=True,
    ),
    "gpt_oss": Family(
        norm="olmo",
        window=128,
        head_dim=64,
        attention_bias="always",
        output_bias="always",
        experts="num_local_experts",
        gated_clamp=True,
        rotary="chunk",
        sinks="column",
        sdpa=False,
    ),
    "smollm3": Family(attention_bias="attention_bias", output_bias="attention_bias", mlp_bias="mlp_bias", tied=True),
}

# Names of the decoder inside a multimodal configuration.
TEXT_TYPES = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
