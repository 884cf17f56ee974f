#include "providers/ort/lower/lowering.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "providers/ort/host/host_step.h"
#include "providers/ort/lower/fold.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

std::string where_of(const HostNode& node) { return node.op + (node.name.empty() ? "" : " '" + node.name + "'"); }

}  // namespace

std::vector<int64_t> to_list(const Shape& shape) { return {shape.begin(), shape.end()}; }

Constant constant_of(const HostTensor& tensor) {
  return std::make_shared<const ConstantData>(desc_of(Shape(tensor.dims), tensor.type), tensor.type, tensor.data);
}

// Blobs have one scale, and their bytes are unsigned.
static Constant blob_constant(const Constant& constant) {
  const auto& grid = constant->desc().quantization;
  if (!grid || (grid->axis < 0 && !grid->is_signed())) return constant;
  return std::make_shared<const ConstantData>(constant->shape(), [constant] { return constant->values(); });
}

Lowered Lowering::run(std::span<const GivenInput> inputs) {
  for (size_t i = 0; i < ops_.inputs.size(); ++i) {
    const int id = ops_.inputs[i];
    Place& place = values_[static_cast<size_t>(id)];
    if (inputs[i].known) {
      place.known = inputs[i].known;
    } else {
      place.blob = add_input(ops_.value(id), inputs[i].shape);
      result_.inputs.push_back(static_cast<int>(i));
    }
  }
  for (const HostNode& node : ops_.nodes) {
    node_ = &node;
    try {
      if (fold(*this)) continue;
      const OpEntry* entry = find_op(node);
      if (node.is_step) {
        run_by_host();
      } else if (entry == nullptr) {
        throw Error("there is no layer for this op");
      } else {
        convert(*entry);
      }
    } catch (const Error& error) {
      throw Error(error.what(), where_of(node));
    }
  }
  int outputs = 0;
  for (const int id : ops_.outputs) {
    const Place& place = values_[static_cast<size_t>(id)];
    const HostValue& value = ops_.value(id);
    GivenOutput& given = result_.outputs.emplace_back();
    if (place.blob < 0 && place.known && !(is_real(place.known->type) && place.known->elements() > 0)) {
      given.known = *place.known;
      if (ElementType(given.known.type) != value.type) {
        throw Error("output '" + value.name + "' is " + std::string(dtype_name(given.known.type)) +
                    ", which is not what the model declares");
      }
      continue;
    }
    int blob = blob_of(id);
    given.shape = shape_of(blob);
    given.output = outputs++;
    // The last reshapes are no work: the host is told the shape.
    for (int at = result_.graph.blob(blob).producer; at >= 0; at = result_.graph.blob(blob).producer) {
      const Layer& layer = result_.graph.layers()[static_cast<size_t>(at)];
      if (layer.type != "reshape") break;
      blob = layer.inputs[0];
    }
    if (value.grid) blob = quantized(blob, value.grid, value.name);
    result_.graph.add_output(blob, f32_nchw.with(value.grid ? DType::qint8 : value.type.known()));
  }
  return std::move(result_);
}

int Lowering::add_input(const HostValue& value, const Shape& shape) {
  const DType type = value.type.known();
  if (!value.grid) return result_.graph.add_input(value.name, desc_of(shape, type), f32_nchw.with(type));
  const TensorDesc desc{.shape = shape, .quantization = value.grid};
  const int blob = result_.graph.add_input(value.name, desc, f32_nchw.with(DType::qint8));
  return quantized(blob, unsigned_grid(value.grid), value.name);
}

// The values of a blob on a grid, where they may be already.
int Lowering::quantized(int blob, const std::shared_ptr<const Quantization>& grid, const std::string& name) {
  const auto& own = desc(blob).quantization;
  if (own && *own == *grid) return blob;
  Layer layer;
  layer.name = name;
  layer.type = "quantize";
  layer.post.quantize = grid;
  layer.inputs = {blob};
  return result_.graph.add_layer(std::move(layer));
}

// What no layer does with these shapes the host does, inside the region, if shapes are open. Fixed ones have been
// tried.
void Lowering::convert(const OpEntry& entry) {
  try {
    return entry.convert(*this);
  } catch (const Error&) {
    const bool open = std::any_of(node_->inputs.begin(), node_->inputs.end(), [&](int id) {
      return id >= 0 && !ops_.value(id).constant && (ops_.value(id).sized || !is_fixed(ops_.value(id)));
    });
    if (!open || threads_ == 0 || !may_be_step(ops_, *node_).accepted()) throw;
  }
  // Nothing reads what has been added of it.
  for (const int id : node_->outputs) {
    if (id >= 0) values_[static_cast<size_t>(id)] = {};
  }
  run_by_host();
}

