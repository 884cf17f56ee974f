#include "layers/shared/broadcast.h"

#include <algorithm>

#include "base/error.h"

namespace softneuro {

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    const int at = axis - (rank - a.rank()), bt = axis - (rank - b.rank());
    const int64_t x = at < 0 ? 1 : a[at], y = bt < 0 ? 1 : b[bt];
    if (x != y && x != 1 && y != 1) throw Error("shapes " + a.str() + " and " + b.str() + " do not broadcast");
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

int64_t broadcast_source(int64_t index, const Shape& out, const Shape& from) {
  int64_t at = 0, stride = 1;
  for (int axis = out.rank() - 1, own = from.rank() - 1; own >= 0; --axis, --own) {
    if (from[own] != 1) at += index % out[axis] * stride;
    stride *= from[own];
    index /= out[axis];
  }
  return at;
}

}  // namespace softneuro
