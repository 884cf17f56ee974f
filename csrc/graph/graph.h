// A DAG of layers with fixed shapes, as a front door lowers it and as the passes rewrite it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/contract/layer.h"

namespace softneuro {

struct Blob {
  std::string name;
  TensorDesc desc;
  int producer = -1;  // layer index, -1 for a graph input
};

class Graph {
 public:
  // Each returns a blob id. The caller's memory comes, or is wanted, in a boundary schema, by default the row-major one
  // of hosts. Throws Error if that cannot hold the blob.
  int add_input(std::string name, const TensorDesc& desc);
  int add_input(std::string name, const TensorDesc& desc, const Schema& schema);
  // Validates and infers through the layer's type. Throws Error naming the layer. The id is the first output's.
  int add_layer(Layer layer);
  // One blob may be several outputs, and an input may be an output.
  void add_output(int blob);
  void add_output(int blob, const Schema& schema);
  void set_output_schema(int output, const Schema& schema);

  const std::vector<Blob>& blobs() const { return blobs_; }
  const Blob& blob(int id) const { return blobs_[static_cast<size_t>(id)]; }
  // Always in topological order, none dead after compact().
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  // By input and by output.
  const std::vector<Schema>& input_schemas() const { return input_schemas_; }
  const std::vector<Schema>& output_schemas() const { return output_schemas_; }

  Problem problem(int layer, int threads) const;
  // Layer indices that read a blob, each once, ascending.
  std::vector<int> consumers(int blob) const;
  bool is_output(int blob) const;

  // For passes. Change attributes, weights and post-ops of a layer freely as long as the output's shape stays.
  Layer& layer(int index) { return layers_[static_cast<size_t>(index)]; }
  // Every reader of `from` (layers and graph outputs) reads `to` instead. Shapes must agree.
  void replace_uses(int from, int to);
  // Names are for people, and for doors that find values of the host's again.
  void rename(int blob, std::string name) { blobs_[static_cast<size_t>(blob)].name = std::move(name); }
  // Adds a layer in the midst of a rewrite; order is restored by compact().
  int insert_layer(Layer layer) { return add_layer(std::move(layer)); }
  // Drops layers and blobs that no output needs (graph inputs stay), sorts topologically in an order that follows from
  // the topology alone, renumbers both.
  void compact();

  // Canonical text: types, attributes, weights' shapes and patterns, post-ops, blobs and topology; layers and blobs by
  // index.
  std::string canonical() const;
  // 128 bits of canonical() in hex: the same for the same model through any door, whatever its weights and names.
  std::string structural_hash() const;
  // 128 bits in hex of all weights' values in the order of layers: the content, wherever it lies and whenever.
  std::string weights_identity() const;

 private:
  int check_blob(int blob, std::string_view where) const;

  std::vector<Blob> blobs_;
  std::vector<Layer> layers_;
  std::vector<int> inputs_, outputs_;
  std::vector<Schema> input_schemas_, output_schemas_;
};

}  // namespace softneuro
