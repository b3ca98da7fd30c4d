"""Mixtures of experts, hybrids and the newest dense families: real widths, few layers of every kind."""

from __future__ import annotations

CONFIGS: tuple[dict[str, object], ...] = (
    dict(model_type="mixtral", hidden_size=2048, intermediate_size=7168, num_hidden_layers=3, num_attention_heads=16,
         num_key_value_heads=4, vocab_size=32000, num_local_experts=8, num_experts_per_tok=2),
    dict(model_type="qwen3_moe", hidden_size=2048, intermediate_size=6144, num_hidden_layers=3, num_attention_heads=32,
         num_key_value_heads=4, head_dim=128, vocab_size=32000, moe_intermediate_size=768, num_experts=64,
         num_experts_per_tok=8, decoder_sparse_step=1, norm_topk_prob=True),
    dict(model_type="qwen3_moe", hidden_size=1536, intermediate_size=4608, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=4, head_dim=96, vocab_size=8000, moe_intermediate_size=512, num_experts=16,
         num_experts_per_tok=4, decoder_sparse_step=2, norm_topk_prob=False, mlp_only_layers=[3]),
    dict(model_type="gpt_oss", hidden_size=2880, intermediate_size=2880, num_hidden_layers=4, num_attention_heads=64,
         num_key_value_heads=8, head_dim=64, vocab_size=50000, sliding_window=128, attention_bias=True,
         num_experts_per_tok=4, num_local_experts=8),
    dict(model_type="ministral3", hidden_size=3072, intermediate_size=9216, num_hidden_layers=4, num_attention_heads=32,
         num_key_value_heads=8, head_dim=128, vocab_size=32000, tie_word_embeddings=True),
    dict(model_type="olmo3", hidden_size=2048, intermediate_size=5504, num_hidden_layers=5, num_attention_heads=16,
         num_key_value_heads=16, vocab_size=20000, sliding_window=512, pad_token_id=1),
    dict(model_type="smollm3", hidden_size=2048, intermediate_size=11008, num_hidden_layers=5, num_attention_heads=16,
         num_key_value_heads=4, vocab_size=128256, tie_word_embeddings=True),
    dict(model_type="qwen3_5_text", hidden_size=2560, intermediate_size=9216, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=4, head_dim=256, vocab_size=32000, tie_word_embeddings=True, linear_num_key_heads=16,
         linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, full_attention_interval=4,
         linear_num_value_heads=32),
    dict(model_type="qwen3_5_moe_text", hidden_size=2048, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=2, head_dim=256, vocab_size=32000, linear_num_key_heads=16, linear_key_head_dim=128,
         linear_value_head_dim=128, linear_conv_kernel_dim=4, full_attention_interval=4, linear_num_value_heads=32,
         num_experts=32, num_experts_per_tok=8, moe_intermediate_size=512, shared_expert_intermediate_size=512),
    dict(model_type="qwen3_next", hidden_size=2048, intermediate_size=5120, num_hidden_layers=4, num_attention_heads=16,
         num_key_value_heads=2, head_dim=256, vocab_size=32000, linear_num_key_heads=16, linear_key_head_dim=128,
         linear_value_head_dim=128, linear_conv_kernel_dim=4, full_attention_interval=4, linear_num_value_heads=32,
         num_experts=32, num_experts_per_tok=8, moe_intermediate_size=512, shared_expert_intermediate_size=512),
    dict(model_type="gemma4_text", hidden_size=1536, intermediate_size=6144, num_hidden_layers=7, num_attention_heads=8,
         num_key_value_heads=1, head_dim=256, vocab_size=32000, tie_word_embeddings=True, sliding_window=512,
         global_head_dim=512, final_logit_softcapping=30.0, num_kv_shared_layers=3, hidden_size_per_layer_input=256,
         vocab_size_per_layer_input=32000, use_double_wide_mlp=True,
         layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention",
                      "sliding_attention", "sliding_attention", "full_attention"]),
    dict(model_type="gemma4_text", hidden_size=2816, intermediate_size=2112, num_hidden_layers=3, num_attention_heads=16,
         num_key_value_heads=8, head_dim=256, vocab_size=32000, tie_word_embeddings=True, sliding_window=1024,
         global_head_dim=512, final_logit_softcapping=30.0, num_global_key_value_heads=2, attention_k_eq_v=True,
         hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=16, top_k_experts=8, moe_intermediate_size=704,
         layer_types=["sliding_attention", "sliding_attention", "full_attention"]),
    dict(model_type="gemma4_text", hidden_size=2688, intermediate_size=10752, num_hidden_layers=3, num_attention_heads=16,
         num_key_value_heads=8, head_dim=256, vocab_size=32000, tie_word_embeddings=True, sliding_window=1024,
         global_head_dim=512, final_logit_softcapping=30.0, num_global_key_value_heads=2, attention_k_eq_v=True,
         hidden_size_per_layer_input=0, layer_types=["sliding_attention", "sliding_attention", "full_attention"]),
    dict(model_type="olmo_hybrid", hidden_size=3840, intermediate_size=11008, num_hidden_layers=4, num_attention_heads=30,
         vocab_size=100352),
    dict(model_type="glm4_moe_lite", hidden_size=2048, intermediate_size=10240, num_hidden_layers=3,
         num_attention_heads=20, num_key_value_heads=20, vocab_size=20000, q_lora_rank=768, kv_lora_rank=512,
         qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, first_k_dense_replace=1, n_routed_experts=16,
         n_shared_experts=1, num_experts_per_tok=4, moe_intermediate_size=1536),
    dict(model_type="glm4_moe", hidden_size=2048, intermediate_size=5632, num_hidden_layers=3, num_attention_heads=32,
         num_key_value_heads=4, head_dim=128, vocab_size=20000, first_k_dense_replace=1, n_routed_experts=16,
         n_shared_experts=1, num_experts_per_tok=4, moe_intermediate_size=704, use_qk_norm=True, attention_bias=True),
    dict(model_type="granitemoe", hidden_size=1536, intermediate_size=512, num_hidden_layers=3, num_attention_heads=24,
         num_key_value_heads=8, vocab_size=20000, num_local_experts=16, num_experts_per_tok=4, tie_word_embeddings=True),
    dict(model_type="granite_swa", hidden_size=2560, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=20,
         num_key_value_heads=4, vocab_size=20000, tie_word_embeddings=True, sliding_window=128),
    dict(model_type="nemotron_h", hidden_size=2688, intermediate_size=1856, num_hidden_layers=4, num_attention_heads=32,
         num_key_value_heads=2, head_dim=128, vocab_size=20000, hybrid_override_pattern="ME*M", mamba_num_heads=64,
         mamba_head_dim=64, n_groups=8, ssm_state_size=128, conv_kernel=4, chunk_size=128, expand=2, n_routed_experts=16,
         n_shared_experts=1, num_experts_per_tok=6, moe_intermediate_size=1856,
         moe_shared_expert_intermediate_size=3712, mlp_hidden_act="relu2", use_conv_bias=True),
    dict(model_type="falcon", hidden_size=4544, num_hidden_layers=4, num_attention_heads=71, vocab_size=20000,
         tie_word_embeddings=True, multi_query=True, parallel_attn=True, new_decoder_architecture=False, bias=False,
         alibi=False),
)  # fmt: skip

