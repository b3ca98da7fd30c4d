"""The numbers and switches that fix a model's shape, read from its Hugging Face `config.json`.

A family is described by switches (families.py) and each decoder layer by a `LayerShape` (shapes.py), so that a model is
understood from its `config.json` alone. Families that are not modelled are refused by name. Defaults are those of
transformers 5.24.0, models/<model_type>/configuration_*.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .families import FAMILIES, TEXT_TYPES, Family
from .shapes import DeltaShape, LatentShape, LayerShape
from .wording import shown

# Upper limits keep every count below 2^53 and catch typing mistakes.
LIMITS = {
    "hidden_size": 65536,
    "intermediate_size": 524288,
    "num_hidden_layers": 512,
    "full_attention_interval": 512,
    "decoder_sparse_step": 512,
    "max_window_layers": 512,
    "no_rope_layer_interval": 512,
    "linear_num_key_heads": 1024,
    "linear_num_value_heads": 1024,
    "linear_key_head_dim": 1024,
    "linear_value_head_dim": 1024,
    "linear_conv_kernel_dim": 64,
    "shared_expert_intermediate_size": 524288,
    "global_head_dim": 1024,
    "n_routed_experts": 4096,
    "n_shared_experts": 256,
    "q_lora_rank": 65536,
    "kv_lora_rank": 65536,
    "qk_nope_head_dim": 1024,
    "qk_rope_head_dim": 1024,
    "v_head_dim": 1024,
    "num_global_key_value_heads": 1024,
    "top_k_experts": 256,
    "hidden_size_per_layer_input": 65536,
    "vocab_size_per_layer_input": 4194304,
    "num_attention_heads": 1024,
    "num_key_value_heads": 1024,
    "vocab_size": 4194304,
    "head_dim": 1024,
    "num_experts": 4096,
    "num_local_experts": 4096,
    "num_experts_per_tok": 256,
    "moe_intermediate_size": 524288,
    "sliding_window": 2**24,
    "sliding_window_pattern": 512,
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of a decoder-only language model; sizes in elements, names as in config.json.

    sliding_window   tokens that a layer with attention "sliding" sees; 0 without such layers
    layers           every decoder layer, in order
    omitted          parts of the configuration that are not modelled
    per_layer_size   elements of the second embedding that each layer mixes in, 0 without one; per_layer_vocab its rows
    """

    model_type: str
    family: Family
    hidden_size: int
    vocab_size: int
    tie_word_embeddings: bool
    attention_bias: bool
    output_bias: bool
    mlp_bias: bool
    final_logit_softcapping: bool
    attn_logit_softcapping: bool
    sliding_window: int
    layers: tuple[LayerShape, ...]
    omitted: tuple[str, ...]
    counts: tuple[tuple[LayerShape, int], ...]
    per_layer_size: int = 0
    per_layer_vocab: int = 0
    profiles: dict[tuple[object, ...], object] = field(default_factory=dict, compare=False, repr=False)
    decoders: dict[tuple[object, ...], object] = field(default_factory=dict, compare=False, repr=False)

    def layer_counts(self) -> tuple[tuple[LayerShape, int], ...]:
        """Each shape of decoder layer with how many there are, in order of first appearance."""
        return self.counts


def context_of(config: dict[str, object]) -> int | None:
    """Tokens that a model is made for, as its `config.json` says; None if it does not say so."""
    inner = config.get("text_config")
    context = inner.get("max_position_embeddings") if isinstance(inner, dict) else None
    context = config.get("max_position_embeddings") or context
    return context if isinstance(context, int) and not isinstance(context, bool) and context > 0 else None


