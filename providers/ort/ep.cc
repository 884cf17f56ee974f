#include "providers/ort/ep.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/arch.h"
#include "base/log.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/graph/read_graph.h"
#include "providers/ort/host/given_initializers.h"
#include "providers/ort/partition/partition.h"
#include "providers/ort/run/kernel.h"
#include "tune/calibrate/calibrated.h"
#include "tune/calibrate/range_table.h"

namespace softneuro::ort {
namespace {

struct Ep : OrtEp {
  RegionSettings settings;
  ContextSettings context;
  int saved = 0;  // regions of the session so far
  std::vector<std::string>
      for_bodies;  // initializers that bodies of control flow read in a model that is to be written
  std::unique_ptr<GivenInitializers> given;
  std::set<std::string> sized, steps;  // values that regions' graphs are given marks by: see mark()
  std::string identity;
};

Ep& self(OrtEp* ep) { return *static_cast<Ep*>(ep); }

const char* get_name(const OrtEp*) { return provider_name; }

const std::string& first_output(const HostGraph& graph, const HostNode& node) {
  static const std::string none;
  const auto found = std::find_if(node.outputs.begin(), node.outputs.end(), [](int id) { return id >= 0; });
  return found == node.outputs.end() ? none : graph.value(*found).name;
}

Json op_row(const HostGraph& graph, int index) {
  const HostNode& node = graph.nodes[static_cast<size_t>(index)];
  Json row;
  row.add("op", node.op).add("name", node.name.empty() ? first_output(graph, node) : node.name);
  return row;
}

// Regions that one op of the host or more keeps from being one. `taken`: by part, the region's name.
std::string cut_rows(const HostGraph& graph, const Partition& partition, const std::map<int, std::string>& taken) {
  JsonList cuts;
  for (const Cut& cut : partition.cuts) {
    const auto before = taken.find(cut.before), after = taken.find(cut.after);
    if (before == taken.end() || after == taken.end()) continue;
    JsonList ops;
    for (const int index : cut.nodes) ops.add(op_row(graph, index));
    Json row;
    cuts.add(row.add("before", before->second).add("after", after->second).add_raw("ops", ops.str()));
  }
  return cuts.str();
}

void report_partition(Report& report, const HostGraph& graph, const Partition& partition, size_t claimed,
                      const std::map<int, std::string>& taken) {
  if (!report.wanted()) return;
  JsonList host;
  for (const auto& [index, reason] : partition.host) host.add(op_row(graph, index).add("reason", reason));
  JsonList steps;
  for (const Partition::Part& part : partition.parts) {
    for (const int index : part.nodes) {
      if (graph.nodes[static_cast<size_t>(index)].is_step) steps.add(op_row(graph, index));
    }
  }
  Json line;
  line.add("event", "partition").add("graph", graph.name).add("nodes", static_cast<double>(graph.nodes.size()));
  line.add("claimed", static_cast<double>(claimed)).add_raw("host", host.str()).add_raw("steps", steps.str());
  report.write(line.add_raw("cuts", cut_rows(graph, partition, taken)));
}

void take(OrtEpGraphSupportInfo* info, const HostGraph& graph, const std::vector<int>& indexes) {
  OrtNodeFusionOptions fusion;
  fusion.version = Runtime::get().api_version();
  fusion.drop_constant_initializers = true;
  std::vector<const OrtNode*> nodes;
  for (const int n : indexes) {
    const HostNode& node = graph.nodes[static_cast<size_t>(n)];
    nodes.push_back(static_cast<const OrtNode*>(node.host));
  }
  call(fn::EpGraphSupportInfo_AddNodesToFuse, info, nodes.data(), nodes.size(), &fusion);
}

// The runtime writes bodies of control flow as they were, but without the initializers of regions that were taken in
// them; and of the main graph's, only those that a node of it has among its inputs.
bool leave_body(const HostGraph& graph, Partition& partition) {
  if (!graph.is_body) return false;
  for (const Partition::Part& part : partition.parts) {
    for (const int n : part.nodes) {
      partition.host[n] = "it is in a body of control flow, which a compiled model keeps as it is";
    }
  }
  partition.parts.clear();
  return true;
}

std::vector<std::string> body_constants(const HostGraph& graph) {
  std::vector<std::string> names;
  for (const HostNode& node : graph.nodes) {
    for (const int id : node.implicit_inputs) {
      if (graph.value(id).constant) names.push_back(graph.value(id).name);
    }
  }
  return names;
}

// The runtime hands a region back without what was found out about it.
void remember_marks(Ep& ep, const HostGraph& graph, const Partition::Part& part) {
  for (const int n : part.nodes) {
    const HostNode& node = graph.nodes[static_cast<size_t>(n)];
    if (node.is_step) ep.steps.insert(first_output(graph, node));
    for (const int id : node.inputs) {
      if (id >= 0 && graph.value(id).sized) ep.sized.insert(graph.value(id).name);
    }
  }
}

void mark(const Ep& ep, HostGraph& region) {
  for (HostValue& value : region.values) value.sized = ep.sized.contains(value.name);
  for (HostNode& node : region.nodes) node.is_step = ep.steps.contains(first_output(region, node));
}

void get_capability(Ep& ep, const OrtGraph* host_graph, OrtEpGraphSupportInfo* info) {
  HostGraph graph = read_graph(host_graph);
  ep.given->put_into(graph);
  Partition partition = find_regions(graph, ep.settings.options.min_region_size);
  if (ep.context.write && !leave_body(graph, partition)) ep.for_bodies = body_constants(graph);
  size_t claimed = 0;
  std::map<int, std::string> taken;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_context_node(graph.nodes[n])) continue;
    take(info, graph, {static_cast<int>(n)});
    partition.host.erase(static_cast<int>(n));
    ++claimed;
  }
  for (size_t p = 0; p < partition.parts.size(); ++p) {
    const Partition::Part part = partition.parts[p];
    // A region whose shapes are fixed is compared with the host before it is taken.
    Region region(tidied(subgraph(graph, part.nodes)), ep.settings);
    const std::string reason = region.declared_verdict();
    if (reason.empty()) {
      taken.emplace(static_cast<int>(p), region.name());
      remember_marks(ep, graph, part);
      take(info, graph, part.nodes);
      claimed += part.nodes.size();
      continue;
    }
    for (const int n : part.nodes) partition.host[n] = reason;
    if (part.steps.empty()) continue;
    Partition apart = without_steps(graph, part, ep.settings.options.min_region_size);
    for (const Partition::Part& one : apart.parts) {
      for (const int n : one.nodes) partition.host.erase(n);
      partition.parts.push_back(one);
    }
    for (const auto& [n, why] : apart.host) partition.host[n] = why;
  }
  report_partition(*ep.settings.report, graph, partition, claimed, taken);
}

