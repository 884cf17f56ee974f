// The ops of the domain com.softneuro: what each computes, from a node's attributes and constant inputs to a layer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/contract/layer.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// A node's attributes as both of the runtime's interfaces to them give them. Each returns nothing where there is no
// such attribute, and throws Error for one of another type.
struct NodeAttributes {
  std::function<std::optional<std::vector<int64_t>>(const char* name)> integers;
  std::function<std::optional<int64_t>(const char* name)> integer;
  std::function<std::optional<float>(const char* name)> real;
  std::function<std::optional<std::string>(const char* name)> text;
};

// A layer without a name, and what its input's bytes mean; null for reals.
struct CustomLayer {
  Layer layer;
  std::shared_ptr<const Quantization> x = nullptr;
};

// From one schema to another.
struct CustomAdapt {
  Schema from = f32_nchw, to = f32_nchw;
  int64_t channels = 0;  // of a tensor given in blocks; 0: all lanes
  std::shared_ptr<const Quantization> quantization = nullptr;
};

struct CustomOpKind {
  const char* name;
  size_t inputs;               // those after the first are constant, and the last of three or more is optional
  std::array<DType, 5> types;  // of inputs
  DType out;
  // Dimensions of the result, -1 where unknown; empty if even its rank is. `shapes` are the inputs', empty where
  // unknown. Throws Error for attributes or shapes that cannot be.
  std::vector<int64_t> (*infer)(const NodeAttributes& attributes, std::span<const std::vector<int64_t>> shapes);
  // What a node is: one of the two, the other is null.
  CustomLayer (*layer)(const NodeAttributes& attributes, std::span<const HostTensor> constants, int rank);
  CustomAdapt (*adapt)(const NodeAttributes& attributes);
  bool sparse = false;  // by a routine that makes use of zeros in weights
};

std::span<const CustomOpKind> custom_op_kinds();

// A tensor in a layout is an ONNX tensor of its memory: [N,H,W,C] for nhwc, [N,C/c,H,W,c] for blocks of c.
std::vector<int64_t> logical_dims(std::vector<int64_t> given, const Layout& layout, int64_t channels);
std::vector<int64_t> memory_dims(std::vector<int64_t> logical, const Layout& layout);

}  // namespace softneuro::ort
