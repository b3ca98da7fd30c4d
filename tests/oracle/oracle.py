#!/usr/bin/env python3
"""GPU-free oracle for the peak GPU memory of one LLM fine-tuning step.

Runs the real Hugging Face / PEFT training step under FakeTensorMode on a fake CUDA device, and counts live storages
(tracker.py). Nothing is computed and no weights are needed, so a 70B model costs no memory.
"""

from __future__ import annotations

# Imported for what it does: it loads a CUDA device into torch's libraries, which must happen before torch is imported.
import fakecuda  # noqa: F401

import argparse
import contextlib
import dataclasses
import gc
import json
import logging
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import torch
import transformers
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

# A CPU build shall behave like one with a GPU where only checks in Python are in the way.
torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.cuda.is_bf16_supported = lambda including_emulation=True: True
torch.cuda.get_device_capability = lambda device=None: (9, 0)

# A CPU build has no CUDA kernel for silu_backward, so the dispatcher would decompose it; with any kernel registered
# (never executed: the fake mode intercepts it) it stays one op, as on a GPU.
_library = torch.library.Library("aten", "IMPL")
_library.impl("silu_backward", lambda g, x: torch.empty_like(x), "CUDA")

transformers.logging.set_verbosity_error()
for noisy in ("peft", "bitsandbytes", "transformers"):
    logging.getLogger(noisy).setLevel(logging.ERROR)
logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)

import losses
import optimizers
from models import build, fake_friendly_peft, make_config, materialize
from quantized import prepare_kbit, replace_linears
from tracker import StorageTracker

