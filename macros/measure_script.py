#!/usr/bin/env python3
"""Trains two steps of one recipe with random weights and prints what the GPU's memory counters show beside the estimate.

`python -m macros measure` writes this file out with the run put in for RUN; the copy needs nothing of the guide and
downloads nothing. It imports torch, transformers, accelerate, peft, trl, bitsandbytes and liger_kernel, and only
those that the recipe needs:

    python measure.py                 measure on the first GPU, write the record beside the script
    python measure.py --dry-run       the same code with a tiny model on the CPU, without counters

The step is that of Transformers' Trainer and TRL's SFTTrainer, written out: autocast around the forward pass, its
outputs converted to float32, backward, clipping, optimizer step, gradients set to None. Measure in a fresh process
and with nothing else on the card: memory that another run has left behind would be counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata, util
from pathlib import Path
from typing import Any

# What to run: `config` (as config.json), `recipe` (every key), `estimate`, and how this script was made.
RUN: dict[str, Any] = {}

PACKAGES = ("torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "liger-kernel", "triton", "flash-attn")
MIB = 2**20


# ---- the card and its counters --------------------------------------------------------------------------------------


def nvidia_smi() -> list[dict[str, str]]:
    """One row per card as the driver reports it; empty without nvidia-smi. Memory in MiB."""
    columns = ("uuid", "name", "driver_version", "memory.total", "memory.used")
    command = ["nvidia-smi", f"--query-gpu={','.join(columns)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.split(", ") for line in text.splitlines())
    return [dict(zip(columns, (value.strip() for value in row), strict=True)) for row in rows if len(row) == len(columns)]


class DriverWatch:
    """Asks the driver every few milliseconds how much of the card is taken, and keeps the largest answer."""

    def __init__(self) -> None:
        self.peak = self.last = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def look(self) -> None:
        """One reading, in bytes: the card's total memory less what is free."""
        import torch

        free, total = torch.cuda.mem_get_info()
        self.last = total - free
        self.peak = max(self.peak, self.last)

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.look()

    def __enter__(self) -> DriverWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.look()


@dataclass
class Reading:
    """What the counters showed, in bytes; `steps` holds (allocated, reserved) of every optimizer step.

    loaded   allocated after loading, quantising and adding adapters
    driver   what the driver counts for this process alone; None where only the whole card could be read
    card     what the driver counts for the whole card
    """

    loaded: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)
    driver: int | None = None
    card: int = 0
    trainable: int = 0


class Counters:
    """PyTorch's and the driver's counters; with `dry` they are not read."""

    def __init__(self, dry: bool) -> None:
        self.dry = dry
        self.before = [] if dry else nvidia_smi()
        self.reading = Reading()

    def loaded(self) -> None:
        """The model is on the card: give back what loading needed on the way, and start to count."""
        if self.dry:
            return
        import gc

        import torch

        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.reading.loaded = torch.cuda.memory_allocated()

    def step_begins(self) -> None:
        """A step's peak is its own: the first one still lacks the optimizer's states for most of its time."""
        if not self.dry:
            import torch

            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()

    def step_ends(self) -> None:
        """Keep the step's peaks."""
        if not self.dry:
            import torch

            torch.cuda.synchronize()
            self.reading.steps.append((torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()))

    def ends(self, watch: DriverWatch) -> None:
        """What nvidia-smi counts more than before the run, plus what the process gave back in between."""
        self.reading.card = watch.peak
        before, after = self.row(self.before), self.row(nvidia_smi())
        if before and after:
            grown = int(after["memory.used"]) - int(before["memory.used"])
            self.reading.driver = grown * MIB + watch.peak - watch.last

    def row(self, rows: list[dict[str, str]]) -> dict[str, str] | None:
        """The driver's row of the card in use; None if it cannot be told (another vendor, a MIG instance)."""
        import torch

        uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
        return next((row for row in rows if uuid and row["uuid"].removeprefix("GPU-") == uuid.removeprefix("GPU-")), None)


