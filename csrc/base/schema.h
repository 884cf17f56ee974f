// Schema: how a blob is stored: where, in which elements and in which order. `cpu:float32:nchw16c`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace softneuro {

enum class Platform : uint8_t { cpu };
inline constexpr int platform_count = 1;

std::string_view platform_name(Platform platform);
// Throws Error naming the known ones.
Platform parse_platform(std::string_view name);

// nchw: row-major at any rank. nhwc: channels (axis 1) last, rank >= 3. blocked, `nchw{c}c`: axis 1 split in blocks of
// c that become the innermost dimension, [N][C/c][...][c]; the lanes past C in the last block hold the value zero in
// every blob. tiled, `nchw{c}t`, of rank 4: a plane is cut in c equal tiles whose same pixels lie side by side,
// [N][C][tile height][tile width][c] (TileGrid); lanes outside the image hold zero. strided, `nchw_strided` and
// `nhwc_strided`: a part of a larger blob. Every axis has a stride of its own but the innermost one, whose elements are
// side by side. What reads such a blob reads a dense one, too.
struct Layout {
  enum class Kind : uint8_t { nchw, nhwc, blocked, tiled };
  Kind kind = Kind::nchw;
  uint8_t block = 1;  // c of a blocked or tiled layout, else 1
  bool strided = false;

  static constexpr Layout nchw() { return {}; }
  static constexpr Layout nhwc() { return {Kind::nhwc, 1}; }
  static constexpr Layout blocked(int c) { return {Kind::blocked, static_cast<uint8_t>(c)}; }
  static constexpr Layout tiled(int c) { return {Kind::tiled, static_cast<uint8_t>(c)}; }
  constexpr Layout with_strides(bool any = true) const { return {kind, block, any}; }
  bool is_blocked() const { return kind == Kind::blocked; }
  bool is_tiled() const { return kind == Kind::tiled; }
  // Whether only the stride along axis 0 is of use.
  bool whole_images() const { return is_blocked() || is_tiled(); }
  std::string str() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Schema {
  Platform platform = Platform::cpu;
  DType dtype = DType::float32;
  Layout layout;

  constexpr Schema with(DType other) const { return {platform, other, layout}; }
  constexpr Schema with(const Layout& other) const { return {platform, dtype, other}; }
  std::string str() const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

// How a tiled layout cuts a plane: `down` by `across` tiles of h by w pixels. Pixel (y, x) is in lane
// y / h * across + x / w, at (y % h, x % w).
struct TileGrid {
  int64_t down = 1, across = 1, h = 0, w = 0;
  int64_t lane(int64_t y, int64_t x) const { return y / h * across + x / w; }
  // The index of an element in a plane.
  int64_t at(int64_t y, int64_t x) const { return (y % h * w + x % w) * (down * across) + lane(y, x); }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};
// The grid with the fewest pixels to a tile, then the one with the squarest tiles, then with the widest.
TileGrid tile_grid(int64_t height, int64_t width, int lanes);

Layout parse_layout(std::string_view text);
// Throws Error for anything but `platform:dtype:layout`.
Schema parse_schema(std::string_view text);

// Axes of a row-major or channels-last blob, outermost in memory first.
std::vector<int> memory_order(int rank, const Layout& layout);
// Elements that a dense blob occupies, padding lanes included.
int64_t physical_elements(const Shape& shape, const Layout& layout);
// False where the layout is not defined for the rank (nhwc below 3, blocked below 2, tiled but 4).
bool layout_fits(const Shape& shape, const Layout& layout);

inline constexpr Schema f32_nchw{};
inline constexpr Schema f32_nhwc{Platform::cpu, DType::float32, {Layout::Kind::nhwc, 1}};
constexpr Schema f32_blocked(int c) { return {Platform::cpu, DType::float32, Layout::blocked(c)}; }

}  // namespace softneuro
