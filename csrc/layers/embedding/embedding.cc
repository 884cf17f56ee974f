#include "layers/embedding/embedding.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/embedding/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_embedding(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"from_end"});
  layer.attrs.flag("from_end", false);
  const TensorDesc& ids = only_input(in);
  if (ids.kind != ValueKind::integer) throw Error("rows are chosen by integers, not by " + ids.str());
  const Shape& weight = layer.weight("weight")->shape();
  expect_rank(weight, 2);
  expect_weights(layer, {"weight"}, {}, weight);
  if (weight[0] == 0) throw Error("there are no rows to choose from");
  Shape out = ids.shape;
  out.push_back(weight[1]);
  return TensorDesc{out};
}

const LayerDef& embedding_layer() {
  static constexpr LayerDef def{"embedding", infer_embedding, one_output<embedding_reference>, collect_routines,
                                Takes::any};
  return def;
}

}  // namespace softneuro
