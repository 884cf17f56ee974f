#include "providers/ort/graph/dynamic_sums.h"

#include <algorithm>
#include <optional>

#include "providers/ort/graph/wires.h"
#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {
namespace {

class SumFinder : Wires {
 public:
  using Wires::Wires;

  std::optional<DynamicSum> match(int sum) const {
    const std::vector<int>& from = node(sum).inputs;
    if (from.size() < 3 || from[1] < 0 || !graph().value(from[1]).constant) return {};
    const int maker = producer_of(from[0]);
    if (maker < 0 || !is_dynamic_quantize(node(maker)) || from[2] != node(maker).outputs[2]) return {};
    const int cast = only_reader(sum), scaled = cast < 0 ? -1 : only_reader(cast);
    if (scaled < 0 || node(cast).op != "Cast" || !node(cast).domain.empty()) return {};
    if (ElementType(static_cast<int>(node(cast).integer("to", 0))) != ElementType(DType::float32)) return {};
    const int scale = node(maker).outputs[1];
    const int other = other_operand(scaled, "Mul", node(cast).outputs[0]);
    if (other == scale) return DynamicSum{maker, sum, cast, -1, scaled};
    const int factor = producer_of(other);
    const int weight_scale = factor < 0 ? -1 : other_operand(factor, "Mul", scale);
    if (weight_scale < 0 || !graph().value(weight_scale).constant) return {};
    return DynamicSum{maker, sum, cast, factor, scaled};
  }

  // Whether what the sum's operand and factor come of is read by such sums alone, and by products that know of it.
  bool is_alone(const DynamicSum& one, const std::vector<DynamicSum>& sums) const {
    const auto any = [&](const auto& test) { return std::any_of(sums.begin(), sums.end(), test); };
    const std::vector<int>& made = node(one.quantize).outputs;
    for (size_t output = 0; output < made.size(); ++output) {
      if (made[output] < 0) continue;
      const std::vector<int>* readers = readers_of(made[output]);
      if (readers == nullptr) return false;
      for (const int reader : *readers) {
        const bool known = any([&](const DynamicSum& other) {
          if (output != 1) return reader == other.sum;
          return reader == other.factor || (other.factor < 0 && reader == other.scaled);
        });
        if (!known && !is_dynamic_product(node(reader))) return false;
      }
    }
    if (one.factor < 0) return true;
    const std::vector<int>& readers = this->readers(one.factor);
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      return any([&](const DynamicSum& other) { return other.factor == one.factor && other.scaled == reader; });
    });
  }
};

}  // namespace

bool is_integer_sum(const HostNode& node) { return node.op == "ConvInteger" && node.domain.empty(); }

std::vector<DynamicSum> find_dynamic_sums(const HostGraph& graph) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_integer_sum)) return {};
  const SumFinder finder(graph);
  std::vector<DynamicSum> sums;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_integer_sum(graph.nodes[n])) continue;
    if (const auto found = finder.match(static_cast<int>(n))) sums.push_back(*found);
  }
  while (true) {
    const auto kept = std::stable_partition(sums.begin(), sums.end(),
                                            [&, all = sums](const auto& sum) { return finder.is_alone(sum, all); });
    if (kept == sums.end()) return sums;
    sums.erase(kept, sums.end());
  }
}

}  // namespace softneuro::ort
