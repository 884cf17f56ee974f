#include "providers/ort/lower/fold_indices.h"

#include "base/error.h"
#include "providers/ort/lower/lowering.h"
#include "providers/ort/lower/numbers.h"

namespace softneuro::ort {

static size_t place(int64_t index, int64_t size) {
  if (index < -size || index >= size) throw Error("index " + std::to_string(index) + " is outside");
  return static_cast<size_t>(index < 0 ? index + size : index);
}

void fold_gather(Lowering& low) {
  const Numbers data = numbers(low.known(0));
  const HostTensor& indices = low.known(1);
  const auto wanted = indices.integers();
  const auto axis = static_cast<size_t>(low.axis(low.node().integer("axis", 0), low.rank(0)));
  const auto size = static_cast<size_t>(data.dims[axis]);
  std::vector<int64_t> dims(data.dims.begin(), data.dims.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  const std::vector<int64_t> rest(data.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, data.dims.end());
  dims.insert(dims.end(), rest.begin(), rest.end());
  const size_t inner = elements(rest), count = wanted.size();
  low.set(as_type(picked(data, dims,
                         [&](size_t i) {
                           const size_t at = place(wanted[i / inner % count], data.dims[axis]);
                           return (i / inner / count * size + at) * inner + i % inner;
                         }),
                  low.known(0).type));
}

void fold_gather_elements(Lowering& low) {
  const Numbers data = numbers(low.known(0));
  const HostTensor& indices = low.known(1);
  const auto wanted = indices.integers();
  const auto axis = static_cast<size_t>(low.axis(low.node().integer("axis", 0), low.rank(0)));
  const auto source = [&](size_t i) {
    size_t at = 0, stride = 1, rest = i;
    for (size_t d = indices.dims.size(); d-- > 0;) {
      const auto own = static_cast<size_t>(indices.dims[d]), size = static_cast<size_t>(data.dims.at(d));
      at += (d == axis ? place(wanted[i], data.dims[d]) : rest % own) * stride;
      stride *= size, rest /= own;
    }
    return at;
  };
  low.set(as_type(picked(data, indices.dims, source), low.known(0).type));
}

void fold_gather_nd(Lowering& low) {
  if (low.node().integer("batch_dims", 0) != 0) throw Error("it gathers by batches");
  const Numbers data = numbers(low.known(0));
  const HostTensor& indices = low.known(1);
  const auto wanted = indices.integers();
  const auto axes = static_cast<size_t>(indices.dims.at(indices.dims.size() - 1));
  std::vector<int64_t> dims(indices.dims.begin(), indices.dims.end() - 1);
  const std::vector<int64_t> rest(data.dims.begin() + static_cast<ptrdiff_t>(axes), data.dims.end());
  dims.insert(dims.end(), rest.begin(), rest.end());
  const size_t inner = elements(rest);
  const auto source = [&](size_t i) {
    size_t at = 0;
    for (size_t d = 0; d < axes; ++d) {
      at = at * static_cast<size_t>(data.dims[d]) + place(wanted[i / inner * axes + d], data.dims[d]);
    }
    return at * inner + i % inner;
  };
  low.set(as_type(picked(data, dims, source), low.known(0).type));
}

void fold_transpose(Lowering& low) {
  const Numbers data = numbers(low.known(0));
  const size_t rank = data.dims.size();
  std::vector<int64_t> perm(rank), dims(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(rank - 1 - i);
  perm = low.node().integers("perm", perm);
  if (perm.size() != rank) throw Error("its axes are not those of its input");
  std::vector<size_t> strides(rank);  // in the input, of the output's axes
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<size_t>(low.axis(perm[i], static_cast<int>(rank)));
    dims[i] = data.dims[axis];
    strides[i] = elements({data.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, data.dims.end()});
  }
  low.set(as_type(picked(data, dims,
                         [&](size_t index) {
                           size_t at = 0;
                           for (size_t i = rank; i-- > 0; index /= static_cast<size_t>(dims[i])) {
                             at += index % static_cast<size_t>(dims[i]) * strides[i];
                           }
                           return at;
                         }),
                  low.known(0).type));
}

}  // namespace softneuro::ort
