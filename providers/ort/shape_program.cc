#include "providers/ort/shape_program.h"

#include <algorithm>
#include <optional>

#include "providers/ort/size_rules.h"

namespace softneuro::ort {
namespace {

using Op = SizeTerm::Op;

bool reads_terms(Op op) { return op != Op::constant && op != Op::size && op != Op::value; }
bool reads_two(Op op) { return reads_terms(op) && op != Op::positive; }

std::optional<int64_t> element(const RunInput& input, int64_t index) {
  if (input.type == DType::int64) return static_cast<const int64_t*>(input.data)[index];
  if (input.type == DType::int32) return static_cast<const int32_t*>(input.data)[index];
  return std::nullopt;
}

// Of two known values.
std::optional<int64_t> computed(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a >= b ? std::optional(a - b) : std::nullopt;
    case Op::mul:
      return a * b;
    case Op::div:
      return a >= 0 && b > 0 ? std::optional(a / b) : std::nullopt;
    case Op::min:
      return std::min(a, b);
    case Op::broadcast:
      return a == 1 ? b : a;
    case Op::unless_zero:
      return a == 0 ? b : a;
    case Op::unless_open:
      return a == -1 ? b : a;
    case Op::positive:
      return a > 0 ? std::optional(a) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

ShapeProgram::ShapeProgram(const OpGraph& ops) {
  SizeRules rules(ops);
  for (const int id : ops.inputs) inputs_.push_back(ops.value(id).dims);
  for (const int id : ops.outputs) {
    const auto& dims = rules.value(id).dims;
    if (!dims) return;
    outputs_.push_back(*dims);
  }
  // Only what outputs need.
  const std::vector<SizeTerm>& all = rules.terms();
  std::vector<bool> wanted(all.size(), false);
  for (const auto& output : outputs_) {
    for (const int term : output) wanted[static_cast<size_t>(term)] = true;
  }
  for (size_t i = all.size(); i-- > 0;) {
    if (!wanted[i] || !reads_terms(all[i].op)) continue;
    wanted[static_cast<size_t>(all[i].a)] = true;
    if (reads_two(all[i].op)) wanted[static_cast<size_t>(all[i].b)] = true;
  }
  std::vector<int> places(all.size(), -1);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!wanted[i]) continue;
    places[i] = static_cast<int>(terms_.size());
    SizeTerm term = all[i];
    if (reads_terms(term.op)) term.a = places[static_cast<size_t>(term.a)];
    if (reads_two(term.op)) term.b = places[static_cast<size_t>(term.b)];
    terms_.push_back(term);
  }
  for (auto& output : outputs_) {
    for (int& term : output) term = places[static_cast<size_t>(term)];
  }
  complete_ = true;
}

bool ShapeProgram::fits(std::span<const RunInput> inputs) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto agree = [](int64_t declared, int64_t size) { return declared < 0 || declared == size; };
    const auto dims = inputs[i].dims;
    if (!std::equal(inputs_[i].begin(), inputs_[i].end(), dims.begin(), dims.end(), agree)) return false;
  }
  return true;
}

OutputDims ShapeProgram::run(std::span<const RunInput> inputs) const {
  if (!complete_ || !fits(inputs)) return {};
  std::vector<int64_t> values;
  values.reserve(terms_.size());
  for (const SizeTerm& term : terms_) {
    std::optional<int64_t> value;
    if (term.op == Op::constant) {
      value = term.a;
    } else if (term.op == Op::size) {
      value = inputs[static_cast<size_t>(term.a)].dims[static_cast<size_t>(term.b)];
    } else if (term.op == Op::value) {
      value = element(inputs[static_cast<size_t>(term.a)], term.b);
    } else {
      const int64_t b = reads_two(term.op) ? values[static_cast<size_t>(term.b)] : 0;
      value = computed(term.op, values[static_cast<size_t>(term.a)], b);
    }
    if (!value) return {};
    values.push_back(*value);
  }
  OutputDims dims;
  dims.reserve(outputs_.size());
  for (const auto& output : outputs_) {
    auto& list = dims.emplace_back();
    list.reserve(output.size());
    for (const int term : output) {
      list.push_back(values[static_cast<size_t>(term)]);
      if (list.back() < 0) return {};
    }
  }
  return dims;
}

}  // namespace softneuro::ort