# ---- the model ------------------------------------------------------------------------------------------------------


SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 512,
    "num_attention_heads": 4,
    "head_dim": 16,
    # Enough for families in which every fourth or sixth layer is of another kind.
    "num_hidden_layers": 6,
}
SMALL_IF_PRESENT = {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "sliding_window": 16,
}


def shrunk(config: dict[str, Any]) -> dict[str, Any]:
    """The same kind of model in a size that a CPU trains at once."""
    small = {key: value for key, value in config.items() if key not in ("rope_scaling", "rope_parameters")}
    small |= SMALL | {key: size for key, size in SMALL_IF_PRESENT.items() if config.get(key)}
    heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]
    small["num_key_value_heads"] = 4 if kv_heads == heads else min(kv_heads, 2)
    for key in ("layer_types", "no_rope_layers"):
        if config.get(key):
            kinds = list(dict.fromkeys(config[key]))
            small[key] = (kinds * small["num_hidden_layers"])[: small["num_hidden_layers"]]
    if config.get("mlp_only_layers"):
        small["mlp_only_layers"] = [0]
    return small


@contextmanager
def parameters_without_memory():
    """Modules that are built inside have real buffers, but parameters without storage (on the meta device)."""
    from torch import nn

    register = nn.Module.register_parameter

    def on_meta(module: Any, name: str, parameter: Any) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)
        register(module, name, parameter)

    nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def random_parameter(name: str, parameter: Any, device: str) -> Any:
    """Random weights of the parameter's shape and dtype; norms one and biases zero, so that no value overflows."""
    import torch

    data = torch.empty(parameter.shape, dtype=parameter.dtype, device=device)
    if parameter.dim() == 1:
        data.fill_(0 if name.endswith("bias") else 1)
    else:
        data.normal_(0, 0.02)
    return torch.nn.Parameter(data, requires_grad=parameter.requires_grad)


def quantized_linear(linear: Any, recipe: dict[str, Any], device: str) -> Any:
    """bitsandbytes' layer in place of a linear one, made as Transformers makes it: random weights, then quantised."""
    import bitsandbytes as bnb
    import torch

    shape = (linear.in_features, linear.out_features, linear.bias is not None)
    weight = random_parameter("weight", linear.weight, device).data
    if recipe["quantization"] == "int8":
        layer = bnb.nn.Linear8bitLt(*shape, has_fp16_weights=False, threshold=6.0, device="meta")
        # Int8Params quantises while it moves from the host to the card.
        layer.weight = bnb.nn.Int8Params(weight.cpu(), requires_grad=False, has_fp16_weights=False).to(device)
    else:
        kind, double = recipe["quantization"], recipe["double_quant"]
        layer = bnb.nn.Linear4bit(
            *shape, compute_dtype=torch.bfloat16, compress_statistics=double, quant_type=kind, device="meta"
        )
        layer.weight = bnb.nn.Params4bit(
            weight, requires_grad=False, compress_statistics=double, quant_type=kind, module=layer
        ).to(device)
    layer.bias = None if linear.bias is None else random_parameter("bias", linear.bias, device)
    return layer


def fill(model: Any, recipe: dict[str, Any], device: str, quantized: bool) -> None:
    """Give every parameter storage on the device, layer by layer; tied ones stay one tensor."""
    from torch import nn

    head = model.get_output_embeddings()
    if quantized:
        for name, module in list(model.named_modules()):
            if type(module) is nn.Linear and module is not head:
                model.set_submodule(name, quantized_linear(module, recipe, device))
    filled: dict[int, tuple[Any, Any]] = {}  # keeps the old parameters too, so that no id comes a second time
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.device.type == "meta":
                if id(parameter) not in filled:
                    filled[id(parameter)] = (parameter, random_parameter(name, parameter, device))
                module._parameters[name] = filled[id(parameter)][1]


