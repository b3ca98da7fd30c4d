"""What the frameworks have in common: the model's name, optimizers, attention, and how the cards share the work."""

from __future__ import annotations

from .reading import Reading
from .text import DIGITS, LETTERS, lowered

# Names of transformers.training_args.OptimizerNames (5.24.0) → the estimator's.
OPTIMIZERS = {
    "adamw_torch": "adamw_torch",
    "adamw_torch_fused": "adamw_torch_fused",
    "adamw_bnb_8bit": "adamw_bnb_8bit",
    "adamw_8bit": "adamw_8bit",
    "paged_adamw": "paged_adamw",
    "paged_adamw_32bit": "paged_adamw_32bit",
    "paged_adamw_8bit": "paged_adamw_8bit",
    "adafactor": "adafactor",
    "lion": "lion_32bit",
    "lion_32bit": "lion_32bit",
    "lion_8bit": "lion_8bit",
    "paged_lion": "paged_lion_32bit",
    "paged_lion_32bit": "paged_lion_32bit",
    "paged_lion_8bit": "paged_lion_8bit",
    "sgd": "sgd",
    "muon": "muon",
}
# Attention that keeps no matrix of scores, computed like FlashAttention.
LIKE_FLASH = ("flex_attention", "xformers", "sage", "fa3", "varlen")

# Names of ready-made configurations: pieces of a file's name → the strategy (DeepSpeed's and Accelerate's own files).
STRATEGIES = (
    ("zero1", "zero1"), ("zero2", "zero2"), ("zero3", "zero3"), ("zero_1", "zero1"), ("zero_2", "zero2"), ("zero_3", "zero3"),
    ("z0", "ddp"), ("z1", "zero1"), ("z2", "zero2"), ("z3", "zero3"), ("fsdp", "fsdp"), ("multi_gpu", "ddp"),
    ("single_gpu", "none"),
)  # fmt: skip


def read_model(reading: Reading, key: str) -> None:
    """`model` from a Hub name: the record with that name, or one whose name differs only by how it was tuned."""
    name = reading.text(key)
    if not name:
        reading.refuse(key, "config.model_missing")
        return
    wanted = plain_name(name)
    for model, record in reading.known["models"].items():
        if lowered(record["hub"]) == lowered(name):
            reading.became(key, {"model": model})
            return
    for model, record in reading.known["models"].items():
        if plain_name(record["hub"]) == wanted:
            reading.like(key, {"model": model}, "config.same_shape")
            return
    reading.refuse(key, "config.model_unknown", name)


def plain_name(hub: str) -> str:
    """A Hub name without owner, tuning and quantisation, in small letters."""
    name = lowered(hub.split("/")[-1])
    for suffix in ("-unsloth-bnb-4bit", "-bnb-4bit", "-gptq", "-awq", "-hf"):
        name = name.removesuffix(suffix)
    name = name.removesuffix("-2507")  # Qwen3's later tunings
    for word in ("-instruct", "-thinking", "-chat", "-it", "-pt", "-base"):
        if name.endswith(word) or f"{word}-" in name:
            name = name.replace(word, "")
    return name.removeprefix("meta-").replace("qwen2.5-coder", "qwen2.5")


def quantized_name(name: str) -> str:
    """The quantisation that a model's name says it is published in, else nothing."""
    small = lowered(name)
    for word, quantization in (("gptq", "gptq"), ("awq", "awq"), ("bnb-4bit", "nf4")):
        if word in small.replace("_", "-").split("-") or f"-{word}" in small:
            return quantization
    return ""


def read_optimizer(reading: Reading, key: str) -> None:
    """`optim`; the preset's where nothing is said."""
    name = reading.text(key)
    if not name:
        return
    if name in OPTIMIZERS:
        reading.became(key, {"optim": OPTIMIZERS[name]})
    elif name == "adamw_torch_8bit":
        # torchao's: states of one byte in blocks of 256, as bitsandbytes has them.
        reading.like(key, {"optim": "adamw_8bit"})
    else:
        reading.refuse(key, "config.optimizer", name)


