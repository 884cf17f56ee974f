#include "layers/transpose/transpose.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/transpose/routines.inc"
#include "layers/contract/collect.inc"

std::vector<int> transpose_perm(const Layer& layer, int rank) {
  layer.attrs.expect_only({"perm"});
  const std::vector<int64_t>& given = layer.attrs.integers("perm");
  std::vector<int> perm;
  unsigned seen = 0;
  for (int64_t axis : given) {
    expect_axis("perm", axis, rank);
    seen |= 1u << axis;
    perm.push_back(static_cast<int>(axis));
  }
  if (static_cast<int>(perm.size()) != rank || seen != (1u << rank) - 1) {
    throw Error("perm " + list_text(given) + " is no permutation of " + std::to_string(rank) + " axes");
  }
  return perm;
}

static OutputDescs infer_transpose(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  TensorDesc out = in[0];
  int i = 0;
  for (int axis : transpose_perm(layer, in[0].shape.rank())) out.shape[i++] = in[0].shape[axis];
  return out;
}

const LayerDef& transpose_layer() {
  static constexpr LayerDef def{"transpose", infer_transpose, one_output<transpose_reference>, collect_routines,
                                Takes::moving};
  return def;
}

}  // namespace softneuro
