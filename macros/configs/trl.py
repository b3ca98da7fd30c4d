"""Arguments of TRL, Transformers, PEFT and bitsandbytes → recipe: a command line, a YAML file of them, or a pasted script.

Keys and defaults: trl 1.16.0 (sft_config.py, model_config.py, trainer/utils.py), transformers 5.24.0 (training_args.py,
quantization_config.py), peft 0.21.2 (LoraConfig, utils/constants.py), accelerate 1.15.0; tests/recorded/defaults.json.
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
from .text import Tree, lowered, number

# Classes of a script → the flags of TRL's command line: where an argument of the class has another name there.
RENAMED = {
    "LoraConfig": {"r": "lora_r", "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save"},
    "get_peft_model": {"r": "lora_r", "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save"},
    "BitsAndBytesConfig": {"bnb_4bit_use_double_quant": "use_bnb_nested_quant"},
    "from_pretrained": {"0": "model_name_or_path", "torch_dtype": "dtype", "model_name": "model_name_or_path"},
    "SFTTrainer": {"model": "model_name_or_path"},
    "SFTConfig": {},
    "TrainingArguments": {},
    "ModelConfig": {},
}
OTHER_TRAINERS = {
    "PPO": "PPO", "DPO": "config.topic.preference", "KTO": "config.topic.preference", "ORPO": "config.topic.preference", "CPO": "config.topic.preference",
    "GRPO": "GRPO", "RLOO": "RLOO", "Reward": "config.topic.reward", "Seq2Seq": "config.topic.encoder_decoder", "GKD": "config.topic.distillation",
}  # fmt: skip
COMMANDS = {
    "dpo": "config.topic.preference", "kto": "config.topic.preference", "orpo": "config.topic.preference", "ppo": "PPO", "grpo": "GRPO",
    "rloo": "RLOO", "reward": "config.topic.reward", "gkd": "config.topic.distillation", "vlm": "config.topic.vision",
}  # fmt: skip
# peft 0.21.2, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING: where it knows the family, q_proj and v_proj.
TARGETS_KNOWN = ("llama", "mistral", "mixtral", "gemma2", "gemma3_text", "gemma4_text", "qwen2", "qwen3")

REFUSED = {
    "tp_size": "config.topic.tensor_parallel",
    "parallelism_config": "config.topic.sequence_parallel",
    "launch.parallelism_config_tp_size": "config.topic.tensor_parallel",
    "launch.parallelism_config_cp_size": "config.topic.sequence_parallel",
    "launch.use_megatron_lm": "Megatron",
    "optim_target_modules": "GaLore",
    "layers_to_transform": "config.topic.adapted_layers",
    "rank_pattern": "config.topic.ranks",
    "layer_replication": "config.topic.replication",
    "trainable_token_indices": "config.topic.single_tokens",
    "lora_target_parameters": "config.topic.adapted_parameters",
    "target_parameters": "config.topic.adapted_parameters",
    "loftq_config": "LoftQ",
}


def from_script(tree: Tree) -> Tree:
    """The calls of a script as one map of TRL's flags; what a call means beyond its arguments is under `script`."""
    flat = Tree(errors=tree.errors)
    calls = tree.value
    for name, given in calls.items():
        if name not in RENAMED:
            for word in OTHER_TRAINERS:
                if name.startswith(word) and (name.endswith("Trainer") or name.endswith("Config")):
                    flat.value[name] = "true"
                    flat.lines[name] = tree.lines[name]
            continue
        for key, value in given.items():
            flag = RENAMED[name].get(key, key)
            nested = isinstance(value, dict) and flag in ("quantization_config", "peft_config")
            plain = value != "?" and not nested and not (flag == "model_name_or_path" and flag in flat.value)
            if plain and number(flag) is None:
                flat.value[flag] = value
                flat.lines[flag] = tree.lines[f"{name}.{key}"]
    if "LoraConfig" in calls or "get_peft_model" in calls:
        flat.value["use_peft"] = "true"
        flat.lines["use_peft"] = tree.lines["LoraConfig" if "LoraConfig" in calls else "get_peft_model"]
    return flat