def read_attention(reading: Reading, key: str) -> bool:
    """`attention` from a name as Transformers has them; False where nothing is said."""
    name = reading.text(key)
    if not name:
        return False
    if "flash" in name or name == "fa2":
        reading.became(key, {"attention": "flash"})
    elif name in ("sdpa", "eager"):
        reading.became(key, {"attention": name})
    elif name in LIKE_FLASH:
        reading.like(key, {"attention": "flash"})
    else:
        reading.refuse(key, "config.attention", name)
    return True


def read_targets(reading: Reading, key: str, names: list[str]) -> None:
    """`target_modules` from names, or from a pattern that names them for all layers: `…layers.[\\d]+.(mlp|…).(up|q)_proj`."""
    found: list[str] = []
    pattern = False
    for name in names:
        last = name.replace("\\.", ".").split(".")[-1]
        if not any(sign in name for sign in ("*", "\\", "(", "[", "|", "^")):
            found.append(last)
            continue
        pattern = True
        ends = last.removeprefix("(").removesuffix(")_proj").split("|")
        whole = not any(digit in name for digit in DIGITS)
        if not whole or not last.startswith("(") or not last.endswith(")_proj") or not all(is_word(end) for end in ends):
            reading.refuse(key, "config.pattern", name)
            return
        found.extend([f"{end}_proj" for end in ends])
    becomes: dict[str, object] = {"target_modules": list(dict.fromkeys(found))}
    if pattern:
        reading.like(key, becomes)
    else:
        reading.became(key, becomes)


def is_word(text: str) -> bool:
    return bool(text) and all(sign in LETTERS + "_" for sign in list(text))


def read_count(reading: Reading, key: str, becomes: str, otherwise: int) -> None:
    """A whole number with the framework's default."""
    value = reading.count(key)
    reading.either(key, value, {becomes: value}, {becomes: otherwise})


def read_deepspeed(reading: Reading, key: str) -> None:
    """`parallelism` and offloading from DeepSpeed's configuration, written out or the name of a file."""
    value = reading.raw(key)
    if value is None:
        return
    if isinstance(value, dict):
        stage = reading.count(f"{key}.zero_optimization.stage")
        becomes: dict[str, object] = {"parallelism": f"zero{stage}" if stage else "ddp"}
        for part, target in (("offload_optimizer", "offload_optimizer"), ("offload_param", "offload_params")):
            if reading.text(f"{key}.zero_optimization.{part}.device") in ("cpu", "nvme"):
                becomes[target] = True
        reading.became(key, becomes)
        return
    read_strategy_file(reading, key)


def read_strategy_file(reading: Reading, key: str) -> None:
    """The same from the name of a configuration file, because the file itself is not here."""
    name = lowered(reading.text(key).split("/")[-1].replace("-", "_"))
    if not name:
        return
    for piece, strategy in STRATEGIES:
        if piece in name:
            becomes: dict[str, object] = {"parallelism": strategy}
            if "offload" in name:
                if strategy != "fsdp" and not name.endswith("offload_params.json"):
                    becomes["offload_optimizer"] = True
                if strategy in ("zero3", "fsdp"):
                    becomes["offload_params"] = True
            if strategy == "fsdp":
                becomes["fsdp_version"] = 2 if "fsdp2" in name else 1
            reading.like(key, becomes, "config.file_name")
            return
    reading.refuse(key, "config.file", name)


