// Matrix products.
#include <algorithm>
#include <bit>

#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

// [rows, columns] -> [columns, rows], scaled. Reals are computed when a routine packs them, in tiles that stay in the
// cache.
Constant transposed(const Constant& matrix, float scale) {
  if (Constant bytes = transposed_bytes(matrix, scale)) return bytes;
  const int64_t rows = matrix->shape()[0], columns = matrix->shape()[1];
  return std::make_shared<const ConstantData>(
      Shape{columns, rows},
      [=]() -> ConstantData::Values {
        const auto from = matrix->values();
        std::shared_ptr<float[]> to(new float[static_cast<size_t>(rows * columns)]);
        constexpr int64_t tile = 32;
        float part[tile][tile + 1];
        for (int64_t row = 0; row < rows; row += tile) {
          for (int64_t column = 0; column < columns; column += tile) {
            const int64_t height = std::min(tile, rows - row), width = std::min(tile, columns - column);
            for (int64_t r = 0; r < height; ++r) {
              const float* line = from.get() + (row + r) * columns + column;
              for (int64_t c = 0; c < width; ++c) part[c][r] = line[c] * scale;
            }
            for (int64_t c = 0; c < width; ++c) std::copy_n(part[c], height, to.get() + (column + c) * rows + row);
          }
        }
        return {to, to.get()};
      },
      "transposed " + std::to_string(std::bit_cast<uint32_t>(scale)) + matrix->identity());
}

Constant scaled(const Constant& values, const Shape& shape, float scale) {
  if (Constant bytes = shape == values->shape() ? scaled_bytes(values, scale) : nullptr) return bytes;
  return std::make_shared<const ConstantData>(
      shape,
      [=]() -> ConstantData::Values {
        if (scale == 1) return values->values();
        const auto from = values->values();
        const auto count = static_cast<size_t>(values->elements());
        std::shared_ptr<float[]> to(new float[count]);
        for (size_t i = 0; i < count; ++i) to[i] = from.get()[i] * scale;
        return {to, to.get()};
      },
      "scaled " + std::to_string(std::bit_cast<uint32_t>(scale)) + values->identity());
}

int times(Lowering& low, int blob, float factor) {
  if (factor == 1) return blob;
  return low.add("binary", {blob}, {{"function", "mul"}, {"scalar", static_cast<double>(factor)}});
}

Refusal check_matmul(const OpView& view) {
  for (size_t i = 0; i < 2; ++i) {
    if (view.rank(i) < 1) return "an operand's rank is unknown or 0";
  }
  return {};
}

void convert_matmul(Lowering& low) {
  Shape a = low.shape(0), b = low.shape(1);
  if (low.is_known(1) && !low.is_known(0) && b.rank() == 2 && b[0] > 0 && b[1] > 0) {
    const int product = low.add("linear", {low.blob(0)}, {}, {{"weight", transposed(low.weight(1), 1)}});
    return low.set(product);
  }
  // A vector is a matrix of one row on the left, of one column on the right; that axis then disappears.
  int left = low.blob(0), right = low.blob(1);
  if (a.rank() == 1) left = low.reshape(left, Shape{1, a[0]});
  if (b.rank() == 1) right = low.reshape(right, Shape{b[0], 1});
  const int product = low.add("matmul", {left, right});
  Shape out;
  const Shape whole = low.shape_of(product);
  for (int i = 0; i < whole.rank(); ++i) {
    const bool row = i == whole.rank() - 2 && a.rank() == 1, column = i == whole.rank() - 1 && b.rank() == 1;
    if (!row && !column) out.push_back(whole[i]);
  }
  low.set(low.reshape(product, out));
}

Refusal check_gemm(const OpView& view) {
  if (view.rank(0) != 2 || view.rank(1) != 2) return "its operands are not matrices";
  if (view.has(2) && view.rank(2) > 2) return "its addend is no matrix";
  return {};
}

