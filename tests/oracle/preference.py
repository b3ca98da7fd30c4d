"""DPO's and GRPO's step in the oracle: the lines of TRL's trainers that decide memory, on fake tensors.

Loss "trl" is TRL 1.16.0, whose trainers call the tiled head; "standard" is TRL 1.9.0, which builds all logits. Two
sequences an example for DPO; for GRPO completions behind prompts of `prompt` tokens, whose log-probabilities alone are taken.
Equal lengths, so that no mask reaches the attention unless `padding` says so. Generation: the prompts' forward, and the
last token's with a cache that is full but for it, because generate() asks for values in between.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from types import SimpleNamespace

from oracle import DEVICE, DTYPES, Run, Settings, widen

import losses
import torch
import torch.nn.functional as F
from models import build, materialize
from transformers import DynamicCache


def run(config: dict[str, object], settings: Settings, log: bool = False) -> dict[str, object]:
    """The peak of one step of preference training."""
    return {"dpo": Dpo, "grpo": Grpo}[settings.objective](config, settings, log).result()


class Preference(Run):
    """A run with a reference: a second model, or its own with the adapters off."""

    def prepare(self) -> None:
        """The model as ever, and the reference model beside it, whose parameters TRL does not freeze."""
        super().prepare()
        self.reference = None
        if self.settings.reference == "model":
            kind = DTYPES[self.recipe.weights]
            self.reference = build(self.config, self.settings.attn, kind)
            materialize(self.reference, kind)
            self.reference.eval()
            if self.settings.loss == "trl":
                losses.add_trl_head(self.reference)

    def mark_phases(self) -> None:
        """Head and loss are phases of the policy's forward alone."""
        tracker = self.tracker

        def late(phase: str, category: str):
            return lambda *args: tracker.set(phase if tracker.phase in ("forward", "head", "loss") else tracker.phase, category)

        if self.settings.loss == "trl":
            losses.on_final_norm(self.base, late("loss", "loss"))
        else:
            self.base.get_output_embeddings().register_forward_pre_hook(late("head", "logits"))

    def track_model(self) -> None:
        super().track_model()
        if self.reference is not None:
            for parameter in self.reference.parameters():
                self.tracker.track(parameter, "frozen_param")
            for buffer in self.reference.buffers():
                self.tracker.track(buffer, "buffer")

    @contextlib.contextmanager
    def as_reference(self) -> Iterator[torch.nn.Module]:
        """The model that gives the reference's log-probabilities, without gradients and without checkpointing."""
        with torch.no_grad():
            if self.reference is not None:
                yield self.reference
                return
            if self.settings.checkpointing:
                self.base.gradient_checkpointing_disable()
            with self.model.disable_adapter():
                yield self.model
            if self.settings.checkpointing:
                self.base.activation_checkpointing_enable({"use_reentrant": False})

    def forward(self, model, **inputs):
        """A forward as accelerate wraps it: autocast around it alone, outputs in float32 behind it."""
        with self.autocast():
            outputs = model(**inputs)
        if self.recipe.autocast:
            widen(outputs)
        return outputs

    def scored(self, model, ids, mask, kept: int) -> tuple[torch.Tensor, object]:
        """Log-probabilities of the last `kept` tokens, and the model's outputs."""
        if self.settings.loss == "trl":
            labels = ids.masked_fill(torch.zeros_like(ids, dtype=torch.bool), -100)
            count = max(1, math.ceil(ids.shape[0] * min(kept, ids.shape[1] - 1) * self.settings.trained_token_share))
            with losses.counted_masks(count):
                outputs = self.forward(model, input_ids=ids, labels=labels, attention_mask=mask, fused_lm_head=True)
            return outputs.log_probs[:, -kept:], outputs
        if self.settings.objective == "grpo":
            outputs = self.forward(model, input_ids=ids, attention_mask=mask, logits_to_keep=kept + 1)
            logits = outputs.logits[:, :-1, :][:, -kept:, :]
            logits.div_(1.0)
            return selected(logits, ids[:, -kept:]), SimpleNamespace(logits=logits)
        outputs = self.forward(model, input_ids=ids, attention_mask=mask)
        return selected(outputs.logits[..., :-1, :], ids[..., 1:]), outputs


