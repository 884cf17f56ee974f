#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "ext/bindings/bindings.h"

namespace softneuro::bindings {

Attrs to_attrs(const py::dict& values) {
  Attrs attrs;
  for (const auto& [key, value] : values) {
    const auto name = py::cast<std::string>(key);
    if (py::isinstance<py::bool_>(value)) {
      attrs.set(name, static_cast<int64_t>(py::cast<bool>(value) ? 1 : 0));
    } else if (py::isinstance<py::int_>(value)) {
      attrs.set(name, py::cast<int64_t>(value));
    } else if (py::isinstance<py::float_>(value)) {
      attrs.set(name, py::cast<double>(value));
    } else if (py::isinstance<py::str>(value)) {
      attrs.set(name, py::cast<std::string>(value));
    } else if (py::isinstance<py::sequence>(value)) {
      std::vector<int64_t> list;
      for (const auto& item : py::reinterpret_borrow<py::sequence>(value)) list.push_back(py::cast<int64_t>(item));
      attrs.set(name, std::move(list));
    } else {
      throw Error("attribute '" + name + "' has type " + std::string(py::str(py::type::of(value))), {},
                  "give an integer, a float, a text or a list of integers");
    }
  }
  return attrs;
}

Shape to_shape(const py::handle& dims) {
  Shape shape;
  for (const auto& dim : dims) shape.push_back(py::cast<int64_t>(dim));
  return shape;
}

py::tuple from_shape(const Shape& shape) {
  py::tuple dims(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) dims[static_cast<size_t>(axis)] = shape[axis];
  return dims;
}

py::dtype numpy_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return py::dtype::of<float>();
    case DType::float16:
      return py::dtype("float16");
    case DType::int8:
      return py::dtype::of<int8_t>();
    case DType::int32:
      return py::dtype::of<int32_t>();
    case DType::int64:
      return py::dtype::of<int64_t>();
    case DType::boolean:
      return py::dtype::of<bool>();
    default:  // as bits
      return dtype_bits(dtype) == 16 ? py::dtype::of<uint16_t>() : py::dtype::of<uint8_t>();
  }
}

// Sizes in memory order, and the axes in that order.
static std::pair<std::vector<py::ssize_t>, std::vector<py::ssize_t>> memory_axes(const Shape& shape,
                                                                                 const Layout& layout) {
  std::vector<py::ssize_t> sizes, axes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (layout.kind != Layout::Kind::nhwc || axis != 1) axes.push_back(axis);
  if (layout.kind == Layout::Kind::nhwc) axes.push_back(1);
  for (const py::ssize_t axis : axes) sizes.push_back(shape[static_cast<int>(axis)]);
  return {sizes, axes};
}

// Inverse of `axes`: the permutation that brings memory order back to the logical one.
static std::vector<py::ssize_t> back(const std::vector<py::ssize_t>& axes) {
  std::vector<py::ssize_t> inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) inverse[static_cast<size_t>(axes[i])] = static_cast<py::ssize_t>(i);
  return inverse;
}

py::array border_array(const py::handle& value, const Shape& shape, const Schema& schema, const std::string& what) {
  if (schema.layout.whole_images()) throw Error("arrays are neither blocked nor tiled", what, "give nchw or nhwc");
  py::array array = py::array::ensure(value);
  if (!array) throw Error("is no array", what);
  Shape given;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) given.push_back(array.shape(axis));
  if (given != shape) throw Error("has shape " + given.str() + ", the net was prepared for " + shape.str(), what);
  const py::dtype wanted = numpy_type(schema.dtype);
  const bool converts = schema.dtype == DType::float32;
  if (!converts && !array.dtype().equal(wanted)) {
    throw Error("has elements of type " + std::string(py::str(array.dtype())) + ", the net was prepared for " +
                    std::string(dtype_name(schema.dtype)),
                what);
  }
  const auto numpy = py::module_::import("numpy");
  const auto [sizes, axes] = memory_axes(shape, schema.layout);
  // A view in memory order, made contiguous where it is not, then seen in the logical order again.
  py::object ordered = array.attr("transpose")(py::cast(axes));
  ordered = numpy.attr("ascontiguousarray")(ordered, wanted);
  return ordered.attr("reshape")(py::cast(sizes)).attr("transpose")(py::cast(back(axes)));
}

py::array new_border_array(const Shape& shape, const Schema& schema) {
  if (schema.layout.whole_images()) throw Error("arrays are neither blocked nor tiled", {}, "give nchw or nhwc");
  const auto [sizes, axes] = memory_axes(shape, schema.layout);
  try {
    return py::array(numpy_type(schema.dtype), sizes).attr("transpose")(py::cast(back(axes)));
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_MemoryError)) throw;
    throw Error("out of memory: an array of shape " + shape.str() + " could not be allocated", {},
                "use a smaller batch or image, or free memory elsewhere");
  }
}

