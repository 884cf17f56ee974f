// Grids are what a plan adds to a graph of reals: one for each blob that it stores in bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "graph/graph.h"

namespace softneuro {

// Weights of a few bits as the layer `linear_blocks` has them; null where they are not to be had.
struct BlockWeights {
  static constexpr int block = 32;  // along a row, with a scale in common
  Constant weight, scales;
};

// The least and the most of values that data had.
struct Observed {
  float least = 0, most = 0;
  friend bool operator==(const Observed&, const Observed&) = default;
};

class Grids {
 public:
  using Grid = std::shared_ptr<const Quantization>;
  using Inputs = std::map<int, Observed>;  // by blob

  // Each blob has its own; null: it is stored as reals, or the graph has its grid. Throws Error if their number is
  // another, or about a grid that does not fit its blob.
  Grids(const Graph& graph, std::vector<Grid> blobs, Inputs inputs = {});
  Grids(const Grids&) = delete;
  Grids& operator=(const Grids&) = delete;

  const std::vector<Grid>& blobs() const { return blobs_; }
  const Grid& blob(int id) const { return blobs_[static_cast<size_t>(id)]; }
  // What calibration has seen of the graph's inputs, as far as that is known.
  const Inputs& inputs() const { return inputs_; }
  // The same of one blob, or else what its grid covers; nothing where there is neither.
  std::optional<Observed> observed(int blob) const;
  // All that results depend on.
  const std::string& text() const { return text_; }
  // A layer's weight as signed bytes around zero, with a scale for each index of axis 0; null where that is not to be
  // had: not finite, or of no axis. Made once for as long as the weight is there.
  Constant bytes_of(const Constant& weight) const;
  // A linear layer's weight in 4 or 8 bits; likewise.
  BlockWeights blocks_of(const Constant& weight, int bits) const;

 private:
  struct Made {
    std::optional<Constant> bytes;
    std::map<int, BlockWeights> blocks;
  };
  Made& made_of(const Constant& weight) const;

  std::vector<Grid> blobs_;
  Inputs inputs_;
  std::string text_;
  mutable ForkMutex mutex_;
  mutable std::map<std::weak_ptr<const ConstantData>, Made, std::owner_less<>> weights_;
};

// A blob as it is in a schema, or passes from one to another: it has the plan's grid if one of them is of bytes.
TensorDesc stored(const Graph& graph, const Grids* grids, int blob, const Schema& schema);
TensorDesc stored(const Graph& graph, const Grids* grids, int blob, const Schema& from, const Schema& to);

// Gives what only passes on the values of a blob, or some of them, that blob's grid: its bytes are those.
void share_grids(const Graph& graph, std::vector<Grids::Grid>& blobs);

}  // namespace softneuro
