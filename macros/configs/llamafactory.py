"""LLaMA-Factory's YAML, JSON or command line → recipe.

Keys and defaults: llamafactory 0.9.5, hparams/*.py, hparams/parser.py (dtype), model/adapter.py, model/model_utils/*.py;
what it takes over from Transformers: training_args.py 5.24.0.
"""

from __future__ import annotations

from .reading import Reading
from .shared import (
    quantized_name,
    read_count,
    read_deepspeed,
    read_fsdp,
    read_launcher,
    read_model,
    read_optimizer,
    read_targets,
    refuse_all,
)

REFUSED = {
    "use_galore": "GaLore",
    "use_apollo": "APOLLO",
    "use_badam": "BAdam",
    "use_adam_mini": "Adam-mini",
    "use_llama_pro": "LLaMA Pro",
    "use_mca": "Megatron",
    "use_megatron_bridge": "Megatron",
    "use_hyper_parallel": "HyperParallel",
    "use_kt": "KTransformers",
    "mixture_of_depths": "config.topic.depths",
    "use_asft_loss": "config.topic.reference",
    "fp8": "FP8",
    "train_from_scratch": "config.topic.scratch",
}
LEFT_OUT = (
    "resize_vocab", "upcast_layernorm", "upcast_lmhead_output", "use_dft_loss", "use_eaft_loss", "pissa_init", "shift_attn", "torch_compile",
    "compute_accuracy",
)  # fmt: skip
STAGES = {"rm": "config.topic.reward", "ppo": "PPO", "dpo": "config.topic.preference", "kto": "config.topic.preference"}
FLASH = {"fa2": "flash", "fa3": "flash", "sdpa": "sdpa", "disabled": "eager"}


def read_llamafactory(reading: Reading) -> None:
    """Fill the reading from a LLaMA-Factory configuration."""
    read_model(reading, "model_name_or_path")
    stage = reading.text("stage")
    if stage in STAGES:
        reading.refuse("stage", "config.not_modelled", STAGES[stage])
    elif stage:
        reading.used("stage")
    _method(reading)
    adapted = reading.keys["method"] != "full"
    _precision(reading, adapted)
    if adapted:
        _adapter(reading)
    read_count(reading, "per_device_train_batch_size", "micro_batch_size", 8)
    read_count(reading, "gradient_accumulation_steps", "gradient_accumulation_steps", 1)
    read_count(reading, "cutoff_len", "sequence_length", 2048)
    read_deepspeed(reading, "deepspeed")
    read_fsdp(reading, "fsdp", "fsdp_config", 1)
    read_launcher(reading)
    _checkpointing(reading)
    attention = reading.text("flash_attn")
    if attention in FLASH:
        reading.became("flash_attn", {"attention": FLASH[attention]})
    elif attention and attention != "auto":
        reading.refuse("flash_attn", "config.attention", attention)
    else:
        reading.assume({"attention": "sdpa"})
    if reading.flag("enable_liger_kernel"):
        reading.became("enable_liger_kernel", {"kernels": "liger", "loss": "fused"})
    if reading.flag("use_unsloth"):
        reading.like("use_unsloth", {"kernels": "unsloth"})
    read_optimizer(reading, "optim")
    if reading.flag("use_muon"):
        reading.became("use_muon", {"optim": "muon"})
    refuse_all(reading, REFUSED)
    for key in LEFT_OUT:
        if reading.flag(key):
            reading.left_out(key)


def _method(reading: Reading) -> None:
    kind = reading.text("finetuning_type")
    if kind not in ("", "lora", "full"):
        reading.refuse("finetuning_type", "config.not_modelled", kind)
    if kind == "full":
        reading.became("finetuning_type", {"method": "full"})
        return
    published = quantized_name(reading.text("model_name_or_path"))
    bits = reading.text("quantization_bit")
    method = reading.text("quantization_method")
    becomes: dict[str, object] = {"method": "qlora" if bits or published else "lora"}
    reading.either("finetuning_type", kind or None, becomes, becomes)
    if published in ("gptq", "awq"):
        reading.became("model_name_or_path", {**becomes, "quantization": published})
        return
    if not bits and not published:
        return
    if method not in ("", "bnb", "bitsandbytes"):
        reading.refuse("quantization_method", "config.not_modelled", method)
    if bits == "8":
        reading.became("quantization_bit", {"quantization": "int8"})
        return
    if bits not in ("", "4"):
        reading.refuse("quantization_bit", "config.not_modelled", f"{bits} bit")
    kind = reading.text("quantization_type") or "nf4"
    reading.became("quantization_bit" if bits else "model_name_or_path", {"quantization": kind, "quant_storage": "bfloat16"})
    double = reading.flag("double_quantization")
    reading.either("double_quantization", double, {"double_quant": double}, {"double_quant": True})


def _precision(reading: Reading, adapted: bool) -> None:
    """What is trained is float32, unless pure_bf16; autocast only where bf16 or fp16 says so."""
    if reading.flag("pure_bf16"):
        reading.became("pure_bf16", {"precision": "bf16", "base_dtype": "bfloat16"})
        return
    for key, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if reading.flag(key):
            becomes = {"precision": "bf16-autocast", "base_dtype": dtype} if adapted else {"precision": "fp32-autocast"}
            if key == "bf16":
                reading.became(key, becomes)
            else:
                reading.like(key, becomes)
            return
    reading.assume({"precision": "bf16", "base_dtype": "bfloat16"} if adapted else {"precision": "fp32"})


def _adapter(reading: Reading) -> None:
    rank = reading.count("lora_rank")
    if rank is not None:
        reading.became("lora_rank", {"lora_r": rank})
    dropout = reading.share("lora_dropout")
    if dropout is not None:
        reading.became("lora_dropout", {"lora_dropout": dropout})
    names = reading.names("lora_target")
    if names == ["all"]:
        reading.became("lora_target", {"target_modules": "all-linear"})
    elif names:
        read_targets(reading, "lora_target", names)
    tables = reading.names("additional_target")
    if tables:
        reading.became("additional_target", {"modules_to_save": tables})
    if reading.flag("use_dora"):
        reading.became("use_dora", {"use_dora": True})


def _checkpointing(reading: Reading) -> None:
    """On unless it is disabled, and reentrant unless FSDP2 or the configuration says otherwise."""
    disabled = reading.flag("disable_gradient_checkpointing")
    if disabled:
        reading.became("disable_gradient_checkpointing", {"gradient_checkpointing": False})
        return
    reading.assume({"gradient_checkpointing": True})
    if reading.flag("use_unsloth_gc"):
        reading.became("use_unsloth_gc", {"checkpoint_offload": True})
    reentrant = reading.flag("use_reentrant_gc")
    fsdp2 = reading.keys.get("parallelism", "none") == "fsdp" and reading.keys.get("fsdp_version", 1) == 2
    reading.either("use_reentrant_gc", reentrant, {"use_reentrant": reentrant}, {"use_reentrant": not fsdp2})