# PEFT's short names do not fit these: other module names, or modules that PEFT refuses to adapt.
TARGETS = {
    "falcon": "query_key_value dense",
    "nemotron_h": "q_proj k_proj v_proj o_proj up_proj down_proj",
}

# Its attention has other projections.
LATENT_ATTENTION = {"glm4_moe_lite": "q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj o_proj"}

# Attention kernels that the modelling code of a family refuses.
ONLY = {"gpt_oss": ("flash", "eager"), "granite_swa": ("flash", "eager")}


def plan() -> list[dict[str, object]]:
    """Configuration and settings of each run: pure and mixed precision, adapters on attention and everywhere, both ways."""
    runs = []
    for config in CONFIGS:
        attentions = ONLY.get(config["model_type"], ("sdpa", "flash"))
        for index, (recipe, extra) in enumerate(
            (
                ("full-bf16-pure", {}),
                ("full-mixed-fp32", {}),
                ("lora-bf16", {"targets": "attn"}),
                ("lora-bf16", {"targets": "all-linear"}),
                ("lora-bf16-pure", {"targets": "attn", "dropout": 0.05}),
                ("qlora-nf4", {"targets": "all-linear"}),
            )
        ):
            for checkpointing in (False, True):
                run: dict[str, object] = dict(
                    config=config,
                    recipe=recipe,
                    batch=1 + (index + checkpointing) % 3,
                    seq=(1000, 1536, 2048)[(index + 2 * checkpointing) % 3],
                    checkpointing=checkpointing,
                    attn=attentions[index // 2 % 2],
                )
                if "lora" in recipe:
                    run.update({"rank": 16, "dropout": 0.0} | extra)
                    run["targets"] = TARGETS.get(config["model_type"], run["targets"])
                    if run["targets"] == "attn":
                        run["targets"] = LATENT_ATTENTION.get(config["model_type"], "attn")
                runs.append(run | {"optimizer": "fused"})
    return runs
