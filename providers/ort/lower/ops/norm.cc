// Normalisations with constant statistics or parameters.
#include <algorithm>

#include "providers/ort/lower/ops/heads.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

// One value per group, repeated for each of its channels.
Constant per_channel(const Constant& groups, int64_t channels) {
  const int64_t repeat = channels / std::max<int64_t>(groups->elements(), 1);
  if (repeat <= 1) return groups;
  const auto from = groups->values();
  std::vector<float> values;
  for (int64_t c = 0; c < channels; ++c) values.push_back(from.get()[c / repeat]);
  return constant_from(Shape{channels}, std::move(values));
}

// Values broadcast to the shape, which they have but for leading axes.
Constant broadcast_to(const Constant& values, const Shape& shape) {
  if (values->shape() == shape) return values;
  const int64_t count = values->elements(), total = shape.elements();
  bool suffix = values->shape().rank() <= shape.rank() && (count == 1 || (count > 0 && total % count == 0));
  for (int i = 1; suffix && count != 1 && i <= values->shape().rank(); ++i) {
    const int64_t dim = values->shape()[values->shape().rank() - i];
    suffix = dim == shape[shape.rank() - i] || values->shape().product(0, values->shape().rank() - i + 1) == 1;
  }
  if (!suffix) throw Error("a parameter of shape " + values->shape().str() + " does not fit " + shape.str());
  const auto from = values->values();
  std::vector<float> made(static_cast<size_t>(total));
  for (int64_t i = 0; i < total; ++i) made[static_cast<size_t>(i)] = from.get()[i % count];
  return constant_from(shape, std::move(made));
}

Refusal check_batch_norm(const OpView& view) {
  const HostNode& node = view.node();
  if (node.since_version < 9 && node.integer("spatial", 1) == 0) return "its statistics are not per channel";
  if (node.integer("training_mode", 0) != 0) return "it is in training mode";
  for (size_t i = 1; i < 5; ++i) {
    if (view.uses_output(i)) return "its running statistics are wanted";
  }
  if (view.rank(0) < 2) return "its input has no channels";
  return known_from(view, 1);
}

void convert_batch_norm(Lowering& low) {
  low.set(low.add(
      "batch_norm", {low.blob(0)}, {{"eps", decimal(low.node().real("epsilon", 1e-5F))}},
      {{"weight", low.weight(1)}, {"bias", low.weight(2)}, {"mean", low.weight(3)}, {"variance", low.weight(4)}}));
}

Refusal check_layer_norm(const OpView& view) {
  if (view.uses_output(1) || view.uses_output(2)) return "its mean or deviation is wanted";
  if (view.node().integer("stash_type", 1) != 1) return "it computes in another type";
  if (view.rank(0) < 1) return "its input is a scalar";
  return known_from(view, 1);
}

void convert_layer_norm(Lowering& low) {
  const Shape shape = low.shape(0);
  const int axis = static_cast<int>(low.axis(low.node().integer("axis", -1), shape.rank()));
  const Shape normalised(std::span<const int64_t>(shape.begin() + axis, shape.end()));
  Lowering::Weights weights{{"weight", broadcast_to(low.weight(1), normalised)}};
  if (low.has(2)) weights.emplace_back("bias", broadcast_to(low.weight(2), normalised));
  low.set(low.add("layer_norm", {low.blob(0)},
                  {{"axes", int64_t{shape.rank() - axis}}, {"eps", decimal(low.node().real("epsilon", 1e-5F))}},
                  weights));
}

// x / sqrt(mean(x^2) + epsilon) * scale
void convert_rms_norm(Lowering& low) {
  const Shape shape = low.shape(0);
  const int axis = static_cast<int>(low.axis(low.node().integer("axis", -1), shape.rank()));
  const Shape normalised(std::span<const int64_t>(shape.begin() + axis, shape.end()));
  low.set(low.add("rms_norm", {low.blob(0)},
                  {{"axes", int64_t{shape.rank() - axis}}, {"eps", decimal(low.node().real("epsilon", 1e-5F))}},
                  {{"weight", broadcast_to(low.weight(1), normalised)}}));
}

Refusal check_skip_norm(const OpView& view) {
  if (view.uses_output(1) || view.uses_output(2)) return "its mean or deviation is wanted";
  if (view.rank(0) < 1) return "its input is a scalar";
  return known_from(view, 2);
}

// The normalised sum of an input, of one that skips layers, and of a bias; and the sum itself.
void convert_skip_norm(Lowering& low) {
  const bool centred = low.node().op == "SkipLayerNormalization";
  const size_t bias = centred ? 4 : 3;
  const Shape shape = low.shape(0), last{shape[shape.rank() - 1]};
  const auto parameter = [&](size_t input) { return broadcast_to(low.weight(input), last); };
  int sum = low.add("binary", {low.blob(0), low.blob(1)}, {{"function", "add"}});
  if (low.shape_of(sum) != shape) throw Error("its inputs differ in shape");
  if (low.has(bias)) sum = low.add("binary", {sum}, {{"function", "add"}}, {{"other", parameter(bias)}});
  Lowering::Weights weights{{"weight", parameter(2)}};
  if (centred && low.has(3)) weights.emplace_back("bias", parameter(3));
  low.set(low.add(centred ? "layer_norm" : "rms_norm", {sum},
                  {{"axes", int64_t{1}}, {"eps", decimal(low.node().real("epsilon", 1e-12F))}}, weights));
  if (low.node().outputs.size() > 3 && low.node().outputs[3] >= 0) low.set(sum, 3);
}

