"""The attention kernel that CUDA would choose, by its memory behaviour.

`F.scaled_dot_product_attention` is replaced for fake CUDA tensors by the choice flash > memory-efficient; the name
`oracle_fa` registers a flash_attention_2 with transformers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import transformers.masking_utils as masking_utils
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

aten = torch.ops.aten
IMPLEMENTATIONS = {"flash": "oracle_fa", "sdpa": "sdpa", "eager": "eager"}

# It reads values of a tensor; our sequences are not packed.
masking_utils.find_packed_sequence_indices = lambda position_ids: None

_real_sdpa = F.scaled_dot_product_attention


def _padded(x: torch.Tensor, head_dim: int) -> torch.Tensor:
    return x if x.shape[-1] == head_dim else F.pad(x, (0, head_dim - x.shape[-1]))


def cuda_sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """F.scaled_dot_product_attention with CUDA's choice of kernel."""
    if query.device.type != "cuda":
        return _real_sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        query, key, value = (x.to(dtype) if x.dtype == torch.float32 else x for x in (query, key, value))
        if attn_mask is not None and attn_mask.dtype == torch.float32:
            attn_mask = attn_mask.to(dtype)
    d = query.shape[-1]
    scale = d**-0.5 if scale is None else scale
    half = query.dtype in (torch.bfloat16, torch.float16)
    if attn_mask is None and half and d <= 256 and d == value.shape[-1]:
        padded = (d + 7) // 8 * 8
        q, k, v = (_padded(x, padded) for x in (query, key, value))
        out = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
        return out if padded == d else out[..., :d]
    if enable_gqa and key.shape[1] != query.shape[1]:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
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


def flash_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
    """flash_attention_2: no mask, no repeated heads; saves q, k, v, out and logsumexp; fp32 inputs are cast first."""
    if torch.is_autocast_enabled("cuda") or query.dtype == torch.float32:
        query, key, value = (x.to(torch.bfloat16) if x.dtype == torch.float32 else x for x in (query, key, value))
    out = aten._scaled_dot_product_flash_attention(query, key, value, dropout, True, scale=scaling)[0]
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register("oracle_fa", flash_forward)
AttentionMaskInterface.register("oracle_fa", lambda *args, **kwargs: None)