def read_fsdp(reading: Reading, key: str, config: str, version: int) -> None:
    """`parallelism fsdp` from `fsdp` and `fsdp_config` of Transformers or Axolotl; `version` where none is said."""
    words = reading.raw(key)
    given = reading.raw(config)
    text = " ".join(words) if isinstance(words, list) else words if isinstance(words, str) else ""
    asked = lowered(text)
    if (not asked or asked == "false") and not isinstance(given, dict):
        return
    source = key if asked else config
    for name in ("fsdp_sharding_strategy", "sharding_strategy"):
        if reading.text(f"{config}.{name}") in ("SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD"):
            reading.refuse(f"{config}.{name}", "config.sharding")
    for word in ("shard_grad_op", "hybrid_shard", "no_shard"):
        if word in asked:
            reading.refuse(source, "config.sharding", word)
    reading.became(source, {"parallelism": "fsdp"})
    offload = "offload" in asked
    said = 0
    for name in ("fsdp_offload_params", "offload_params"):
        if reading.flag(f"{config}.{name}"):
            offload = True
            reading.used(f"{config}.{name}")
    for name in ("fsdp_version", f"{config}.fsdp_version", f"{config}.version"):
        found = reading.count(name)
        if found is not None:
            said = found
            reading.became(name, {"fsdp_version": found})
    if not said:
        reading.assume({"fsdp_version": version})
    for name in ("fsdp_activation_checkpointing", "activation_checkpointing"):
        if reading.flag(f"{config}.{name}"):
            reading.became(f"{config}.{name}", {"gradient_checkpointing": True})
    if offload:
        reading.keys.update({"offload_params": True, "offload_optimizer": True})
    # How the units are wrapped and saved is the framework's business.
    if isinstance(given, dict):
        for name in given:
            reading.seen.setdefault(f"{config}.{name}", True)


def read_launcher(reading: Reading) -> None:
    """Processes and strategy from the options of accelerate, torchrun or deepspeed, then what is missing.

    TRL's own command takes the launcher's options among its others.
    """
    machines = 1
    for name in ("launch.num_machines", "launch.nnodes", "launch.num_nodes", "num_machines"):
        found = reading.count(name)
        if found is not None:
            reading.used(name)
            machines = found
    for name in ("launch.num_processes", "launch.nproc_per_node", "launch.num_gpus", "num_processes"):
        found = reading.count(name)
        if found is not None:
            # Accelerate counts the processes of all machines.
            reading.became(name, {"num_gpus": found * (1 if name.endswith("num_processes") else machines)})
    for name in ("launch.config_file", "launch.deepspeed_config_file", "accelerate_config"):
        read_strategy_file(reading, name)
    if reading.flag("launch.use_deepspeed"):
        stage = reading.count("launch.zero_stage")
        reading.became("launch.use_deepspeed", {"parallelism": f"zero{2 if stage is None else stage}"})
        for part, target in (("offload_optimizer_device", "offload_optimizer"), ("offload_param_device", "offload_params")):
            if reading.text(f"launch.{part}") in ("cpu", "nvme"):
                reading.became(f"launch.{part}", {target: True})
    if reading.flag("launch.use_fsdp"):
        version = reading.count("launch.fsdp_version")
        reading.became("launch.use_fsdp", {"parallelism": "fsdp", "fsdp_version": 1 if version is None else version})
        if reading.flag("launch.fsdp_offload_params"):
            reading.became("launch.fsdp_offload_params", {"offload_params": True, "offload_optimizer": True})
    strategy = reading.keys.get("parallelism", "none")
    if "num_gpus" not in reading.keys:
        reading.assume({"num_gpus": 1}, "config.cards" if strategy != "none" else "config.one_card")
    elif strategy == "none" and reading.keys["num_gpus"] > 1:
        reading.assume({"parallelism": "ddp"})


def refuse_all(reading: Reading, refused: dict[str, str]) -> None:
    """Names what the estimator does not model wherever it is switched on: key → what it is."""
    for key, what in refused.items():
        value = reading.raw(key)
        off = value is None or (isinstance(value, str) and lowered(value) in ("false", "no", "off", "0", "1", "none"))
        switched = isinstance(value, str) and lowered(value) == "1" and not counted(key)
        if not off or switched:
            reading.refuse(key, "config.not_modelled", what)


def counted(key: str) -> bool:
    """Whether a key counts cards, so that 1 switches nothing on."""
    return any(word in key for word in ("size", "degree", "parallel"))
