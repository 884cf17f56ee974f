// Schema: where a blob lives, what its elements are and how they are laid out. `cpu:float32:nchw16c`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/shape.h"

namespace softneuro {

enum class DType : uint8_t { float32 };
enum class Platform : uint8_t { cpu };

std::string_view dtype_name(DType dtype);
DType parse_dtype(std::string_view name);
size_t dtype_size(DType dtype);

// nchw: row-major at any rank. nhwc: channels (axis 1) last, rank >= 3. blocked, `nchw{c}c`: axis 1 split in blocks of
// c that become the innermost dimension, [N][C/c][...][c]; the lanes past C in the last block are zero in every blob.
struct Layout {
  enum class Kind : uint8_t { nchw, nhwc, blocked };
  Kind kind = Kind::nchw;
  uint8_t block = 1;  // c of a blocked layout, else 1

  static constexpr Layout nchw() { return {}; }
  static constexpr Layout nhwc() { return {Kind::nhwc, 1}; }
  static constexpr Layout blocked(int c) { return {Kind::blocked, static_cast<uint8_t>(c)}; }
  bool is_blocked() const { return kind == Kind::blocked; }
  std::string str() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Schema {
  Platform platform = Platform::cpu;
  DType dtype = DType::float32;
  Layout layout;

  std::string str() const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

Layout parse_layout(std::string_view text);
// Throws Error for anything but `platform:dtype:layout`.
Schema parse_schema(std::string_view text);

// Elements that a dense blob occupies, padding lanes included.
int64_t physical_elements(const Shape& shape, const Layout& layout);
// False where the layout is not defined for the rank (nhwc below 3, blocked below 2).
bool layout_fits(const Shape& shape, const Layout& layout);

inline constexpr Schema f32_nchw{};
inline constexpr Schema f32_nhwc{Platform::cpu, DType::float32, {Layout::Kind::nhwc, 1}};
constexpr Schema f32_blocked(int c) { return {Platform::cpu, DType::float32, Layout::blocked(c)}; }

}  // namespace softneuro
