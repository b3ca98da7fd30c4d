#!/usr/bin/env python3
"""GPU-free oracle for the peak GPU memory of one LLM fine-tuning step.

Runs the real Hugging Face / PEFT training step under FakeTensorMode on a fake CUDA device and counts live
storages (see tracker.py).  Nothing is computed and no weights are needed, so a 70B model costs no memory.
"""
import fakecuda  # noqa: F401  (must come before torch)

import argparse
import contextlib
import gc
import json
import logging
import os
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tracker import NullTracker, StorageTracker

# ---- make a CPU-only build behave like one with a GPU, where only python-level checks are in the way --------
torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.cuda.is_bf16_supported = lambda including_emulation=True: True
torch.cuda.get_device_capability = lambda device=None: (9, 0)

# A CPU build has no CUDA kernel for silu_backward, so the dispatcher would decompose it; with any kernel registered
# (never executed: the fake mode intercepts it) it stays one op, as on a GPU.
_lib = torch.library.Library("aten", "IMPL")
_lib.impl("silu_backward", lambda g, x: torch.empty_like(x), "CUDA")

import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AttentionInterface
from transformers.masking_utils import AttentionMaskInterface
import transformers.masking_utils as _mu

transformers.logging.set_verbosity_error()
logging.getLogger("peft").setLevel(logging.ERROR)
logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
_mu.find_packed_sequence_indices = lambda position_ids: None  # reads tensor values; our sequences are not packed

HERE = os.path.dirname(os.path.abspath(__file__))
aten = torch.ops.aten
DEV = "cuda"


def _falcon_split_heads(self, fused_qkv):
    """FalconAttention._split_heads for one key and value head, with index tensors instead of lists (a list becomes a
    real tensor, which the recomputation under checkpointing cannot mix with fake ones)."""
    b, s, _ = fused_qkv.shape
    fused_qkv = fused_qkv.view(b, s, self.num_heads + 2, self.head_dim)
    last, second = (torch.full((1,), n, dtype=torch.int64, device=DEV) for n in (-1, -2))
    return fused_qkv[..., :-2, :], fused_qkv[..., second, :], fused_qkv[..., last, :]


from transformers.models.falcon import modeling_falcon

modeling_falcon.FalconAttention._split_heads = _falcon_split_heads


# ---- attention: choose the kernel CUDA would choose ---------------------------------------------------------
def _pad_head_dim(t, d):
    return t if t.shape[-1] == d else F.pad(t, (0, d - t.shape[-1]))


_real_sdpa = F.scaled_dot_product_attention


def cuda_sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """F.scaled_dot_product_attention with CUDA's kernel choice (flash > memory-efficient > math)."""
    if query.device.type != "cuda":
        return _real_sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if torch.is_autocast_enabled(DEV):
        dt = torch.get_autocast_dtype(DEV)
        query, key, value = (t.to(dt) if t.dtype == torch.float32 else t for t in (query, key, value))
        if attn_mask is not None and attn_mask.dtype == torch.float32:
            attn_mask = attn_mask.to(dt)
    d = query.shape[-1]
    scale = d**-0.5 if scale is None else scale
    half = query.dtype in (torch.bfloat16, torch.float16)
    if attn_mask is None and half and d <= 256 and d == value.shape[-1]:
        dp = (d + 7) // 8 * 8
        q, k, v = (_pad_head_dim(t, dp) for t in (query, key, value))
        out = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
        return out if dp == d else out[..., :d]
    if enable_gqa and key.shape[1] != query.shape[1]:
        n = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(n, 1), value.repeat_interleave(n, 1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        bias = torch.zeros_like(attn_mask, dtype=query.dtype)
        bias.masked_fill_(attn_mask.logical_not(), float("-inf"))
        attn_mask = bias
    if attn_mask is not None:
        s = attn_mask.shape[-1]
        if s % 16:
            attn_mask = F.pad(attn_mask, (0, 16 - s % 16))[..., :s]
        attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], s)
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, torch.is_grad_enabled(), dropout_p, is_causal, scale=scale
    )[0]


F.scaled_dot_product_attention = cuda_sdpa
torch.nn.functional.scaled_dot_product_attention = cuda_sdpa