def read_trl(reading: Reading, script: list[str]) -> None:
    """Fill the reading from TRL's flags; `script` are the names of the calls of a pasted script, empty for flags."""
    # SFTTrainer makes an SFTConfig of TrainingArguments with all their values, so that their defaults stay.
    trl = reading.preset == "trl" and ("TrainingArguments" not in script or "SFTConfig" in script)
    for key in script:
        for word, what in OTHER_TRAINERS.items():
            if key in reading.tree.value and key.startswith(word):
                reading.refuse(key, "config.not_modelled", what)
    for word in reading.names("words"):
        for command, what in COMMANDS.items():
            name = word.split("/")[-1].removesuffix(".py")
            if command in lowered(name).split("_"):
                reading.refuse("words", "config.not_modelled", what)
    read_model(reading, "model_name_or_path")
    _method(reading, script)
    adapted = reading.keys["method"] != "full"
    _precision(reading, adapted, script, trl)
    if adapted:
        _adapter(reading, script)
    read_count(reading, "per_device_train_batch_size", "micro_batch_size", 2 if reading.preset == "unsloth" else 8)
    read_count(reading, "gradient_accumulation_steps", "gradient_accumulation_steps", 1)
    _length(reading, reading.preset == "trl")
    read_deepspeed(reading, "deepspeed")
    read_fsdp(reading, "fsdp", "fsdp_config", 1)
    read_launcher(reading)
    _checkpointing(reading, trl)
    if not read_attention(reading, "attn_implementation"):
        reading.assume({"attention": "sdpa"})
    if reading.flag("use_liger_kernel"):
        reading.became("use_liger_kernel", {"kernels": "liger", "loss": "fused"})
    kind = reading.text("loss_type")
    if kind not in ("", "nll", "chunked_nll"):
        reading.like("loss_type", {"loss": "standard"})
    read_optimizer(reading, "optim")
    refuse_all(reading, REFUSED)
    for key in ("torch_compile", "compute_metrics", "label_smoothing_factor"):
        value = reading.text(key)
        if value and lowered(value) not in ("false", "0", "0.0"):
            reading.left_out(key)


def _method(reading: Reading, script: list[str]) -> None:
    four, eight = reading.flag("load_in_4bit"), reading.flag("load_in_8bit")
    if reading.preset == "unsloth" and four is None and not eight and not reading.flag("full_finetuning"):
        reading.assume({"quantization": "nf4"})
        four = True
    if not reading.flag("use_peft"):
        reading.assume({"method": "full"}, "config.no_adapter")
        for key in ("load_in_4bit", "load_in_8bit"):
            if reading.flag(key):
                reading.refuse(key, "config.needs_adapter")
        if "quantization" in reading.keys:
            del reading.keys["quantization"]
        return
    published = quantized_name(reading.text("model_name_or_path"))
    if not four and not eight and not published:
        reading.became("use_peft", {"method": "lora"})
        return
    reading.became("use_peft", {"method": "qlora"})
    if eight or (published in ("gptq", "awq") and not four):
        reading.became("load_in_8bit" if eight else "model_name_or_path", {"quantization": "int8" if eight else published})
        return
    if "load_in_4bit" in reading.tree.value:
        reading.used("load_in_4bit")
    plain = "BitsAndBytesConfig" in script
    kind = reading.text("bnb_4bit_quant_type")
    reading.either("bnb_4bit_quant_type", kind or None, {"quantization": kind}, {"quantization": "fp4" if plain else "nf4"})
    nested = reading.flag("use_bnb_nested_quant")
    reading.either("use_bnb_nested_quant", nested, {"double_quant": nested}, {"double_quant": reading.preset == "unsloth"})
    storage = reading.text("bnb_4bit_quant_storage")
    if storage:
        reading.became("bnb_4bit_quant_storage", {"quant_storage": storage})
    if script and reading.preset == "transformers-peft" and "from_pretrained" in script:
        prepared = "prepare_model_for_kbit_training" in script
        reading.assume({"prepare_kbit": prepared}, "config.prepared" if prepared else "config.unprepared")


