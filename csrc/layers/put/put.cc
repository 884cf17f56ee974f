#include "layers/put/put.h"

#include <algorithm>
#include <string>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/put/routines.inc"
#include "layers/contract/collect.inc"

PutParams put_params(const Layer& layer, const Shape& x) {
  layer.attrs.expect_only({"axis", "from_end", "storage"});
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, x.rank());
  const int at = static_cast<int>(axis);
  return {x.product(0, at), x[at], x.product(at + 1, x.rank()), layer.attrs.flag("from_end", false)};
}

DType put_storage(const Layer& layer, const TensorDesc& x) {
  if (x.kind != ValueKind::real) return natural_schema(x).dtype;
  const std::string name = layer.attrs.text("storage", "float32");
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  throw Error("no rows are put into memory of type '" + name + "'", {}, "float32, float16 and bfloat16 are known");
}

static OutputDescs infer_put(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 3);
  put_params(layer, in[0].shape);
  put_storage(layer, in[0]);
  expect_one_kind(in.first(2));
  integer_type(in[2]);
  if (in[0].quantization != nullptr) throw Error("rows are put into " + in[0].str() + ", which is quantized");
  if (in[2].shape.rank() != 1) throw Error("indices are of shape " + in[2].shape.str() + ", not of one axis");
  Shape expected = in[0].shape;
  expected[static_cast<int>(layer.attrs.integer("axis"))] = in[2].shape[0];
  if (in[1].shape != expected) throw Error("rows are " + in[1].shape.str() + " and not " + expected.str());
  TensorDesc out = in[0];
  out.least = std::min(in[0].least, in[1].least);
  out.most = std::max(in[0].most, in[1].most);
  return out;
}

static int put_updates(const Layer&, int) { return 0; }

const LayerDef& put_layer() {
  static constexpr LayerDef def{"put", infer_put, one_output<put_reference>, collect_routines, Takes::any, put_updates};
  return def;
}

}  // namespace softneuro