def build(config: dict[str, Any], recipe: dict[str, Any], device: str, left_out: list[str]) -> Any:
    """The language model with random weights, its linear layers quantised if the recipe says so."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    attention = {"flash": "flash_attention_2"}.get(recipe["attention"], recipe["attention"])
    if device == "cpu" and recipe["attention"] == "flash":
        attention = "sdpa"
        left_out.append("attention flash (FlashAttention needs a GPU; sdpa ran instead)")
    quantized = recipe["method"] == "qlora"
    if quantized and device == "cpu" and util.find_spec("bitsandbytes") is None:
        quantized = False
        left_out.append("quantisation (bitsandbytes is not installed; plain linear layers ran instead)")
    options = {key: value for key, value in config.items() if key != "model_type"}
    settings = AutoConfig.for_model(config["model_type"], **options)
    settings.use_cache = False
    if settings.pad_token_id is not None and settings.pad_token_id >= settings.vocab_size:
        settings.pad_token_id = None
    dtype = getattr(torch, recipe["base_dtype"])
    with torch.device(device), parameters_without_memory():
        model = AutoModelForCausalLM.from_config(settings, dtype=dtype, attn_implementation=attention)
    count = sum(parameter.numel() for parameter in model.parameters())
    if device != "cpu" and count != RUN["estimate"]["parameters"]:
        sys.exit(f"the model has {count} parameters, the estimate counts {RUN['estimate']['parameters']}: not the same model")
    fill(model, recipe, device, quantized)
    if quantized:
        model.is_quantized = True
        model.is_loaded_in_8bit = recipe["quantization"] == "int8"
        model.is_loaded_in_4bit = not model.is_loaded_in_8bit
    return model


# ---- what the recipe does with it -----------------------------------------------------------------------------------


def apply_liger(model: Any, recipe: dict[str, Any], device: str, left_out: list[str]) -> None:
    """Liger's kernels, its fused head, or both; nothing where there is no GPU for Triton."""
    kernels, fused = recipe["kernels"] == "liger", recipe["loss"] == "fused"
    if not kernels and not fused:
        return
    if device == "cpu":
        left_out.append("Liger's kernels and its fused loss (Triton needs a GPU; the plain model ran instead)")
        return
    from liger_kernel.transformers import _apply_liger_kernel_to_instance

    # Names of the switches differ from family to family; Liger ignores those that a family does not have.
    switches = dict.fromkeys(("rope", "rms_norm", "swiglu", "geglu"), kernels)
    before = model.forward
    _apply_liger_kernel_to_instance(model, cross_entropy=False, fused_linear_cross_entropy=fused, **switches)
    if fused and model.forward == before:
        sys.exit(f"Liger has no fused loss for {model.config.model_type}")


def add_adapters(model: Any, recipe: dict[str, Any], device: str) -> Any:
    """PEFT's k-bit preparation and LoRA as the recipe says."""
    import torch
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if recipe["method"] == "qlora" and recipe["prepare_kbit"]:
        prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    settings = LoraConfig(
        r=recipe["lora_r"],
        lora_alpha=2 * recipe["lora_r"],
        lora_dropout=recipe["lora_dropout"],
        target_modules=recipe["target_modules"],
        use_dora=recipe["use_dora"],
        modules_to_save=recipe["modules_to_save"] or None,
        task_type="CAUSAL_LM",
    )
    wide = recipe["adapter_dtype"] == "float32"
    with torch.device(device):
        model = get_peft_model(model, settings, autocast_adapter_dtype=wide)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and "lora_" in name:
            # TRL casts the adapters of a quantised model; without it they have the base model's dtype.
            parameter.data = parameter.data.to(getattr(torch, recipe["adapter_dtype"]))
    return model