def _precision(reading: Reading, adapted: bool, script: list[str], trl: bool) -> None:
    """The weights' dtype, and whether autocast runs over them."""
    key = "dtype" if reading.text("dtype") else "torch_dtype"
    for other in ("model_init_kwargs.dtype", "model_init_kwargs.torch_dtype"):
        if reading.text(other):
            key = other
    dtype = reading.text(key)
    if dtype and dtype not in ("bfloat16", "float16", "float32", "auto", "None"):
        reading.refuse(key, "config.dtype", dtype)
        dtype = ""
    # A model that from_pretrained loads has its checkpoint's dtype, one that TRL loads by its name float32.
    loaded = "from_pretrained" in script
    wide = reading.preset == "trl" and not loaded
    base = ("float32" if wide else "bfloat16") if not dtype else "bfloat16" if dtype == "auto" else dtype
    bf16, fp16 = reading.flag("bf16"), reading.flag("fp16")
    autocast = bool(bf16 or fp16 or (bf16 is None and trl) or reading.preset == "unsloth")
    if reading.preset == "unsloth" and not adapted:
        precision, base = "bf16", "bfloat16"
    elif adapted:
        precision = "bf16-autocast" if autocast else "fp32" if base == "float32" else "bf16"
    elif base == "float32":
        precision = "fp32-autocast" if autocast else "fp32"
    else:
        precision = "bf16-autocast" if autocast else "bf16"
    reading.either(key, dtype or None, {"base_dtype": base}, {"base_dtype": base})
    said = "bf16" if bf16 is not None else "fp16"
    if fp16 and not bf16:
        reading.like("fp16", {"precision": precision})
    else:
        reading.either(said, bf16 if bf16 is not None else fp16, {"precision": precision}, {"precision": precision})


def _adapter(reading: Reading, script: list[str]) -> None:
    # TRL's flags and PEFT's class have defaults of their own.
    flags = "LoraConfig" not in script
    rank, dropout = (16, 0.05) if flags else (8, 0)
    if reading.preset == "unsloth":
        rank, dropout = 16, 0
    read_count(reading, "lora_r", "lora_r", rank)
    given = reading.share("lora_dropout")
    reading.either("lora_dropout", given, {"lora_dropout": given}, {"lora_dropout": dropout})
    names = reading.names("lora_target_modules")
    if names == ["all-linear"]:
        reading.became("lora_target_modules", {"target_modules": "all-linear"})
    elif names:
        read_targets(reading, "lora_target_modules", names)
    elif reading.preset == "unsloth":
        reading.assume({"target_modules": "all-linear"})
    elif "model" in reading.keys:
        family = reading.known["models"][reading.keys["model"]]["type"]
        if family in TARGETS_KNOWN:
            reading.assume({"target_modules": ["q_proj", "v_proj"]}, "config.peft_targets")
        else:
            reading.refuse("lora_target_modules", "config.no_targets", family)
    tables = reading.names("lora_modules_to_save")
    if tables:
        reading.became("lora_modules_to_save", {"modules_to_save": tables})
    if reading.flag("use_dora"):
        reading.became("use_dora", {"use_dora": True})


def _length(reading: Reading, trl: bool) -> None:
    for key in ("max_length", "max_seq_length", "max_seq_len", "model_max_length", "block_size"):
        length = reading.count(key)
        if length is not None and "sequence_length" not in reading.keys:
            reading.became(key, {"sequence_length": length})
    if "sequence_length" not in reading.keys:
        if trl:
            reading.assume({"sequence_length": 1024})
        else:
            reading.assume({"sequence_length": 2048}, "config.no_length")


def _checkpointing(reading: Reading, trl: bool) -> None:
    key = "gradient_checkpointing" if reading.raw("gradient_checkpointing") is not None else "activation_checkpointing"
    if reading.text("use_gradient_checkpointing"):
        key = "use_gradient_checkpointing"
    word = reading.text(key)
    unsloth = word == "unsloth"
    given = True if unsloth else reading.flag(key)
    if not reading.keys.get("gradient_checkpointing", False):
        otherwise = trl or reading.preset == "unsloth"
        reading.either(key, given, {"gradient_checkpointing": given}, {"gradient_checkpointing": otherwise})
    offload = reading.flag("activation_offloading")
    if not reading.keys["gradient_checkpointing"]:
        if offload:
            reading.refuse("activation_offloading", "config.not_modelled", "config.topic.activation_offload")
        return
    if unsloth or (reading.preset == "unsloth" and given is None):
        reading.keys["checkpoint_offload"] = True
    if offload:
        reading.became("activation_offloading", {"checkpoint_offload": True})
    for name in ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs"):
        reentrant = reading.flag(f"{name}.use_reentrant")
        if reentrant is not None:
            reading.became(f"{name}.use_reentrant", {"use_reentrant": reentrant})
