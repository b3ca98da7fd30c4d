"""Axolotl's YAML → recipe.

Keys and defaults: axolotl 0.21.0, utils/schemas/*.py, utils/config/__init__.py (dtypes, checkpointing), loaders/model.py
(BitsAndBytesConfig), loaders/adapter.py, integrations/liger and cut_cross_entropy.
"""

from __future__ import annotations

from .reading import Reading
from .shared import (
    quantized_name,
    read_attention,
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
    "tensor_parallel_size": "config.topic.tensor_parallel",
    "context_parallel_size": "config.topic.sequence_parallel",
    "sequence_parallel_degree": "config.topic.sequence_parallel",
    "expert_parallel_size": "config.topic.expert_parallel",
    "dp_replicate_size": "HSDP",
    "rl": "config.topic.preference",
    "reward_model": "config.topic.reward",
    "process_reward_model": "config.topic.reward",
    "processor_type": "config.topic.vision",
    "relora": "ReLoRA",
    "lisa_n_layers": "LISA",
    "unfrozen_parameters": "config.topic.some_layers",
    "peft_layers_to_transform": "config.topic.adapted_layers",
    "lora_rank_pattern": "config.topic.ranks",
    "peft_trainable_token_indices": "config.topic.single_tokens",
    "peft_layer_replication": "config.topic.replication",
    "lora_target_parameters": "config.topic.adapted_parameters",
    "qat": "config.topic.qat",
    "fp8": "FP8",
    "tiled_mlp": "config.topic.tiled_mlp",
    "layer_offloading": "config.topic.layer_offload",
    "model_quantization_config": "config.topic.other_quantization",
    "diffusion": "config.topic.diffusion",
    "diffusion_lm": "config.topic.diffusion",
    "kd_trainer": "config.topic.distillation",
    "use_mora": "MoRA",
    "trainer_cls": "config.topic.trainer",
    "selective_checkpointing": "config.topic.selective",
    "dynamic_checkpoint": "config.topic.selective",
    "shrink_embeddings": "config.topic.embeddings",
    "large_head_attention": "config.topic.large_heads",
}
LEFT_OUT = (
    "lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "lora_embedding_kernel", "chunked_cross_entropy", "torch_compile",
    "flash_attn_cross_entropy", "flash_attn_fuse_mlp", "liger_cross_entropy", "quantize_moe_experts", "fused_attn_kernel", "embeddings_skip_upcast",
    "resize_token_embeddings_to_32x", "use_kernels", "experts_implementation", "use_scattermoe", "use_sonicmoe", "fp32_norms",
)  # fmt: skip


def read_axolotl(reading: Reading) -> None:
    """Fill the reading from an Axolotl configuration."""
    read_model(reading, "base_model")
    _method(reading)
    _precision(reading)
    if reading.keys["method"] != "full":
        _adapter(reading)
    read_count(reading, "micro_batch_size", "micro_batch_size", 1)
    read_count(reading, "gradient_accumulation_steps", "gradient_accumulation_steps", 1)
    read_count(reading, "sequence_len", "sequence_length", 512)
    _parallelism(reading)
    _checkpointing(reading)
    _attention(reading)
    _kernels(reading)
    read_optimizer(reading, "optimizer")
    if reading.flag("pad_to_sequence_len") and not reading.flag("sample_packing"):
        reading.became("pad_to_sequence_len", {"padding": True})
    refuse_all(reading, REFUSED)
    for key in LEFT_OUT:
        value = reading.text(key)
        if value and value != "false":
            reading.left_out(key)


def _method(reading: Reading) -> None:
    adapter = reading.text("adapter")
    four, eight, gptq = reading.flag("load_in_4bit"), reading.flag("load_in_8bit"), reading.flag("gptq")
    if not adapter:
        reading.assume({"method": "full"}, "config.no_adapter")
        for key in ("load_in_4bit", "load_in_8bit"):
            if reading.flag(key):
                reading.refuse(key, "config.needs_adapter")
        return
    if adapter not in ("lora", "qlora"):
        reading.refuse("adapter", "config.not_modelled", adapter)
        reading.keys["method"] = "lora"
        return
    published = quantized_name(reading.text("base_model"))
    quantization = "gptq" if gptq else "nf4" if four and adapter == "qlora" else "int8" if eight else published
    if four and adapter == "lora":
        reading.refuse("load_in_4bit", "config.needs_qlora")
    if adapter == "qlora" and not quantization:
        reading.refuse("adapter", "config.needs_quantization")
        quantization = "nf4"
    if not quantization:
        reading.became("adapter", {"method": "lora"})
        return
    reading.became("adapter", {"method": "qlora"})
    source = "gptq" if gptq else "load_in_4bit" if four else "load_in_8bit" if eight else "base_model"
    reading.became(source, {"quantization": quantization})
    if quantization == "nf4":
        storage = reading.text("bnb_config_kwargs.bnb_4bit_quant_storage")
        reading.either("bnb_config_kwargs.bnb_4bit_quant_storage", storage or None, {"quant_storage": storage}, {"quant_storage": "bfloat16"})
        double = reading.flag("bnb_config_kwargs.bnb_4bit_use_double_quant")
        reading.either("bnb_config_kwargs.bnb_4bit_use_double_quant", double, {"double_quant": double}, {"double_quant": True})
        kind = reading.text("bnb_config_kwargs.bnb_4bit_quant_type")
        if kind:
            reading.became("bnb_config_kwargs.bnb_4bit_quant_type", {"quantization": kind})