// A C-contiguous array of the type, and what the type is: that of the array if it is float16, else float32.
static std::pair<py::array, DType> weight_array(const py::handle& value) {
  if (py::isinstance<py::tuple>(value)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(value);
    if (pair.size() != 2) throw Error("a weight is an array, or a pair of an array and the type of its elements");
    const DType dtype = parse_dtype(py::cast<std::string>(pair[1]));
    const auto array = py::array::ensure(pair[0], py::array::c_style);
    if (array && array.dtype().equal(numpy_type(dtype))) return {array, dtype};
    throw Error("a weight's elements are not as " + std::string(dtype_name(dtype)) + " comes", {},
                "bfloat16 comes as uint16");
  }
  if (py::isinstance<py::array>(value) &&
      py::reinterpret_borrow<py::array>(value).dtype().equal(py::dtype("float16"))) {
    return {py::array::ensure(value, py::array::c_style), DType::float16};
  }
  auto array = FloatArray::ensure(value);
  if (!array) throw Error("a weight is not convertible to a float32 array");
  return {array, DType::float32};
}

static Shape shape_of(const py::array& array) {
  Shape shape;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(array.shape(axis));
  return shape;
}

static ConstantData::Memory memory_of(py::array array) {
  const void* data = array.data();
  // The last owner may let go of it in any thread, without the GIL.
  auto* held = new py::object(std::move(array));
  return {data, [held](const void*) {
            py::gil_scoped_acquire gil;
            delete held;
          }};
}

std::shared_ptr<const Quantization> to_quantization(const py::dict& values) {
  auto q = std::make_shared<Quantization>();
  const auto list = [](const py::handle& value, auto& to) {
    using T = typename std::decay_t<decltype(to)>::value_type;
    to = py::isinstance<py::sequence>(value) ? py::cast<std::vector<T>>(value) : std::vector<T>{py::cast<T>(value)};
  };
  for (const auto& [key, value] : values) {
    const auto name = py::cast<std::string>(key);
    if (name == "scale") {
      list(value, q->scales);
    } else if (name == "zero_point") {
      list(value, q->zero_points);
    } else if (name == "axis") {
      q->axis = py::cast<int>(value);
    } else if (name == "least") {
      q->least = py::cast<int>(value);
    } else if (name == "most") {
      q->most = py::cast<int>(value);
    } else if (name == "reciprocal") {
      q->rounding = py::cast<bool>(value) ? Quantization::Rounding::reciprocal : Quantization::Rounding::divides;
    } else {
      throw Error("unknown quantization parameter '" + name + "'", {},
                  "scale, zero_point, axis, least, most and reciprocal are known");
    }
  }
  if (q->zero_points.empty()) q->zero_points.assign(q->scales.size(), 0);
  return q;
}

TensorDesc to_desc(const Shape& shape, const py::object& type) {
  if (!py::isinstance<py::dict>(type)) return desc_of(shape, parse_dtype(py::cast<std::string>(type)));
  return {.shape = shape, .quantization = to_quantization(type)};
}

// (array of bytes, quantization)
static Constant quantized_constant(const py::tuple& pair);

Constant to_constant(const py::handle& value) {
  if (py::isinstance<py::tuple>(value)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(value);
    if (pair.size() == 2 && py::isinstance<py::dict>(pair[1])) return quantized_constant(pair);
  }
  auto [array, dtype] = weight_array(value);
  const Shape shape = shape_of(array);
  return std::make_shared<const ConstantData>(desc_of(shape, dtype), dtype, memory_of(std::move(array)));
}

static Constant quantized_constant(const py::tuple& pair) {
  TensorDesc desc{.shape = {}, .quantization = to_quantization(pair[1])};
  const py::dtype wanted = numpy_type(desc.quantization->is_signed() ? DType::int8 : DType::uint8);
  auto array = py::array::ensure(pair[0], py::array::c_style);
  if (!array || !array.dtype().equal(wanted)) {
    throw Error("a quantized weight's elements are not " + std::string(py::str(wanted)));
  }
  desc.shape = shape_of(array);
  return std::make_shared<const ConstantData>(desc, DType::qint8, memory_of(std::move(array)));
}

Layer to_layer(const std::string& type, const py::dict& attrs, const py::dict& weights, const py::dict& post) {
  Layer layer;
  layer.type = type;
  layer.attrs = to_attrs(attrs);
  for (const auto& [role, value] : weights) {
    if (!value.is_none()) layer.set_weight(py::cast<std::string>(role), to_constant(value));
  }
  for (const auto& [key, value] : post) {
    const auto name = py::cast<std::string>(key);
    if (name == "residual") {
      layer.post.residual = py::cast<bool>(value);
    } else if (name == "activation") {
      layer.post.activation.kind = parse_activation(py::cast<std::string>(value));
    } else if (name == "a") {
      layer.post.activation.a = py::cast<float>(value);
    } else if (name == "b") {
      layer.post.activation.b = py::cast<float>(value);
    } else if (name == "quantize") {
      layer.post.quantize = to_quantization(py::cast<py::dict>(value));
    } else if (name == "quantize_first") {
      layer.post.quantize_first = to_quantization(py::cast<py::dict>(value));
    } else {
      throw Error("unknown post-op '" + name + "'", {},
                  "residual, activation, a, b, quantize and quantize_first are known");
    }
  }
  return layer;
}

}  // namespace softneuro::bindings
