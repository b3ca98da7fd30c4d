"""Losses that never build all logits: TRL's tiled head and Liger's kernels, the real code on fake tensors.

Triton kernels write into memory that Python allocated before, so on fake tensors they are left out. What depends on
the values of a mask gets a known number of positions.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import types
from collections.abc import Callable, Iterator

import torch
from torch import nn
from transformers import PreTrainedModel
from triton.runtime.jit import KernelInterface

DEVICE = "cuda"
MULTIPROCESSORS = 132  # of an H100: Liger sums the gradient of a norm's weight in one row for each

KernelInterface.__getitem__ = lambda self, grid: lambda *args, **kwargs: None
torch.cuda.device = contextlib.nullcontext
torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=MULTIPROCESSORS)


class _Selected(torch.autograd.Function):
    """x[mask]: indices of the true positions, then a copy; the gradient is put into zeros (index_put_, sorted)."""

    @staticmethod
    def forward(ctx, x, mask, count):
        ctx.save_for_backward(mask)
        ctx.shape, ctx.count = x.shape, count
        indices = torch.empty(count, mask.dim(), dtype=torch.int64, device=DEVICE)
        selected = x.new_empty(count, *x.shape[mask.dim() :])
        del indices
        return selected

    @staticmethod
    def backward(ctx, gradient):
        put = gradient.new_zeros(ctx.shape)
        scratch = torch.empty(5, ctx.count, dtype=torch.int64, device=DEVICE)
        del scratch
        return put, None, None


class _Scattered(torch.autograd.Function):
    """zeros.masked_scatter(mask, x): a copy of the zeros and a prefix sum of the mask; its gradient selects."""

    @staticmethod
    def forward(ctx, zeros, mask, x):
        ctx.save_for_backward(mask)
        ctx.count = x.shape
        scattered = zeros.clone()
        prefix = torch.empty(mask.shape, dtype=torch.int64, device=DEVICE)
        del prefix
        return scattered

    @staticmethod
    def backward(ctx, gradient):
        return None, None, gradient.new_empty(ctx.count)


@contextlib.contextmanager
def counted_masks(count: int) -> Iterator[None]:
    """Boolean masks select `count` positions."""
    get, scatter = torch.Tensor.__getitem__, torch.Tensor.masked_scatter

    def getitem(self, key):
        if isinstance(key, torch.Tensor) and key.dtype == torch.bool:
            return _Selected.apply(self, key, count)
        return get(self, key)

    torch.Tensor.__getitem__ = getitem
    torch.Tensor.masked_scatter = lambda self, mask, source: _Scattered.apply(self, mask, source)
    try:
        yield
    finally:
        torch.Tensor.__getitem__, torch.Tensor.masked_scatter = get, scatter


def add_trl_head(model: PreTrainedModel) -> None:
    """What SFTTrainer does to a model (trl 1.16.0 trainer/sft_trainer.py); the float32 products accumulate in place."""
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    chunked_logprob._addmm_fp32 = lambda accumulator, left, right: None
    utils.add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))


def trl_loss(model: nn.Module, ids, labels, mask, share: float) -> torch.Tensor:
    """SFTTrainer.compute_loss with loss_type nll; `share` of the positions have a label."""
    count = max(1, math.ceil(labels.shape[0] * (labels.shape[1] - 1) * share))
    with counted_masks(count):
        outputs = model(input_ids=ids, labels=labels, attention_mask=mask, fused_lm_head=True)
    return (-outputs.log_probs).sum() / torch.full((), count, device=DEVICE).clamp(min=1)


@contextlib.contextmanager
def liger(model: PreTrainedModel, loss: str) -> Iterator[None]:
    """Trainer's `use_liger_kernel`: kernels for norms, rotary embedding and MLP; with loss "liger" the fused head."""
    code = importlib.import_module(type(model).__module__)
    saved = dict(vars(code))
    available = torch.cuda.is_available
    torch.cuda.is_available = lambda: True  # Liger asks at import
    from liger_kernel.transformers.monkey_patch import _apply_liger_kernel_to_instance

    torch.cuda.is_available = available
    from liger_kernel.ops import fused_linear_cross_entropy as fused

    # The loss is the last op: its gradient is 1, or the gradients are scaled in place.
    fused.fused_linear_cross_entropy_backward = lambda gradient, *made: made
    _apply_liger_kernel_to_instance(model, fused_linear_cross_entropy=loss == "liger")
    item = torch.Tensor.item
    torch.Tensor.item = lambda self: 1  # its fused loss asks how many tokens have a label
    try:
        yield
    finally:
        torch.Tensor.item = item
        vars(code).update(saved)


def on_final_norm(model: PreTrainedModel, act: Callable[[], None]) -> None:
    """Call `act` when the decoder stack is done: such losses never call the head."""
    model.base_model.norm.register_forward_hook(lambda *args: act())
