#include "providers/ort/lower/ops/heads.h"

#include <numeric>
#include <string>

namespace softneuro::ort {

int heads_of(Lowering& low, int blob, int64_t heads) {
  const Shape shape = low.shape_of(blob);
  if (shape.rank() == 4) return blob;
  if (heads <= 0 || shape[2] % heads != 0) {
    throw Error(std::to_string(heads) + " heads do not divide rows of " + std::to_string(shape[2]));
  }
  return low.transpose(low.reshape(blob, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

int side_by_side(Lowering& low, int blob) {
  const Shape shape = low.shape_of(blob);
  return low.reshape(low.transpose(blob, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

int integers_blob(Lowering& low, const Shape& shape, const std::vector<int64_t>& values) {
  return low.blob_of(low.added_value(constant_of(tensor_of(to_list(shape), values))));
}

std::vector<int64_t> counted(int64_t first, int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

int as_int64(Lowering& low, int blob) {
  if (natural_schema(low.desc(blob)).dtype == DType::int64) return blob;
  return low.add("cast", {blob}, {{"to", std::string(dtype_name(DType::int64))}});
}

int add_integers(Lowering& low, int a, int b, const char* function) {
  return low.add("integer_binary", {a, b}, {{"function", std::string(function)}});
}

// Known tables stay where the model has them.
static int rows_at(Lowering& low, size_t table, int positions) {
  if (low.rank(table) != 2) throw Error("its table has rank " + std::to_string(low.rank(table)));
  if (low.is_known(table)) return low.add("embedding", {positions}, {}, {{"weight", low.weight(table)}});
  return low.add("take", {low.blob(table), positions}, {{"axis", int64_t{0}}});
}

Angles angles_of(Lowering& low, int cosine, int sine) {
  const auto of_rows = [&](int blob) {
    const Shape shape = low.shape_of(blob);
    const int half = low.reshape(blob, {shape[0], 1, shape[1], shape[2]});
    return low.add("concat", {half, half}, {{"axis", int64_t{3}}});
  };
  return {of_rows(cosine), of_rows(sine)};
}

Angles angles_at(Lowering& low, size_t cosines, size_t sines, int positions) {
  return angles_of(low, rows_at(low, cosines, positions), rows_at(low, sines, positions));
}

int rotated(Lowering& low, int x, const Angles& angles, bool interleaved) {
  const Shape shape = low.shape_of(x);
  const int64_t width = low.shape_of(angles.cosine)[3], batch = shape[0], heads = shape[1], rows = shape[2];
  if (width > shape[3]) throw Error("its angles are for rows of " + std::to_string(width));
  const auto part = [&](int64_t start, int64_t end) {
    return low.add("slice", {x}, {{"axis", int64_t{3}}, {"start", start}, {"end", end}});
  };
  int blob = width < shape[3] ? part(0, width) : x;
  const auto turned = [&](const Shape& pairs) {
    return low.reshape(low.transpose(low.reshape(blob, pairs), {0, 1, 2, 4, 3}), {batch, heads, rows, width});
  };
  if (interleaved) blob = turned({batch, heads, rows, width / 2, 2});
  blob = low.add("rotary", {blob, angles.cosine, angles.sine});
  if (interleaved) blob = turned({batch, heads, rows, 2, width / 2});
  if (width == shape[3]) return blob;
  return low.add("concat", {blob, part(width, shape[3])}, {{"axis", int64_t{3}}});
}

}  // namespace softneuro::ort
