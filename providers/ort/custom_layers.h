// The ops of the domain com.softneuro: what each computes, from a node's attributes and constant inputs to a layer.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "providers/ort/op_graph.h"

namespace softneuro::ort {

// A node's attributes as both of the runtime's interfaces to them give them. Each returns nothing where there is no
// such attribute, and throws Error for one of another type.
struct NodeAttributes {
  std::function<std::optional<std::vector<int64_t>>(const char* name)> integers;
  std::function<std::optional<int64_t>(const char* name)> integer;
  std::function<std::optional<std::string>(const char* name)> text;
};

struct CustomOpKind {
  const char* name;
  size_t inputs, constants_from;  // inputs from `constants_from` on are constant; the last of three is optional
  // Dimensions of the result, -1 where unknown; empty if even its rank is. `shapes` are the inputs', empty where
  // unknown. Throws Error for attributes or shapes that cannot be.
  std::vector<int64_t> (*infer)(const NodeAttributes& attributes, std::span<const std::vector<int64_t>> shapes);
  // Without a name. Null for an op that is no layer of a net: adapt.
  Layer (*layer)(const NodeAttributes& attributes, std::span<const HostTensor> constants, int rank);
};

std::span<const CustomOpKind> custom_op_kinds();

// Attributes of Adapt.
struct AdaptAttributes {
  Layout from, to;
  int64_t channels = 0;  // of a tensor given in blocks; 0: all lanes
};
AdaptAttributes adapt_attributes(const NodeAttributes& attributes);
// A tensor in a layout is an ONNX tensor of its memory: [N,H,W,C] for nhwc, [N,C/c,H,W,c] for blocks of c.
std::vector<int64_t> logical_dims(std::vector<int64_t> given, const Layout& layout, int64_t channels);
std::vector<int64_t> memory_dims(std::vector<int64_t> logical, const Layout& layout);

}  // namespace softneuro::ort
