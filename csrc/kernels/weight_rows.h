// Weights where a model has them.
#pragma once

namespace softneuro {

struct WeightRows {
  const float* weights = nullptr;  // [output channel, group by group][input channel][tap]
  const float* factors = nullptr;  // by which each output channel's are multiplied; null: 1
};

}  // namespace softneuro
