#include "base/schema.h"

namespace softneuro {
namespace {

constexpr int known_blocks[] = {4, 8, 16};

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

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  if (name == "float32") return DType::float32;
  unknown("dtype", name, "float32");
}

size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 4;
  }
  return 0;
}

std::string Layout::str() const {
  switch (kind) {
    case Kind::nchw:
      return "nchw";
    case Kind::nhwc:
      return "nhwc";
    case Kind::blocked:
      return "nchw" + std::to_string(block) + "c";
  }
  return "?";
}

std::string Schema::str() const { return "cpu:" + std::string(dtype_name(dtype)) + ":" + layout.str(); }

Layout parse_layout(std::string_view text) {
  if (text == "nchw") return Layout::nchw();
  if (text == "nhwc") return Layout::nhwc();
  for (int block : known_blocks)
    if (text == Layout::blocked(block).str()) return Layout::blocked(block);
  unknown("layout", text, "nchw, nhwc, nchw4c, nchw8c, nchw16c");
}

Schema parse_schema(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos || text.find(':', second + 1) != text.npos)
    throw Error("schema '" + std::string(text) + "' is not platform:dtype:layout", {}, "for instance cpu:float32:nchw");
  if (text.substr(0, first) != "cpu") unknown("platform", text.substr(0, first), "cpu");
  return {Platform::cpu, parse_dtype(text.substr(first + 1, second - first - 1)),
          parse_layout(text.substr(second + 1))};
}

int64_t physical_elements(const Shape& shape, const Layout& layout) {
  int64_t total = 1;
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
      return true;
    case Layout::Kind::nhwc:
      return shape.rank() >= 3;
    case Layout::Kind::blocked:
      return shape.rank() >= 2;
  }
  return false;
}

}  // namespace softneuro