def architecture_from_config(config: dict[str, object]) -> Architecture:
    """The shape that a `config.json` describes; a nested `text_config` is taken instead of the whole.

    Raises ValueError with one sentence that names the key and what is expected.
    """
    if not isinstance(config, dict):
        raise ValueError(f"a config is an object like a Hugging Face config.json, got {shown(config)}")
    omitted = []
    if isinstance(config.get("text_config"), dict):
        outer = config
        config = dict(config["text_config"])
        for key in ("tie_word_embeddings", "model_type"):
            if key in outer and key not in config:
                config[key] = outer[key]
        for part in ("vision", "audio"):
            if part + "_config" in outer:
                omitted.append(part)
    model_type = config.get("model_type")
    model_type = TEXT_TYPES.get(model_type, model_type) if isinstance(model_type, str) else model_type
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        if model_type is None:
            raise ValueError(f"model_type is missing; modelled are {known}")
        raise ValueError(f"model_type {shown(model_type)} is not modelled; modelled are {known}")
    family = FAMILIES[model_type]
    window = _window(config, model_type)
    layers = _layers(config, model_type, window)
    return Architecture(
        model_type=model_type,
        family=family,
        hidden_size=_size(config, "hidden_size"),
        vocab_size=_size(config, "vocab_size"),
        tie_word_embeddings=_switch(config, "tie_word_embeddings", family.tied),
        attention_bias=_bias(config, family.attention_bias),
        output_bias=_bias(config, family.output_bias),
        mlp_bias=_bias(config, family.mlp_bias),
        final_logit_softcapping=config.get("final_logit_softcapping", family.softcapping or None) is not None,
        attn_logit_softcapping=config.get("attn_logit_softcapping", family.softcapping or None) is not None,
        sliding_window=window,
        layers=layers,
        omitted=tuple(omitted),
        per_layer_size=_per_layer_size(config, family),
        per_layer_vocab=_size(config, "vocab_size_per_layer_input", 262144) if family.layer == "gemma4" else 0,
        counts=tuple((shape, layers.count(shape)) for shape in dict.fromkeys(layers)),
    )