DEVICE = "cuda"
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Dtypes of a way to train: weights, adapters ("" for full fine-tuning), autocast, quantisation."""

    weights: str
    autocast: bool
    adapters: str = ""
    quantized: bool = False
    kbit_prep: bool = False
    master: bool = False


RECIPES = {
    "full-bf16-pure": Recipe("bf16", False),
    "full-bf16-autocast": Recipe("bf16", True),
    "full-mixed-fp32": Recipe("fp32", True),
    "full-fp32": Recipe("fp32", False),
    "full-mixed-master": Recipe("bf16", False, master=True),
    "lora-bf16": Recipe("bf16", True, "fp32"),
    "lora-bf16-pure": Recipe("bf16", False, "bf16"),
    "lora-mixed-fp32": Recipe("fp32", True, "fp32"),
    "qlora-nf4": Recipe("bf16", True, "fp32", quantized=True, kbit_prep=True),
    "qlora-nf4-noprep": Recipe("bf16", True, "fp32", quantized=True),
    "qlora-trl": Recipe("bf16", True, "bf16", quantized=True),
    "qlora-noautocast": Recipe("bf16", False, "fp32", quantized=True, kbit_prep=True),
    "qlora-pure": Recipe("bf16", False, "bf16", quantized=True),
}

TARGETS = {"qv": ["q_proj", "v_proj"], "attn": ["q_proj", "k_proj", "v_proj", "o_proj"]}
PHI3_TARGETS = {"qv": ["qkv_proj"], "attn": ["qkv_proj", "o_proj"]}


@dataclass(frozen=True, slots=True)
class Settings:
    """One run; the fields are the columns of the rows and the options of the command line.

    targets       "all-linear", "qv", "attn" or names of modules with spaces between
    optimizer     fused, foreach or forloop (AdamW), adamw_8bit, adamw_32bit, lion_8bit, lion_32bit, adafactor, sgd, sgd_momentum
    grad32        of full-mixed-master: param, all or persistent
    accumulation  micro-steps before the optimizer's step
    loss          standard, trl (tiled head) or liger (fused linear cross-entropy)
    objective     sft, or dpo and grpo (preference.py); reference, prompt and generation are theirs
    reference     none, model, adapter (its own, switched off) or precomputed
    prompt        tokens of a prompt
    generation    none, or transformers
    """

    recipe: str = "full-bf16-pure"
    batch: int = 1
    seq: int = 512
    checkpointing: bool = False
    attn: str = "sdpa"
    rank: int = 16
    targets: str = "all-linear"
    dropout: float = 0.0
    dora: bool = False
    modules_to_save: str = ""
    optimizer: str = "fused"
    grad32: str = "param"
    accumulation: int = 1
    keep_outputs: bool = False
    padding: bool = False
    quantization: str = "nf4"
    double_quant: bool = True
    loss: str = "standard"
    trained_token_share: float = 1.0
    kernels: str = "none"
    objective: str = "sft"
    reference: str = "none"
    prompt: int = 0
    generation: str = "none"


def run(config: dict[str, object], settings: Settings, log: bool = False) -> dict[str, object]:
    """The peak of one step of a configuration, and where it is; with `log` also what lives then (`tracker`)."""
    return Run(config, settings, log).result()


class Run:
    """One model and one training step under the tracker."""

    def __init__(self, config: dict[str, object], settings: Settings, log: bool):
        self.settings = settings
        self.recipe = RECIPES[settings.recipe]
        self.tracker = StorageTracker(log=log)
        self.config = make_config(config, settings.attn)
        self.base = build(self.config, settings.attn, DTYPES[self.recipe.weights])
        self.model: nn.Module = self.base
        self.parameters = sum(p.numel() for p in self.base.parameters())
        with FakeTensorMode(allow_non_fake_inputs=True), self.kernels():
            self.prepare()
            self.trainable = [p for p in self.model.parameters() if p.requires_grad]
            gc.unfreeze()
            gc.collect()
            gc.freeze()  # keep the collector from walking the model over and over
            with self.tracker:
                self.train()

    def kernels(self) -> contextlib.AbstractContextManager:
        """Liger's kernels where they are asked for."""
        if self.settings.kernels == "none" and self.settings.loss != "liger":
            return contextlib.nullcontext()
        return losses.liger(self.base, self.settings.loss)

    # ---- the model ----
    def prepare(self) -> None:
        """Quantise, materialise, add adapters, switch checkpointing on."""
        settings, recipe = self.settings, self.recipe
        if recipe.quantized:
            self.base.requires_grad_(False)
            replace_linears(self.base, settings.quantization, settings.double_quant)
        materialize(self.base, DTYPES[recipe.weights])
        self.base.train()
        if recipe.kbit_prep:
            prepare_kbit(self.base)
        if settings.loss == "trl":
            losses.add_trl_head(self.base)
        if recipe.adapters:
            self.add_adapters()
        if settings.checkpointing:
            self.base.config.use_cache = False
            self.base.activation_checkpointing_enable({"use_reentrant": False})

    def add_adapters(self) -> None:
        """PEFT's LoRA layers."""
        from peft import LoraConfig, get_peft_model

        settings = self.settings
        adapters = LoraConfig(
            r=settings.rank,
            lora_alpha=2 * settings.rank,
            lora_dropout=settings.dropout,
            bias="none",
            task_type="CAUSAL_LM",
            target_modules=self.targets(),
            modules_to_save=settings.modules_to_save.split() or None,
            use_dora=settings.dora,
            init_lora_weights=False,
        )
        with fake_friendly_peft(), torch.device(DEVICE):
            self.model = get_peft_model(self.base, adapters, autocast_adapter_dtype=self.recipe.adapters == "fp32")
        self.model.train()
        self.renew_trained()

    def renew_trained(self) -> None:
        """Give what is trained storages of its own (copies of fake tensors are not counted right) and its dtype.

        SFTTrainer casts all of it to bf16 beside a quantised base, but for DoRA's magnitudes, which stay in fp32.
        """
        dtype = DTYPES[self.recipe.adapters]
        cast = self.recipe.quantized and dtype == torch.bfloat16
        for module in self.model.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None and parameter.requires_grad:
                    magnitude = type(module).__name__.startswith("Dora")
                    kind = dtype if cast else parameter.dtype
                    if magnitude and cast and self.recipe.autocast:
                        kind = torch.float32
                    new = torch.empty_like(parameter, dtype=kind)
                    module._parameters[name] = nn.Parameter(new)
        for name, parameter in self.model.named_parameters():
            if "lora_A" in name and parameter.dtype != dtype:
                raise RuntimeError(f"adapter dtype {parameter.dtype}")

    def targets(self) -> str | list[str]:
        """What PEFT is told to adapt."""
        name = self.settings.targets
        if name == "all-linear":
            return name
        short = PHI3_TARGETS if self.config.model_type == "phi3" else TARGETS
        return short.get(name) or name.split()

    # ---- the step ----
    def train(self) -> None:
        """One optimizer step whose states exist already."""
        settings, tracker = self.settings, self.tracker
        self.track_model()
        if self.recipe.master:
            tracker.set("load", "optimizer")
            optimizer = optimizers.MasterAdamW(self.trainable, settings.grad32, settings.optimizer)
        else:
            optimizer = optimizers.make(settings.optimizer, self.model, self.trainable)
        self.mark_phases()
        self.create_states(optimizer)
        for _ in range(settings.accumulation):
            self.micro_step()
        tracker.set("optim", "optim_temp")
        optimizer.step()

    def track_model(self) -> None:
        """Everything that is on the card before training."""
        tracker = self.tracker
        for parameter in self.model.parameters():
            tracker.track(parameter, "param" if parameter.requires_grad else "frozen_param")
        for module in self.model.modules():
            for tensor in getattr(module, "quant_tensors", {}).values():
                tracker.track(tensor, "frozen_param")
        for buffer in self.model.buffers():
            tracker.track(buffer, "buffer")
        tracker.set("load", "buffer")
        for parameter in self.trainable:
            parameter.register_post_accumulate_grad_hook(lambda p: tracker.track(p.grad, "grad"))

    def create_states(self, optimizer) -> None:
        """An empty step, so that one real step suffices."""
        tracker = self.tracker
        tracker.set("warm", "optim_temp")
        for parameter in self.trainable:
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        self.track_states(optimizer)
        optimizer.zero_grad()
        tracker.reset_peaks()

    def track_states(self, optimizer) -> None:
        """Count the optimizer's states as such."""
        for tensor in optimizers.states(optimizer):
            self.tracker.track(tensor, "optimizer")

    def mark_phases(self) -> None:
        """Tell the tracker where the head and the loss begin."""
        tracker = self.tracker
        if self.settings.loss != "standard":
            losses.on_final_norm(self.base, lambda: tracker.set("loss", "loss"))
            return
        loss_function = self.base.loss_function

        def wrapped(*args, **kwargs):
            tracker.set("loss", "loss")
            return loss_function(*args, **kwargs)

        self.base.loss_function = wrapped
        self.base.get_output_embeddings().register_forward_pre_hook(lambda *args: tracker.set("head", "logits"))

    def micro_step(self) -> None:
        """Forward and backward of one micro-batch."""
        settings, tracker = self.settings, self.tracker
        tracker.set("input", "input")
        ids = torch.zeros(settings.batch, settings.seq, dtype=torch.int64, device=DEVICE)
        labels = torch.zeros(settings.batch, settings.seq, dtype=torch.int64, device=DEVICE)
        mask = torch.empty(settings.batch, settings.seq, dtype=torch.int64, device=DEVICE) if settings.padding else None
        tracker.set("forward", "activation")
        outputs = None
        with self.autocast():
            if settings.loss == "trl":
                loss = losses.trl_loss(self.model, ids, labels, mask, settings.trained_token_share)
            else:
                outputs = self.model(input_ids=ids, labels=labels, attention_mask=mask)
        if outputs is not None:
            if self.recipe.autocast:
                tracker.set("loss", "loss")
                widen(outputs)
            loss = outputs["loss"]
        if not settings.keep_outputs:
            del outputs
        tracker.set("backward", "backward")
        loss.backward()
        self.inputs = ids, labels, mask  # the caller's loop holds the batch until the step is over

    def autocast(self) -> contextlib.AbstractContextManager:
        """What the recipe runs the forward pass under."""
        return torch.autocast(DEVICE, dtype=torch.bfloat16) if self.recipe.autocast else contextlib.nullcontext()

    def result(self) -> dict[str, object]:
        """Counts, the peak, its phase and op."""
        peak = self.tracker.peak_info
        return {
            "params": self.parameters,
            "trainable_params": sum(p.numel() for p in self.trainable),
            "peak_bytes": self.tracker.peak,
            "peak_phase": peak["phase"],
            "peak_op": peak["op"],
            "tracker": self.tracker,
        }


