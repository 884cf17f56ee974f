#include "providers/ort/size_rules.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace softneuro::ort {
namespace {

using Op = SizeTerm::Op;

constexpr int64_t few = 64;  // integers of a value that are followed

[[noreturn]] void unknown() { leave_open("it is not known ahead"); }

bool is_integer(const ElementType& type) {
  return type.dtype() && (*type.dtype() == DType::int64 || *type.dtype() == DType::int32);
}

}  // namespace

void leave_open(const char* why) { throw Error(why); }

SizeRules::SizeRules(const OpGraph& ops) : ops_(ops), values_(ops.values.size()) {
  read_inputs();
  for (const OpNode& node : ops.nodes) {
    node_ = &node;
    const SizeRule rule = find_size_rule(node);
    if (rule == nullptr) continue;
    try {
      rule(*this);
    } catch (const std::exception&) {  // what comes of it stays open
      for (const int id : node.outputs) {
        if (id >= 0) values_[static_cast<size_t>(id)] = {};
      }
    }
  }
}

void SizeRules::read_inputs() {
  for (size_t id = 0; id < ops_.values.size(); ++id) {
    const OpValue& described = ops_.values[id];
    if (!described.constant) continue;
    Value& value = values_[id];
    value.dims.emplace();
    for (const int64_t dim : described.constant->dims) value.dims->push_back(constant(dim));
    const bool followed = described.constant->dims.size() <= 1 && described.constant->elements() <= few;
    if (!followed || !is_integer(described.type)) continue;
    value.integers.emplace();
    for (const int64_t number : described.constant->integers()) value.integers->push_back(constant(number));
  }
  for (size_t i = 0; i < ops_.inputs.size(); ++i) {
    const OpValue& described = ops_.value(ops_.inputs[i]);
    if (!described.has_shape) continue;
    Value& value = values_[static_cast<size_t>(ops_.inputs[i])];
    value.dims.emplace();
    const auto input = static_cast<int64_t>(i);
    for (size_t axis = 0; axis < described.dims.size(); ++axis) {
      const int64_t dim = described.dims[axis];
      value.dims->push_back(dim >= 0 ? constant(dim) : term({Op::size, input, static_cast<int64_t>(axis)}));
    }
    const bool followed = described.sized && described.dims.size() <= 1 && is_integer(described.type);
    const int64_t count = described.dims.empty() ? 1 : described.dims[0];
    if (!followed || count < 0 || count > few) continue;
    value.integers.emplace();
    for (int64_t k = 0; k < count; ++k) value.integers->push_back(term({Op::value, input, k}));
  }
}

const SizeRules::Terms& SizeRules::dims(size_t input) const {
  if (!has(input) || !value(node_->inputs[input]).dims) unknown();
  return *value(node_->inputs[input]).dims;
}

const SizeRules::Terms& SizeRules::integers(size_t input) const {
  if (!has_integers(input)) unknown();
  return *value(node_->inputs[input]).integers;
}

std::optional<std::vector<int64_t>> SizeRules::numbers(size_t input, std::string_view attribute) const {
  if (!has(input)) {
    if (node_->find(attribute) == nullptr) return std::nullopt;
    return node_->integers(attribute);
  }
  std::vector<int64_t> list;
  for (const int term : integers(input)) {
    const auto known = number(term);
    if (!known) unknown();
    list.push_back(*known);
  }
  return list;
}

size_t SizeRules::axis(int64_t given, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (given < -count || given >= count) unknown();
  return static_cast<size_t>(given < 0 ? given + count : given);
}

std::optional<int64_t> SizeRules::number(int term) const {
  const SizeTerm& known = terms_[static_cast<size_t>(term)];
  return known.op == Op::constant ? std::optional(known.a) : std::nullopt;
}

int SizeRules::term(SizeTerm term) {
  const auto [found, is_new] = known_.try_emplace(term, static_cast<int>(terms_.size()));
  if (is_new) terms_.push_back(term);
  return found->second;
}

int SizeRules::term(Op op, int a, int b) {
  const auto x = number(a), y = number(b);
  if (op == Op::add || op == Op::sub) {
    if (y == 0) return a;
    if (op == Op::add && x == 0) return b;
  }
  if (op == Op::mul || op == Op::div) {
    if (y == 1) return a;
    if (op == Op::mul && x == 1) return b;
  }
  if (op == Op::broadcast) {
    if (a == b || y == 1 || (x && *x != 1)) return a;  // sizes that do not agree the host refuses
    if (x == 1 || y) return b;
  }
  if (op == Op::positive && x && *x > 0) return a;
  if (op == Op::unless_zero && x) return *x == 0 ? b : a;
  if (op == Op::unless_open && (x || terms_[static_cast<size_t>(a)].op == Op::size)) return x == -1 ? b : a;
  if (x && y) {
    if (op == Op::add) return constant(*x + *y);
    if (op == Op::mul) return constant(*x * *y);
    if (op == Op::sub && *x >= *y) return constant(*x - *y);
    if (op == Op::div && *x >= 0 && *y > 0) return constant(*x / *y);
    if (op == Op::min) return constant(std::min(*x, *y));
    unknown();
  }
  return term({op, a, b});
}

int SizeRules::product(const Terms& factors) {
  int total = constant(1);
  for (const int factor : factors) total = term(Op::mul, total, factor);
  return total;
}

SizeRules::Terms SizeRules::broadcast(const Terms& a, const Terms& b) {
  if (a.size() < b.size()) return broadcast(b, a);
  Terms result = a;
  for (size_t i = 0; i < b.size(); ++i) {
    int& at = result[a.size() - b.size() + i];
    at = term(Op::broadcast, at, b[i]);
  }
  return result;
}

void SizeRules::set(Terms dims, size_t output) {
  if (output >= node_->outputs.size() || node_->outputs[output] < 0) return;
  values_[static_cast<size_t>(node_->outputs[output])].dims = std::move(dims);
}

void SizeRules::set_integers(Terms integers, bool is_list) {
  if (static_cast<int64_t>(integers.size()) > few) unknown();
  set(is_list ? Terms{constant(static_cast<int64_t>(integers.size()))} : Terms{});
  values_[static_cast<size_t>(node_->outputs[0])].integers = std::move(integers);
}

}  // namespace softneuro::ort
