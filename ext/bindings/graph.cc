// softneuro._C.Graph
#include "graph/graph.h"

#include "base/error.h"
#include "ext/bindings/bindings.h"
#include "graph/passes/passes.h"
#include "layers/contract/registry.h"

namespace softneuro::bindings {
namespace {

using DoubleArray = py::array_t<double, py::array::c_style | py::array::forcecast>;

py::dict from_attrs(const Attrs& attrs) {
  py::dict values;
  for (const auto& [name, value] : attrs.items()) {
    values[py::str(name)] = std::visit([](const auto& held) -> py::object { return py::cast(held); }, value);
  }
  return values;
}

py::list layer_list(const Graph& graph) {
  py::list list;
  for (const Layer& layer : graph.layers()) {
    py::dict weights, types;
    for (const auto& [role, value] : layer.weights) {
      weights[py::str(role)] = from_shape(value->shape());
      types[py::str(role)] = std::string(dtype_name(value->dtype()));
    }
    py::dict entry;
    entry["name"] = layer.name;
    entry["type"] = layer.type;
    entry["attrs"] = from_attrs(layer.attrs);
    entry["weights"] = weights;
    entry["weight_types"] = types;
    entry["residual"] = layer.post.residual;
    entry["activation"] = std::string(activation_name(layer.post.activation.kind));
    entry["inputs"] = layer.inputs;
    entry["output"] = layer.output();
    entry["outputs"] = layer.outputs;
    list.append(entry);
  }
  return list;
}

// Every blob in float64, layer by layer.
py::list run_graph_reference(const Graph& graph, const py::sequence& inputs) {
  if (inputs.size() != graph.inputs().size()) throw Error("the graph has another number of inputs");
  std::vector<std::vector<double>> values(graph.blobs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto array = DoubleArray::ensure(inputs[i]);
    const int blob = graph.inputs()[i];
    if (!array || array.size() != graph.blob(blob).desc.shape.elements()) throw Error("an input has another shape");
    values[static_cast<size_t>(blob)].assign(array.data(), array.data() + array.size());
  }
  const auto tensor = [&](int blob) {
    return RefTensor{graph.blob(blob).desc.shape, values[static_cast<size_t>(blob)].data()};
  };
  for (const Layer& layer : graph.layers()) {
    std::vector<RefTensor> in;
    for (int input : layer.inputs) in.push_back(tensor(input));
    std::vector<RefTensor> outs;
    for (int output : layer.outputs) {
      values[static_cast<size_t>(output)].resize(static_cast<size_t>(graph.blob(output).desc.shape.elements()));
      outs.push_back(tensor(output));
    }
    run_reference(layer_def(layer.type), layer, in, outs);
  }
  py::list outputs;
  for (int blob : graph.outputs()) {
    const auto& data = values[static_cast<size_t>(blob)];
    auto array = new_array<double>(graph.blob(blob).desc.shape);
    std::copy(data.begin(), data.end(), array.mutable_data());
    outputs.append(array);
  }
  return outputs;
}

// A dtype alone is row-major.
Schema parse_border(const std::string& text) {
  return text.find(':') == std::string::npos ? f32_nchw.with(parse_dtype(text)) : parse_schema(text);
}

std::vector<int> producer_outputs(const Graph& graph, int blob) {
  const int producer = blob < 0 || blob >= static_cast<int>(graph.blobs().size()) ? -1 : graph.blob(blob).producer;
  if (producer < 0) throw Error("no layer makes blob " + std::to_string(blob));
  return graph.layers()[static_cast<size_t>(producer)].outputs;
}

std::vector<std::string> texts_of(const std::vector<Schema>& schemas) {
  std::vector<std::string> texts;
  for (const Schema& schema : schemas) texts.push_back(schema.str());
  return texts;
}

std::vector<py::tuple> shapes_of(const Graph& graph, const std::vector<int>& blobs) {
  std::vector<py::tuple> shapes;
  for (int blob : blobs) shapes.push_back(from_shape(graph.blob(blob).desc.shape));
  return shapes;
}

py::dict traits_of(const py::object& weight) {
  const Constant constant = to_constant(weight);
  // Small ones too, which no layer asks for.
  const WeightTraits traits = find_traits(constant->shape(), constant->values().get());
  py::dict found;
  found["shape"] = from_shape(constant->shape());
  found["zeros"] = traits.zeros;
  found["n_of_m"] = py::make_tuple(traits.most, traits.of);
  found["block"] = py::make_tuple(traits.block_rows, traits.block_columns);
  found["pattern"] = WeightTraits::matter(constant->shape()) ? traits.str() : "";
  return found;
}

}  // namespace

void bind_graph(py::module_& m) {
  m.def("weight_traits", &traits_of, py::arg("weight"),
        "What is special about a weight, given as to Graph.add: its shape, the fraction of zeros, n_of_m as (n, m) or "
        "(0, 0), block as (rows, columns) or (1, 1), and the class of all that in plans' keys, which may be empty.");
  py::class_<Graph>(m, "Graph", "A DAG of layers with fixed shapes. See docs/layers.md for layer types.")
      .def(py::init<>())
      .def(
          "input",
          [](Graph& graph, const std::string& name, const py::sequence& shape, const std::string& schema,
             const std::optional<py::dict>& quantization) {
            const Schema border = parse_border(schema);
            if (!quantization) return graph.add_input(name, desc_of(to_shape(shape), border.dtype), border);
            return graph.add_input(name, to_desc(to_shape(shape), *quantization), border);
          },
          py::arg("name"), py::arg("shape"), py::arg("schema") = "float32", py::arg("quantization") = py::none(),
          "Adds a graph input and returns its blob id. `schema` says how the caller's arrays come: a dtype, row-major, "
          "or `platform:dtype:layout`. A quantized one has a scale, a zero_point, and least and most, which are 0 and "
          "255 if they are not given.")
      .def(
          "add",
          [](Graph& graph, const std::string& type, const std::vector<int>& inputs, const std::string& name,
             const py::dict& weights, const py::dict& post, const py::kwargs& attrs) {
            Layer layer = to_layer(type, attrs, weights, post);
            layer.name = name;
            layer.inputs = inputs;
            return graph.add_layer(std::move(layer));
          },
          py::arg("type"), py::arg("inputs"), py::kw_only(), py::arg("name") = "", py::arg("weights") = py::dict(),
          py::arg("post") = py::dict(),
          "Adds a layer and returns its output's blob id. A weight is an array, or a pair of an array and the type of "
          "its "
          "elements, which is how bfloat16 comes, as uint16. Float32 and float16 that is C-contiguous is borrowed, as "
          "are pairs; all else is copied to float32. Raises Error naming the layer if a param, weight or input shape "
          "is "
          "not valid.")
      .def(
          "add_host",
          [](Graph& graph, const std::string& name, const std::string& op, py::function function,
             const std::vector<int>& inputs, const py::sequence& outputs, bool read_only, bool strided) {
            HostOp host = host_function(std::move(function), outputs, read_only, strided);
            for (const int input : inputs)
              if (input >= 0 && input < static_cast<int>(graph.blobs().size()))
                host.ins.push_back(graph.blob(input).desc);
            Layer layer = host_layer(name, op, std::move(host));
            layer.inputs = inputs;
            return producer_outputs(graph, graph.add_layer(std::move(layer)));
          },
          py::arg("name"), py::arg("op"), py::arg("function"), py::arg("inputs"), py::arg("outputs"), py::kw_only(),
          py::arg("read_only") = true, py::arg("strided") = false,
          "Adds a step that calls function(inputs, outputs) and returns its outputs' blob ids. `op` names what it "
          "computes, "
          "with all that its results and its time depend on. `outputs`: (shape, dtype) of each. The function is given "
          "lists of arrays, which are the net's memory for as long as the call lasts; it writes the outputs whole, and "
          "the inputs, read-only arrays unless `read_only` is false, not at all. Float32 inputs need not be contiguous "
          "if `strided`. It may be called from several threads "
          "at once, and while tuning with inputs of no meaning, which it may refuse by raising.")
      .def(
          "output",
          [](Graph& graph, int blob, const std::optional<std::string>& schema) {
            schema ? graph.add_output(blob, parse_border(*schema)) : graph.add_output(blob);
          },
          py::arg("blob"), py::arg("schema") = py::none(),
          "Makes a blob a graph output, by default row-major in the type that hosts have such values in.")
      .def(
          "outputs_of", [](const Graph& graph, int blob) { return producer_outputs(graph, blob); }, py::arg("blob"),
          "The blob ids of all outputs of the layer that makes a blob.")
      .def(
          "shape", [](const Graph& graph, int blob) { return from_shape(graph.blob(blob).desc.shape); },
          py::arg("blob"))
      .def(
          "dtype",
          [](const Graph& graph, int blob) {
            TensorDesc desc = graph.blob(blob).desc;
            desc.quantization = nullptr;
            return std::string(dtype_name(natural_schema(desc).dtype));
          },
          py::arg("blob"), "The type in which hosts have a blob's values; float32 of reals.")
      .def(
          "optimize", [](Graph& graph) { optimize(graph); }, "Runs the graph passes, in place.")
      .def("layers", &layer_list, "One dictionary per layer, in execution order.")
      .def_property_readonly("input_shapes", [](const Graph& graph) { return shapes_of(graph, graph.inputs()); })
      .def_property_readonly("output_shapes", [](const Graph& graph) { return shapes_of(graph, graph.outputs()); })
      .def_property_readonly("input_schemas", [](const Graph& graph) { return texts_of(graph.input_schemas()); })
      .def_property_readonly("output_schemas", [](const Graph& graph) { return texts_of(graph.output_schemas()); })
      .def("canonical", &Graph::canonical, "The text that structural_hash() hashes.")
      .def("weights_identity", &Graph::weights_identity, "128 bits in hex of all weights' values.")
      .def("structural_hash", &Graph::structural_hash,
           "32 hex digits of types, params, shapes and topology: independent of weights and names.")
      .def("reference", &run_graph_reference, py::arg("inputs"),
           "The outputs in float64 by the naive references: slow, exact, for tests.");
}

}  // namespace softneuro::bindings
