// Grids are what a plan adds to a graph of reals: one for each blob that it stores in bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

// Data has told this of a graph beside grids.
struct Learnt {
  std::map<int, Observed> inputs;                   // by blob, as far as they are known
  std::map<int, std::vector<double>> means;         // by channel, of blobs that layers with weights read
  std::set<std::pair<int, std::string>> corrected;  // layers and forms whose bias makes up for rounded weights
};

class Grids {
 public:
  using Grid = std::shared_ptr<const Quantization>;

  // Each blob has its own; null: it is stored as reals, or the graph has its grid. Throws Error if their number is
  // another, or about a grid that does not fit its blob.
  Grids(const Graph& graph, std::vector<Grid> blobs, Learnt learnt = {});
  Grids(const Grids&) = delete;
  Grids& operator=(const Grids&) = delete;

  const std::vector<Grid>& blobs() const { return blobs_; }
  const Grid& blob(int id) const { return blobs_[static_cast<size_t>(id)]; }
  const Learnt& learnt() const { return learnt_; }
  // Returns what was seen of an input, or else what a blob's grid covers; nothing where there is neither.
  std::optional<Observed> observed(int blob) const;
  // All that results depend on.
  const std::string& text() const { return text_; }
  // A layer's weight as signed bytes around zero, with a scale for each index of axis 0; null where that is not to be
  // had: not finite, or of no axis. Made once for as long as the weight is there.
  Constant bytes_of(const Constant& weight) const;
  // A linear layer's weight in 4 or 8 bits; likewise.
  BlockWeights blocks_of(const Constant& weight, int bits) const;
  // Returns what a form's rounded weights add to a layer's outputs on average (bias_correction.h). The result is empty
  // if that is not known.
  std::vector<double> shift_of(const Layer& layer, std::string_view form) const;
  bool corrects(int layer, std::string_view form) const {
    return learnt_.corrected.contains({layer, std::string(form)});
  }

 private:
  struct Made {
    std::optional<Constant> bytes;
    std::map<int, BlockWeights> blocks;
    std::map<std::pair<int, std::string>, std::vector<double>> shifts;  // by input and form
  };
  Made& made_of(const Constant& weight) const;

  std::vector<Grid> blobs_;
  Learnt learnt_;
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
