#include "providers/ort/op_graph.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace softneuro::ort {
namespace {

template <typename T>
std::vector<int64_t> widened(const HostTensor& tensor) {
  const auto* values = static_cast<const T*>(tensor.data.get());
  return {values, values + tensor.elements()};
}

template <typename T>
HostTensor kept(ElementType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  auto list = std::make_shared<const std::vector<T>>(values);
  return {type, std::move(dims), std::shared_ptr<const void>(list, list->data())};
}

template <typename T>
const T* as(const OpNode& node, std::string_view name) {
  const OpAttribute* found = node.find(name);
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(found);
  if (value == nullptr)
    throw Error("attribute " + std::string(name) + " has an unexpected type", node.op + " '" + node.name + "'");
  return value;
}

}  // namespace

size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::int64:
    case ElementType::float64:
      return 8;
    case ElementType::boolean:
      return 1;
    case ElementType::undefined:
      break;
  }
  return 0;
}

std::string element_name(ElementType type) {
  static constexpr const char* names[] = {"undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
                                          "int32",     "int64",   "string",    "bool",       "float16", "float64",
                                          "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "type " + std::to_string(index);
}

int64_t HostTensor::elements() const {
  int64_t total = 1;
  for (const int64_t dim : dims) total *= dim;
  return total;
}

std::vector<int64_t> HostTensor::integers() const {
  if (type == ElementType::int64) return widened<int64_t>(*this);
  if (type == ElementType::int32) return widened<int32_t>(*this);
  if (type == ElementType::boolean) return widened<uint8_t>(*this);
  throw Error("integers are wanted, not " + element_name(type));
}

double HostTensor::number() const {
  if (elements() != 1) throw Error("one number is wanted, not " + std::to_string(elements()));
  if (type == ElementType::float32) return static_cast<double>(*f32());
  if (type == ElementType::float64) return *static_cast<const double*>(data.get());
  return static_cast<double>(integers()[0]);
}

HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return kept(ElementType::int64, std::move(dims), values);
}

HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<float>& values) {
  return kept(ElementType::float32, std::move(dims), values);
}

HostTensor copied(ElementType type, std::vector<int64_t> dims, const void* data) {
  HostTensor tensor{type, std::move(dims), nullptr};
  const size_t bytes = tensor.bytes();
  std::shared_ptr<void> memory(::operator new(std::max<size_t>(bytes, 1)), [](void* p) { ::operator delete(p); });
  if (bytes > 0) std::memcpy(memory.get(), data, bytes);
  tensor.data = std::move(memory);
  return tensor;
}

const OpAttribute* OpNode::find(std::string_view wanted) const {
  const auto found = attributes.find(wanted);
  return found == attributes.end() ? nullptr : &found->second;
}

int64_t OpNode::integer(std::string_view wanted, int64_t fallback) const {
  const auto* value = as<int64_t>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

float OpNode::real(std::string_view wanted, float fallback) const {
  const auto* value = as<float>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

std::string OpNode::text(std::string_view wanted, std::string_view fallback) const {
  const auto* value = as<std::string>(*this, wanted);
  return value != nullptr ? *value : std::string(fallback);
}

std::vector<int64_t> OpNode::integers(std::string_view wanted, std::vector<int64_t> fallback) const {
  const auto* value = as<std::vector<int64_t>>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

}  // namespace softneuro::ort
