"""Transformers by name: Hugging Face's definitions with seeded weights, so that nothing has to be downloaded.

Every network is there in its real size and as a tiny one, which tests use.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.models import torchvision_models

Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Network:
    """A class of Hugging Face's with what its configuration has besides the defaults."""

    model: str  # class name; `.part` behind it takes that part of the model
    config: str
    inputs: Callable[[Any, int, int, bool], Inputs]  # of configuration, batch, length or image size, and masks given
    size: int  # length of texts, or height and width of images
    sizes: dict[str, Any] = field(default_factory=dict)
    tiny_size: int = 12
    tiny: dict[str, Any] = field(default_factory=dict)  # in place of those of `sizes`
    masked: bool = True  # whether it takes masks


def words(config: Any, batch: int, length: int) -> torch.Tensor:
    return torch.randint(2, config.vocab_size, (batch, length))


def padding(batch: int, length: int) -> torch.Tensor:
    """Ones where there are words: the first text is whole, the others are ever shorter."""
    ends = torch.tensor([max(length - 3 * index, 1) for index in range(batch)])
    return (torch.arange(length) < ends[:, None]).long()


def text(config: Any, batch: int, length: int, masked: bool) -> Inputs:
    inputs = {"input_ids": words(config, batch, length)}
    return {**inputs, "attention_mask": padding(batch, length)} if masked else inputs


def two_texts(config: Any, batch: int, length: int, masked: bool) -> Inputs:
    answer = length // 2
    inputs = {**text(config, batch, length, masked), "decoder_input_ids": words(config, batch, answer)}
    return {**inputs, "decoder_attention_mask": padding(batch, answer)} if masked else inputs


def image(config: Any, batch: int, size: int, masked: bool) -> Inputs:
    return {"pixel_values": torch.randn(batch, 3, size, size)}


def masked_image(config: Any, batch: int, size: int, masked: bool) -> Inputs:
    inputs = image(config, batch, size, masked)
    return (
        {**inputs, "pixel_mask": padding(batch, size)[:, None].expand(-1, size, -1).contiguous()} if masked else inputs
    )


def sound(config: Any, batch: int, frames: int, masked: bool) -> Inputs:
    return {"input_features": torch.randn(batch, config.num_mel_bins, 2 * frames)}


def heard(config: Any, batch: int, length: int, masked: bool) -> Inputs:
    encoded = torch.randn(batch, config.max_source_positions, config.d_model)
    return {"input_ids": words(config, batch, length), "encoder_hidden_states": encoded}


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SMALL_TEXT = {**SMALL, "vocab_size": 99, "max_position_embeddings": 64}
SMALL_IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
LLAMA = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "head_dim": 64,
    "use_cache": False,
}
SMALL_LLAMA = {**SMALL_TEXT, "head_dim": 8, "num_key_value_heads": 4}
WHISPER = {"use_cache": False}
SMALL_WHISPER = {
    **{
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
    },
    "d_model": 32,
    "vocab_size": 99,
    "num_mel_bins": 16,
    "max_source_positions": 20,
    "max_target_positions": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "decoder_start_token_id": 1,
}