def checkpoint_layers(model: Any, recipe: dict[str, Any], device: str, left_out: list[str]) -> None:
    """Gradient checkpointing of every decoder layer, its saved inputs in host memory if the recipe says so."""
    offload = recipe.get("checkpoint_offload", False)
    if offload and device == "cpu":
        left_out.append("checkpoint_offload (there is no card to move checkpoints from)")
        offload = False
    enable = getattr(model, "activation_checkpointing_enable", None)  # Transformers 5.24 and later
    if enable is not None:
        enable({"use_reentrant": False}, offload=offload)
    elif offload:
        sys.exit("checkpoint_offload needs Transformers 5.24 or later")
    else:
        model.gradient_checkpointing_enable({"use_reentrant": False})


def prepare(config: dict[str, Any], recipe: dict[str, Any], device: str, left_out: list[str]) -> Any:
    """The model, ready to train."""
    import torch

    model = build(config, recipe, device, left_out)
    base = model
    apply_liger(model, recipe, device, left_out)
    if recipe["method"] != "full":
        model = add_adapters(model, recipe, device)
        base = model.get_base_model()
    if recipe["gradient_checkpointing"]:
        checkpoint_layers(base, recipe, device, left_out)
    if recipe["loss"] == "chunked":
        from trl.trainer.utils import add_fused_lm_head

        add_fused_lm_head(base, outputs=("log_probs", "entropy", "is_top1"))
    model.train()
    if recipe["precision"].endswith("autocast"):
        from accelerate.utils import convert_outputs_to_fp32

        model.forward = torch.autocast(device_type=device, dtype=torch.bfloat16)(model.forward)
        model.forward = convert_outputs_to_fp32(model.forward)
    return model


# ---- optimizers -----------------------------------------------------------------------------------------------------


def optimizer_for(model: Any, recipe: dict[str, Any], device: str, left_out: list[str]) -> Any:
    """The optimizer that the Trainer makes for this `optim`, without and with weight decay in two groups."""
    import torch

    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    if device == "cpu" and needs_bitsandbytes(recipe["optim"]):
        left_out.append(f"optim {recipe['optim']} (bitsandbytes' optimizers need a GPU; adamw_torch ran instead)")
        recipe = {**recipe, "optim": "adamw_torch", "foreach": True}
    if recipe["precision"] == "bf16-master":
        return MasterWeights([parameter for _, parameter in trained], recipe)
    if recipe["optim"] == "muon":
        return Muon(trained)
    matrices = [parameter for _, parameter in trained if parameter.dim() > 1]
    vectors = [parameter for _, parameter in trained if parameter.dim() <= 1]
    optimizer = new_optimizer([{"params": group} for group in (matrices, vectors) if group], recipe)
    if "8bit" in recipe["optim"]:
        from bitsandbytes.optim import GlobalOptimManager

        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                GlobalOptimManager.get_instance().register_module_override(module, "weight", {"optim_bits": 32})
    return optimizer


def needs_bitsandbytes(optim: str) -> bool:
    """Whether an optimizer of this name is bitsandbytes'."""
    return "bit" in optim or optim.startswith("paged")


def new_optimizer(parameters: list[Any], recipe: dict[str, Any]) -> Any:
    """One optimizer over these parameters; its class and settings as in transformers 5.24.0 trainer_optimizer.py."""
    import torch

    optim, rate = recipe["optim"], 1e-5
    if needs_bitsandbytes(optim):
        from bitsandbytes.optim import AdamW, Lion

        kind = Lion if "lion" in optim else AdamW
        bits = 8 if "8bit" in optim else 32
        return kind(parameters, lr=rate, optim_bits=bits, is_paged=optim.startswith("paged"))
    if optim == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=rate, scale_parameter=False, relative_step=False)
    if optim.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9 if optim == "sgd_momentum" else 0)
    if optim == "adamw_torch_fused":
        return torch.optim.AdamW(parameters, lr=rate, fused=True)
    return torch.optim.AdamW(parameters, lr=rate, foreach=recipe["foreach"])


