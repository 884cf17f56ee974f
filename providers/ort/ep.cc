#include "providers/ort/ep.h"

#include <cstring>

#include "base/arch.h"
#include "base/log.h"
#include "providers/ort/api.h"
#include "providers/ort/kernel.h"
#include "providers/ort/partition.h"
#include "providers/ort/read_graph.h"
#include "providers/ort/status.h"

namespace softneuro::ort {
namespace {

struct Ep : OrtEp {
  RegionSettings settings;
};

Ep& self(OrtEp* ep) { return *static_cast<Ep*>(ep); }

const char* get_name(const OrtEp*) { return provider_name; }

void report_partition(Report& report, const OpGraph& graph, const Partition& partition, size_t claimed) {
  if (!report.wanted()) return;
  JsonList host;
  for (const auto& [index, reason] : partition.host) {
    const OpNode& node = graph.nodes[static_cast<size_t>(index)];
    Json row;
    host.add(row.add("op", node.op).add("name", node.name).add("reason", reason));
  }
  Json line;
  line.add("event", "partition").add("graph", graph.name).add("nodes", static_cast<double>(graph.nodes.size()));
  report.write(line.add("claimed", static_cast<double>(claimed)).add_raw("host", host.str()));
}

void get_capability(Ep& ep, const OrtGraph* host_graph, OrtEpGraphSupportInfo* info) {
  const OpGraph graph = read_graph(host_graph);
  Partition partition = find_parts(graph, ep.settings.options.min_region_size);
  OrtNodeFusionOptions fusion;
  fusion.version = Runtime::get().api_version();
  fusion.drop_constant_initializers = true;
  size_t claimed = 0;
  for (const Partition::Part& part : partition.parts) {
    // A region whose shapes are fixed is compared with the host before it is taken.
    const std::string reason = Region(subgraph(graph, part.nodes), ep.settings).declared_verdict();
    if (!reason.empty()) {
      for (const int n : part.nodes) partition.host[n] = reason;
      continue;
    }
    std::vector<const OrtNode*> nodes;
    for (const int n : part.nodes)
      nodes.push_back(static_cast<const OrtNode*>(graph.nodes[static_cast<size_t>(n)].host));
    call(fn::EpGraphSupportInfo_AddNodesToFuse, info, nodes.data(), nodes.size(), &fusion);
    claimed += nodes.size();
  }
  report_partition(*ep.settings.report, graph, partition, claimed);
}

OrtStatus* get_capability(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  return guarded("GetCapability", [&] { get_capability(self(ep), graph, info); });
}

OrtStatus* compile(OrtEp* ep, const OrtGraph** graphs, const OrtNode** fused, size_t count, OrtNodeComputeInfo** infos,
                   OrtNode**) {
  return guarded("Compile", [&] {
    std::fill(infos, infos + count, nullptr);
    try {
      for (size_t i = 0; i < count; ++i) {
        OpGraph graph = read_graph(graphs[i]);
        keep_constants(graph);
        auto region = std::make_shared<Region>(std::move(graph), self(ep).settings);
        region->prepare_declared();
        infos[i] = make_kernel(std::move(region), node_values(fused[i], false), node_values(fused[i], true));
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
    if (key.starts_with(option_prefix)) values[key.substr(std::strlen(option_prefix))] = value;
    if (key == "softneuro.report") report = value;
  }
  settings.options = parse_options(values);
  settings.threads = settings.options.threads > 0 ? settings.options.threads : physical_cores();
  settings.report = std::make_shared<Report>(report);
  return settings;
}

OrtEp* make_ep(RegionSettings settings) {
  auto ep = std::make_unique<Ep>();
  ep->version = Runtime::get().api_version();
  ep->get_name = get_name;
  ep->get_capability = static_cast<decltype(OrtEp::get_capability)>(get_capability);
  ep->compile = compile;
  ep->release_node_compute_infos = release_node_compute_infos;
  ep->is_concurrent_run_supported = is_concurrent_run_supported;
  ep->settings = std::move(settings);
  return ep.release();
}

void release_ep(OrtEp* ep) { delete static_cast<Ep*>(ep); }

}  // namespace softneuro::ort
