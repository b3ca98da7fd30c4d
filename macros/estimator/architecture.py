"""The numbers and switches that fix a model's shape, read from its Hugging Face `config.json`.

A family is described by switches (where the norms sit, which projections have a bias, what the gate is), so that a
model is understood from its `config.json` alone. Families that are not modelled are refused by name.
Source of each switch: transformers 5.24.0, src/transformers/models/<model_type>/modeling_<model_type>.py.
"""

from __future__ import annotations

from dataclasses import dataclass

# Upper limits keep every count below 2^53 and catch typing mistakes.
LIMITS = {
    "hidden_size": 65536,
    "intermediate_size": 524288,
    "num_hidden_layers": 512,
    "num_attention_heads": 1024,
    "num_key_value_heads": 1024,
    "vocab_size": 4194304,
    "head_dim": 1024,
    "num_experts": 4096,
    "num_experts_per_tok": 256,
    "moe_intermediate_size": 524288,
    "sliding_window_pattern": 512,
}


@dataclass(frozen=True, slots=True)
class Family:
    """What the modelling code of a family does beyond the Llama layout.

    norm           "llama": weight · x.to(dtype); "gemma": float32 throughout; "olmo": (weight · x).to(dtype)
    norm_places    "pre": before attention and MLP; "post": after them; "both"
    qk_norm        "none"; "head": one norm per head; "full": over all heads at once
    fused          one projection for q, k, v and one for gate and up
    attention_bias, output_bias, mlp_bias   "never", "always" or the config key that decides
    tied           default of tie_word_embeddings
    """

    norm: str = "llama"
    norm_places: str = "pre"
    qk_norm: str = "none"
    fused: bool = False
    attention_bias: str = "never"
    output_bias: str = "never"
    mlp_bias: str = "never"
    tied: bool = False
    scaled_embedding: bool = False
    experts: bool = False
    sdpa: bool = True


FAMILIES = {
    "llama": Family(attention_bias="attention_bias", output_bias="attention_bias", mlp_bias="mlp_bias"),
    "mistral": Family(),
    "ministral": Family(),
    "qwen2": Family(attention_bias="always"),
    "qwen3": Family(qk_norm="head", attention_bias="attention_bias", output_bias="attention_bias"),
    "gemma2": Family(
        norm="gemma",
        norm_places="both",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        tied=True,
        scaled_embedding=True,
        sdpa=False,
    ),
    "gemma3_text": Family(
        norm="gemma",
        norm_places="both",
        qk_norm="head",
        attention_bias="attention_bias",
        output_bias="attention_bias",
        tied=True,
        scaled_embedding=True,
    ),
    "phi3": Family(fused=True),
    "olmo2": Family(
        norm="olmo",
        norm_places="post",
        qk_norm="full",
        attention_bias="attention_bias",
        output_bias="attention_bias",
    ),
}

# Names of the decoder inside a multimodal configuration.
TEXT_TYPES = {"gemma3": "gemma3_text"}


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of a decoder-only language model; sizes in elements, names as in config.json."""

    model_type: str
    family: Family
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool
    attention_bias: bool
    output_bias: bool
    mlp_bias: bool
    final_logit_softcapping: bool
    attn_logit_softcapping: bool
    sliding_window: int
    layer_kinds: tuple[str, ...]
    omitted: tuple[str, ...]

    @property
    def query_size(self) -> int:
        """Width of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def key_value_size(self) -> int:
        """Width of all key heads together; values have the same."""
        return self.num_key_value_heads * self.head_dim

    def layer_counts(self) -> list[tuple[str, int]]:
        """Each kind of decoder layer with how many there are, in order of first appearance."""
        return [(kind, self.layer_kinds.count(kind)) for kind in dict.fromkeys(self.layer_kinds)]


def architecture_from_config(config: dict[str, object]) -> Architecture:
    """The shape that a `config.json` describes; a nested `text_config` is taken instead of the whole.

    Raises ValueError with one sentence that names the key and what is expected.
    """
    if not isinstance(config, dict):
        raise ValueError(f"a config is an object like a Hugging Face config.json, got {config!r}")
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
    model_type = TEXT_TYPES.get(model_type, model_type)
    if model_type not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise ValueError(f"model_type {model_type!r} is not modelled; modelled are {known}")
    family = FAMILIES[model_type]
    hidden_size = _size(config, "hidden_size")
    heads = _size(config, "num_attention_heads")
    head_dim = _size(config, "head_dim", hidden_size // heads)
    layers = _size(config, "num_hidden_layers")
    kv_heads = _size(config, "num_key_value_heads", heads)
    if heads % kv_heads != 0:
        raise ValueError(f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}")
    sliding_window = _window(config, model_type)
    return Architecture(
        model_type=model_type,
        family=family,
        hidden_size=hidden_size,
        intermediate_size=_size(config, "intermediate_size"),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=_size(config, "vocab_size"),
        tie_word_embeddings=_switch(config, "tie_word_embeddings", family.tied),
        attention_bias=_bias(config, family.attention_bias),
        output_bias=_bias(config, family.output_bias),
        mlp_bias=_bias(config, family.mlp_bias),
        final_logit_softcapping=config.get("final_logit_softcapping") is not None,
        attn_logit_softcapping=config.get("attn_logit_softcapping") is not None,
        sliding_window=sliding_window,
        layer_kinds=_layer_kinds(config, model_type, layers, sliding_window),
        omitted=tuple(omitted),
    )


def _size(config: dict[str, object], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        value = default
    if value is None:
        raise ValueError(f"{key} is missing in the config")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value > LIMITS[key]:
        raise ValueError(f"{key} must be a whole number from 1 to {LIMITS[key]}, got {value!r}")
    return value


def _switch(config: dict[str, object], key: str, default: bool) -> bool:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r}")
    return value


def _bias(config: dict[str, object], rule: str) -> bool:
    if rule == "always" or rule == "never":
        return rule == "always"
    return _switch(config, rule, False)


def _window(config: dict[str, object], model_type: str) -> int:
    """Tokens of the sliding window; 0 without one."""
    window = config.get("sliding_window")
    switchable = model_type == "qwen2" or model_type == "qwen3"
    if not window or (switchable and config.get("use_sliding_window") is not True):
        return 0
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ValueError(f"sliding_window must be a whole number of at least 1 or null, got {window!r}")
    return window


def _layer_kinds(config: dict[str, object], model_type: str, layers: int, window: int) -> tuple[str, ...]:
    """For each decoder layer "full" or "sliding" attention."""
    types = config.get("layer_types")
    if types is not None:
        names = {"full_attention": "full", "sliding_attention": "sliding"}
        if not isinstance(types, list) or len(types) < layers:
            raise ValueError(f"layer_types must be a list of {layers} names")
        for name in types[:layers]:
            if name not in names:
                raise ValueError(f"layer_types: {name!r} is not modelled; modelled are {', '.join(names)}")
        return tuple(names[name] for name in types[:layers])
    if window == 0:
        return ("full",) * layers
    if model_type == "gemma2":
        return tuple("full" if index % 2 else "sliding" for index in range(layers))
    if model_type == "gemma3_text":
        pattern = _size(config, "sliding_window_pattern", 6)
        return tuple("sliding" if (index + 1) % pattern else "full" for index in range(layers))
    if model_type == "qwen2" or model_type == "qwen3":
        first = config.get("max_window_layers", 28)
        return tuple("sliding" if index >= first else "full" for index in range(layers))
    return ("sliding",) * layers
