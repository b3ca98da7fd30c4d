"""All settings of one training run, with the defaults of the house recipe and every mistake named.

The names are those of Hugging Face's `TrainingArguments`, PEFT's `LoraConfig` and `BitsAndBytesConfig` where these
have one. `recipe_from_keys` takes what a person typed and returns a complete `Recipe`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .checks import choice, count, flag, listed, out_of_scope, refuse, share
from .objective import GROUP_SIZE, generation_of, group_size_of, objective_of, prompt_length_of, reference_of, vllm_share_of
from .wording import shown

METHODS = ("full", "lora", "qlora")
DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
PRECISIONS = ("bf16", "bf16-autocast", "fp32-autocast", "bf16-master", "fp32")
OPTIMIZERS = (
    "adamw_torch_fused",
    "adamw_torch",
    "adamw_bnb_8bit",
    "adamw_8bit",
    "paged_adamw_8bit",
    "paged_adamw_32bit",
    "paged_adamw",
    "adafactor",
    "lion_32bit",
    "lion_8bit",
    "paged_lion_32bit",
    "paged_lion_8bit",
    "sgd",
    "sgd_momentum",
    "muon",
)
ATTENTIONS = ("flash", "sdpa", "eager")
LOSSES = ("standard", "chunked", "fused")
KERNELS = ("none", "liger", "foak", "unsloth", "litgpt")
MASTER_GRADIENTS = ("param", "all", "persistent")
QUANTIZATIONS = ("nf4", "fp4", "int8", "gptq", "awq")
TABLES = ("embed_tokens", "lm_head")
TRANSFORMERS = ("5", "4.46", "4.45")
PARALLELISMS = ("none", "ddp", "zero1", "zero2", "zero3", "fsdp")
FSDP_VERSIONS = (1, 2)
QUANT_STORAGES = ("uint8", "bfloat16", "float16", "float32")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One training run; the fields are the recipe keys of the command line.

    micro_batch_size   sequences per forward pass; pairs of them under objective dpo
    sequence_length    tokens per sequence, padding included
    lora_r             rank of each adapter (lora and qlora)
    trained_token_share   share of the tokens that have a label; only a loss that skips the others depends on it
    transformers       whose code runs: "4.46" and "4.45" copy the shifted logits and keep experts as single layers
    use_reentrant      of checkpointing: the default of Trainer before transformers 5 where nothing is said
    kbit_tables        dtype of embeddings and head after the k-bit preparation; TRL 0.x cast them back to bfloat16
    quantized_inputs_kept   bitsandbytes before 0.43.2 keeps the input of every 4-bit layer
    target_modules     "all-linear" or module names; PEFT never adapts the head by "all-linear"
    modules_to_save    tables that are trained in full beside the adapters
    quantization       of the frozen linear layers (qlora); double_quant is for nf4 and fp4
    checkpoint_offload   checkpoints wait in the host's memory
    parallelism   how several GPUs share the work; each has a micro batch of its own
    fsdp_version  1: FullyShardedDataParallel; 2: fully_shard
    offload_optimizer, offload_params   optimizer states with their weights, or all weights, wait in the host's memory
    quant_storage   bnb_4bit_quant_storage: 4-bit weights in a dtype that is no floating one cannot be sharded
    objective     sft; dpo: chosen and rejected sequence in one forward; grpo: completions of the model's own
    reference     what the policy is held against: a second model, its own base with the adapter switched off,
                  log-probabilities that were written down before the training (dpo), or nothing (grpo, beta 0)
    num_generations   completions of one prompt (grpo)
    prompt_length     tokens of a sequence before its completion (grpo)
    generation        who writes the completions (grpo): Transformers, vLLM on the same card, or a server elsewhere
    vllm_memory_share   of the card, which vLLM takes for itself (gpu_memory_utilization)
    """

    method: str
    base_dtype: str
    precision: str
    optim: str
    foreach: bool
    micro_batch_size: int
    sequence_length: int
    gradient_accumulation_steps: int
    gradient_checkpointing: bool
    checkpoint_offload: bool
    attention: str
    loss: str
    kernels: str
    lora_r: int
    lora_dropout: float
    target_modules: str | tuple[str, ...]
    adapter_dtype: str
    use_dora: bool
    modules_to_save: tuple[str, ...]
    quantization: str
    double_quant: bool
    prepare_kbit: bool
    keep_outputs: bool
    padding: bool
    master_gradients: str
    trained_token_share: float
    transformers: str
    use_reentrant: bool
    kbit_tables: str
    quantized_inputs_kept: bool
    parallelism: str
    num_gpus: int
    fsdp_version: int
    offload_optimizer: bool
    offload_params: bool
    quant_storage: str
    objective: str
    reference: str
    num_generations: int
    prompt_length: int
    generation: str
    vllm_memory_share: float

    @property
    def sequences(self) -> int:
        """Sequences of one forward pass on one GPU: DPO concatenates the chosen and the rejected ones."""
        return 2 * self.micro_batch_size if self.objective == "dpo" else self.micro_batch_size

    @property
    def tokens(self) -> int:
        """Tokens of one forward pass on one GPU."""
        return self.sequences * self.sequence_length

    @property
    def completion_length(self) -> int:
        """Tokens of a sequence whose log-probabilities GRPO takes."""
        return max(1, self.sequence_length - self.prompt_length)

    @property
    def generated_sequences(self) -> int:
        """Completions that one GPU generates at once: those of an optimizer step (steps_per_generation)."""
        return self.micro_batch_size * self.gradient_accumulation_steps

    @property
    def adapted(self) -> bool:
        """Whether only adapters are trained."""
        return self.method != "full"

    @property
    def autocast(self) -> bool:
        """Whether the forward pass runs under `torch.autocast(dtype=bfloat16)`."""
        return self.precision == "bf16-autocast" or self.precision == "fp32-autocast"

    @property
    def four_bit(self) -> bool:
        """Whether bitsandbytes holds the frozen linear layers in 4 bits."""
        return self.method == "qlora" and self.quantization in ("nf4", "fp4")

    @property
    def upcast(self) -> bool:
        """Whether PEFT's k-bit preparation casts what is not quantised to float32 (bitsandbytes only)."""
        return self.method == "qlora" and self.prepare_kbit and self.quantization in ("nf4", "fp4", "int8")

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight that is not quantised."""
        return DTYPE_BYTES[self.base_dtype]

    @property
    def adapter_bytes(self) -> int:
        """Bytes of one adapter weight."""
        return DTYPE_BYTES[self.adapter_dtype]

    @property
    def structure(self) -> tuple[object, ...]:
        """Everything but the counts: recipes that share it share the profile of a step."""
        return (
            self.method,
            self.base_dtype,
            self.precision,
            self.optim,
            self.foreach,
            self.gradient_checkpointing,
            self.checkpoint_offload,
            self.attention,
            self.loss,
            self.kernels,
            self.lora_r,
            self.lora_dropout,
            self.target_modules,
            self.adapter_dtype,
            self.use_dora,
            self.modules_to_save,
            self.quantization,
            self.double_quant,
            self.prepare_kbit,
            self.keep_outputs,
            self.padding,
            self.master_gradients,
            self.transformers,
            self.use_reentrant,
            self.kbit_tables,
            self.quantized_inputs_kept,
            self.parallelism,
            self.num_gpus,
            self.fsdp_version,
            self.offload_optimizer,
            self.offload_params,
            self.quant_storage,
            self.objective,
            self.reference,
            # Losses in chunks, and of single sequences, do not grow evenly with the number of tokens.
            (self.micro_batch_size, self.sequence_length, self.prompt_length, self.trained_token_share)
            if self.loss != "standard" or self.objective != "sft"
            else None,
        )

    def conditions(self) -> dict[str, object]:
        """Every recipe key with its value, in the order of the fields."""
        return {
            "method": self.method,
            "base_dtype": self.base_dtype,
            "precision": self.precision,
            "optim": self.optim,
            "foreach": self.foreach,
            "micro_batch_size": self.micro_batch_size,
            "sequence_length": self.sequence_length,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
            "gradient_checkpointing": self.gradient_checkpointing,
            "checkpoint_offload": self.checkpoint_offload,
            "attention": self.attention,
            "loss": self.loss,
            "kernels": self.kernels,
            "lora_r": self.lora_r,
            "lora_dropout": self.lora_dropout,
            "adapter_dtype": self.adapter_dtype,
            "target_modules": list(self.target_modules) if isinstance(self.target_modules, tuple) else self.target_modules,
            "use_dora": self.use_dora,
            "modules_to_save": list(self.modules_to_save),
            "quantization": self.quantization,
            "double_quant": self.double_quant,
            "prepare_kbit": self.prepare_kbit,
            "keep_outputs": self.keep_outputs,
            "padding": self.padding,
            "master_gradients": self.master_gradients,
            "trained_token_share": self.trained_token_share,
            "transformers": self.transformers,
            "use_reentrant": self.use_reentrant,
            "kbit_tables": self.kbit_tables,
            "quantized_inputs_kept": self.quantized_inputs_kept,
            "parallelism": self.parallelism,
            "num_gpus": self.num_gpus,
            "fsdp_version": self.fsdp_version,
            "offload_optimizer": self.offload_optimizer,
            "offload_params": self.offload_params,
            "quant_storage": self.quant_storage,
            "objective": self.objective,
            "reference": self.reference,
            "num_generations": self.num_generations,
            "prompt_length": self.prompt_length,
            "generation": self.generation,
            "vllm_memory_share": self.vllm_memory_share,
        }


ADAPTER_KEYS = ("lora_r", "lora_dropout", "target_modules", "adapter_dtype", "use_dora", "modules_to_save")
QLORA_KEYS = ("quantization", "double_quant", "prepare_kbit", "kbit_tables", "quantized_inputs_kept", "quant_storage")
MASTER_KEYS = ("master_gradients",)


def applicable_keys(method: str) -> tuple[str, ...]:
    """The recipe keys that mean something for a method, whatever its other settings."""
    adapted = method != "full"
    keys = []
    for field in fields(Recipe):
        if field.name in ADAPTER_KEYS and not adapted:
            continue
        if field.name in QLORA_KEYS and method != "qlora":
            continue
        if field.name in MASTER_KEYS and adapted:
            continue
        keys.append(field.name)
    return tuple(keys)


def with_defaults(given: dict[str, object], defaults: dict[str, object]) -> dict[str, object]:
    """The keys that somebody gave over those of a preset that apply to the method.

    What hangs on a key that was given is that key's to decide, not the preset's.
    """
    method = given.get("method")
    applicable = applicable_keys(method) if isinstance(method, str) and method in METHODS else ()
    keys = {key: value for key, value in defaults.items() if key in applicable}
    for decides, hanging in (("precision", "base_dtype"), ("quantization", "double_quant")):
        if decides in given and hanging in keys:
            del keys[hanging]
    return {**keys, **given}


def recipe_from_keys(keys: dict[str, object]) -> Recipe:
    """A complete recipe from the keys that somebody gave.

    Raises ValueError with one sentence that names the key and what is allowed: unknown keys, keys that do not apply
    to the method, wrong types, values out of range.
    """
    known = [field.name for field in fields(Recipe)]
    for key in keys:
        if key not in known:
            beyond = out_of_scope(key)
            if beyond:
                raise ValueError(f"{shown(key)}: {beyond} is not modelled; several GPUs are parallelism {listed(PARALLELISMS[1:])}")
            raise ValueError(f"there is no recipe key {shown(key)}; the keys are {', '.join(known)}")
    if "method" not in keys:
        raise ValueError(f"method is missing; it is one of {', '.join(METHODS)}")
    method = choice(keys, "method", METHODS, "")
    adapted = method != "full"
    precision = choice(keys, "precision", PRECISIONS, "bf16-autocast" if adapted else "fp32-autocast")
    if adapted and precision == "bf16-master":
        raise ValueError("precision bf16-master trains fp32 copies of all weights and belongs to method full")
    wide = precision == "fp32-autocast" or precision == "fp32"
    base_dtype = choice(keys, "base_dtype", tuple(DTYPE_BYTES), "float32" if wide else "bfloat16")
    if wide and base_dtype != "float32":
        raise ValueError(f"base_dtype {base_dtype} contradicts precision {precision}, which keeps weights in float32")
    if precision == "bf16-master" and base_dtype == "float32":
        raise ValueError("base_dtype float32 contradicts precision bf16-master, which keeps weights in 16 bits")
    if precision == "bf16" and base_dtype == "float32" and not adapted:
        raise ValueError("base_dtype float32 contradicts precision bf16; precision fp32 trains float32 weights")
    refuse(keys, ADAPTER_KEYS, adapted, "lora and qlora")
    refuse(keys, QLORA_KEYS, method == "qlora", "qlora")
    refuse(keys, MASTER_KEYS, precision == "bf16-master", "precision bf16-master")
    optim = choice(keys, "optim", OPTIMIZERS, "adamw_torch_fused")
    quantization = choice(keys, "quantization", QUANTIZATIONS, "nf4")
    refuse(keys, ("double_quant",), quantization in ("nf4", "fp4"), "quantization nf4 and fp4")
    checkpointing = flag(keys, "gradient_checkpointing", True)
    refuse(keys, ("checkpoint_offload", "use_reentrant"), checkpointing, "gradient_checkpointing true")
    foreach = flag(keys, "foreach", optim == "adamw_torch")
    if foreach and optim != "adamw_torch":
        raise ValueError(f"foreach true belongs to optim adamw_torch; {optim} has no foreach step")
    num_gpus = count(keys, "num_gpus", 1)
    parallelism = _parallelism(keys, num_gpus, precision)
    offload_params = flag(keys, "offload_params", False)
    offload_optimizer = flag(keys, "offload_optimizer", offload_params and parallelism == "fsdp")
    _refuse_offload(parallelism, offload_optimizer, offload_params)
    refuse(keys, ("quant_storage",), quantization in ("nf4", "fp4"), "quantization nf4 and fp4")
    objective = objective_of(keys)
    reference = reference_of(keys, objective, adapted)
    grpo = objective == "grpo"
    # A whole group in one forward, unless somebody says otherwise.
    group = count(keys, "num_generations", GROUP_SIZE) if grpo else 1
    micro_batch_size = count(keys, "micro_batch_size", group)
    sequence_length = count(keys, "sequence_length", 2048)
    accumulation = count(keys, "gradient_accumulation_steps", 1)
    generation = generation_of(keys, objective)
    return Recipe(
        method=method,
        base_dtype=base_dtype,
        precision=precision,
        optim=optim,
        foreach=foreach,
        micro_batch_size=micro_batch_size,
        sequence_length=sequence_length,
        gradient_accumulation_steps=accumulation,
        gradient_checkpointing=checkpointing,
        checkpoint_offload=flag(keys, "checkpoint_offload", False),
        attention=choice(keys, "attention", ATTENTIONS, "sdpa"),
        loss=choice(keys, "loss", LOSSES, "standard"),
        kernels=choice(keys, "kernels", KERNELS, "none"),
        lora_r=count(keys, "lora_r", 16),
        lora_dropout=share(keys, "lora_dropout", 0.0),
        target_modules=_modules(keys),
        adapter_dtype=choice(keys, "adapter_dtype", ("float32", "bfloat16"), "float32"),
        use_dora=flag(keys, "use_dora", False),
        modules_to_save=_tables(keys),
        quantization=quantization,
        double_quant=flag(keys, "double_quant", quantization in ("nf4", "fp4")),
        prepare_kbit=flag(keys, "prepare_kbit", True),
        keep_outputs=flag(keys, "keep_outputs", False),
        padding=flag(keys, "padding", False),
        master_gradients=choice(keys, "master_gradients", MASTER_GRADIENTS, "param"),
        trained_token_share=_trained_share(keys),
        transformers=choice(keys, "transformers", TRANSFORMERS, "5"),
        use_reentrant=flag(keys, "use_reentrant", False),
        kbit_tables=choice(keys, "kbit_tables", ("float32", "bfloat16"), "float32"),
        quantized_inputs_kept=flag(keys, "quantized_inputs_kept", False),
        parallelism=parallelism,
        num_gpus=num_gpus,
        fsdp_version=_fsdp_version(keys, parallelism),
        offload_optimizer=offload_optimizer,
        offload_params=offload_params,
        quant_storage=choice(keys, "quant_storage", QUANT_STORAGES, "uint8"),
        objective=objective,
        reference=reference,
        num_generations=group_size_of(keys, micro_batch_size * accumulation * num_gpus) if grpo else 1,
        prompt_length=prompt_length_of(keys, sequence_length) if grpo else 0,
        generation=generation,
        vllm_memory_share=vllm_share_of(keys, generation),
    )


def _parallelism(keys: dict[str, object], num_gpus: int, precision: str) -> str:
    value = keys.get("parallelism")
    if isinstance(value, str) and value not in PARALLELISMS and out_of_scope(value):
        raise ValueError(f"parallelism {shown(value)}: {out_of_scope(value)} is not modelled; it is one of {', '.join(PARALLELISMS)}")
    found = choice(keys, "parallelism", PARALLELISMS, "ddp" if num_gpus > 1 else "none")
    if found == "none" and num_gpus > 1:
        raise ValueError(f"parallelism none uses one GPU; num_gpus {num_gpus} needs {listed(PARALLELISMS[1:])}")
    if precision == "bf16-master" and found == "fsdp":
        raise ValueError("precision bf16-master contradicts parallelism fsdp, whose float32 shards are the masters: fp32-autocast")
    return found


def _fsdp_version(keys: dict[str, object], parallelism: str) -> int:
    value = keys.get("fsdp_version", 2)
    if isinstance(value, bool) or not isinstance(value, int) or value not in FSDP_VERSIONS:
        raise ValueError(f"fsdp_version must be 1 or 2, got {shown(value)}")
    # The default is in every result, which can be given back as a recipe.
    refuse(keys, ("fsdp_version",), parallelism == "fsdp" or value == 2, "parallelism fsdp")
    return value


def _refuse_offload(parallelism: str, optimizer: bool, params: bool) -> None:
    """FSDP moves weights, gradients and optimizer together; DeepSpeed the optimizer alone, and weights in stage 3."""
    if params and parallelism != "fsdp" and parallelism != "zero3":
        raise ValueError("offload_params belongs to parallelism fsdp and zero3")
    if optimizer and (parallelism == "none" or parallelism == "ddp"):
        raise ValueError("offload_optimizer belongs to parallelism zero1, zero2, zero3 and fsdp")
    if parallelism == "fsdp" and optimizer != params:
        raise ValueError("offload_optimizer and offload_params go together under parallelism fsdp")


def _tables(keys: dict[str, object]) -> tuple[str, ...]:
    value = keys.get("modules_to_save", ())
    if isinstance(value, (list, tuple)) and all(name in TABLES for name in value):
        return tuple(name for name in TABLES if name in value)
    raise ValueError(f"modules_to_save must be a list of names out of {', '.join(TABLES)}, got {shown(value)}")


def _trained_share(keys: dict[str, object]) -> float:
    value = keys.get("trained_token_share", 1.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError(f"trained_token_share must be a number above 0 and up to 1, got {shown(value)}")
    return float(value)


def _modules(keys: dict[str, object]) -> str | tuple[str, ...]:
    value = keys.get("target_modules", "all-linear")
    if value == "all-linear":
        return "all-linear"
    if isinstance(value, (list, tuple)) and value and all(isinstance(name, str) and name for name in value):
        return tuple(dict.fromkeys(value))
    raise ValueError(f'target_modules must be "all-linear" or a list of module names, got {shown(value)}')
