"""The numbers that fix one decoder layer, in elements, named as in config.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """A gated delta net (linear attention) in place of the attention; names as in config.json without `linear_`.

    kernel   tokens that the convolution sees
    """

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    kernel: int

    @property
    def key_size(self) -> int:
        """Width of all key heads together; queries have the same."""
        return self.num_key_heads * self.key_head_dim

    @property
    def value_size(self) -> int:
        """Width of all value heads together."""
        return self.num_value_heads * self.value_head_dim

    @property
    def conv_size(self) -> int:
        """Channels of the convolution: queries, keys and values."""
        return 2 * self.key_size + self.value_size

    @property
    def state_key_size(self) -> int:
        """Width of the keys once there is one key head per value head."""
        return self.num_value_heads * self.key_head_dim


@dataclass(frozen=True, slots=True)
class LatentShape:
    """Multi-head latent attention: ranks of its narrow projections, and what of each head is not rotated and what is."""

    q_lora_rank: int
    kv_lora_rank: int
    nope_dim: int
    rope_dim: int


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One decoder layer; sizes in elements, names as in config.json.

    attention   "full" or "sliding"; "linear" with a delta net
    rotary      whether queries and keys are rotated
    rotary_dim  elements of each head that are rotated
    num_experts, num_experts_per_tok   0 in a dense layer
    intermediate_size   of the MLP, or of one expert
    keys        "own"; "values": keys serve as values too; "shared": keys and values of an earlier layer of the kind
    stores      its keys and values stay for later layers
    dense_size  of an MLP beside the experts, 0 without one
    shared_size   of the expert that every token passes, 0 without one
    delta       the linear attention that stands in place of the attention
    latent      multi-head latent attention in its place
    """

    attention: str
    rotary: bool
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    num_experts: int
    num_experts_per_tok: int
    rotary_dim: int
    shared_size: int = 0
    keys: str = "own"
    stores: bool = False
    dense_size: int = 0
    delta: DeltaShape | None = None
    latent: LatentShape | None = None

    @property
    def query_size(self) -> int:
        """Width of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def key_value_size(self) -> int:
        """Width of all key heads together; values have the same."""
        return self.num_key_value_heads * self.head_dim
