// A weight's non-zeros as kernels/conv_sparse takes them: compressed rows of panels of output channels, cut along the
// input channels, so that what a part of them is multiplied with fits a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/conv_sparse/conv_sparse.h"
#include "layers/contract/layer.h"
#include "layers/contract/packed.h"

namespace softneuro {

// The sizes of a weight [k][c / groups][taps].
struct SparseSizes {
  int64_t groups = 1, k = 0, c = 0, taps = 1;  // channels of one group
  int64_t chunk = 1;                           // input channels of a part
};

// Refuses weights whose class is not that of sparse ones, and what its lists cannot count.
Refusal check_sparse(const ConstantData& weight, int64_t taps);
// The latter alone.
Refusal check_lists(const ConstantData& weight, int64_t taps);
// Channels of a chunk at most, so that codes are 16 bits.
int64_t most_chunk(int64_t taps);

class SparseLists {
 public:
  SparseLists() = default;
  explicit SparseLists(const SparseSizes& sizes);

  int64_t panels() const { return sizes_.groups * group_panels_; }  // none has channels of two groups
  int64_t chunks() const { return chunks_; }
  int64_t group(int64_t panel) const { return panel / group_panels_; }
  // First input channel of a chunk, and how many it has.
  int64_t first(int64_t chunk) const { return chunk * sizes_.chunk; }
  int64_t channels(int64_t chunk) const;

  // Sections "values", "codes", "starts" and "channels", and the layer's bias.
  Packing packing(const Layer& layer) const;
  void pack(const Layer& layer, Packed& to) const;

 protected:
  // A panel's non-zeros in a chunk, codes being channel of the chunk * taps + tap, ascending.
  SparseRows read(const Packed& packed, int64_t panel, int64_t chunk) const;

 private:
  void pack_lists(const ConstantData& weight, Packed& to) const;
  int64_t panel_channels(int64_t panel) const;

  SparseSizes sizes_;
  int64_t panel_ = 1;  // channels
  int64_t group_panels_ = 0, chunks_ = 0;
};

// Lists that are packed.
class PackedLists : public SparseLists {
 public:
  PackedLists(const SparseLists& lists, std::shared_ptr<const Packed> packed);

  // Those of a chunk's panels follow each other.
  const SparseRows& rows(int64_t panel, int64_t chunk) const {
    return rows_[static_cast<size_t>(chunk * panels() + panel)];
  }
  const float* bias() const { return packed_->find<float>("bias"); }  // null: none
  size_t bytes() const { return packed_->bytes(); }

 private:
  std::shared_ptr<const Packed> packed_;
  std::vector<SparseRows> rows_;
};

// Whether results are stored past the caches (ConvSparseArgs::stream): those of tiled blobs that are written once and
// are more than caches keep.
// Memory that a host handed over need not be aligned: that is for its caller to see.
bool stores_past_caches(bool tiled, int64_t chunks, const Activation& activation, int64_t bytes);

// Makes NaN of those sums at `to`, one for each channel, that have a zero weight for the code: a dense product makes
// that of an input that is not finite.
void spread_nonfinite(const SparseRows& rows, uint16_t code, float* to, int64_t dst_channel);

}  // namespace softneuro