class Muon:
    """torch.optim.Muon for matrices, AdamW for tables and vectors, as Muon's authors use it."""

    def __init__(self, trained: list[tuple[str, Any]]) -> None:
        import torch

        tables = ("embed_tokens", "lm_head")
        matrices = [p for name, p in trained if p.dim() == 2 and not any(table in name for table in tables)]
        chosen = {id(parameter) for parameter in matrices}
        self.parts = [torch.optim.Muon(matrices, lr=1e-5)] if matrices else []
        if rest := [parameter for _, parameter in trained if id(parameter) not in chosen]:
            self.parts.append(torch.optim.AdamW(rest, lr=1e-5, fused=True))

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad()


class MasterWeights:
    """An optimizer over float32 copies of 16-bit weights; `master_gradients` says when float32 gradients exist.

    param        one at a time: each weight has an optimizer of its own
    all          all at once during the step
    persistent   always
    """

    def __init__(self, parameters: list[Any], recipe: dict[str, Any]) -> None:
        import torch

        self.how = recipe["master_gradients"]
        self.parameters = parameters
        self.masters = [parameter.detach().clone().float().requires_grad_() for parameter in parameters]
        groups = [[master] for master in self.masters] if self.how == "param" else [self.masters]
        self.optimizers = [new_optimizer(group, recipe) for group in groups]
        if self.how == "persistent":
            for master in self.masters:
                master.grad = torch.zeros_like(master)

    def step(self) -> None:
        if self.how == "param":
            for optimizer, master, parameter in zip(self.optimizers, self.masters, self.parameters, strict=True):
                master.grad = parameter.grad.float()
                optimizer.step()
                master.grad = None
                parameter.data.copy_(master.data)
            return
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            if self.how == "persistent":
                master.grad.copy_(parameter.grad)
            else:
                master.grad = parameter.grad.float()
            parameter.grad = None
        self.optimizers[0].step()
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            parameter.data.copy_(master.data)
            if self.how == "all":
                master.grad = None

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


# ---- the steps ------------------------------------------------------------------------------------------------------


def batch_for(recipe: dict[str, Any], vocabulary: int, device: str) -> dict[str, Any]:
    """Random token ids at full length; as many labels as the recipe trains; with padding one padded position."""
    import torch

    rows, length = recipe["micro_batch_size"], recipe["sequence_length"]
    ids = torch.randint(0, vocabulary, (rows, length), device=device)
    labels = ids.clone()
    positions = rows * (length - 1)
    trained = max(1, math.ceil(positions * recipe["trained_token_share"]))
    if trained < positions:
        untrained = torch.arange(positions, device=device).view(rows, length - 1) < positions - trained
        labels[:, 1:][untrained] = -100
    batch = {"input_ids": ids, "labels": labels}
    if recipe["padding"]:
        batch["attention_mask"] = torch.ones_like(ids)
        batch["attention_mask"][0, -1] = 0
        labels[0, -1] = -100
    return batch


def one_step(model: Any, optimizer: Any, recipe: dict[str, Any], batch: dict[str, Any], place: Place) -> float:
    """Forward and backward of every micro-batch, clipping, optimizer step. Returns the last loss."""
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    extra = {"fused_lm_head": True} if recipe["loss"] == "chunked" else {}
    for _ in range(recipe["gradient_accumulation_steps"]):
        place.now = "forward"
        outputs = model(**batch, **extra)
        loss = outputs["loss"] / recipe["gradient_accumulation_steps"]
        if not recipe["keep_outputs"]:
            del outputs
        place.now = "backward"
        loss.backward()
        value = float(loss.detach())
        outputs = loss = None
    place.now = "optimizer step"
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return value


@dataclass
class Place:
    """Where the run is, for the message when memory runs out."""

    step: int = 0
    now: str = "loading"

    def __str__(self) -> str:
        return f"step {self.step}, {self.now}" if self.step else self.now


