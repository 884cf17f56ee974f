#include "providers/ort/custom_ops.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/arch.h"
#include "base/arena.h"
#include "net/layer_call.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/graph/read_graph.h"
#include "providers/ort/lower/custom_layers.h"
#include "providers/ort/run/kernel.h"
#include "runtime/net_cache.h"

namespace softneuro::ort {
namespace {

constexpr int version = 1, optional_input = 1;
constexpr size_t nets_per_node = 32;

struct CustomOp : OrtCustomOp {
  const CustomOpKind* kind = nullptr;
};

const CustomOpKind& kind_of(const OrtCustomOp* op) { return *static_cast<const CustomOp*>(op)->kind; }

// Runs a call of the runtime that fails where there is no such attribute. One of another type is an error of the model.
template <typename Call>
bool found(const char* name, Call&& request) {
  try {
    request();
    return true;
  } catch (const Error& error) {
    if (std::strstr(error.what(), "type") != nullptr) {
      throw Error("its attribute " + std::string(name) + " is of another type: " + error.what());
    }
    return false;
  }
}

NodeAttributes attributes_of(const OrtKernelInfo* info) {
  NodeAttributes attributes;
  attributes.integers = [info](const char* name) -> std::optional<std::vector<int64_t>> {
    size_t count = 0;
    if (!found(name, [&] { call(fn::KernelInfoGetAttributeArray_int64, info, name, nullptr, &count); })) return {};
    std::vector<int64_t> values(count);
    if (count > 0) call(fn::KernelInfoGetAttributeArray_int64, info, name, values.data(), &count);
    return values;
  };
  attributes.integer = [info](const char* name) -> std::optional<int64_t> {
    int64_t value = 0;
    if (!found(name, [&] { call(fn::KernelInfoGetAttribute_int64, info, name, &value); })) return {};
    return value;
  };
  attributes.real = [info](const char* name) -> std::optional<float> {
    float value = 0;
    if (!found(name, [&] { call(fn::KernelInfoGetAttribute_float, info, name, &value); })) return {};
    return value;
  };
  attributes.text = [info](const char* name) -> std::optional<std::string> {
    size_t size = 0;
    if (!found(name, [&] { call(fn::KernelInfoGetAttribute_string, info, name, nullptr, &size); })) return {};
    std::string value(size, '\0');
    call(fn::KernelInfoGetAttribute_string, info, name, value.data(), &size);
    value.resize(std::strlen(value.c_str()));
    return value;
  };
  return attributes;
}

NodeAttributes attributes_of(const OrtShapeInferContext* context) {
  const auto attribute = [context](const char* name) -> const OrtOpAttr* {
    const OrtOpAttr* value = nullptr;
    found(name, [&] { call(fn::ShapeInferContext_GetAttribute, context, name, &value); });
    return value;
  };
  NodeAttributes attributes;
  attributes.integers = [attribute](const char* name) -> std::optional<std::vector<int64_t>> {
    const OrtOpAttr* value = attribute(name);
    if (value == nullptr) return {};
    return read_integers(value);
  };
  attributes.integer = [attribute](const char* name) -> std::optional<int64_t> {
    const OrtOpAttr* value = attribute(name);
    if (value == nullptr) return {};
    int64_t number = 0;
    size_t bytes = 0;
    call(fn::ReadOpAttr, value, static_cast<int>(attr_int), &number, sizeof(number), &bytes);
    return number;
  };
  attributes.text = [attribute](const char* name) -> std::optional<std::string> {
    const OrtOpAttr* value = attribute(name);
    if (value == nullptr) return {};
    return read_text(value);
  };
  return attributes;
}

std::vector<std::vector<int64_t>> input_shapes(const OrtShapeInferContext* context) {
  std::vector<std::vector<int64_t>> shapes(std::tuple_size_v<decltype(CustomOpKind::types)>);
  const auto count = std::min(get<size_t>(fn::ShapeInferContext_GetInputCount, context), shapes.size());
  for (size_t i = 0; i < count; ++i) {
    // The context owns it.
    const auto* info = get<OrtTensorTypeAndShapeInfo*>(fn::ShapeInferContext_GetInputTypeShape, context, i);
    if (info != nullptr) shapes[i] = dimensions(info);
  }
  return shapes;
}

// Name of x's first dimension, or empty.
std::string batch_symbol(const OrtShapeInferContext* context) {
  const auto* info = get<OrtTensorTypeAndShapeInfo*>(fn::ShapeInferContext_GetInputTypeShape, context, size_t{0});
  std::vector<const char*> symbols(dimensions(info).size());
  call(fn::GetSymbolicDimensions, info, symbols.data(), symbols.size());
  return symbols.empty() || symbols[0] == nullptr ? "" : symbols[0];
}

OrtStatus* infer_output_shape(const OrtCustomOp* op, OrtShapeInferContext* context) {
  return guarded("InferOutputShape", [&] {
    const CustomOpKind& kind = kind_of(op);
    const auto dims = kind.infer(attributes_of(context), input_shapes(context));
    if (dims.empty()) return;
    const auto info =
        create<fn::ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo>(fn::CreateTensorTypeAndShapeInfo);
    call(fn::SetTensorElementType, info.get(), ElementType(kind.out).number());
    call(fn::SetDimensions, info.get(), dims.data(), dims.size());
    // An unknown dimension gets a name of its own, so that it is taken for equal to no other; the batch keeps x's.
    static std::atomic<uint64_t> unknown{0};
    const std::string batch = batch_symbol(context);
    std::vector<std::string> names;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool is_batch = i == 0 && !batch.empty();
      names.push_back(dims[i] >= 0 ? "" : is_batch ? batch : "com_softneuro_" + std::to_string(++unknown));
    }
    std::vector<const char*> symbols;
    for (const std::string& name : names) symbols.push_back(name.c_str());
    call(fn::SetSymbolicDimensions, info.get(), symbols.data(), symbols.size());
    call(fn::ShapeInferContext_SetOutputTypeShape, context, size_t{0}, info.get());
  });
}

// One node of a session.
class Kernel {
 public:
  Kernel(const CustomOpKind& kind, const OrtKernelInfo* info) : kind_(kind) {
    const NodeAttributes attributes = attributes_of(info);
    name_ = node_name(info);
    if (kind.adapt != nullptr) {
      adapt_ = kind.adapt(attributes);
      return;
    }
    const auto inputs = get<size_t>(fn::KernelInfo_GetInputCount, info);
    for (size_t i = 1; i < inputs; ++i) {
      int constant = 0;
      const OrtValue* value = nullptr;
      call(fn::KernelInfoGetConstantInput_tensor, info, i, &constant, &value);
      if (constant == 0 || value == nullptr) throw Error("its input " + std::to_string(i) + " must be an initializer");
      const TensorInfo described = tensor_info(value);
      constants_.push_back(copied(described.type.known(), described.dims,
                                  get<void*>(fn::GetTensorMutableData, const_cast<OrtValue*>(value))));
      dims_.push_back(described.dims);
    }
    if (constants_.empty()) throw Error("its weight is missing");
    CustomLayer made = kind.layer(attributes, constants_, static_cast<int>(constants_[0].dims.size()));
    layer_ = std::move(made.layer), quantization_ = std::move(made.x);
    layer_.name = name_;
    routine_ = attributes.text("routine").value_or("");
    const std::string plain = routine_.substr(0, routine_.find('{'));
    const auto known = [&](const auto& routine) { return routine->descriptor() == plain; };
    const auto all = routines(layer_.type);
    if (plain.find('/') != std::string::npos && std::none_of(all.begin(), all.end(), known)) {
      throw Error("no routine '" + routine_ + "'", {}, "softneuro.registry() lists them");
    }
    // Shapes need the attributes once more, when the node's are gone.
    std::map<std::string, std::optional<std::vector<int64_t>>> lists;
    std::map<std::string, std::optional<int64_t>> groups;
    for (const std::string stage : {"", "first_", "second_"}) {
      for (const char* list : {"strides", "pads", "dilations"}) {
        lists[stage + list] = attributes.integers((stage + list).c_str());
      }
      groups[stage + "group"] = attributes.integer((stage + "group").c_str());
    }
    kept_.integers = [lists = std::move(lists)](const char* wanted) { return lists.at(wanted); };
    kept_.integer = [groups = std::move(groups)](const char* wanted) { return groups.at(wanted); };
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  void run(OrtKernelContext* context) const {
    const auto* value = get<const OrtValue*>(fn::KernelContext_GetInput, context, size_t{0});
    const TensorInfo given = tensor_info(value);
    auto* data = get<void*>(fn::GetTensorMutableData, const_cast<OrtValue*>(value));
    if (kind_.adapt != nullptr) return run_adapt(context, given.dims, data);
    std::vector<std::vector<int64_t>> shapes{given.dims};
    shapes.insert(shapes.end(), dims_.begin(), dims_.end());
    const auto dims = kind_.infer(kept_, shapes);
    if (dims.empty()) throw Error("x must not be a scalar");
    void* to = output(context, dims);
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
    const auto net = find_net(given.dims);
    const void* in[] = {data};
    void* out[] = {to};
    SessionPool pool(context, net->threads());
    net->run(in, out, pool.parallel_for());
  }

  static std::string node_name(const OrtKernelInfo* info) {
    size_t size = 0;
    if (!found("name", [&] { call(fn::KernelInfo_GetNodeName, info, nullptr, &size); }) || size == 0) return {};
    std::string name(size, '\0');
    call(fn::KernelInfo_GetNodeName, info, name.data(), &size);
    name.resize(std::strlen(name.c_str()));
    return name;
  }

 private:
  static void* output(OrtKernelContext* context, const std::vector<int64_t>& dims) {
    auto* made = get<OrtValue*>(fn::KernelContext_GetOutput, context, size_t{0}, dims.data(), dims.size());
    return get<void*>(fn::GetTensorMutableData, made);
  }

  std::shared_ptr<const Net> find_net(const std::vector<int64_t>& dims) const {
    if (const auto known = nets_.find(dims, constant_weights)) return known->net;
    Ready made;
    made.signature = dims;
    made.net = prepare_layer(layer_, {{.shape = Shape(dims), .quantization = quantization_}}, routine_,
                             physical_cores(), kind_.sparse);
    auto net = made.net;
    nets_.put(std::move(made));
    return net;
  }

  void run_adapt(OrtKernelContext* context, const std::vector<int64_t>& dims, void* data) const {
    const Schema &from = adapt_.from, &wanted = adapt_.to;
    const auto logical = logical_dims(dims, from.layout, adapt_.channels);
    void* to = output(context, memory_dims(logical, wanted.layout));
    const TensorDesc desc{.shape = Shape(logical), .quantization = adapt_.quantization};
    if (desc.shape.elements() == 0) return;
    if (from == wanted || adapt_routine(desc, from, wanted) != nullptr)
      return convert(context, desc, data, from, to, wanted);
    AlignedBuffer between(bytes(desc, f32_nchw));
    convert(context, desc, data, from, between.f32(), f32_nchw);
    convert(context, desc, between.f32(), f32_nchw, to, wanted);
  }

  static void convert(OrtKernelContext* context, const TensorDesc& desc, void* from, const Schema& from_schema,
                      void* to, const Schema& to_schema) {
    const Routine* routine = adapt_routine(desc, from_schema, to_schema);
    if (from_schema == to_schema || (routine != nullptr && routine->info().view)) {
      std::memcpy(to, from, bytes(desc, to_schema));
      return;
    }
    if (routine == nullptr) throw Error("there is no conversion from " + from_schema.str() + " to " + to_schema.str());
    Layer layer;
    layer.type = "adapt";
    const Problem problem{&layer, {desc}, desc, physical_cores()};
    const auto prepared = routine->prepare(problem, routine->tunings(problem).front(), nullptr);
    const WorkspaceSize size = prepared->workspace();
    const AlignedBuffer workspace(size.bytes());
    SessionPool pool(context, problem.threads);
    const TensorView in = dense_view(from, desc.shape, from_schema);
    const TensorView out = dense_view(to, desc.shape, to_schema);
    prepared->run({&in, &out, {size, workspace.data()}, pool.parallel_for()});
  }

  const CustomOpKind& kind_;
  std::string name_, routine_;
  mutable NetCache nets_{{.entries = nets_per_node, .nets = nets_per_node}};
  NodeAttributes kept_;
  CustomAdapt adapt_;
  std::vector<HostTensor> constants_;
  std::vector<std::vector<int64_t>> dims_;  // of the constants
  Layer layer_;
  std::shared_ptr<const Quantization> quantization_;  // of x
};

std::string where_of(const CustomOpKind& kind, const std::string& name) {
  return "com.softneuro " + std::string(kind.name) + (name.empty() ? "" : " '" + name + "'");
}

OrtStatus* create_kernel(const OrtCustomOp* op, const OrtApi*, const OrtKernelInfo* info, void** kernel) {
  return guarded("CreateKernel", [&] {
    try {
      *kernel = new Kernel(kind_of(op), info);
    } catch (const Error& error) {
      throw Error(error.what(), where_of(kind_of(op), Kernel::node_name(info)));
    }
  });
}

OrtStatus* compute(void* kernel, OrtKernelContext* context) {
  return guarded("KernelCompute", [&] { static_cast<const Kernel*>(kernel)->run(context); });
}

void destroy(void* kernel) {
  guarded_quietly("KernelDestroy", [&] { delete static_cast<Kernel*>(kernel); });
}

CustomOp make_op(const CustomOpKind& kind) {
  CustomOp op;
  op.version = Runtime::get().api_version();
  op.kind = &kind;
  op.get_name = [](const OrtCustomOp* self) { return kind_of(self).name; };
  op.get_execution_provider = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.get_input_type = [](const OrtCustomOp* self, size_t index) {
    return ElementType(kind_of(self).types[index]).number();
  };
  op.get_input_count = [](const OrtCustomOp* self) { return kind_of(self).inputs; };
  op.get_output_type = [](const OrtCustomOp* self, size_t) { return ElementType(kind_of(self).out).number(); };
  op.get_output_count = [](const OrtCustomOp*) { return size_t{1}; };
  op.get_input_characteristic = [](const OrtCustomOp* self, size_t index) {
    return index >= 2 && index + 1 == kind_of(self).inputs ? optional_input : 0;
  };
  op.get_output_characteristic = [](const OrtCustomOp*, size_t) { return 0; };
  op.get_input_memory_type = [](const OrtCustomOp*, size_t) { return static_cast<int>(memory_default); };
  op.create_kernel_v2 = create_kernel;
  op.kernel_compute_v2 = compute;
  op.kernel_destroy = destroy;
  op.infer_output_shape = infer_output_shape;
  op.get_start_version = [](const OrtCustomOp*) { return version; };
  op.get_end_version = [](const OrtCustomOp*) { return version; };
  return op;
}

// The domain lives as long as the process: sessions may outlive the options that it was added to.
OrtCustomOpDomain* domain() {
  static OrtCustomOpDomain* made = [] {
    static std::vector<CustomOp> ops;
    for (const CustomOpKind& kind : custom_op_kinds()) ops.push_back(make_op(kind));
    auto owner = create<fn::ReleaseCustomOpDomain, OrtCustomOpDomain>(fn::CreateCustomOpDomain, "com.softneuro");
    for (const CustomOp& op : ops) call(fn::CustomOpDomain_Add, owner.get(), &op);
    return owner.release();
  }();
  return made;
}

}  // namespace

void register_custom_ops(OrtSessionOptions* options) { call(fn::AddCustomOpDomain, options, domain()); }

}  // namespace softneuro::ort
