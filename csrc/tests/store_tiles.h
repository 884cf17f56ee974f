// Included by one file per level: kernels/store's ends of tiles in registers, with every type, over sums in memory.
#pragma once

#include "kernels/store/store.h"
#include "kernels/store/tiles.h"

namespace softneuro::SN_ISA {
namespace {

template <class Body>
void with_type(DType type, const Body& body) {
  if (type == DType::float32) body.template operator()<float>();
  if (type == DType::float16) body.template operator()<Float16>();
  if (type == DType::bfloat16) body.template operator()<BFloat16>();
  if (type == DType::uint8) body.template operator()<uint8_t>();
  if (type == DType::int8) body.template operator()<int8_t>();
}

// Three pixels of a block of channels.
template <class Dst, class Residual>
[[gnu::flatten]] void pixels(const StoreRows& r) {
  const auto* sums = static_cast<const int32_t*>(r.sums);
  Vi sum[3];
  unroll<3>([&](auto i) { sum[i] = load(sums + i * r.sums_stride); });
  const Epilogue& e = r.epilogue;
  Vf value[3];
  scale_tile<1, 3>(sum, e.scale, e.bias, value);
  finish_tile<1, 3>(value, true, &e.activation, static_cast<Dst*>(r.dst), static_cast<const Residual*>(e.residual.data),
                    0, static_cast<size_t>(r.stride), Reading<Residual>(e.residual.elements), Writing<Dst>(e.dst));
}

// Three rows of two vectors, two of them together.
template <class Dst, class Residual>
[[gnu::flatten]] void rows(const StoreRows& r) {
  const auto* sums = static_cast<const int32_t*>(r.sums);
  Vi sum[6];
  unroll<6>([&](auto i) {
    sum[i] = load_n(sums + i / 2 * r.sums_stride + i % 2 * lanes, i % 2 == 0 ? lanes : r.columns - lanes);
  });
  const Epilogue& e = r.epilogue;
  RowTile<Dst, Residual> t;
  t.dst = static_cast<Dst*>(r.dst), t.residual = static_cast<const Residual*>(e.residual.data);
  t.stride = r.stride, t.columns = r.columns - lanes;
  t.bias = e.bias, t.bias_per_row = r.per_row;
  t.first = t.last = true;
  t.bounds = clamp_bounds(e.activation);
  const Reading<Residual> reading(e.residual.elements);
  const Writing<Dst> writing(e.dst);
  finish_rows<2, 2>(t, sum, e.scale, reading, writing);
  t.dst += 2 * t.stride;
  if (t.residual != nullptr) t.residual += 2 * t.stride;
  const int terms = r.per_row ? 2 : 0;
  if (t.bias != nullptr) t.bias += terms;
  finish_rows<1, 2>(t, sum + 4, e.scale + terms, reading, writing);
}

// Reading and writing know nothing of each other: a residual is of the result's type or a float, or the result is one.
template <class Body>
void with_types(const Epilogue& e, const Body& body) {
  const DType dst = e.dst.type, residual = e.residual.elements.type;
  if (dst == DType::float32) return with_type(residual, [&]<class T>() { body.template operator()<float, T>(); });
  with_type(dst, [&]<class T>() {
    if (residual == DType::float32) {
      body.template operator()<T, float>();
    } else {
      body.template operator()<T, T>();
    }
  });
}

}  // namespace

void tile_pixels(const StoreRows& r) {
  with_types(r.epilogue, [&]<class Dst, class Residual>() { pixels<Dst, Residual>(r); });
}
void tile_rows(const StoreRows& r) {
  with_types(r.epilogue, [&]<class Dst, class Residual>() { rows<Dst, Residual>(r); });
}

}  // namespace softneuro::SN_ISA