OrtStatus* get_capability(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  return guarded("GetCapability", [&] { get_capability(self(ep), graph, info); });
}

OrtNodeComputeInfo* compile_saved(const Ep& ep, const HostGraph& graph, const OrtNode* fused) {
  SavedRegion saved = read_context_node(graph, ep.context);
  const HostNode& node = graph.nodes[0];
  const auto names = [&](const std::vector<int64_t>& places, const std::vector<int>& ids) {
    std::vector<std::string> list;
    for (const int64_t place : places) list.push_back(graph.value(ids[static_cast<size_t>(place)]).name);
    return list;
  };
  // The node's values by the names that they have in this model.
  const auto inputs = names(saved.inputs, node.inputs), outputs = names(saved.outputs, node.outputs);
  HostGraph ops = std::move(saved.ops);
  // What is given and what results have to be what this model declares.
  const auto same_type = [](const HostValue& own, const HostValue& declared) {
    if (own.type == declared.type) return;
    throw Error("the saved region is damaged: '" + declared.name + "' is " + own.type.name() + ", the model declares " +
                    declared.type.name(),
                {}, "make the model anew");
  };
  for (size_t i = 0; i < ops.inputs.size(); ++i) {
    same_type(ops.value(ops.inputs[i]), graph.value(node.inputs[static_cast<size_t>(saved.inputs[i])]));
  }
  for (size_t i = 0; i < ops.outputs.size(); ++i) {
    const HostValue& declared = graph.value(node.outputs[static_cast<size_t>(saved.outputs[i])]);
    HostValue& own = ops.values[static_cast<size_t>(ops.outputs[i])];
    same_type(own, declared);
    if (declared.has_shape) own.has_shape = true, own.dims = declared.dims, own.symbols = declared.symbols;
  }
  const bool other_weights = ep.given->put_into_saved(ops);
  auto region = std::make_shared<Region>(std::move(ops), ep.settings);
  region->restore(std::move(saved), other_weights);
  region->prepare_declared();
  const auto places = [](const std::vector<std::string>& own, const std::vector<std::string>& all) {
    std::vector<size_t> list;
    for (const std::string& name : own) list.push_back(place_of(all, name));
    return list;
  };
  return make_kernel(std::move(region), places(inputs, node_values(fused, false)),
                     places(outputs, node_values(fused, true)));
}