def _precision(reading: Reading) -> None:
    """bf16 and fp16 mean autocast over weights of that type; bfloat16 and float16 no autocast; otherwise float32."""
    word = reading.text("bf16")
    bf16 = True if word in ("auto", "full") else reading.flag("bf16")
    fp16 = reading.flag("fp16")
    pure, half = reading.flag("bfloat16"), reading.flag("float16")
    if bf16:
        reading.became("bf16", {"precision": "bf16-autocast", "base_dtype": "bfloat16"})
    elif pure:
        reading.became("bfloat16", {"precision": "bf16", "base_dtype": "bfloat16"})
    elif fp16:
        reading.like("fp16", {"precision": "bf16-autocast", "base_dtype": "float16"})
    elif half:
        reading.like("float16", {"precision": "bf16", "base_dtype": "float16"})
    elif bf16 is None and reading.flag("float32") is None:
        # bf16 is "auto" where nothing is said.
        reading.assume({"precision": "bf16-autocast", "base_dtype": "bfloat16"})
    else:
        reading.became("bf16" if bf16 is not None else "float32", {"precision": "fp32", "base_dtype": "float32"})


def _adapter(reading: Reading) -> None:
    rank = reading.count("lora_r")
    if rank is None:
        reading.refuse("lora_r", "config.rank")
    else:
        reading.became("lora_r", {"lora_r": rank})
    dropout = reading.share("lora_dropout")
    if dropout is not None:
        reading.became("lora_dropout", {"lora_dropout": dropout})
    names = reading.names("lora_target_modules")
    if reading.flag("lora_target_linear"):
        reading.became("lora_target_linear", {"target_modules": "all-linear"})
        if names:
            reading.used("lora_target_modules")
    elif names == ["all-linear"]:
        reading.became("lora_target_modules", {"target_modules": "all-linear"})
    elif names:
        read_targets(reading, "lora_target_modules", names)
    else:
        reading.refuse("lora_target_linear", "config.targets")
    tables = reading.names("lora_modules_to_save")
    if tables:
        reading.became("lora_modules_to_save", {"modules_to_save": tables})
    if reading.flag("peft_use_dora"):
        reading.became("peft_use_dora", {"use_dora": True})
    if reading.flag("peft_autocast_adapter_dtype") is False:
        reading.became("peft_autocast_adapter_dtype", {"adapter_dtype": "bfloat16"})


def _checkpointing(reading: Reading) -> None:
    word = reading.text("gradient_checkpointing")
    checkpointing = True if word in ("offload", "offload_disk") else reading.flag("gradient_checkpointing")
    already = reading.keys.get("gradient_checkpointing", False)
    if not already:
        reading.either("gradient_checkpointing", checkpointing, {"gradient_checkpointing": checkpointing}, {"gradient_checkpointing": False})
    offload = reading.text("activation_offloading")
    on = offload != "" and offload != "false"
    if not reading.keys["gradient_checkpointing"]:
        if on:
            reading.refuse("activation_offloading", "config.not_modelled", "config.topic.activation_offload")
        return
    if word in ("offload", "offload_disk"):
        reading.became("gradient_checkpointing", {"gradient_checkpointing": True, "checkpoint_offload": True})
    if on:
        reading.like("activation_offloading", {"checkpoint_offload": True})
    reentrant = reading.flag("gradient_checkpointing_kwargs.use_reentrant")
    key = "gradient_checkpointing_kwargs.use_reentrant"
    zero3 = reading.keys.get("parallelism", "none") == "zero3"
    reading.either(key, reentrant, {"use_reentrant": reentrant}, {"use_reentrant": zero3})


def _attention(reading: Reading) -> None:
    if read_attention(reading, "attn_implementation"):
        return
    for key, name, exact in (
        ("flash_attention", "flash", True),
        ("sdp_attention", "sdpa", True),
        ("eager_attention", "eager", True),
        ("flex_attention", "flash", False),
        ("xformers_attention", "flash", False),
        ("sage_attention", "flash", False),
    ):
        if reading.flag(key):
            if exact:
                reading.became(key, {"attention": name})
            else:
                reading.like(key, {"attention": name})
            return
    reading.assume({"attention": "sdpa"})


def _kernels(reading: Reading) -> None:
    plugins = " ".join(reading.names("plugins"))
    known = False
    if "CutCrossEntropyPlugin" in plugins and reading.flag("cut_cross_entropy") is not False:
        reading.like("plugins", {"loss": "fused"})
        known = True
    if "LigerPlugin" in plugins:
        fused = [key for key in ("liger_rms_norm", "liger_glu_activation", "liger_swiglu", "liger_rope", "liger_layer_norm") if reading.flag(key)]
        if "liger_rms_norm" in fused:
            reading.became("liger_rms_norm", {"kernels": "liger"})
        for key in fused:
            if key != "liger_rms_norm":
                reading.used(key)
        if reading.flag("liger_fused_linear_cross_entropy"):
            reading.became("liger_fused_linear_cross_entropy", {"loss": "fused"})
        known = True
    if known:
        reading.used("plugins")


def _parallelism(reading: Reading) -> None:
    read_deepspeed(reading, "deepspeed")
    read_fsdp(reading, "fsdp", "fsdp_config", 2)
    shards = reading.count("dp_shard_size")
    if shards is not None:
        reading.became("dp_shard_size", {"num_gpus": shards})
    read_launcher(reading)