def _layers(config: dict[str, object], model_type: str, window: int) -> tuple[LayerShape, ...]:
    """The shape of every decoder layer."""
    family = FAMILIES[model_type]
    count = _size(config, "num_hidden_layers")
    heads = _size(config, "num_attention_heads")
    kv_heads = _size(config, "num_key_value_heads", heads)
    if heads % kv_heads != 0:
        raise ValueError(f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}")
    head_dim = _size(config, "head_dim", family.head_dim or _size(config, "hidden_size") // heads)
    rotary_dim = int(head_dim * _rotary_share(config, family))
    latent = _latent(config) if model_type == "glm4_moe_lite" else None
    if latent is not None:
        head_dim, rotary_dim = latent.nope_dim + latent.rope_dim, latent.rope_dim
    experts = _size(config, family.experts) if family.experts else 0
    active = _size(config, "num_experts_per_tok") if experts else 0
    if active > experts:
        raise ValueError(f"num_experts_per_tok {active} is more than {family.experts} {experts}")
    dense = _dense_layers(config, count) if latent is not None else _indices(config, "mlp_only_layers")
    step = _size(config, "decoder_sparse_step", 1)
    shapes = []
    for index, attention in enumerate(_attention_kinds(config, model_type, count, window)):
        routed = experts > 0 and index not in dense and (index + 1) % step == 0
        size = "moe_intermediate_size" if routed and "moe_intermediate_size" in config else "intermediate_size"
        shapes.append(
            LayerShape(
                attention=attention,
                rotary=_rotates(config, model_type, index),
                num_attention_heads=heads,
                num_key_value_heads=kv_heads,
                head_dim=head_dim,
                intermediate_size=_size(config, size),
                num_experts=experts if routed else 0,
                num_experts_per_tok=active if routed else 0,
                rotary_dim=rotary_dim,
                shared_size=_shared_size(config, family) if routed else 0,
                latent=latent,
                delta=_delta(config) if attention == "linear" else None,
            )
        )
    return _gemma4_layers(config, shapes) if family.layer == "gemma4" else tuple(shapes)


def _per_layer_size(config: dict[str, object], family: Family) -> int:
    """Width of each layer's part of the second embedding; 0 without it."""
    if family.layer != "gemma4" or config.get("hidden_size_per_layer_input") == 0:
        return 0
    return _size(config, "hidden_size_per_layer_input", 256)


def _gemma4_layers(config: dict[str, object], shapes: list[LayerShape]) -> tuple[LayerShape, ...]:
    """What differs from layer to layer; source: configuration_gemma4.py, per_layer_config and kv_sharing_modes."""
    same = _switch(config, "attention_k_eq_v", False)
    shared = config.get("num_kv_shared_layers", 0)
    if isinstance(shared, bool) or not isinstance(shared, int) or not 0 <= shared < len(shapes):
        raise ValueError(f"num_kv_shared_layers must be a whole number from 0 to below {len(shapes)}, got {shown(shared)}")
    layers = []
    for index, shape in enumerate(shapes):
        reuses = index >= len(shapes) - shared
        if shape.attention == "full":
            head_dim = _size(config, "global_head_dim", 512)
            kv_heads = _size(config, "num_global_key_value_heads", shape.num_key_value_heads) if same else 0
            shape = replace(
                shape,
                head_dim=head_dim,
                rotary_dim=head_dim,
                num_key_value_heads=kv_heads or shape.num_key_value_heads,
                keys="values" if same else "own",
            )
        if reuses:
            shape = replace(shape, keys="shared")
            if _switch(config, "use_double_wide_mlp", False):
                shape = replace(shape, intermediate_size=2 * shape.intermediate_size)
        if _switch(config, "enable_moe_block", False):
            shape = replace(
                shape,
                dense_size=shape.intermediate_size,
                intermediate_size=_size(config, "moe_intermediate_size"),
                num_experts=_size(config, "num_experts"),
                num_experts_per_tok=_size(config, "top_k_experts"),
            )
        layers.append(shape)
    for kind in dict.fromkeys(shape.attention for shape in layers):
        makers = [at for at in range(len(layers)) if layers[at].attention == kind and layers[at].keys != "shared"]
        if not makers:
            raise ValueError(f"num_kv_shared_layers {shared} leaves no layer of kind {kind!r} that makes keys")
        # The last one of each kind stores them, even if no layer shares them.
        layers[makers[-1]] = replace(layers[makers[-1]], stores=True)
    return tuple(layers)


def _rotary_share(config: dict[str, object], family: Family) -> float:
    """Share of each head that is rotated; it stands inside rope_parameters or beside it."""
    if family.partial_rotary == 1:
        return 1
    inner = config.get("rope_parameters")
    share = config.get("partial_rotary_factor", family.partial_rotary)
    if isinstance(inner, dict):
        share = inner.get("partial_rotary_factor", share)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise ValueError(f"partial_rotary_factor must be a number above 0 and up to 1, got {shown(share)}")
    return share


def _shared_size(config: dict[str, object], family: Family) -> int:
    """Width of the shared expert."""
    if family.shared_expert == "shared_experts":
        return _size(config, "moe_intermediate_size") * _size(config, "n_shared_experts", 1)
    return _size(config, "shared_expert_intermediate_size", 512) if family.shared_expert else 0


def _latent(config: dict[str, object]) -> LatentShape:
    """Latent attention; defaults as in configuration_glm4_moe_lite.py."""
    latent = LatentShape(
        q_lora_rank=_size(config, "q_lora_rank", 768),
        kv_lora_rank=_size(config, "kv_lora_rank", 512),
        nope_dim=_size(config, "qk_nope_head_dim", 192),
        rope_dim=_size(config, "qk_rope_head_dim", 64),
    )
    values = _size(config, "v_head_dim", 256)
    if values != latent.nope_dim + latent.rope_dim:
        raise ValueError(f"v_head_dim {values} is modelled only where it equals qk_nope_head_dim + qk_rope_head_dim")
    return latent


def _delta(config: dict[str, object]) -> DeltaShape:
    """The linear attention of Qwen3.5; defaults as in configuration_qwen3_5.py."""
    keys = _size(config, "linear_num_key_heads", 16)
    values = _size(config, "linear_num_value_heads", 32)
    if values % keys != 0:
        raise ValueError(f"linear_num_value_heads {values} is not a multiple of linear_num_key_heads {keys}")
    return DeltaShape(
        num_key_heads=keys,
        num_value_heads=values,
        key_head_dim=_size(config, "linear_key_head_dim", 128),
        value_head_dim=_size(config, "linear_value_head_dim", 128),
        kernel=_size(config, "linear_conv_kernel_dim", 4),
    )


def _rotates(config: dict[str, object], model_type: str, index: int) -> bool:
    """Whether a layer rotates queries and keys.

    SmolLM3: every fourth layer does not, unless no_rope_layers says otherwise; GraniteSWA: those with a theta of 0.
    """
    if model_type == "granite_swa":
        thetas = config.get("layer_rope_theta")
        return not isinstance(thetas, list) or index >= len(thetas) or thetas[index] != 0
    if model_type != "smollm3":
        return True
    flags = config.get("no_rope_layers")
    if isinstance(flags, list) and index < len(flags):
        return bool(flags[index])
    interval = _size(config, "no_rope_layer_interval", 4)
    return (index + 1) % interval != 0


def _size(config: dict[str, object], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        value = default
    if value is None:
        raise ValueError(f"{key} is missing in the config")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value > LIMITS[key]:
        raise ValueError(f"{key} must be a whole number from 1 to {LIMITS[key]}, got {shown(value)}")
    return value


def _from_zero(config: dict[str, object], key: str, default: int) -> int:
    """A number of layers, which may be none."""
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value > LIMITS[key]:
        raise ValueError(f"{key} must be a whole number from 0 to {LIMITS[key]}, got {shown(value)}")
    return value


def _dense_layers(config: dict[str, object], count: int) -> list[int]:
    """Numbers of the layers without experts: the first one, unless mlp_layer_types names every layer.

    transformers 5.24.0 does not read first_k_dense_replace (configuration_glm4_moe_lite.py).
    """
    kinds = config.get("mlp_layer_types")
    if kinds is None:
        return [0]
    if not isinstance(kinds, list) or len(kinds) < count or any(kind not in ("dense", "sparse") for kind in kinds):
        raise ValueError(f"mlp_layer_types must be a list of {count} names, dense or sparse, got {shown(kinds)}")
    return [index for index in range(count) if kinds[index] == "dense"]


def _indices(config: dict[str, object], key: str) -> list[int]:
    """Numbers of layers, from 0; none where the key is missing."""
    value = config.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list of layer numbers, got {shown(value)}")
    for index in value:
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ValueError(f"{key} must be a list of layer numbers, got {shown(value)}")
    return value


def _switch(config: dict[str, object], key: str, default: bool) -> bool:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {shown(value)}")
    return value


def _bias(config: dict[str, object], rule: str) -> bool:
    if rule == "always" or rule == "never":
        return rule == "always"
    return _switch(config, rule, False)


def _window(config: dict[str, object], model_type: str) -> int:
    """Tokens of the sliding window; 0 without one."""
    switchable = model_type in ("qwen2", "qwen3", "qwen3_moe", "smollm3")
    default = FAMILIES[model_type].window
    if not config.get("sliding_window", default) or (switchable and config.get("use_sliding_window") is not True):
        return 0
    return _size(config, "sliding_window", default)


def _attention_kinds(config: dict[str, object], model_type: str, layers: int, window: int) -> list[str]:
    """For each decoder layer "full" or "sliding"."""
    types = config.get("layer_types")
    if types is not None:
        names = {"full_attention": "full", "sliding_attention": "sliding"}
        if FAMILIES[model_type].output_gate:
            names["linear_attention"] = "linear"
        if not isinstance(types, list) or len(types) < layers:
            raise ValueError(f"layer_types must be a list of {layers} names")
        for name in types[:layers]:
            if name not in names:
                raise ValueError(f"layer_types: {shown(name)} is not modelled; modelled are {', '.join(names)}")
        return ["full" if names[name] == "sliding" and not window else names[name] for name in types[:layers]]
    if model_type == "qwen3_5_text" or model_type == "qwen3_5_moe_text":
        interval = _size(config, "full_attention_interval", 4)
        return ["linear" if (index + 1) % interval else "full" for index in range(layers)]
    if window == 0:
        return ["full"] * layers
    if model_type == "gemma2":
        return ["full" if index % 2 else "sliding" for index in range(layers)]
    if model_type == "gemma3_text":
        pattern = _size(config, "sliding_window_pattern", 6)
        return ["sliding" if (index + 1) % pattern else "full" for index in range(layers)]
    if model_type == "gemma4_text":
        return ["sliding" if (index + 1) % 6 and index < layers - 1 else "full" for index in range(layers)]
    if model_type == "granite_swa":
        return ["sliding" if index % 4 else "full" for index in range(layers)]
    if model_type == "gpt_oss":
        return ["full" if index % 2 else "sliding" for index in range(layers)]
    if model_type == "olmo3":
        return ["sliding" if (index + 1) % 4 else "full" for index in range(layers)]
    if model_type == "qwen2" or model_type == "qwen3":
        first = _from_zero(config, "max_window_layers", 28)
        return ["sliding" if index >= first else "full" for index in range(layers)]
    return ["sliding"] * layers
