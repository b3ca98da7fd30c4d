"""Quantised linear layers with the storage and data flow of bitsandbytes, and PEFT's k-bit preparation."""

from __future__ import annotations

import bitsandbytes as bnb
import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"


class NF4MatMul(torch.autograd.Function):
    """bitsandbytes.autograd.MatMul4Bit: dequantise for the forward product, and again for the backward one."""

    @staticmethod
    def forward(ctx, x, module, bias):
        ctx.module = module
        return F.linear(x, module.dequantize(x.dtype), bias)

    @staticmethod
    def backward(ctx, gradient):
        return torch.matmul(gradient, ctx.module.dequantize(gradient.dtype)), None, None


class NF4Linear(bnb.nn.Linear4bit):
    """bnb.nn.Linear4bit (nf4, blocks of 64, with double quantisation blocks of 256)."""

    def __init__(self, linear: nn.Linear, double_quant: bool = True):
        nn.Module.__init__(self)
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        count = linear.weight.numel()
        weight = torch.empty((count + 1) // 2, 1, dtype=torch.uint8, device=DEVICE)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.weight.compress_statistics, self.weight.quant_type = double_quant, "nf4"
        blocks = (count + 63) // 64
        self.quant_tensors = {"code": torch.empty(16, dtype=torch.float32, device=DEVICE)}
        if double_quant:
            self.quant_tensors["absmax"] = torch.empty(blocks, dtype=torch.uint8, device=DEVICE)
            self.quant_tensors["absmax2"] = torch.empty((blocks + 255) // 256, dtype=torch.float32, device=DEVICE)
            self.quant_tensors["code2"] = torch.empty(256, dtype=torch.float32, device=DEVICE)
            self.quant_tensors["offset"] = torch.empty((), dtype=torch.float32, device=DEVICE)
        else:
            self.quant_tensors["absmax"] = torch.empty(blocks, dtype=torch.float32, device=DEVICE)
        self.compute_dtype, self.compute_type_is_set, self.quant_state = torch.bfloat16, True, None
        self.double_quant = double_quant

    def dequantize(self, dtype: torch.dtype) -> torch.Tensor:
        """The weight in 16 bits, made with the constants in float32."""
        absmax = self.quant_tensors["absmax"]
        if self.double_quant:
            absmax = torch.empty(absmax.shape, dtype=torch.float32, device=DEVICE)
        weight = torch.empty(self.out_features, self.in_features, dtype=self.compute_dtype, device=DEVICE)
        del absmax
        return weight if weight.dtype == dtype else weight.to(dtype)

    def forward(self, x):
        dtype = x.dtype
        bias = None if self.bias is None else self.bias.to(self.compute_dtype)
        return NF4MatMul.apply(x.to(self.compute_dtype), self, bias).to(dtype)


class Int8Linear(bnb.nn.Linear8bitLt):
    """bnb.nn.Linear8bitLt as it is after loading; its forward and MatMul8bitLt are the real ones, without outliers."""

    def __init__(self, linear: nn.Linear):
        nn.Module.__init__(self)
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        weight = torch.empty(linear.weight.shape, dtype=torch.int8, device=DEVICE)
        scales = torch.empty(linear.out_features, dtype=torch.float32, device=DEVICE)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.weight.CB = self.weight.SCB = None
        self.index = None
        self.state = bnb.MatmulLtState()
        self.state.CB, self.state.SCB, self.state.threshold, self.state.has_fp16_weights = weight, scales, 0.0, False
        self.quant_tensors = {"SCB": scales}

    def forward(self, x):
        self.state.is_training = self.training
        return bnb.matmul(x, self.weight, bias=self.bias, state=self.state)


# PEFT recognises bitsandbytes' layers by the name of their class.
NF4Linear.__name__ = "Linear4bit"
Int8Linear.__name__ = "Linear8bitLt"


def replace_linears(model: nn.Module, quantization: str, double_quant: bool, skip: tuple[str, ...] = ("lm_head",)) -> None:
    """Quantise every nn.Linear but those named in `skip`, as transformers' bitsandbytes quantizer does."""
    if any(parameter.dim() == 3 and "conv1d" not in name for name, parameter in model.named_parameters()):
        raise ValueError("bitsandbytes quantises nn.Linear only; this model keeps its experts in 3-D parameters")
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and name not in skip:
                new = Int8Linear(child) if quantization == "int8" else NF4Linear(child, double_quant)
                setattr(module, name, new)
    model.is_loaded_in_8bit, model.is_loaded_in_4bit = quantization == "int8", quantization != "int8"
    model.is_quantized = True


def prepare_kbit(model: nn.Module) -> None:
    """peft.prepare_model_for_kbit_training: freeze, and cast every remaining 16-bit parameter to float32."""
    casts: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is None:
                continue
            if id(parameter) not in casts:
                half = parameter.dtype in (torch.bfloat16, torch.float16)
                cast = nn.Parameter(parameter.detach().float(), requires_grad=False) if half else parameter
                # The original is kept so that its id stays its own.
                casts[id(parameter)] = cast
                cast.cast_from = parameter if half else None
            module._parameters[name] = casts[id(parameter)]
            module._parameters[name].requires_grad_(False)
    for cast in casts.values():
        cast.cast_from = None