void Lowering::convert_as(const HostNode& node) {
  const HostNode* whole = std::exchange(node_, &node);
  try {
    find_op(node)->convert(*this);
  } catch (...) {
    node_ = whole;
    throw;
  }
  node_ = whole;
}

// Values that somebody reads.
std::vector<bool> Lowering::wanted_values() const {
  std::vector<bool> wanted(ops_.values.size(), false);
  const auto want = [&](const std::vector<int>& ids) {
    for (const int id : ids) {
      if (id >= 0) wanted[static_cast<size_t>(id)] = true;
    }
  };
  want(ops_.outputs);
  for (const HostNode& node : ops_.nodes) want(node.inputs);
  return wanted;
}

void Lowering::run_by_host() {
  std::vector<StepInput> given;
  std::vector<int> blobs;
  std::set<int> seen;
  for (size_t i = 0; i < node_->inputs.size(); ++i) {
    StepInput& one = given.emplace_back();
    if (!has(i)) continue;
    if (is_known(i)) {
      one.known = known(i);
    } else {
      one.shape = shape(i);
      if (seen.insert(node_->inputs[i]).second) blobs.push_back(blob(i));
    }
  }
  HostStep step = make_step(ops_, *node_, given, wanted_values(), threads_);
  Layer layer = host_layer(where_of(*node_), step.text, std::move(step.op));
  layer.inputs = std::move(blobs);
  result_.graph.add_layer(std::move(layer));
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int blob = result_.graph.layers().back().outputs[i];
    check_shape(step.outputs[i], shape_of(blob));
    values_[static_cast<size_t>(step.outputs[i])].blob = blob;
  }
}

const Lowering::Place& Lowering::value(size_t input) const {
  if (!has(input)) throw Error("input " + std::to_string(input) + " is missing");
  const int id = node_->inputs[input];
  const Place& place = values_[static_cast<size_t>(id)];
  if (place.known || place.constant || place.blob >= 0) return place;
  const HostValue& described = ops_.value(id);
  if (!described.constant) throw Error("input '" + described.name + "' has no value");
  // Constants are looked up on first use.
  const_cast<Place&>(place).known = *described.constant;
  return place;
}

const HostValue& Lowering::described(int id) const {
  const auto index = static_cast<size_t>(id), own = ops_.values.size();
  return index < own ? ops_.values[index] : added_[index - own];
}

int Lowering::added(const Shape& shape, Place place) {
  HostValue value;
  value.name = described(node_->outputs[0]).name, value.type = DType::float32;
  value.has_shape = true, value.dims = to_list(shape);
  added_.push_back(std::move(value));
  values_.push_back(std::move(place));
  return static_cast<int>(values_.size()) - 1;
}

int Lowering::added_value(Constant constant) {
  const Shape shape = constant->shape();
  return added(shape, {.blob = -1, .known = {}, .constant = std::move(constant)});
}

int Lowering::added_value(int blob) { return added(shape_of(blob), {.blob = blob, .known = {}, .constant = nullptr}); }

int Lowering::added_output() {
  HostValue value = described(node_->outputs[0]);
  value.has_shape = false;
  added_.push_back(std::move(value));
  values_.emplace_back();
  return static_cast<int>(values_.size()) - 1;
}

const HostTensor& Lowering::known(size_t input) const {
  const Place& place = value(input);
  if (place.constant && !place.known) {
    const_cast<Place&>(place).known =
        HostTensor{DType::float32, to_list(place.constant->shape()), place.constant->values()};
  }
  if (!place.known) throw Error("input " + std::to_string(input) + " must be a constant or follow from shapes");
  return *place.known;
}

std::vector<int64_t> Lowering::integers(size_t input, std::string_view attribute, std::vector<int64_t> fallback) const {
  return has(input) ? known(input).integers() : node_->integers(attribute, std::move(fallback));
}

Shape Lowering::shape(size_t input) const {
  const Place& place = value(input);
  if (place.blob >= 0) return shape_of(place.blob);
  return place.constant ? place.constant->shape() : Shape(place.known->dims);
}

int64_t Lowering::axis(int64_t given, int rank) const {
  if (given < -rank || given >= rank) {
    throw Error("axis " + std::to_string(given) + " is not one of a tensor of rank " + std::to_string(rank));
  }
  return given < 0 ? given + rank : given;
}

