// Rounded weights shift each output of a layer by a constant, on average: (rounded - weight) times the mean of the
// input. A bias without that shift makes up for it.
#pragma once

#include <string_view>
#include <vector>

#include "graph/grids.h"

namespace softneuro {

// This tells whether a layer multiplies its input's channels with weights of reals.
bool has_correctable_bias(const Layer& layer);
// Returns by output what the form's weights add to it on average, for inputs of these means by channel. Padding counts
// as more of them. The result is empty where the form has no such weights, or the means are not of that input.
std::vector<double> shift_of(const Constant& weight, const Grids& grids, std::string_view form,
                             const std::vector<double>& means);
// Relative L2 error of a form's weights, told by their first rows; infinite if that is not to be had.
double weight_error(const Constant& weight, const Grids& grids, std::string_view form);
// This takes the shift out of the layer's bias. A layer without one gets one.
void take_out(Layer& layer, const std::vector<double>& shift);

}  // namespace softneuro