OrtNodeComputeInfo* compile_ops(Ep& ep, HostGraph graph, const OrtNode* fused, OrtNode** context_node) {
  graph = tidied(std::move(graph));
  keep_constants(graph);
  const std::string model_path = graph.model_path;
  auto region = std::make_shared<Region>(std::move(graph), ep.settings);
  region->prepare_declared();
  std::vector<size_t> inputs, outputs;
  const HostGraph& ops = region->ops();
  const auto all_inputs = node_values(fused, false), all_outputs = node_values(fused, true);
  for (const int id : ops.inputs) inputs.push_back(place_of(all_inputs, ops.value(id).name));
  for (const int id : ops.outputs) outputs.push_back(place_of(all_outputs, ops.value(id).name));
  if (ep.context.write) {
    SavedRegion saved = region->saved();
    saved.inputs.assign(inputs.begin(), inputs.end());
    saved.outputs.assign(outputs.begin(), outputs.end());
    *context_node = make_context_node(std::move(saved), fused, model_path, ep.saved++, ep.context, ep.for_bodies);
    ep.for_bodies.clear();
  }
  return make_kernel(std::move(region), std::move(inputs), std::move(outputs));
}

OrtStatus* compile(OrtEp* callee, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                   OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
  return guarded("Compile", [&] {
    Ep& ep = self(callee);
    std::fill(infos, infos + count, nullptr);
    try {
      for (size_t i = 0; i < count; ++i) {
        HostGraph graph = read_graph(graphs[i]);
        ep.given->put_into(graph);
        mark(ep, graph);
        const bool is_saved = graph.nodes.size() == 1 && is_context_node(graph.nodes[0]);
        infos[i] = is_saved ? compile_saved(ep, graph, fused[i])
                            : compile_ops(ep, std::move(graph), fused[i], &context_nodes[i]);
      }
    } catch (...) {
      for (size_t i = 0; i < count; ++i) {
        if (infos[i] != nullptr) release_kernel(infos[i]);
        infos[i] = nullptr;
      }
      throw;
    }
  });
}

// What the runtime keeps in a compiled model, to ask another machine's library about.
const char* get_compatibility_info(OrtEp* ep, const OrtGraph*) { return self(ep).identity.c_str(); }

void release_node_compute_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  guarded_quietly("ReleaseNodeComputeInfos", [&] {
    for (size_t i = 0; i < count; ++i) release_kernel(infos[i]);
  });
}

OrtStatus* is_concurrent_run_supported(OrtEp*, bool* supported) {
  *supported = true;
  return nullptr;
}

}  // namespace

RegionSettings read_settings(const std::map<std::string, std::string>& entries) {
  std::map<std::string, std::string> values;
  RegionSettings settings;
  std::string report;
  for (const auto& [key, value] : entries) {
    if (!key.starts_with(option_prefix)) continue;
    const std::string name = key.substr(std::strlen(option_prefix));
    (name == "report" ? report : values[name]) = value;
  }
  settings.options = parse_options(values);
  // The runtime goes on without us where GetCapability fails, so a file that is none is told of here.
  const CalibrationSource ranges = parse_calibration(settings.options.calibration);
  if (!ranges.path.empty() && !ranges.collects && ranges.batches == 0) load_ranges(ranges.path);
  settings.threads = settings.options.threads > 0 ? settings.options.threads : physical_cores();
  settings.report = std::make_shared<Report>(report);
  settings.host_entries = shared_entries(entries);
  return settings;
}

OrtEp* make_ep(RegionSettings settings, ContextSettings context, const OrtSessionOptions* options) {
  auto ep = std::make_unique<Ep>();
  ep->version = Runtime::get().api_version();
  ep->get_name = get_name;
  ep->get_capability = static_cast<decltype(OrtEp::get_capability)>(get_capability);
  ep->compile = compile;
  ep->release_node_compute_infos = release_node_compute_infos;
  ep->is_concurrent_run_supported = is_concurrent_run_supported;
  ep->get_compatibility_info = get_compatibility_info;
  ep->settings = std::move(settings);
  ep->given = std::make_unique<GivenInitializers>(options, !context.write);
  ep->context = std::move(context);
  ep->identity = device_identity();
  return ep.release();
}

void release_ep(OrtEp* ep) { delete static_cast<Ep*>(ep); }

}  // namespace softneuro::ort