NETWORKS = {
    "bert_base": Network("BertModel", "BertConfig", text, 128, tiny=SMALL_TEXT),
    "bert_base_16": Network("BertModel", "BertConfig", text, 16, tiny=SMALL_TEXT),
    "minilm_l6": Network(
        "BertModel", "BertConfig", text, 128,
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
        tiny=SMALL_TEXT,
    ),
    "roberta_base": Network(
        "RobertaModel", "RobertaConfig", text, 128, {"max_position_embeddings": 514}, tiny=SMALL_TEXT
    ),
    "gpt2": Network(
        "GPT2LMHeadModel", "GPT2Config", text, 64, {"use_cache": False},
        tiny={"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 99},
    ),
    "llama_160m": Network("LlamaForCausalLM", "LlamaConfig", text, 32, LLAMA, tiny=SMALL_LLAMA),
    "llama_grouped": Network(
        "LlamaForCausalLM", "LlamaConfig", text, 32, {**LLAMA, "num_key_value_heads": 4},
        tiny={**SMALL_LLAMA, "num_key_value_heads": 2},
    ),
    "qwen2_0_5b_6_layers": Network(
        "Qwen2ForCausalLM", "Qwen2Config", text, 32,
        {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 6, "num_attention_heads": 14,
         "num_key_value_heads": 2, "tie_word_embeddings": True, "use_cache": False},
        tiny={**SMALL_TEXT, "num_key_value_heads": 2},
    ),
    "t5_small": Network(
        "T5ForConditionalGeneration", "T5Config", two_texts, 64, {"use_cache": False},
        tiny={"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
              "vocab_size": 99},
    ),
    "whisper_tiny_encoder": Network(
        "WhisperModel.encoder", "WhisperConfig", sound, 1500, WHISPER, 20, SMALL_WHISPER, masked=False
    ),
    "whisper_tiny_decoder": Network(
        "WhisperModel.decoder", "WhisperConfig", heard, 32, WHISPER, tiny=SMALL_WHISPER, masked=False
    ),
    "clip_b32": Network(
        "CLIPVisionModel", "CLIPVisionConfig", image, 224, tiny_size=32, tiny=SMALL_IMAGE, masked=False
    ),
    "vit_b16": Network("ViTModel", "ViTConfig", image, 224, tiny_size=32, tiny=SMALL_IMAGE, masked=False),
    "dinov2_s": Network(
        "Dinov2Model", "Dinov2Config", image, 224,
        {"hidden_size": 384, "num_attention_heads": 6, "image_size": 518}, 32,
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 40, "patch_size": 8},
        masked=False,
    ),
    "swin_t": Network(
        "SwinModel", "SwinConfig", image, 224, tiny_size=32,
        tiny={"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4],
              "window_size": 4},
        masked=False,
    ),
    "segformer_b0": Network(
        "SegformerForSemanticSegmentation", "SegformerConfig", image, 512, tiny_size=64,
        tiny={"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32,
              "num_attention_heads": [1, 2, 2, 4]},
        masked=False,
    ),
    "detr_r50": Network(
        "DetrForObjectDetection", "DetrConfig", masked_image, 480, tiny_size=64,
        tiny={"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
              "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_queries": 10,
              "backbone": {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}},
    ),
}  # fmt: skip


def library() -> Any:
    """Hugging Face's library, also where torchvision, which it imports for some, does not fit the installed torch."""
    if importlib.util.find_spec("torchvision") is not None:
        torchvision_models()
    found = importlib.import_module("transformers")
    found.logging.set_verbosity_error()
    return found


def configuration(name: str, tiny: bool = False, attention: str = "sdpa") -> Any:
    found, network = library(), NETWORKS[name]
    sizes = {**network.sizes, **(network.tiny if tiny else {})}
    if network.config == "DetrConfig":  # its default backbone is timm's
        stages = ["stage1", "stage2", "stage3", "stage4"]
        sizes["backbone_config"] = found.ResNetConfig(out_features=stages, **sizes.pop("backbone", {}))
    # A model without fused attention takes the default, and refuses to be asked for it.
    return getattr(found, network.config)(attn_implementation=None if attention == "sdpa" else attention, **sizes)


def build(
    name: str,
    *,
    tiny: bool = False,
    masked: bool = False,
    batch: int = 1,
    size: int = 0,
    attention: str = "sdpa",
    seed: int = 0,
) -> tuple[torch.nn.Module, Inputs]:
    """A model in eval mode and the keyword arguments of a call.

    `masked` gives it masks, too. `size` is the length of texts, or of images, where it is not the network's own.
    `attention` is how the library computes it: `sdpa`, or spelt out (`eager`). Parameters of one axis are no round
    values: a bias of zeros would hide that it is left out.
    """
    network, config = NETWORKS[name], configuration(name, tiny, attention)
    kind, _, part = network.model.partition(".")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = getattr(library(), kind)(config)
        model = (getattr(model, part) if part else model).eval()
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
        size = size or (network.tiny_size if tiny else network.size)
        return model, network.inputs(config, batch, size, masked and network.masked)


def tensors(result: Any) -> list[torch.Tensor]:
    """The tensors of a model's result, in the order in which an export has them."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
