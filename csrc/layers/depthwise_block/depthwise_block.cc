#include "layers/depthwise_block/depthwise_block.h"

#include <algorithm>

#include "layers/contract/registry.h"
#include "layers/conv2d/shapes.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/packing.h"
#include "layers/image_conv/image_conv.h"

namespace softneuro {

#define SN_ROUTINES "layers/depthwise_block/routines.inc"
#include "layers/contract/collect.inc"

namespace {

Layer stage_of(const Layer& layer, const std::string& role, bool last) {
  Layer stage;
  const Constant* values = role == "expand" ? layer.find_weight("values") : nullptr;
  set_conv(stage, values, layer.weight(role + "_weight"), layer.find_weight(role + "_bias"));
  if (last) {
    stage.post = layer.post;
  } else {
    stage.post.activation.kind = parse_activation(layer.attrs.text(role + "_function", "none"));
    stage.post.activation.a = static_cast<float>(layer.attrs.real(role + "_a", 0));
    stage.post.activation.b = static_cast<float>(layer.attrs.real(role + "_b", 0));
  }
  return stage;
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("depthwise_block takes one input, not " + std::to_string(in.size()));
  const Conv2dParams p = depthwise_block_params(depthwise_block_stages(layer), in[0]).last();
  return TensorDesc{Shape{p.n, p.k, p.oh, p.ow}};
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const DepthwiseBlockStages stages = depthwise_block_stages(layer);
  std::vector<double> memory[2];
  RefTensor x = in[0];
  const auto run = [&](const Layer& stage, bool last, std::vector<double>& result) {
    const LayerDef& conv = layer_def(stage.type);
    const TensorDesc desc = desc_of(x.shape, stage.type == "image_conv" ? DType::uint8 : DType::float32);
    RefTensor to = out;
    if (!last) {
      to.shape = conv.infer(stage, {&desc, 1}).front().shape;
      result.resize(static_cast<size_t>(to.shape.elements()));
      to.data = result.data();
    }
    // The last stage's post-ops are applied to the whole layer's result.
    last ? conv.reference(stage, {&x, 1}, {&to, 1}) : run_reference(conv, stage, {&x, 1}, {&to, 1});
    x = to;
  };
  if (stages.expand) run(*stages.expand, false, memory[0]);
  run(stages.depthwise, !stages.project, memory[1]);
  if (stages.project) run(*stages.project, true, memory[0]);
}

}  // namespace

DepthwiseBlockStages depthwise_block_stages(const Layer& layer) {
  layer.attrs.expect_only({"stride", "padding", "dilation", "expand_stride", "expand_padding", "expand_dilation",
                           "expand_function", "expand_a", "expand_b", "depthwise_function", "depthwise_a",
                           "depthwise_b"});
  DepthwiseBlockStages stages;
  const bool project = layer.find_weight("project_weight") != nullptr;
  const auto set_window = [&layer](Layer& stage, const std::string& prefix) {
    for (const char* name : {"stride", "padding", "dilation"}) {
      if (const AttrValue* value = layer.attrs.find(prefix + name)) stage.attrs.set(name, *value);
    }
  };
  if (layer.find_weight("expand_weight") != nullptr) {
    stages.expand = stage_of(layer, "expand", false);
    set_window(*stages.expand, "expand_");
  }
  stages.depthwise = stage_of(layer, "depthwise", !project);
  set_window(stages.depthwise, "");
  stages.depthwise.attrs.set("groups", layer.weight("depthwise_weight")->shape()[0]);
  if (project) stages.project = stage_of(layer, "project", true);
  return stages;
}

DepthwiseBlockParams depthwise_block_params(const DepthwiseBlockStages& stages, const TensorDesc& in) {
  DepthwiseBlockParams params;
  TensorDesc x = in;
  const auto next = [&](const Layer& stage) {
    if (stage.type == "conv2d" && x.kind != ValueKind::real) throw Error("the input has no real values: " + x.str());
    const Conv2dParams p = conv_params(stage, x);
    x = {Shape{p.n, p.k, p.oh, p.ow}};
    return p;
  };
  if (stages.expand) {
    params.expand = next(*stages.expand);
    params.of_bytes = stages.expand->type == "image_conv";
  }
  params.depthwise = next(stages.depthwise);
  if (params.depthwise.k != params.depthwise.c) throw Error("depthwise_weight must have one filter per channel");
  if (stages.project) {
    params.project = next(*stages.project);
    if (!params.project->pointwise()) throw Error("project_weight must be of a 1x1 convolution");
  }
  return params;
}

int rows_in_l2(const DepthwiseBlockParams& p, int block) {
  const Conv2dParams& d = p.depthwise;
  const int64_t row = channel_blocks(d.c, block) * block * static_cast<int64_t>(sizeof(float));
  const auto bytes = [&](int64_t rows) {
    return (p.expand ? most_rows_below(d, rows) * d.w * row : 0) + (p.project ? rows * d.ow * row : 0);
  };
  const int64_t budget = l2_bytes() / 2;
  int rows = 2;
  while (rows + 2 <= 16 && rows < d.oh && bytes(rows + 2) <= budget) rows += 2;
  return rows;
}

int depthwise_block_threads(const DepthwiseBlockParams& p, int threads) {
  int sum = worth_threads(p.depthwise, threads);
  if (p.expand) sum = std::max(sum, worth_threads(*p.expand, threads));
  if (p.project) sum = std::max(sum, worth_threads(*p.project, threads));
  return sum;
}

Refusal check_pointwise_block(const DepthwiseBlockParams& p) {
  if (p.expand) {
    if (p.of_bytes) return "the first stage is an image_conv";
    if (!p.expand->pointwise() || p.expand->sh != 1 || p.expand->sw != 1) {
      return "the first stage is no 1x1 convolution of stride 1";
    }
    if (const Refusal sizes = check_int_sizes(*p.expand); !sizes.accepted()) return sizes;
  }
  return check_later_stages(p);
}

Refusal check_later_stages(const DepthwiseBlockParams& p) {
  if (p.project) {
    if (const Refusal sizes = check_int_sizes(*p.project); !sizes.accepted()) return sizes;
  }
  return check_int_sizes(p.depthwise);
}

const LayerDef& depthwise_block_layer() {
  static const LayerDef def{"depthwise_block", infer, one_output<reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