def train(config: dict[str, Any], recipe: dict[str, Any], counters: Counters, steps: int, place: Place) -> list[str]:
    """Prepare and run the steps. Returns what a dry run could not include."""
    import torch

    device, left_out = "cpu" if counters.dry else "cuda", []
    torch.manual_seed(0)
    model = prepare(config, recipe, device, left_out)
    counters.reading.trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    counters.loaded()
    optimizer = optimizer_for(model, recipe, device, left_out)
    for place.step in range(1, steps + 1):
        counters.step_begins()
        loss = one_step(model, optimizer, recipe, batch_for(recipe, config["vocab_size"], device), place)
        counters.step_ends()
        if not math.isfinite(loss):
            sys.exit(f"the loss of step {place.step} is {loss}: the run is broken")
    return left_out


# ---- what comes out -------------------------------------------------------------------------------------------------


def software() -> dict[str, str]:
    """Versions of everything that decides memory, as far as it is installed."""
    import torch

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if version := torch.version.cuda or torch.version.hip:
        found["cuda" if torch.version.cuda else "rocm"] = version
    if setting := os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"):
        found["allocator"] = setting
    return found


def card_key(name: str, total_mib: int) -> str | None:
    """The key of data/gpus.yml for the driver's name of a card and its memory; None if that is not clear."""
    words = set(re.findall(r"[a-z]+|[a-z]*\d+[a-z]*", name.lower().replace("hbm3", "sxm").replace("sxm", " sxm ")))
    words |= set(re.split(r"[^a-z0-9]+", name.lower()))
    scores: dict[str, int] = {}
    for key, memory_mib in RUN["cards"].items():
        wanted = [word for word in key.split("-") if not re.fullmatch(r"\d+gb", word)]
        found = [word for word in wanted if word in words]
        if any(re.search(r"\d", word) for word in found) and abs(memory_mib / total_mib - 1) < 0.08:
            scores[key] = 2 * len(found) - len(wanted)
    best = [key for key, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None


def flow(values: dict[str, Any], indent: int) -> str:
    """A mapping as YAML in braces whose first key stands in column `indent`, broken where lines grow long."""

    def text(value: Any) -> str:
        if isinstance(value, str):
            # A comma or colon would end the value.
            return value if re.fullmatch(r"[\w.+/-]+", value) else json.dumps(value)
        return json.dumps(value)

    lines, line = [], "{"
    for index, (key, value) in enumerate(values.items()):
        item = f"{key}: {text(value)}" + ("}" if index == len(values) - 1 else ",")
        if len(line) > 1 and indent + len(line) + len(item) > 110:
            lines.append(line.rstrip())
            line = " "
        line += item if line in ("{", " ") else " " + item
    return ("\n" + " " * (indent - 1)).join([*lines, line if values else "{}"])


def record(reading: Reading, outcome: str, gpu: str | None, source: str) -> str:
    """The measurement as data/measurements.yml keeps it; `outcome` is ok, or oom with no figure to compare. Bytes."""
    observed = {}
    if outcome == "ok":
        observed = dict(zip(("allocated", "reserved"), reading.steps[-1], strict=True))
        if reading.driver is not None:
            observed["device"] = reading.driver
    recipe, versions = RUN["recipe"], software()
    if rows := nvidia_smi():
        versions["driver"] = rows[0]["driver_version"]
    # Equal runs on equal software get equal keys, so that none comes in twice by mistake.
    same = json.dumps([RUN["model"], gpu, recipe, versions], sort_keys=True)
    digest = hashlib.sha256(same.encode()).hexdigest()[:6]
    lines = [
        f"{RUN['model']}-{recipe['method']}-{recipe['sequence_length']}-{gpu or 'unknown-gpu'}-{digest}:",
        f"  model: {RUN['model']}",
        f"  recipe: {flow(recipe, 11)}",
        f"  gpu: {gpu or 'unknown-gpu'}",
        f"  software: {flow(versions, 13)}",
        f"  outcome: {outcome}",
        *([f"  observed: {flow(observed, 13)}"] if observed else []),
        "  length: fixed",
        "  grade: A",
        *([] if observed else ["  counts: false", "  reason: no_figure"]),
        f"  source: {source}",
        f"  date: {date.today().isoformat()}",
    ]
    return "\n".join(lines) + "\n"


def protocol(reading: Reading, outcome: str) -> str:
    """The run protocol of the guide as YAML; memory in bytes, except where a name says MiB."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    row = next(iter(nvidia_smi()), {})
    estimate, versions = RUN["estimate"], software()
    packages = {name: versions[name] for name in PACKAGES if name in versions}
    step, (allocated, reserved) = len(reading.steps), reading.steps[-1] if reading.steps else ("", "")
    lines = [
        f"date: {date.today().isoformat()}",
        "gpu:",
        f"  name: {properties.name}",
        f"  count: {torch.cuda.device_count()}",
        f"  memory_total_mib: {row.get('memory.total', round(properties.total_memory / MIB))}",
        f"driver: {row.get('driver_version', '')}",
        f"cuda: {versions.get('cuda') or versions.get('rocm', '')}",
        f"python: {versions['python']}",
        f"packages: {flow(packages, 10)}",
        f"allocator: {json.dumps(versions.get('allocator', ''))}",
        f"model: {flow({'id': RUN['hub'] or '', 'weights': 'random'}, 7)}",
        f"dataset: {flow({'name': 'random tokens', 'longest_tokens': RUN['recipe']['sequence_length']}, 9)}",
        f"recipe: {flow(RUN['recipe'], 8)}",
        "peak_bytes:",
        f"  step: {step}",
        f"  allocated: {allocated}",
        f"  reserved: {reserved}",
        f"  driver: {reading.card if reading.driver is None else reading.driver}",
        f"estimate_bytes: {estimate['peak_bytes']}",
        f"outcome: {outcome}",
    ]
    return "\n".join(line.rstrip() for line in lines)


def report(reading: Reading) -> str:
    """The readings beside the estimate."""
    estimate = RUN["estimate"]

    def gb(size: int) -> str:
        return f"{size / 1e9:9.3f} GB"

    def between(name: str) -> str:
        return f"{gb(estimate[name]['low'])} to {gb(estimate[name]['high']).strip()}"

    lines = [f"{'':24}{'measured':>12}{'estimate':>15}"]
    loaded = estimate["moments"]["load"] + estimate["parts"].get("adapters", 0)
    lines.append(f"{'after loading':24}{gb(reading.loaded)}   {gb(loaded)}")
    for number, (allocated, _) in enumerate(reading.steps, start=1):
        line = f"{f'step {number}: allocated':24}{gb(allocated)}"
        if number == len(reading.steps):
            off = 100 * (estimate["peak_bytes"] / allocated - 1)
            line += f"   {gb(estimate['peak_bytes'])}   estimate {off:+.1f} %, moment {estimate['moment']}"
        lines.append(line)
    lines.append(f"{'reserved':24}{gb(reading.steps[-1][1])}   {between('reserved_bytes')}")
    if reading.driver is None:
        lines.append(f"{'driver, whole card':24}{gb(reading.card)}   {between('device_bytes')} for this process")
    else:
        lines.append(f"{'driver, this process':24}{gb(reading.driver)}   {between('device_bytes')}")
    parts = sorted(estimate["parts"].items(), key=lambda part: -part[1])
    lines.append("estimated parts: " + ", ".join(f"{name} {size / 1e9:.3f}" for name, size in parts if size))
    if reading.trainable != estimate["trainable_parameters"]:
        lines.append(f"trained are {reading.trainable} parameters, the estimate counts {estimate['trainable_parameters']}")
    return "\n".join(lines)


# ---- commands -------------------------------------------------------------------------------------------------------


def dry_run(config: dict[str, Any], recipe: dict[str, Any], steps: int) -> int:
    """The whole code path with a tiny model on the CPU; no figures come out of it."""
    small = {**recipe, "sequence_length": min(recipe["sequence_length"], 32)}
    small |= {"micro_batch_size": min(recipe["micro_batch_size"], 2), "lora_r": min(recipe.get("lora_r", 4), 4)}
    left_out = train(shrunk(config), small, Counters(dry=True), steps, Place())
    print(f"Dry run on the CPU: {steps} steps of a tiny {config['model_type']} model ran; no memory was measured.")
    for part in left_out:
        print(f"Not covered by the dry run: {part}.")
    return 0


def measure(options: argparse.Namespace) -> int:
    """The full run on the first GPU, its report, protocol and record."""
    counters, place, outcome = Counters(dry=False), Place(), "ok"
    import torch

    torch.cuda.init()
    if (row := counters.row(counters.before)) and int(row["memory.used"]) > 1024:
        print(f"{row['memory.used']} MiB of this card are taken already: close what holds them, or the run may not fit.")
    with DriverWatch() as watch:
        try:
            train(RUN["config"], RUN["recipe"], counters, options.steps, place)
        except torch.cuda.OutOfMemoryError as error:
            outcome = "oom"
            print(f"Out of memory at {place}: {error}", file=sys.stderr)
    reading = counters.reading
    if outcome == "ok":
        counters.ends(watch)
        print(report(reading), end="\n\n")
    print(protocol(reading, "completed" if outcome == "ok" else f"out of memory ({place})"))
    properties = torch.cuda.get_device_properties(0)
    if outcome == "ok" and reading.steps[-1][1] > properties.total_memory:
        print("More is reserved than the card has: the driver used host memory. That is no measurement; no record written.")
        return 1
    if RUN["model"] is None:
        print("No record written: the script was made from a config.json, not from a model of data/models.yml.")
    else:
        gpu = options.gpu or card_key(properties.name, properties.total_memory // MIB)
        options.record.write_text(record(reading, outcome, gpu, options.source), encoding="utf-8")
        print(f"\nRecord written to {options.record}. In the guide: python -m macros measurements add {options.record}")
        if gpu is None:
            print(f"Put the card's key of data/gpus.yml in for unknown-gpu there: the driver calls it {properties.name!r}.")
    return 0 if outcome == "ok" else 1


def main(arguments: list[str] | None = None) -> int:
    """Measure, or run dry where asked to or where PyTorch finds no GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="tiny model on the CPU, no counters")
    parser.add_argument("--steps", type=int, default=2, help="optimizer steps; the last one is the reading (default 2)")
    parser.add_argument("--record", type=Path, default=Path("measurement.yml"), help="file for the record")
    parser.add_argument("--gpu", help="the card's key in data/gpus.yml, where its name does not tell")
    parser.add_argument("--source", default=RUN.get("source"), help="key of data/sources.yml that the record names")
    options = parser.parse_args(arguments)
    if not RUN:
        parser.error("this is the template; python -m macros measure writes a script with a run in it")
    if options.steps < 2:
        parser.error("--steps must be at least 2: the first step only creates the optimizer's states")
    if util.find_spec("torch") is None:
        print("PyTorch is not installed for this Python; install torch, transformers, accelerate and peft.", file=sys.stderr)
        return 2
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # some libraries look for kernels on the Hub
    warnings.filterwarnings("ignore", category=FutureWarning)
    import torch

    if options.dry_run or not torch.cuda.is_available():
        if not options.dry_run:
            print("PyTorch finds no GPU, so this is a dry run: it shows that the code works, not how much memory it needs.")
        return dry_run(RUN["config"], RUN["recipe"], options.steps)
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