// Words, their places and kinds, each by rows of tables; weights of the norm; a mask of which numbers are counted;
// places.
struct Embedded {
  enum : size_t { words, kinds, word_rows, place_rows, kind_rows, gamma, beta, word_mask, places };
};

Refusal check_embed_norm(const OpView& view) {
  if (view.uses_output(1)) return "its counts of words are wanted";
  if (view.rank(Embedded::words) != 2) return "its words are not those of a batch";
  if (view.has(Embedded::kinds) != view.has(Embedded::kind_rows))
    return "its kinds of words have no table, or it has none of them";
  for (const size_t input :
       {Embedded::word_rows, Embedded::place_rows, Embedded::kind_rows, Embedded::gamma, Embedded::beta}) {
    if (view.has(input) && !view.is_known(input)) return "its input " + std::to_string(input) + " is not constant";
  }
  return {};
}

void convert_embed_norm(Lowering& low) {
  const Shape shape = low.shape(Embedded::words);
  const auto rows = [&](int blob, size_t table) {
    return low.add("embedding", {blob}, {}, {{"weight", low.weight(table)}});
  };
  const int at =
      low.has(Embedded::places) ? low.blob(Embedded::places) : integers_blob(low, {1, shape[1]}, counted(0, shape[1]));
  const auto sum = [&](int a, int b) { return low.add("binary", {a, b}, {{"function", "add"}}); };
  int blob = sum(rows(low.blob(Embedded::words), Embedded::word_rows), rows(at, Embedded::place_rows));
  if (low.has(Embedded::kinds)) blob = sum(blob, rows(low.blob(Embedded::kinds), Embedded::kind_rows));
  const Shape made = low.shape_of(blob), last{made[made.rank() - 1]};
  if (made.rank() != 3 || made[0] != shape[0] || made[1] != shape[1]) throw Error("its inputs differ in shape");
  if (low.node().outputs.size() > 2 && low.node().outputs[2] >= 0) low.set(blob, 2);
  low.set(low.add("layer_norm", {blob}, {{"axes", int64_t{1}}, {"eps", decimal(low.node().real("epsilon", 1e-12F))}},
                  {{"weight", broadcast_to(low.weight(Embedded::gamma), last)},
                   {"bias", broadcast_to(low.weight(Embedded::beta), last)}}));
}

Refusal check_instance_norm(const OpView& view) {
  return view.rank(0) >= 3 ? known_from(view, 1) : Refusal("its input has no spatial axes");
}

int group_norm(Lowering& low, int64_t groups, Constant weight, Constant bias) {
  return low.add("group_norm", {low.blob(0)}, {{"groups", groups}, {"eps", decimal(low.node().real("epsilon", 1e-5F))}},
                 {{"weight", std::move(weight)}, {"bias", std::move(bias)}});
}

void convert_instance_norm(Lowering& low) { low.set(group_norm(low, low.shape(0)[1], low.weight(1), low.weight(2))); }

Refusal check_group_norm(const OpView& view) {
  if (view.node().integer("stash_type", 1) != 1) return "it computes in another type";
  if (view.rank(0) < 2) return "its input has no channels";
  const HostTensor *scale = view.constant(1), *bias = view.constant(2);
  if (scale != nullptr && bias != nullptr && scale->dims != bias->dims) return "its scale and bias differ in shape";
  return known_from(view, 1);
}

// Until opset 20 there is one scale per group, then one per channel.
void convert_group_norm(Lowering& low) {
  const int64_t channels = low.shape(0)[1], groups = low.node().integer("num_groups", 1);
  const Constant scale = low.weight(1), bias = low.weight(2);
  for (const Constant& one : {scale, bias}) {
    const int64_t wanted = low.node().since_version < 21 ? groups : channels;
    if (one->shape() == Shape{wanted}) continue;
    throw Error("a parameter has shape " + one->shape().str() + " where " + std::to_string(wanted) + " are wanted");
  }
  low.set(group_norm(low, groups, per_channel(scale, channels), per_channel(bias, channels)));
}

constexpr OpEntry norm_entries[] = {
    {"BatchNormalization", check_batch_norm, convert_batch_norm},
    {"LayerNormalization", check_layer_norm, convert_layer_norm},
    {"RMSNormalization", check_layer_norm, convert_rms_norm},
    {"SimplifiedLayerNormalization", check_layer_norm, convert_rms_norm},
    {"SkipLayerNormalization", check_skip_norm, convert_skip_norm, false, Holds::reals, Domain::microsoft},
    {"SkipSimplifiedLayerNormalization", check_skip_norm, convert_skip_norm, false, Holds::reals, Domain::microsoft},
    {"EmbedLayerNormalization", check_embed_norm, convert_embed_norm, false, Holds::anything, Domain::microsoft},
    {"InstanceNormalization", check_instance_norm, convert_instance_norm},
    {"GroupNormalization", check_group_norm, convert_group_norm},
};

}  // namespace

std::span<const OpEntry> norm_ops() { return norm_entries; }

}  // namespace softneuro::ort
