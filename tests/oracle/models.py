"""Models without weights: instantiated on meta, then given fake CUDA storages; adapters that PEFT can add to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from attention import IMPLEMENTATIONS
from peft.tuners.lora import dora
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils.integrations import dequantize_bnb_weight, dequantize_module_weight
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.models.falcon import modeling_falcon

DEVICE = "cuda"


def make_config(config: dict[str, object], attn: str) -> PretrainedConfig:
    """The library's configuration of a config.json; `use_cache` is off as in Hugging Face's Trainer."""
    config = dict(config)
    made = AutoConfig.for_model(config.pop("model_type"), **config)
    made._attn_implementation = IMPLEMENTATIONS[attn]
    made.use_cache = False
    return made


def build(config: PretrainedConfig, attn: str, dtype: torch.dtype) -> PreTrainedModel:
    """The model on the meta device."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=IMPLEMENTATIONS[attn])
    model.tie_weights()
    return model


def materialize(model: nn.Module, dtype: torch.dtype) -> None:
    """Give every parameter and buffer that is on meta a storage of its own; tied ones stay tied."""
    made: dict[int, torch.Tensor] = {}

    def storage(tensor: torch.Tensor, parameter: bool) -> torch.Tensor:
        if id(tensor) not in made:
            kind = dtype if parameter and tensor.is_floating_point() else tensor.dtype
            new = torch.empty(tensor.shape, dtype=kind, device=DEVICE)
            made[id(tensor)] = nn.Parameter(new, requires_grad=tensor.requires_grad) if parameter else new
        return made[id(tensor)]

    for module in model.modules():
        # The last: plain attributes that alias a buffer, such as original_inv_freq.
        for tensors, parameter in ((module._parameters, True), (module._buffers, False), (module.__dict__, False)):
            for name, tensor in list(tensors.items()):
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                    tensors[name] = storage(tensor, parameter)


@contextlib.contextmanager
def fake_friendly_peft() -> Iterator[None]:
    """PEFT moves new adapters with Module.to(), which cannot swap fake parameters; make new ones instead."""
    def move(self, adapter_name, device=None):
        base = self.get_base_layer()
        weight = getattr(base, "weight", None)
        floating = weight is not None and weight.dtype.is_floating_point
        dtype = getattr(base, "compute_dtype", None) or (weight.dtype if floating else None)
        for name in self.adapter_layer_names + self.other_param_names:
            adapters = getattr(self, name, None)
            known = isinstance(adapters, (nn.ModuleDict, nn.ParameterDict)) and adapter_name in adapters
            if not known or not isinstance(adapters[adapter_name], nn.Module):
                continue
            for module in adapters[adapter_name].modules():
                for key, parameter in list(module._parameters.items()):
                    if parameter is not None:
                        new = torch.empty(parameter.shape, dtype=dtype or parameter.dtype, device=DEVICE)
                        module._parameters[key] = nn.Parameter(new, requires_grad=parameter.requires_grad)

    def magnitude(self, *, base_layer, lora_A, lora_B, scaling, place_on_cpu=False):
        self.weight = nn.Parameter(torch.empty(lora_B.shape[0], dtype=lora_B.dtype, device=DEVICE))

    saved = (
        nn.Linear.reset_parameters,
        BaseTunerLayer._move_adapter_to_device_of_base_layer,
        nn.Module.to,
        dora.DoraLinearLayer.update_layer,
    )
    nn.Linear.reset_parameters = lambda self: None
    BaseTunerLayer._move_adapter_to_device_of_base_layer = move
    nn.Module.to = lambda self, *args, **kwargs: self  # everything is on the right device already
    dora.DoraLinearLayer.update_layer = magnitude
    try:
        yield
    finally:
        (
            nn.Linear.reset_parameters,
            BaseTunerLayer._move_adapter_to_device_of_base_layer,
            nn.Module.to,
            dora.DoraLinearLayer.update_layer,
        ) = saved


def _dequantized(module: nn.Module) -> torch.Tensor:
    """peft.utils.integrations.dequantize_module_weight, which knows bitsandbytes' layers by their weights' class."""
    kind = type(module).__name__
    if kind == "Linear4bit":
        return module.dequantize(torch.bfloat16)
    return dequantize_bnb_weight(module.weight, module.state) if kind == "Linear8bitLt" else dequantize_module_weight(module)


dora.dequantize_module_weight = _dequantized


def _falcon_split_heads(self, fused_qkv):
    """FalconAttention._split_heads for one key and value head, with index tensors instead of lists: a list becomes a
    real tensor, which the recomputation under checkpointing cannot mix with fake ones."""
    batch, length, _ = fused_qkv.shape
    fused_qkv = fused_qkv.view(batch, length, self.num_heads + 2, self.head_dim)
    last, second = (torch.full((1,), index, dtype=torch.int64, device=DEVICE) for index in (-1, -2))
    return fused_qkv[..., :-2, :], fused_qkv[..., second, :], fused_qkv[..., last, :]


modeling_falcon.FalconAttention._split_heads = _falcon_split_heads


class _GroupedMatMul(torch.autograd.Function):
    """torch.nn.functional.grouped_mm of float32 operands, which only the kernel for CUDA accepts: one product per
    group, written into the output (aten/src/ATen/native/GroupedMMUtils.h, _grouped_mm_fallback)."""

    @staticmethod
    def forward(ctx, left, right):
        for_left, for_right = ctx.needs_input_grad
        ctx.save_for_backward(left if for_right else None, right if for_left else None)
        ctx.like = left.shape, right.shape, right.stride()
        return left.new_empty(left.shape[0], right.shape[-1])

    @staticmethod
    def backward(ctx, gradient):
        # Like the operands also in their strides, as _grouped_mm_mat1_backward and _mat2_backward make them.
        rows, matrices, strides = ctx.like
        for_left = gradient.new_empty(rows) if ctx.needs_input_grad[0] else None
        for_right = gradient.new_empty_strided(matrices, strides) if ctx.needs_input_grad[1] else None
        return for_left, for_right


_real_grouped_mm = nn.functional.grouped_mm


def _grouped_mm(left, right, *, offs=None, **kwargs):
    if left.dtype == torch.float32 and left.device.type == "cuda":
        return _GroupedMatMul.apply(left, right)
    return _real_grouped_mm(left, right, offs=offs, **kwargs)


nn.functional.grouped_mm = _grouped_mm
