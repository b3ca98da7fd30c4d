"""Counts live tensor storages under a TorchDispatchMode, the way a caching allocator would count them.

Every storage is rounded up to 512 bytes (the block granularity of PyTorch's CUDA allocator) and lives from
the op that created it until its last reference dies, which a weak reference on the storage reports.
The numbers correspond to torch.cuda.memory_allocated(), not to memory_reserved() or to nvidia-smi.
"""
import weakref
from collections import defaultdict

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

BLOCK = 512
DEVICE_TYPE = "cuda"
aten = torch.ops.aten


def _flash_bwd_workspace(args):
    """Buffers that FlashAttention-2's backward allocates inside one ATen op (flash_api.cpp, mha_bwd)."""
    q, k = args[1], args[2]
    b, h, s, d = q.shape
    hk = k.shape[1]
    s_r = (s + 127) // 128 * 128
    step = 32 if d <= 128 else 64
    d_r = (d + step - 1) // step * step
    ws = 4 * b * s_r * h * d_r + 4 * b * h * s_r  # dq accumulator and softmax_d, both fp32
    if hk != h:  # dk and dv are first computed per query head, then summed over each group
        ws += 2 * b * k.shape[2] * h * d * q.element_size()
    return ws


def _eff_bwd_workspace(args):
    """memory-efficient attention backward: fp32 delta and (for half types) an fp32 dq accumulator."""
    q = args[1]
    b, h, s, d = q.shape
    return 4 * b * h * s + (4 * b * h * s * d if q.element_size() == 2 else 0)


WORKSPACE = {
    aten._scaled_dot_product_flash_attention_backward.default: _flash_bwd_workspace,
    aten._scaled_dot_product_efficient_attention_backward.default: _eff_bwd_workspace,
}


WRITTEN_IN_PLACE = {aten.index_put.default, aten.scatter_add.default, aten.scatter.src, aten.scatter.value}


class StorageTracker(TorchDispatchMode):
    """Counts what lives on the fake CUDA device, by category, and remembers the peak.

    With `log`, `log` lists the ops that changed the total, and `peak_info["tensors"]` everything alive at the peak.
    """

    def __init__(self, log=False):
        super().__init__()
        self.live = {}  # id(weakref key) -> [bytes, category]
        self.totals = defaultdict(int)
        self.total = 0
        self.phase = "setup"
        self.category = "other"
        self.peak = 0
        self.peak_info = {}
        self.phase_peak = defaultdict(int)
        self.phase_peak_info = {}
        self.log = [] if log else None
        self.op = None
        self.pending = None

    # -- bookkeeping ------------------------------------------------------------------------
    def _key(self, st):
        return st._cdata

    def track(self, t, category=None, check=True):
        """Start tracking (or re-categorise) the storage behind tensor t."""
        if not isinstance(t, torch.Tensor) or t.device.type != DEVICE_TYPE:
            return
        st = t.untyped_storage()
        key = self._key(st)
        rec = self.live.get(key)
        if rec is not None:
            if category is not None and rec[1] != category:
                self.totals[rec[1]] -= rec[0]
                self.totals[category] += rec[0]
                rec[1] = category
            return
        n = st.nbytes()
        if n == 0:
            return
        n = (n + BLOCK - 1) // BLOCK * BLOCK
        cat = category or self.category
        rec = [n, cat, None, (self.phase, str(self.op), tuple(t.shape), t.dtype) if self.log is not None else None]

        def dead(_, key=key, rec=rec, self=self):
            if self.live.get(key) is rec:
                del self.live[key]
            self.total -= rec[0]
            self.totals[rec[1]] -= rec[0]

        rec[2] = weakref.ref(st, dead)
        self.live[key] = rec
        self.total += n
        self.totals[cat] += n
        if check:
            self._check(0)

    def _check(self, extra):
        cur = self.total + extra
        if cur > self.phase_peak[self.phase]:
            self.phase_peak[self.phase] = cur
            self.phase_peak_info[self.phase] = self._info(extra)
            if cur > self.peak:
                self.peak = cur
                self.peak_info = self.phase_peak_info[self.phase]

    def _info(self, extra=0):
        d = {k: v for k, v in self.totals.items() if v}
        if extra:
            d["kernel_workspace"] = extra
        info = {"phase": self.phase, "op": str(self.op), "bytes": self.total + extra, "by_category": d}
        if self.log is not None:
            info["tensors"] = [(rec[0], rec[1], *rec[3]) for rec in self.live.values()]
        return info

    def reset_peaks(self):
        self._settle()
        self.peak, self.peak_info = 0, {}
        self.phase_peak.clear()
        self.phase_peak_info.clear()

    def set(self, phase, category=None):
        self._settle()
        self.phase = phase
        self.category = category or phase
        self._check(0)

    # -- what autograd does in place with real tensors only ------------------------------------
    # When two gradients meet, the engine adds in place if it holds the last reference to the first one.  Under
    # any dispatch mode (or with FakeTensors) it adds out of place instead, which a real run would not do.  The same
    # goes for the gradients of indexing, gather and top-k, which write into zeros (areAnyTensorSubclassLike in
    # torch/csrc/autograd/FunctionsManual.cpp).  So the result of such an op is counted only from the next op on,
    # unless the old tensor is still alive then.
    def _settle(self):
        if self.pending is None:
            return
        key, rec, total, info, phase = self.pending
        self.pending = None
        if self.live.get(key) is rec and total > self.phase_peak[phase]:
            self.phase_peak[phase] = total
            self.phase_peak_info[phase] = info
            if total > self.peak:
                self.peak, self.peak_info = total, info
        self._check(0)

    def _is_accumulation(self, func, args, kwargs):
        if self.phase != "backward" or torch.is_grad_enabled():
            return False
        if func in WRITTEN_IN_PLACE:
            return True
        return (
            func is aten.add.Tensor
            and len(args) == 2
            and not kwargs
            and isinstance(args[1], torch.Tensor)
            and args[0].shape == args[1].shape
            and args[0].dtype == args[1].dtype
        )

    # -- dispatch ---------------------------------------------------------------------------
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._settle()
        self.op = func
        out = func(*args, **kwargs)
        if self._is_accumulation(func, args, kwargs):
            self.track(out, check=False)
            key = self._key(args[0].untyped_storage())
            self.pending = (key, self.live.get(key), self.total, self._info(), self.phase)
            if self.log is not None:
                self.log.append((self.phase, "accumulate:" + str(func), 0, self.total))
            return out
        before = self.total
        cat = None
        if func is aten._to_copy.default and self.phase in ("forward", "head", "backward"):
            rec = self.live.get(self._key(args[0].untyped_storage())) if args[0].device.type == DEVICE_TYPE else None
            if rec is not None and rec[1] in ("param", "frozen_param"):
                cat = "weight_cast"  # low-precision copy of a weight (autocast)
        for t in (out,) if isinstance(out, torch.Tensor) else tree_leaves(out):
            if isinstance(t, torch.Tensor):
                if cat and self.live.get(self._key(t.untyped_storage())) is None:
                    self.track(t, cat)
                else:
                    self.track(t)
        if func in WORKSPACE:
            self._check(WORKSPACE[func](args))
        if self.log is not None:
            if self.total != before:
                self.log.append((self.phase, str(func), self.total - before, self.total))
        return out
