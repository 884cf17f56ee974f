#include "layers/matmul/matmul.h"

#include <algorithm>

#include "layers/contract/routine.h"

namespace softneuro {

#define SN_ROUTINES "layers/matmul/routines.inc"
#include "layers/contract/collect.inc"

void matmul_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 2) throw Error("matmul takes two inputs, not " + std::to_string(in.size()));
  const MatmulParams p = matmul_params(layer, in[0], in[1]);
  Shape out = p.batch;
  out.push_back(p.m);
  out.push_back(p.n);
  return TensorDesc{out};
}

}  // namespace

std::pair<int64_t, int64_t> MatmulParams::offsets(int64_t index) const {
  int64_t a = 0, b = 0;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    const int64_t at = index % batch[axis];
    index /= batch[axis];
    a += at * a_stride[axis];
    b += at * b_stride[axis];
  }
  return {a, b};
}

Matrix matrix_at(const TensorView& view, const Shape& batch, int64_t index) {
  const int rank = view.shape.rank();
  int64_t offset = 0;
  for (int i = 1; i <= batch.rank(); ++i) {
    const int axis = rank - 2 - i, of_batch = batch.rank() - i;
    if (axis >= 0 && view.shape[axis] > 1) offset += index % batch[of_batch] * view.strides[static_cast<size_t>(axis)];
    index /= batch[of_batch];
  }
  return {view.at(offset), view.strides[static_cast<size_t>(rank - 2)]};
}

MatmulParams matmul_params(const Layer& layer, const TensorDesc& a, const TensorDesc& b) {
  layer.attrs.expect_only({"transpose_a", "transpose_b"});
  const int a_rank = a.shape.rank(), b_rank = b.shape.rank();
  if (a_rank < 2 || b_rank < 2) {
    throw Error("both inputs must have at least 2 axes, not shapes " + a.shape.str() + " and " + b.shape.str());
  }
  MatmulParams p;
  p.transpose_a = layer.attrs.flag("transpose_a", false);
  p.transpose_b = layer.attrs.flag("transpose_b", false);
  p.m = a.shape[a_rank - (p.transpose_a ? 1 : 2)];
  p.k = a.shape[a_rank - (p.transpose_a ? 2 : 1)];
  p.n = b.shape[b_rank - (p.transpose_b ? 2 : 1)];
  const int64_t b_k = b.shape[b_rank - (p.transpose_b ? 1 : 2)];
  if (p.k != b_k) {
    throw Error("inner sizes differ: " + std::to_string(p.k) + " of " + a.shape.str() + " and " + std::to_string(b_k) +
                " of " + b.shape.str());
  }

  const int lead = std::max(a_rank, b_rank) - 2;
  for (int axis = 0; axis < lead; ++axis) {
    const int a_axis = axis - (lead - (a_rank - 2)), b_axis = axis - (lead - (b_rank - 2));
    const int64_t a_size = a_axis < 0 ? 1 : a.shape[a_axis], b_size = b_axis < 0 ? 1 : b.shape[b_axis];
    if (a_size != b_size && a_size != 1 && b_size != 1) {
      throw Error("leading axes of " + a.shape.str() + " and " + b.shape.str() + " do not broadcast");
    }
    p.batch.push_back(a_size == 1 ? b_size : a_size);
    p.a_stride.push_back(a_size == 1 ? 0 : a.shape.product(a_axis + 1, a_rank));
    p.b_stride.push_back(b_size == 1 ? 0 : b.shape.product(b_axis + 1, b_rank));
  }
  return p;
}

const LayerDef& matmul_layer() {
  static const LayerDef def{"matmul", infer, one_output<matmul_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