def selected(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the tokens, sequence by sequence (TRL 1.9.0 trainer/utils.py selective_log_softmax)."""
    index = ids.unsqueeze(-1)
    if logits.dtype == torch.float32:
        chosen = torch.gather(logits, -1, index)
        sums = torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
        return (chosen - sums.unsqueeze(-1)).squeeze(-1)
    rows = []
    for row, labels in zip(logits, index, strict=True):
        log_probabilities = F.log_softmax(row, dim=-1)
        rows.append(log_probabilities.gather(-1, labels))
    return torch.stack(rows).squeeze(-1)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Entropy in pieces of 128 positions (TRL 1.9.0 trainer/utils.py entropy_from_logits)."""
    found = []
    for piece in logits.reshape(-1, logits.shape[-1]).split(128):
        log_probabilities = F.log_softmax(piece, dim=-1)
        found.append(-(torch.exp(log_probabilities) * log_probabilities).sum(-1))
    return torch.cat(found).reshape(logits.shape[:-1])


class Dpo(Preference):
    """DPOTrainer._compute_loss: both sequences in one forward, then the reference, then the metrics."""

    def micro_step(self) -> None:
        settings, tracker = self.settings, self.tracker
        tracker.set("input", "input")
        shape = (2 * settings.batch, settings.seq)
        ids, attention, completion = (torch.zeros(*shape, dtype=torch.int64, device=DEVICE) for _ in range(3))
        mask = attention if settings.padding else None
        tracker.set("forward", "activation")
        log_probs, outputs = self.scored(self.model, ids, mask, settings.seq - 1)
        sums = log_probs.sum(dim=1)
        if settings.reference == "precomputed":
            base = torch.zeros(shape[0], device=DEVICE)
        else:
            tracker.set("log_probs", "activation")
            with self.as_reference() as reference:
                base = self.scored(reference, ids, mask, settings.seq - 1)
            others, base = base[1], base[0].sum(dim=1)
        tracker.set("loss", "loss")
        ratios = sums - base
        chosen, rejected = ratios.chunk(2)
        loss = -F.logsigmoid(0.1 * (chosen - rejected)).mean()
        if settings.loss == "standard":
            self.measure(outputs.logits[..., :-1, :].detach(), completion)
        others = outputs = log_probs = None  # noqa: F841 -- _compute_loss returns, and its frame lets go of them
        tracker.set("backward", "backward")
        loss.backward()
        self.inputs = ids, attention, completion

    def measure(self, logits: torch.Tensor, completion: torch.Tensor) -> None:
        """Entropy, mean logits and accuracy, which DPOTrainer logs."""
        entropy(logits)
        chosen, rejected = logits.chunk(2)
        count = math.ceil(chosen.shape[0] * chosen.shape[1] * self.settings.trained_token_share)
        with losses.counted_masks(max(1, count)):
            for half, labelled in zip((chosen, rejected), completion[:, 1:].bool().chunk(2)):
                half[labelled].mean(-1).sum()
        chosen.argmax(dim=-1)


class Grpo(Preference):
    """GRPOTrainer: generation with Transformers, log-probabilities of the reference, then _compute_loss."""

    generated = False

    def micro_step(self) -> None:
        settings, tracker = self.settings, self.tracker
        completion = settings.seq - settings.prompt
        tracker.set("input", "input")
        shape = (settings.batch, settings.seq)
        ids, mask = (torch.zeros(*shape, dtype=torch.int64, device=DEVICE) for _ in range(2))
        mask = mask if settings.padding else None
        if settings.generation == "transformers" and not self.generated:
            self.generated = True
            self.generate(settings.prompt)
        old = None
        if settings.reference in ("model", "adapter"):
            tracker.set("log_probs", "activation")
            with self.as_reference() as reference:
                old = self.scored(reference, ids, mask, completion)[0]
        tracker.set("forward", "activation")
        log_probs, outputs = self.scored(self.model, ids, mask, completion)
        tracker.set("loss", "loss")
        if settings.loss == "standard":
            with torch.no_grad():
                entropy(outputs.logits)
        ratio = torch.exp(log_probs - log_probs.detach())
        loss = -torch.min(ratio, torch.clamp(ratio, 0.8, 1.2))
        if old is not None:
            loss = loss + 0.1 * (torch.exp(old - log_probs) - (old - log_probs) - 1)
        loss = loss.sum()
        ratio = outputs = log_probs = None  # noqa: F841 -- _compute_loss returns, and its frame lets go of them
        tracker.set("backward", "backward")
        loss.backward()
        self.inputs = ids, mask, old

    def generate(self, length: int) -> None:
        """The prompts' forward, and that of the last token: its keys and values are joined with those before it.

        All completions of an optimizer step at once, before its first micro-step.
        """
        settings, tracker = self.settings, self.tracker
        tracker.set("generation", "activation")
        prompts = torch.zeros(settings.batch * settings.accumulation, length, dtype=torch.int64, device=DEVICE)
        if settings.checkpointing:
            self.base.gradient_checkpointing_disable()
        with torch.no_grad():
            cache = DynamicCache(config=self.config)
            outputs = self.forward(self.model, input_ids=prompts, past_key_values=cache, use_cache=True, logits_to_keep=1)
            outputs.logits[:, -1, :].float().softmax(dim=-1)
            lengthen(cache, settings.seq - 1 - length)
            last = prompts[:, -1:]
            position = torch.full((1, 1), settings.seq - 1, dtype=torch.int64, device=DEVICE)
            outputs = self.forward(
                self.model, input_ids=last, past_key_values=cache, use_cache=True, logits_to_keep=1, position_ids=position
            )
            outputs.logits[:, -1, :].float().softmax(dim=-1)
        if settings.checkpointing:
            self.base.activation_checkpointing_enable({"use_reentrant": False})


def lengthen(cache: DynamicCache, tokens: int) -> None:
    """A cache after so many more tokens."""
    for layer in cache.layers:
        room = tokens
        if (window := getattr(layer, "sliding_window", None)) is not None:
            room = max(0, min(window - 1, layer.keys.shape[-2] + tokens) - layer.keys.shape[-2])
            layer.cumulative_length += tokens
        for name in ("keys", "values"):
            old = getattr(layer, name)
            new = old.new_empty(*old.shape[:-2], old.shape[-2] + room, old.shape[-1])
            setattr(layer, name, new)