int Lowering::blob(size_t input) {
  value(input);
  return blob_of(node_->inputs[input]);
}

int Lowering::blob_of(int id) {
  Place& place = values_[static_cast<size_t>(id)];
  if (place.blob >= 0) return place.blob;
  const HostValue& value = described(id);
  if (value.constant) place.known = *value.constant;
  if (!place.known && !place.constant) throw Error("value '" + value.name + "' was never computed");
  Layer layer;
  layer.name = value.name;
  layer.type = "constant";
  layer.set_weight("value", place.constant ? blob_constant(place.constant) : constant(id, *place.known));
  place.blob = result_.graph.add_layer(std::move(layer));
  return place.blob;
}

Constant Lowering::weight(size_t input) {
  const Place& place = value(input);
  if (!place.constant && !is_real(type(input))) throw Error("a weight is " + std::string(dtype_name(type(input))));
  return place.constant ? place.constant : constant(node_->inputs[input], known(input));
}

Constant Lowering::constant(int id, const HostTensor& known) {
  if (!described(id).constant) return constant_of(known);  // it follows from shapes
  return kept("", {id}, [&] { return constant_of(known); });
}

Constant Lowering::kept(std::string what, std::vector<int> values, const std::function<Constant()>& make) {
  Constant& kept = constants_[{std::move(what), std::move(values)}];
  if (kept == nullptr) kept = make();
  return kept;
}

Constant Lowering::dequantized(const QuantizedInput& input) {
  std::vector<int> values;
  for (const size_t at : {input.value, input.scale, input.zero_point})
    values.push_back(has(at) ? node_->inputs[at] : -1);
  std::string what = "reals of " + node_->op;
  for (const char* name : {"axis", "transB"}) what += " " + std::to_string(node_->integer(name, 1));
  return kept(what, std::move(values), [&] { return ort::dequantized(ops_, *node_, input); });
}

int Lowering::add(std::string_view type, std::vector<int> inputs, AttrList attributes, Weights weights) {
  Layer layer;
  layer.type = type;
  for (const auto& [name, value] : attributes) layer.attrs.set(name, value);
  layer.weights = std::move(weights);
  return add(std::move(layer), std::move(inputs));
}

int Lowering::add(Layer layer, std::vector<int> inputs) {
  layer.name = name();
  layer.inputs = std::move(inputs);
  return result_.graph.add_layer(std::move(layer));
}

int Lowering::reshape(int blob, const Shape& shape) {
  return shape_of(blob) == shape ? blob : add("reshape", {blob}, {{"shape", to_list(shape)}});
}

int Lowering::transpose(int blob, const std::vector<int64_t>& perm) {
  return add("transpose", {blob}, {{"perm", perm}});
}

void Lowering::check_shape(int id, const Shape& shape) const {
  const HostValue& value = described(id);
  if (!value.has_shape) return;
  bool agrees = value.dims.size() == static_cast<size_t>(shape.rank());
  for (int i = 0; agrees && i < shape.rank(); ++i) {
    const int64_t declared = value.dims[static_cast<size_t>(i)];
    agrees = declared < 0 || declared == shape[i];
  }
  if (!agrees) throw Error("the result has shape " + shape.str() + ", which is not what the model declares");
}

float Lowering::real_of(double number) const {
  const Quantization* steps = grid();
  if (steps == nullptr) return static_cast<float>(number);
  return static_cast<float>(number - steps->zero_points[0]) * steps->scales[0];
}

std::string Lowering::name() const { return node_->name.empty() ? described(node_->outputs[0]).name : node_->name; }

void Lowering::set(int blob, size_t output) {
  const int id = node_->outputs[output];
  if (id < 0) return;
  if (const auto& grid = described(id).grid) blob = quantized(blob, unsigned_grid(grid), name());
  check_shape(id, shape_of(blob));
  if (result_.graph.blob(blob).producer >= 0) result_.graph.rename(blob, described(id).name);
  values_[static_cast<size_t>(id)].blob = blob;
}

void Lowering::set(Constant constant, size_t output) {
  const int id = node_->outputs[output];
  if (id >= 0) values_[static_cast<size_t>(id)].constant = std::move(constant);
}

void Lowering::set(HostTensor known, size_t output) {
  const int id = node_->outputs[output];
  if (id >= 0) values_[static_cast<size_t>(id)].known = std::move(known);
}

}  // namespace softneuro::ort
