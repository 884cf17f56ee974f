#include "base/schema.h"

#include <tuple>

namespace softneuro {
namespace {

constexpr int known_blocks[] = {4, 8, 16};
constexpr std::string_view strided_suffix = "_strided";

[[noreturn]] void unknown(const char* what, std::string_view text, const char* known) {
  throw Error(std::string("unknown ") + what + " '" + std::string(text) + "'", {}, std::string("known: ") + known);
}

int64_t checked_product(int64_t a, int64_t b, const Shape& shape) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error("a blob of shape " + shape.str() + " is too large to address");
  return product;
}

}  // namespace

std::string_view platform_name(Platform platform) {
  switch (platform) {
    case Platform::cpu:
      return "cpu";
  }
  return "?";
}

Platform parse_platform(std::string_view name) {
  if (name == platform_name(Platform::cpu)) return Platform::cpu;
  unknown("platform", name, "cpu");
}

std::string Layout::str() const {
  std::string text = kind == Kind::nhwc ? "nhwc" : "nchw";
  if (is_blocked()) text += std::to_string(block) + "c";
  if (is_tiled()) text += std::to_string(block) + "t";
  if (strided) text += strided_suffix;
  return text;
}

std::string Schema::str() const {
  return std::string(platform_name(platform)) + ":" + std::string(dtype_name(dtype)) + ":" + layout.str();
}

Layout parse_layout(std::string_view text) {
  for (const bool strided : {false, true}) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()})
      if (text == layout.with_strides(strided).str()) return layout.with_strides(strided);
  }
  for (int block : known_blocks) {
    for (const Layout& layout : {Layout::blocked(block), Layout::tiled(block)})
      if (text == layout.str()) return layout;
  }
  unknown("layout", text, "nchw, nhwc, nchw_strided, nhwc_strided, nchw4c, nchw8c, nchw16c, nchw4t, nchw8t, nchw16t");
}

Schema parse_schema(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos || text.find(':', second + 1) != text.npos)
    throw Error("schema '" + std::string(text) + "' is not platform:dtype:layout", {}, "for instance cpu:float32:nchw");
  return {parse_platform(text.substr(0, first)), parse_dtype(text.substr(first + 1, second - first - 1)),
          parse_layout(text.substr(second + 1))};
}

std::vector<int> memory_order(int rank, const Layout& layout) {
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis)
    if (layout.kind != Layout::Kind::nhwc || axis != 1) order.push_back(axis);
  if (layout.kind == Layout::Kind::nhwc) order.push_back(1);
  return order;
}

TileGrid tile_grid(int64_t height, int64_t width, int lanes) {
  TileGrid best;
  for (int64_t down = 1; down <= lanes; down *= 2) {
    const int64_t across = lanes / down;
    const TileGrid grid{down, across, (height + down - 1) / down, (width + across - 1) / across};
    const auto rank = [](const TileGrid& g) { return std::tuple(g.h * g.w, g.h + g.w, -g.w); };
    if (down == 1 || rank(grid) < rank(best)) best = grid;
  }
  return best;
}

int64_t physical_elements(const Shape& shape, const Layout& layout) {
  int64_t total = 1;
  if (layout.is_tiled()) {
    const TileGrid grid = tile_grid(shape[2], shape[3], layout.block);
    for (const int64_t dim : {shape[0], shape[1], grid.h, grid.w, int64_t{layout.block}})
      total = checked_product(total, dim, shape);
    return total;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t dim = shape[axis];
    if (dim < 0) throw Error("negative dimension in shape " + shape.str());
    if (layout.is_blocked() && axis == 1) {
      const int64_t blocks = dim / layout.block + (dim % layout.block != 0);
      dim = checked_product(blocks, layout.block, shape);
    }
    total = checked_product(total, dim, shape);
  }
  return total;
}

bool layout_fits(const Shape& shape, const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::nchw:
      return !layout.strided || shape.rank() >= 1;
    case Layout::Kind::nhwc:
      return shape.rank() >= 3;
    case Layout::Kind::blocked:
      return shape.rank() >= 2 && !layout.strided;
    case Layout::Kind::tiled:
      return shape.rank() == 4 && !layout.strided;
  }
  return false;
}

}  // namespace softneuro
