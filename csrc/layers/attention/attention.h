// attention: softmax(scale * q * k^T + mask) * v for each head, as torch's scaled_dot_product_attention.
#pragma once

#include <cstdint>
#include <span>

#include "layers/contract/layer.h"

namespace softneuro {

struct AttentionParams {
  int64_t batch = 0, heads = 0, groups = 0;  // heads / groups of them share keys, those next to each other
  int64_t rows = 0, keys = 0;
  int64_t depth = 0, width = 0;  // elements of a row of q and k, and of v
  double scale = 0, softcap = 0;
  int64_t before = 0, after = 0;    // key j counts for row i if i - before <= j <= i + after
  int64_t last = int64_t{1} << 60;  // rows behind this one are taken for it there
  double nothing = 0;               // the result where no key counts
  bool zero_nan = false;            // weights of a row that are NaN are zeros
  bool rows_first = false;          // the output is [B,M,H,E], not [B,H,M,E]
  bool has_lengths = false;         // the last input says how many keys count, by batch
  bool at_end = false;              // the rows are those of the last keys that count
  bool stops = false;               // rows behind the last key that counts are taken for the row that is there
  bool has_mask = false, mask_adds = false;
  bool lowest_drops = false;  // the least float in a mask that is added is as -inf
  // Elements from one index of the mask's axes to the next, 0 where it broadcasts.
  int64_t mask_batch = 0, mask_head = 0, mask_row = 0;

  int64_t heads_of_group() const { return groups == 0 ? 0 : heads / groups; }
  // The input of that kind, where there is one.
  int mask_input() const { return 3; }
  int lengths_input() const { return has_mask ? 4 : 3; }
  // The params of a batch of which `length` keys count, from 0 to `keys`: they are all that there are.
  AttentionParams of_length(int64_t length) const {
    AttentionParams own = *this;
    const int64_t first = at_end ? length - rows : 0;  // where row 0 stands among the keys
    own.before -= first, own.after += first;
    own.keys = length;
    if (stops) own.last = length - 1 - first;
    return own;
  }
};

// Throws Error about the first thing that is wrong with attributes or inputs.
AttentionParams attention_params(const Layer& layer, std::span<const TensorDesc> in);

}  // namespace softneuro