void convert_gemm(Lowering& low) {
  const HostNode& node = low.node();
  const float alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const bool transpose_a = node.integer("transA", 0) != 0, transpose_b = node.integer("transB", 0) != 0;
  const bool biased = low.has(2) && beta != 0;
  if (!low.is_known(1) || low.is_known(0)) {
    int blob = low.add("matmul", {low.blob(0), low.blob(1)},
                       {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}});
    blob = times(low, blob, alpha);
    if (biased) blob = low.add("binary", {blob, times(low, low.blob(2), beta)}, {{"function", "add"}});
    return low.set(blob);
  }
  const Constant b = low.weight(1);
  const Constant weight = transpose_b ? scaled(b, b->shape(), alpha) : transposed(b, alpha);
  const int64_t columns = weight->shape()[0];
  int a = low.blob(0);
  if (transpose_a) a = low.add("transpose", {a}, {{"perm", std::vector<int64_t>{1, 0}}});
  Lowering::Weights weights{{"weight", weight}};
  if (biased && low.is_known(2)) {
    const Constant c = low.weight(2);
    if (c->elements() == columns && (c->shape().rank() == 1 || c->shape()[0] == 1)) {
      weights.emplace_back("bias", scaled(c, Shape{columns}, beta));
      return low.set(low.add("linear", {a}, {}, weights));
    }
    const int product = low.add("linear", {a}, {}, weights);
    return low.set(low.add("binary", {product}, {{"function", "add"}}, {{"other", scaled(c, c->shape(), beta)}}));
  }
  int blob = low.add("linear", {a}, {}, weights);
  if (biased) blob = low.add("binary", {blob, times(low, low.blob(2), beta)}, {{"function", "add"}});
  low.set(blob);
}

// MatMulNBits: x, then integers, scales, zero points, an order of their blocks, and a bias.
Refusal check_matmul_blocks(const OpView& view) {
  const HostNode& node = view.node();
  const int64_t bits = node.integer("bits", 4), block = node.integer("block_size", 0);
  if (bits != 4 && bits != 8) return "its weights have " + std::to_string(bits) + " bits";
  if (block < 16 || block > 4096 || !std::has_single_bit(static_cast<uint64_t>(block))) {
    return "its blocks are of " + std::to_string(block) + " weights";
  }
  if (view.has(4)) return "its blocks are in an order of their own";
  for (const size_t i : {1, 2, 3, 5}) {
    if (!view.has(i)) continue;
    const HostTensor* constant = view.constant(i);
    if (constant == nullptr) return "its input " + std::to_string(i) + " is not constant";
    const bool bytes = i == 1 || i == 3;
    if (bytes ? constant->type != DType::uint8 : !is_real(constant->type)) {
      return "its input " + std::to_string(i) + " is " + std::string(dtype_name(constant->type));
    }
  }
  return view.rank(0) < 1 ? Refusal("its operand's rank is unknown or 0") : Refusal();
}

void convert_matmul_blocks(Lowering& low) {
  const HostNode& node = low.node();
  const int64_t bits = node.integer("bits", 4), block = node.integer("block_size", 0);
  const int64_t n = node.integer("N", 0), k = node.integer("K", 0);
  if (low.shape(0)[low.rank(0) - 1] != k) throw Error("its operand has no rows of K=" + std::to_string(k));
  const auto bytes = [&](size_t input) {
    return low.kept("bytes", {node.inputs[input]}, [&] {
      const HostTensor& known = low.known(input);
      return std::make_shared<const ConstantData>(desc_of(Shape(known.dims), known.type), known.type, known.data);
    });
  };
  Lowering::Weights weights{{"weight", bytes(1)}, {"scales", low.weight(2)}};
  if (low.has(3)) weights.emplace_back("zero_points", bytes(3));
  if (low.has(5)) weights.emplace_back("bias", low.weight(5));
  if (weights[0].second->shape()[0] != n) throw Error("its weights are not of N=" + std::to_string(n) + " outputs");
  low.set(low.add("linear_blocks", {low.blob(0)}, {{"bits", bits}, {"block", block}}, std::move(weights)));
}

constexpr OpEntry linear_entries[] = {
    {"MatMul", check_matmul, convert_matmul},
    {"Gemm", check_gemm, convert_gemm},
    {"MatMulNBits", check_matmul_blocks, convert_matmul_blocks, false, Holds::reals, Domain::microsoft},
};

}  // namespace

std::span<const OpEntry> linear_ops() { return linear_entries; }

}  // namespace softneuro::ort
