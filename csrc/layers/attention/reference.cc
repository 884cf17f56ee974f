#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "layers/attention/attention.h"

namespace softneuro {
namespace {

constexpr double lowest = std::numeric_limits<float>::lowest();
constexpr double none = -std::numeric_limits<double>::infinity();

double score(const AttentionParams& p, const double* q, const double* k, const double* mask, int64_t key) {
  double sum = 0;
  for (int64_t l = 0; l < p.depth; ++l) sum += q[l] * k[key * p.depth + l];
  sum *= p.scale;
  if (p.softcap != 0) sum = p.softcap * std::tanh(sum / p.softcap);
  if (mask == nullptr) return sum;
  if (p.mask_adds && p.lowest_drops && mask[key] <= lowest) return none;
  if (p.mask_adds) return sum + mask[key];
  return mask[key] != 0 ? sum : none;
}

}  // namespace

void attention_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  std::vector<TensorDesc> descs;
  for (const RefTensor& x : in) descs.push_back({x.shape});
  const AttentionParams p = attention_params(layer, descs);
  std::vector<double> weights(static_cast<size_t>(p.keys)), sinks;
  if (layer.find_weight("sinks") != nullptr) sinks = reference_weight(layer, "sinks");
  for (int64_t head = 0; head < p.batch * p.heads; ++head) {
    const int64_t b = head / p.heads, h = head % p.heads, group = b * p.groups + h / p.heads_of_group();
    const double given = p.has_lengths ? in[static_cast<size_t>(p.lengths_input())].data[b] : 0;
    if (given < 0 || given > static_cast<double>(p.keys)) throw Error("a length is beyond the keys");
    const AttentionParams own = p.has_lengths ? p.of_length(static_cast<int64_t>(given)) : p;
    const double *k = in[1].data + group * p.keys * p.depth, *v = in[2].data + group * p.keys * p.width;
    for (int64_t i = 0; i < p.rows; ++i) {
      const double* q = in[0].data + (head * p.rows + i) * p.depth;
      const int64_t at = b * p.mask_batch + h * p.mask_head + i * p.mask_row;
      const double* mask = p.has_mask ? in[3].data + at : nullptr;
      const int64_t place = std::min(i, own.last), begin = std::max<int64_t>(place - own.before, 0);
      const int64_t end = std::min(place + own.after + 1, own.keys);
      double most = sinks.empty() ? none : sinks[static_cast<size_t>(h)], sum = 0;
      for (int64_t j = begin; j < end; ++j) {
        weights[static_cast<size_t>(j)] = score(p, q, k, mask, j);
        most = std::fmax(most, weights[static_cast<size_t>(j)]);
      }
      if (!sinks.empty()) sum = std::exp(sinks[static_cast<size_t>(h)] - most);
      for (int64_t j = begin; j < end; ++j) {
        double& weight = weights[static_cast<size_t>(j)];
        weight = std::exp(weight - (most == none ? 0 : most));
        sum += weight;
      }
      const int64_t row = p.rows_first ? (b * p.rows + i) * p.heads + h : head * p.rows + i;
      for (int64_t l = 0; l < p.width; ++l) {
        double total = 0;
        for (int64_t j = begin; j < end; ++j) total += weights[static_cast<size_t>(j)] * v[j * p.width + l];
        const bool none_counts = sum == 0 || (p.zero_nan && std::isnan(sum));
        out.data[row * p.width + l] = none_counts ? p.nothing : total / sum;
      }
    }
  }
}

}  // namespace softneuro
