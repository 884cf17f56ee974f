// Windows over axes, axes that are reduced or padded.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "providers/ort/size_rules.h"

namespace softneuro::ort {
namespace {

using Op = SizeTerm::Op;
using Terms = SizeRules::Terms;

// Sizes behind the first two axes, as a window goes over them.
void windows(SizeRules& r, Terms dims, const std::vector<int64_t>& kernel) {
  const OpNode& node = r.node();
  const size_t count = kernel.size();
  const auto steps = node.integers("strides", std::vector<int64_t>(count, 1));
  const auto spread = node.integers("dilations", std::vector<int64_t>(count, 1));
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * count, 0));
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID") leave_open("its padding depends on sizes");
  if (mode == "VALID" && node.find("pads") != nullptr) leave_open("its padding is given twice");
  const bool fits = steps.size() == count && spread.size() == count && pads.size() == 2 * count;
  if (dims.size() != count + 2 || !fits || node.integer("ceil_mode", 0) != 0) leave_open("it is of another kind");
  for (size_t i = 0; i < count; ++i) {
    int& size = dims[i + 2];
    size = r.term(Op::add, size, r.constant(pads[i] + pads[i + count]));
    size = r.term(Op::sub, size, r.constant(spread[i] * (kernel[i] - 1) + 1));
    size = r.term(Op::add, r.term(Op::div, size, r.constant(steps[i])), r.constant(1));
  }
  r.set(std::move(dims));
}

void reduce_axes(SizeRules& r, const std::vector<bool>& reduced) {
  const bool keep = r.node().integer("keepdims", 1) != 0;
  Terms dims;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) dims.push_back(r.dims(0)[i]);
    if (reduced[i] && keep) dims.push_back(r.constant(1));
  }
  r.set(std::move(dims));
}

}  // namespace

void pad_sizes(SizeRules& r) {
  Terms dims = r.dims(0);
  const auto pads = r.numbers(1, "pads");
  if (r.has(3) || !pads || pads->size() != 2 * dims.size()) leave_open("it is for some axes");
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t more = (*pads)[i] + (*pads)[i + dims.size()];
    dims[i] = r.term(more < 0 ? Op::sub : Op::add, dims[i], r.constant(std::abs(more)));
  }
  r.set(std::move(dims));
}

void conv_sizes(SizeRules& r) {
  Terms dims = r.dims(0);
  const Terms& weights = r.dims(1);
  if (dims.size() < 3 || weights.size() != dims.size()) leave_open("it is of another kind");
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < weights.size(); ++i) kernel.push_back(r.number(weights[i]).value_or(-1));
  if (std::count(kernel.begin(), kernel.end(), -1) > 0) leave_open("its kernel's size is open");
  dims[1] = weights[0];
  windows(r, std::move(dims), kernel);
}

void pool_sizes(SizeRules& r) {
  if (r.node().outputs.size() != 1) leave_open("it has a second result");
  windows(r, r.dims(0), r.node().integers("kernel_shape"));
}

void global_pool_sizes(SizeRules& r) {
  Terms dims = r.dims(0);
  for (size_t i = 2; i < dims.size(); ++i) dims[i] = r.constant(1);
  r.set(std::move(dims));
}

void reduce_sizes(SizeRules& r) {
  const size_t rank = r.dims(0).size();
  const auto axes = r.numbers(1, "axes").value_or(std::vector<int64_t>());
  const bool none = axes.empty() && r.node().integer("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(rank, axes.empty() && !none);
  for (const int64_t axis : axes) reduced[SizeRules::axis(axis, rank)] = true;
  reduce_axes(r, reduced);
}

void arg_reduce_sizes(SizeRules& r) {
  std::vector<bool> reduced(r.dims(0).size(), false);
  reduced[SizeRules::axis(r.node().integer("axis", 0), reduced.size())] = true;
  reduce_axes(r, reduced);
}

}  // namespace softneuro::ort
