"""Optimizers by the names of Hugging Face's Trainer, and AdamW with float32 master weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

DEVICE = "cuda"
TORCH_ADAMW = {"fused": {"fused": True}, "foreach": {"foreach": True}, "forloop": {"foreach": False, "fused": False}}


class MasterAdamW:
    """bf16 weights and gradients, fp32 master copy and moments (single-GPU DeepSpeed/Megatron-like).

    grad32: "param" casts one gradient at a time; "all" casts all of them before the step (DeepSpeed ZeRO-1/2
    flattens them); "persistent" keeps an fp32 gradient buffer all the time (DeepSpeed BF16_Optimizer, Megatron).
    """

    def __init__(self, params: list[nn.Parameter], grad32: str, implementation: str):
        self.params = params
        self.grad32 = grad32
        self.master = [p.detach().float().requires_grad_() for p in params]
        self.main_grad = [torch.zeros_like(m) for m in self.master] if grad32 == "persistent" else None
        kind = TORCH_ADAMW[implementation]
        groups = [[m] for m in self.master] if grad32 == "param" else [self.master]
        self.optimizers = [torch.optim.AdamW(group, lr=1e-5, **kind) for group in groups]

    def states(self) -> Iterator[torch.Tensor]:
        """Everything that lives between two steps."""
        yield from self.master
        for optimizer in self.optimizers:
            yield from states(optimizer)
        yield from self.main_grad or ()

    def step(self) -> None:
        """Cast gradients, step on the master weights, copy them back."""
        if self.grad32 == "param":
            for p, m, optimizer in zip(self.params, self.master, self.optimizers, strict=True):
                m.grad = p.grad.float()
                optimizer.step()
                m.grad = None
                p.data.copy_(m.detach())
            return
        for i, (p, m) in enumerate(zip(self.params, self.master, strict=True)):
            if self.main_grad:
                self.main_grad[i].copy_(p.grad)
                m.grad = self.main_grad[i]
            else:
                m.grad = p.grad.float()
            p.grad = None
        self.optimizers[0].step()
        for p, m in zip(self.params, self.master, strict=True):
            p.data.copy_(m.detach())
            m.grad = None

    def zero_grad(self) -> None:
        """Set gradients to None."""
        for p in self.params:
            p.grad = None


def states(optimizer: torch.optim.Optimizer | MasterAdamW) -> Iterator[torch.Tensor]:
    """The tensors that an optimizer keeps."""
    if isinstance(optimizer, MasterAdamW):
        yield from optimizer.states()
        return
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def make(name: str, model: nn.Module, trainable: list[nn.Parameter]) -> torch.optim.Optimizer:
    """An optimizer with the arguments of transformers' Trainer (trainer_optimizer.py); bitsandbytes' kernels write in place."""
    if name in TORCH_ADAMW:
        return torch.optim.AdamW(trainable, lr=1e-5, **TORCH_ADAMW[name])
    if name == "sgd":
        return torch.optim.SGD(trainable, lr=1e-5)
    if name == "sgd_momentum":
        return torch.optim.SGD(trainable, lr=1e-5, momentum=0.9)
    if name == "adafactor":
        from transformers.optimization import Adafactor

        Adafactor._rms = staticmethod(lambda tensor: tensor.norm(2) / (tensor.numel() ** 0.5))
        return Adafactor(trainable, lr=1e-5, scale_parameter=False, relative_step=False)
    return _bitsandbytes(name, model, trainable)


def _bitsandbytes(name: str, model: nn.Module, trainable: list[nn.Parameter]) -> torch.optim.Optimizer:
    """8-bit and 32-bit AdamW and Lion; Trainer keeps the states of embeddings in 32 bits."""
    import bitsandbytes as bnb
    from bitsandbytes import functional
    from bitsandbytes.optim import GlobalOptimManager

    for update in ("optimizer_update_32bit", "optimizer_update_8bit_blockwise"):
        setattr(functional, update, lambda *args, **kwargs: None)
    functional.is_on_gpu = lambda tensors: True
    functional.create_dynamic_map = lambda *args, **kwargs: torch.empty(256)
    torch.cuda.synchronize = lambda *args: None
    kind = bnb.optim.Lion if "lion" in name else bnb.optim.AdamW
    optimizer = kind(trainable, lr=1e-5, optim_bits=8 if name.endswith("8bit") else 32)
    optimizer.to_gpu = lambda: None
    manager = GlobalOptimManager.get_instance()
    manager.initialize()  # it is one object for the whole process
    for module in model.modules():
        if isinstance(module, nn.Embedding) and name.endswith("8bit"):
            manager.register_module_override(module, "weight", {"optim_bits": 32})
    return optimizer
