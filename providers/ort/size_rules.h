// What ops do to sizes, in terms of the inputs' sizes. Internal to shape_program.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "providers/ort/shape_program.h"

namespace softneuro::ort {

class SizeRules {
 public:
  using Terms = std::vector<int>;
  struct Value {
    std::optional<Terms> dims;
    std::optional<Terms> integers;  // its elements, if it has few and no more than one axis
  };

  explicit SizeRules(const OpGraph& ops);
  const Value& value(int id) const { return values_[static_cast<size_t>(id)]; }
  const std::vector<SizeTerm>& terms() const { return terms_; }

  // What rules use, of the node at hand.
  const OpNode& node() const { return *node_; }
  size_t inputs() const { return node_->inputs.size(); }
  bool has(size_t input) const { return node_->has_input(input); }
  // These throw Error if it is not known.
  const Terms& dims(size_t input) const;
  const Terms& integers(size_t input) const;
  bool has_integers(size_t input) const { return has(input) && value(node_->inputs[input]).integers.has_value(); }
  // Known numbers of an input or, if there is none, of the attribute.
  std::optional<std::vector<int64_t>> numbers(size_t input, std::string_view attribute) const;
  static size_t axis(int64_t given, size_t rank);
  std::optional<int64_t> number(int term) const;

  int constant(int64_t value) { return term({SizeTerm::Op::constant, value}); }
  int term(SizeTerm::Op op, int a, int b = 0);
  int product(const Terms& factors);
  Terms broadcast(const Terms& a, const Terms& b);

  void set(Terms dims, size_t output = 0);
  void set_integers(Terms integers, bool is_list);

 private:
  int term(SizeTerm term);
  void read_inputs();

  const OpGraph& ops_;
  const OpNode* node_ = nullptr;
  std::vector<Value> values_;
  std::vector<SizeTerm> terms_;
  std::map<SizeTerm, int> known_;
};

[[noreturn]] void leave_open(const char* why);

void pad_sizes(SizeRules& rules);
void conv_sizes(SizeRules& rules);
void pool_sizes(SizeRules& rules);
void global_pool_sizes(SizeRules& rules);
void reduce_sizes(SizeRules& rules);
void arg_reduce_sizes(SizeRules& rules);

// The rule for an op; null if there is none.
using SizeRule = void (*)(SizeRules&);
SizeRule find_size_rule(const OpNode& node);

}  // namespace softneuro::ort