def widen(outputs) -> None:
    """accelerate's ConvertOutputsToFp32."""
    for key in list(outputs.keys()):
        value = outputs[key]
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
            outputs[key] = value.float()


# ---- command line ----
def options() -> argparse.ArgumentParser:
    """One option for each field of Settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="a config.json, as a path or as JSON")
    for field in dataclasses.fields(Settings):
        name = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(name, type=type(field.default), default=field.default)
    parser.add_argument("--trace", type=int, default=0, help="print the tensors at the peak and so many ops before it")
    return parser


def trace(tracker: StorageTracker, count: int) -> Iterator[str]:
    """What lives at the peak, grouped, and the ops that led to it."""
    groups: dict[tuple, list[int]] = {}
    for size, *what in tracker.peak_info["tensors"]:
        group = groups.setdefault(tuple(what), [0, 0])
        group[0] += size
        group[1] += 1
    for what, (size, number) in sorted(groups.items(), key=lambda item: -item[1][0])[:40]:
        category, phase, op, shape, dtype = what
        yield f"{size:15,d} {number:4d} × {category:12s} {phase:9s} {op:50s} {tuple(shape)} {dtype}"
    last = max(range(len(tracker.log)), key=lambda index: tracker.log[index][3])
    for phase, op, size, total in tracker.log[max(0, last - count) : last + 1]:
        yield f"{phase:9s} {op:60s} {size:+15,d} {total:17,d}"


def main() -> None:
    """Run one configuration and print the result."""
    given = vars(options().parse_args())
    count, source = given.pop("trace"), given.pop("config")
    if not source.lstrip().startswith("{"):
        with open(source, encoding="utf-8") as file:
            source = file.read()
    result = run(json.loads(source), Settings(**given), log=bool(count))
    tracker = result.pop("tracker")
    for key, value in result.items():
        print(f"{key:18s} {value}")
    for category, size in tracker.peak_info["by_category"].items():
        print(f"  {category:16s} {size:17,d}")
    for line in trace(tracker, count) if count else ():
        print(line)


if __name__ == "__main__":
    main()