def flash_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kw):
    """Memory behaviour of flash_attention_2: no mask, no repeat_kv, saves q, k, v, out and logsumexp."""
    if torch.is_autocast_enabled(DEV) or query.dtype == torch.float32:
        # transformers casts fp32 q/k/v down to the autocast (or weight) dtype before calling the kernel
        query, key, value = (t.to(torch.bfloat16) if t.dtype == torch.float32 else t for t in (query, key, value))
    out = aten._scaled_dot_product_flash_attention(query, key, value, dropout, True, scale=scaling)[0]
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register("oracle_fa", flash_forward)
AttentionMaskInterface.register("oracle_fa", lambda *a, **k: None)


# ---- 4-bit linear layer ------------------------------------------------------------------------------------
class _NF4MatMul(torch.autograd.Function):
    """bitsandbytes.autograd.MatMul4Bit: dequantise for the forward product, and again for the backward one."""

    @staticmethod
    def forward(ctx, x, module, bias):
        ctx.module = module
        return F.linear(x, module.dequantize(x.dtype), bias)

    @staticmethod
    def backward(ctx, g):
        return torch.matmul(g, ctx.module.dequantize(g.dtype)), None, None


def _make_nf4_class():
    try:
        import bitsandbytes as bnb

        base = bnb.nn.Linear4bit
    except Exception:  # bitsandbytes missing: still usable without PEFT's 4-bit LoRA layer
        base = nn.Linear

    class NF4Linear(base):
        """Storage and data flow of bnb.nn.Linear4bit (nf4, block size 64, double quantisation, block 256)."""

        def __init__(self, lin, compute_dtype=torch.bfloat16, double_quant=True):
            nn.Module.__init__(self)
            self.in_features, self.out_features = lin.in_features, lin.out_features
            n = lin.weight.numel()
            w = torch.empty((n + 1) // 2, 1, dtype=torch.uint8, device=DEV)
            self.weight = nn.Parameter(w, requires_grad=False)
            self.weight.compress_statistics, self.weight.quant_type = double_quant, "nf4"
            blocks = (n + 63) // 64
            if double_quant:
                self.absmax = torch.empty(blocks, dtype=torch.uint8, device=DEV)
                self.absmax2 = torch.empty((blocks + 255) // 256, dtype=torch.float32, device=DEV)
                self.code2 = torch.empty(256, dtype=torch.float32, device=DEV)
                self.offset = torch.empty((), dtype=torch.float32, device=DEV)
            else:
                self.absmax = torch.empty(blocks, dtype=torch.float32, device=DEV)
            self.code = torch.empty(16, dtype=torch.float32, device=DEV)
            self.bias = lin.bias
            self.compute_dtype, self.compute_type_is_set, self.quant_state = compute_dtype, True, None
            self.double_quant = double_quant

        def quant_tensors(self):
            return [t for k in ("absmax", "absmax2", "code2", "offset", "code") if (t := self.__dict__.get(k)) is not None]

        def dequantize(self, dtype):
            absmax = self.absmax
            if self.double_quant:
                absmax = torch.empty(absmax.shape, dtype=torch.float32, device=DEV)
            w = torch.empty(self.out_features, self.in_features, dtype=self.compute_dtype, device=DEV)
            del absmax
            return w if w.dtype == dtype else w.to(dtype)

        def forward(self, x):
            inp = x.dtype
            x = x.to(self.compute_dtype)
            bias = None if self.bias is None else self.bias.to(self.compute_dtype)
            return _NF4MatMul.apply(x, self, bias).to(inp)

    NF4Linear.__name__ = "Linear4bit"
    return NF4Linear


# ---- model construction -------------------------------------------------------------------------------------
def load_models():
    with open(os.path.join(HERE, "models.json")) as fh:
        return json.load(fh)


def make_config(entry, n_layers=None, attn="sdpa"):
    cfg = dict(entry["config"])
    mt = cfg.pop("model_type")
    if n_layers:
        cfg["num_hidden_layers"] = n_layers
    conf = AutoConfig.for_model(mt, **cfg)
    conf._attn_implementation = {"flash": "oracle_fa"}.get(attn, attn)
    conf.use_cache = False  # HF Trainer's default
    return conf


def build(conf, attn, dtype):
    """Instantiate on meta, then give every parameter and buffer a fake CUDA storage."""
    impl = {"flash": "oracle_fa"}.get(attn, attn)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(conf, dtype=dtype, attn_implementation=impl)
    model.tie_weights()
    return model


def _is_meta(t):
    return t.device.type == "meta"


def materialize(model, dtype):
    seen = {}

    def conv(p, param):
        if id(p) not in seen:
            dt = dtype if (param and p.is_floating_point()) else p.dtype
            t = torch.empty(p.shape, dtype=dt, device=DEV)
            seen[id(p)] = nn.Parameter(t, requires_grad=p.requires_grad) if param else t
        return seen[id(p)]

    for m in model.modules():
        for k, p in list(m._parameters.items()):
            if p is not None and _is_meta(p):
                m._parameters[k] = conv(p, True)
        for k, b in list(m._buffers.items()):
            if b is not None and _is_meta(b):
                m._buffers[k] = conv(b, False)
        # plain attributes that alias a buffer (e.g. original_inv_freq)
        for k, v in list(m.__dict__.items()):
            if isinstance(v, torch.Tensor) and _is_meta(v):
                m.__dict__[k] = conv(v, False)
    return model


def replace_linears(model, skip=("lm_head",), **kw):
    cls = _make_nf4_class()
    for name, mod in list(model.named_modules()):
        for cn, child in list(mod.named_children()):
            if type(child) is nn.Linear and cn not in skip:
                setattr(mod, cn, cls(child, **kw))


# ---- recipes --------------------------------------------------------------------------------------------------
RECIPES = {
    # name: (weight dtype, autocast, adapters, quantised, notes)
    "full-bf16-pure": dict(w="bf16", autocast=False),
    "full-bf16-autocast": dict(w="bf16", autocast=True),
    "full-mixed-fp32": dict(w="fp32", autocast=True),
    "full-fp32": dict(w="fp32", autocast=False),
    "full-mixed-master": dict(w="bf16", autocast=False, master=True),
    "lora-bf16": dict(w="bf16", autocast=True, lora="fp32"),
    "lora-bf16-pure": dict(w="bf16", autocast=False, lora="bf16"),
    "qlora-nf4": dict(w="bf16", autocast=True, lora="fp32", nf4=True, kbit_prep=True),
    "qlora-nf4-noprep": dict(w="bf16", autocast=True, lora="fp32", nf4=True, kbit_prep=False),
}
DT = {"bf16": torch.bfloat16, "fp32": torch.float32}

TARGETS = {
    "qv": ["q_proj", "v_proj"],
    "attn": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "all-linear": "all-linear",
}


def lora_targets(conf, targets):
    if targets == "all-linear":
        return "all-linear"
    if not isinstance(targets, str):
        return list(targets)
    if conf.model_type == "phi3":
        return {"qv": ["qkv_proj"], "attn": ["qkv_proj", "o_proj"]}[targets]
    return TARGETS[targets]


class MasterAdamW:
    """bf16 weights and gradients, fp32 master copy and moments (single-GPU DeepSpeed/Megatron-like).

    grad32: 'param' casts one gradient at a time; 'all' casts all of them before the step (DeepSpeed ZeRO-1/2
    flattens them); 'persistent' keeps an fp32 gradient buffer all the time (DeepSpeed BF16_Optimizer, Megatron).
    """

    def __init__(self, params, grad32="param", impl="fused"):
        self.params = list(params)
        self.grad32 = grad32
        self.master = [p.detach().float().requires_grad_() for p in self.params]
        self.main_grad = [torch.zeros_like(m) for m in self.master] if grad32 == "persistent" else None
        self.impl = impl
        self.opt = [torch.optim.AdamW([m], lr=1e-5, **impl_kw(impl)) for m in self.master]
        self.opt_all = torch.optim.AdamW(self.master, lr=1e-5, **impl_kw(impl)) if grad32 != "param" else None

    def states(self):
        opts = self.opt if self.opt_all is None else [self.opt_all]
        for m in self.master:
            yield m
        for o in opts:
            for s in o.state.values():
                yield from (v for v in s.values() if isinstance(v, torch.Tensor))
        if self.main_grad:
            yield from self.main_grad

    def step(self):
        if self.grad32 == "param":
            for p, m, o in zip(self.params, self.master, self.opt):
                m.grad = p.grad.float()
                o.step()
                m.grad = None
                p.data.copy_(m.detach())
            return
        for i, (p, m) in enumerate(zip(self.params, self.master)):
            if self.main_grad:
                self.main_grad[i].copy_(p.grad)
                m.grad = self.main_grad[i]
            else:
                m.grad = p.grad.float()
            p.grad = None
        self.opt_all.step()
        for p, m in zip(self.params, self.master):
            p.data.copy_(m.detach())
            m.grad = None

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def _states(opt):
    if isinstance(opt, MasterAdamW):
        yield from opt.states()
        return
    for s in opt.state.values():
        yield from (v for v in s.values() if isinstance(v, torch.Tensor))


def impl_kw(impl):
    return {"fused": dict(fused=True), "foreach": dict(foreach=True), "forloop": dict(foreach=False, fused=False)}[impl]


def run(
    model_name="llama-3.2-1b", recipe="full-bf16-pure", batch=1, seq=512, checkpointing=False, attn="sdpa",
    rank=16, targets="all-linear", dropout=0.0, optimizer="fused", grad32="param", n_layers=None, steps=2,
    keep_outputs=False, padding=False, kernel_workspace=True, log=False, entry=None, block=512,
    device="cuda", fake=True, track=True, warm=False,
):
    """One configuration.  device="cpu", fake=False runs the same code on real tensors (used by validate.py)."""
    global DEV
    DEV = device
    t0 = time.time()
    entry = entry or load_models()[model_name]
    r = RECIPES[recipe]
    conf = make_config(entry, n_layers, attn)
    wdt = DT[r["w"]]
    model = build(conf, attn, wdt)
    n_params = sum(p.numel() for p in model.parameters())

    fm = FakeTensorMode(allow_non_fake_inputs=True) if fake else contextlib.nullcontext()
    tr = StorageTracker(device, block, kernel_workspace, log) if track else NullTracker()
    with fm:
        if r.get("nf4"):
            if any(p.dim() == 3 for p in model.parameters()):
                raise ValueError("bitsandbytes quantises nn.Linear only; this model keeps its experts in 3-D parameters")
            for p in model.parameters():
                p.requires_grad_(False)
            replace_linears(model)
        materialize(model, wdt)
        if r.get("nf4"):
            model.is_loaded_in_4bit = True
            model.is_quantized = True
        model.train()
        if r.get("nf4") and r.get("kbit_prep"):
            _prepare_kbit(model)
        if r.get("lora"):
            from peft import LoraConfig, get_peft_model

            lc = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=dropout, bias="none", task_type="CAUSAL_LM",
                            target_modules=lora_targets(conf, targets), init_lora_weights=False)
            with _fake_friendly_peft(), torch.device(DEV):
                model = get_peft_model(model, lc, autocast_adapter_dtype=(r["lora"] == "fp32"))
            for n, p in model.named_parameters():
                if "lora_" in n and p.dtype != DT[r["lora"]]:
                    raise RuntimeError(f"adapter dtype {p.dtype}")
            model.train()
        if checkpointing:
            base = model.get_base_model() if r.get("lora") else model
            base.config.use_cache = False
            fn = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
            fn({"use_reentrant": False})
        trainable = [p for p in model.parameters() if p.requires_grad]
        n_trainable = sum(p.numel() for p in trainable)

        opt = None
        gc.collect()
        gc.freeze()  # keep the collector from walking the model over and over
        with tr:
            for p in model.parameters():
                tr.track(p, "param" if p.requires_grad else "frozen_param")
            for m in model.modules():
                if hasattr(m, "quant_tensors"):
                    for t in m.quant_tensors():
                        tr.track(t, "frozen_param")
            for b in model.buffers():
                tr.track(b, "buffer")
            tr.set("load", "buffer")
            tr.snapshot("after_load")
            for p in trainable:
                p.register_post_accumulate_grad_hook(lambda p: tr.track(p.grad, "grad"))
            if r.get("master"):
                tr.set("load", "optimizer")
                opt = MasterAdamW(trainable, grad32, optimizer)
            else:
                opt = torch.optim.AdamW(trainable, lr=1e-5, **impl_kw(optimizer))

            base = model.get_base_model() if r.get("lora") else model
            loss_fn = base.loss_function

            def wrapped_loss(*a, **k):
                tr.snapshot(f"before_loss_{step}")
                tr.set("loss", "loss")
                out = loss_fn(*a, **k)
                tr.snapshot(f"after_loss_{step}")
                return out

            base.loss_function = wrapped_loss
            head = base.get_output_embeddings()

            def pre_head(mod, args):
                tr.snapshot(f"before_head_{step}")
                tr.set("head", "logits")

            head.register_forward_pre_hook(pre_head)

            if warm:  # create the optimizer's state with an empty step, so that one real step suffices
                tr.set("warm", "optim_temp")
                for p in trainable:
                    p.grad = torch.zeros_like(p)
                opt.step()
                for t in _states(opt):
                    tr.track(t, "optimizer")
                t = None
                opt.zero_grad()
                tr.reset_peaks()
            for step in range(steps):
                tr.set("input", "input")
                ids = torch.zeros(batch, seq, dtype=torch.int64, device=DEV)
                labels = torch.zeros(batch, seq, dtype=torch.int64, device=DEV)
                mask = None
                if padding:
                    mask = torch.empty(batch, seq, dtype=torch.int64, device=DEV)
                tr.set("forward", "activation")
                ctx = torch.autocast(DEV, dtype=torch.bfloat16) if r["autocast"] else contextlib.nullcontext()
                with ctx:
                    out = model(input_ids=ids, labels=labels, attention_mask=mask)
                if r["autocast"]:
                    tr.set("loss", "loss")
                    out = _to_fp32(out)  # accelerate's ConvertOutputsToFp32
                loss = out["loss"]
                if not keep_outputs:
                    del out
                tr.snapshot(f"before_backward_{step}")
                tr.set("backward", "backward")
                loss.backward()
                del loss
                if keep_outputs:
                    del out
                tr.snapshot(f"after_backward_{step}")
                tr.set("optim", "optim_temp")
                opt.step()
                for t in _states(opt):
                    tr.track(t, "optimizer")
                t = None
                tr.snapshot(f"after_step_{step}")
                opt.zero_grad()
                del ids, labels, mask
                tr.set("steady", "other")
                tr.snapshot(f"steady_{step}")
    last = steps - 1
    snap = tr.snapshots
    pk = tr.peak_info.get("by_category", {})
    act_cats = ("activation", "weight_cast", "logits", "loss")
    g = lambda name: snap.get(name, {}).get("bytes", 0)
    res = dict(
        model=model_name, recipe=recipe, attn=attn, checkpointing=int(checkpointing), batch=batch, seq=seq,
        lora_rank=rank if r.get("lora") else "", lora_targets=targets if r.get("lora") else "",
        lora_dropout=dropout if r.get("lora") else "", optimizer=optimizer, master_grad32=grad32 if r.get("master") else "",
        padding=int(padding), keep_outputs=int(keep_outputs), n_layers=conf.num_hidden_layers,
        params=n_params, trainable_params=n_trainable,
        peak_bytes=tr.peak, peak_phase=tr.peak_info.get("phase"), peak_op=tr.peak_info.get("op"),
        after_load_bytes=g("after_load"), steady_bytes=g(f"steady_{last}"),
        before_head_bytes=g(f"before_head_{last}"), before_loss_bytes=g(f"before_loss_{last}"),
        after_loss_bytes=g(f"after_loss_{last}"), before_backward_bytes=g(f"before_backward_{last}"),
        after_backward_bytes=g(f"after_backward_{last}"), after_step_bytes=g(f"after_step_{last}"),
        peak_forward_bytes=tr.phase_peak["forward"], peak_head_bytes=tr.phase_peak["head"],
        peak_loss_bytes=tr.phase_peak["loss"],
        peak_backward_bytes=tr.phase_peak["backward"], peak_optim_bytes=tr.phase_peak["optim"],
        peak_params=pk.get("param", 0) + pk.get("frozen_param", 0), peak_grads=pk.get("grad", 0),
        peak_optimizer=pk.get("optimizer", 0), peak_activations=pk.get("activation", 0),
        peak_weight_casts=pk.get("weight_cast", 0), peak_logits=pk.get("logits", 0), peak_loss_tensors=pk.get("loss", 0),
        peak_backward_temps=pk.get("backward", 0), peak_kernel_workspace=pk.get("kernel_workspace", 0),
        peak_other=sum(v for k, v in pk.items() if k not in (
            "param", "frozen_param", "grad", "optimizer", "activation", "weight_cast", "logits", "loss", "backward",
            "kernel_workspace")),
        saved_activations_before_head=sum(v for k, v in snap.get(f"before_head_{last}", {}).get("by_category", {}).items()
                                          if k == "activation"),
        saved_weight_casts_before_head=snap.get(f"before_head_{last}", {}).get("by_category", {}).get("weight_cast", 0),
        seconds=round(time.time() - t0, 1),
    )
    res["_tracker"] = tr
    return res


def _to_fp32(out):
    for k in list(out.keys()):
        v = out[k]
        if isinstance(v, torch.Tensor) and v.dtype in (torch.float16, torch.bfloat16):
            out[k] = v.float()
    return out


@contextlib.contextmanager
def _fake_friendly_peft():
    """PEFT moves new adapters with Module.to(), which cannot swap fake parameters; make new ones instead."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    def move(self, adapter_name, device=None):
        base = self.get_base_layer()
        w = getattr(base, "weight", None)
        dtype = getattr(base, "compute_dtype", None) or (w.dtype if w is not None and w.dtype.is_floating_point else None)
        for name in self.adapter_layer_names + self.other_param_names:
            d = getattr(self, name, None)
            if isinstance(d, (nn.ModuleDict, nn.ParameterDict)) and adapter_name in d and isinstance(d[adapter_name], nn.Module):
                for m in d[adapter_name].modules():
                    for k, p in list(m._parameters.items()):
                        if p is not None:
                            t = torch.empty(p.shape, dtype=dtype or p.dtype, device=DEV)
                            m._parameters[k] = nn.Parameter(t, requires_grad=p.requires_grad)

    saved = nn.Linear.reset_parameters, BaseTunerLayer._move_adapter_to_device_of_base_layer, nn.Module.to
    nn.Linear.reset_parameters = lambda self: None
    nn.Module.to = lambda self, *a, **k: self  # everything is on the right device already
    BaseTunerLayer._move_adapter_to_device_of_base_layer = move
    try:
        yield
    finally:
        nn.Linear.reset_parameters, BaseTunerLayer._move_adapter_to_device_of_base_layer, nn.Module.to = saved


def _prepare_kbit(model):
    """peft.prepare_model_for_kbit_training: freeze, and cast every remaining 16-bit parameter to fp32."""
    memo = {}
    for m in model.modules():
        for k, p in list(m._parameters.items()):
            if p is None:
                continue
            if id(p) not in memo:
                q = nn.Parameter(p.detach().float(), requires_grad=False) if p.dtype in (torch.bfloat16, torch.float16) else p
                memo[id(p)] = (p, q)
            m._parameters[k] = memo[id(p)][1]
            m._parameters[k].requires_grad_(False)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--model", default="llama-3.2-1b", choices=sorted(load_models()))
    ap.add_argument("--recipe", default="full-bf16-pure", choices=sorted(RECIPES))
    ap.add_argument("--batch", type=int, default=1)
    ap.add_argument("--seq", type=int, default=512)
    ap.add_argument("--checkpointing", action="store_true", help="gradient checkpointing, use_reentrant=False")
    ap.add_argument("--attn", default="sdpa", choices=["sdpa", "flash", "eager"])
    ap.add_argument("--rank", type=int, default=16)
    ap.add_argument("--targets", default="all-linear", choices=sorted(TARGETS))
    ap.add_argument("--dropout", type=float, default=0.0)
    ap.add_argument("--optimizer", default="fused", choices=["fused", "foreach", "forloop"])
    ap.add_argument("--grad32", default="param", choices=["param", "all", "persistent"], help="full-mixed-master only")
    ap.add_argument("--layers", type=int, default=None, help="override the number of layers")
    ap.add_argument("--padding", action="store_true", help="batch with padding: sdpa needs an explicit mask")
    ap.add_argument("--keep-outputs", action="store_true", help="the caller keeps model outputs alive during backward")
    ap.add_argument("--no-kernel-workspace", action="store_true")
    ap.add_argument("--fast", action="store_true", help="create optimizer state first, then run one step instead of two")
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--trace", type=int, default=0, help="print the N ops that changed live bytes around the peak")
    a = ap.parse_args()
    res = run(a.model, a.recipe, a.batch, a.seq, a.checkpointing, a.attn, a.rank, a.targets, a.dropout, a.optimizer,
              a.grad32, a.layers, keep_outputs=a.keep_outputs, padding=a.padding,
              kernel_workspace=not a.no_kernel_workspace, log=bool(a.trace), steps=1 if a.fast else 2, warm=a.fast)
    tr = res.pop("_tracker")
    res["peak_by_category"] = tr.peak_info.get("by_category")
    if a.json:
        res["snapshots"] = tr.snapshots
        print(json.dumps(res, indent=1))
    else:
        for k, v in res.items():
            print(f"{k:34s} {v if not (isinstance(v, int) and v > 1 << 20) else f'{v:>16,d}  ({v / 2**30:.3f} GiB)'}")
    if a.trace:
        i = max(range(len(tr.log)), key=lambda i: tr.log[i][3])
        for e in tr.log[max(0, i - a.trace): i + a.trace]:
            print("%-9s %-60s %+14d %16d" % e)


if __name__ == "__main__":
    main()
