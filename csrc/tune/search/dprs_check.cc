// Validation of a DPRS problem.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "tune/search/dprs_model.h"

namespace softneuro::dprs {
namespace {

std::string named(const char* what, size_t index) { return std::string(what) + " " + std::to_string(index); }

void check_cost(double cost, const std::string& where) {
  if (std::isnan(cost) || cost < 0) throw Error("cost " + std::to_string(cost) + " is not a time", where);
}

void check_schemas(const std::vector<int>& schemas, size_t slots, int count, int least, const std::string& where) {
  if (schemas.size() != slots) {
    throw Error(std::to_string(schemas.size()) + " schemas for " + std::to_string(slots) + " slots", where);
  }
  for (int schema : schemas) {
    if (schema < least || schema >= count) {
      throw Error("schema " + std::to_string(schema) + " is not one of " + std::to_string(count), where);
    }
  }
}

void check_group(const DprsProblem& problem, const DprsGroup& group, const std::vector<BlobUse>& uses,
                 const std::string& where) {
  check_cost(group.cost, where);
  if (group.covers.empty()) throw Error("covers no layer", where);
  std::vector<char> inside(problem.layers.size(), 0);
  for (const DprsCover& cover : group.covers) {
    if (cover.layer < 0 || cover.layer >= static_cast<int>(problem.layers.size())) {
      throw Error("there is no layer " + std::to_string(cover.layer), where);
    }
    const DprsLayer& layer = problem.layers[static_cast<size_t>(cover.layer)];
    if (inside[static_cast<size_t>(cover.layer)]++) {
      throw Error("covers layer " + std::to_string(cover.layer) + " twice", where);
    }
    check_schemas(cover.in, layer.inputs.size(), problem.schemas, -1, where);
    check_schemas(cover.out, layer.outputs.size(), problem.schemas, -1, where);
  }
  auto covered = [&](int layer) { return inside[static_cast<size_t>(layer)] != 0; };
  for (const DprsCover& cover : group.covers) {
    const DprsLayer& layer = problem.layers[static_cast<size_t>(cover.layer)];
    for (size_t slot = 0; slot < layer.outputs.size(); ++slot) {
      const BlobUse& use = uses[static_cast<size_t>(layer.outputs[slot])];
      const bool inner = std::any_of(use.consumers.begin(), use.consumers.end(), covered);
      const bool outer =
          !use.output_schemas.empty() || !std::all_of(use.consumers.begin(), use.consumers.end(), covered);
      const std::string blob = "blob " + std::to_string(layer.outputs[slot]);
      if (inner && outer) throw Error(blob + " is inside the group and read outside it", where);
      if (!inner && cover.out[slot] < 0) throw Error(blob + " leaves the group without a schema", where);
    }
  }
  // A path that leaves the group must not come back: no layer of the group may depend on one outside that depends on
  // it.
  std::vector<char> tainted(problem.layers.size(), 0);
  for (size_t i = 0; i < problem.layers.size(); ++i) {
    for (int blob : problem.layers[i].inputs) {
      const int producer = uses[static_cast<size_t>(blob)].producer;
      if (producer < 0) continue;
      const bool reaches = tainted[static_cast<size_t>(producer)] || (covered(producer) && !inside[i]);
      if (reaches && inside[i]) throw Error("a path leaves the group and returns at layer " + std::to_string(i), where);
      if (reaches) tainted[i] = 1;
    }
  }
}

}  // namespace

std::vector<BlobUse> check_problem(const DprsProblem& problem) {
  if (problem.schemas < 0 || problem.blobs < 0) throw Error("negative number of schemas or blobs", "dprs");
  std::vector<BlobUse> uses(static_cast<size_t>(problem.blobs));
  auto use_of = [&](int blob, const std::string& where) -> BlobUse& {
    if (blob < 0 || blob >= problem.blobs) throw Error("there is no blob " + std::to_string(blob), where);
    return uses[static_cast<size_t>(blob)];
  };

  if (problem.adapts.size() != uses.size()) throw Error("needs one conversion table per blob", "dprs");
  const size_t square = static_cast<size_t>(problem.schemas) * static_cast<size_t>(problem.schemas);
  for (size_t i = 0; i < problem.adapts.size(); ++i) {
    if (!problem.adapts[i].empty() && problem.adapts[i].size() != square) {
      throw Error("conversion table has " + std::to_string(problem.adapts[i].size()) + " entries, not " +
                      std::to_string(square),
                  named("blob", i));
    }
    for (double cost : problem.adapts[i]) check_cost(cost, named("blob", i));
  }
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const std::string where = named("graph input", i);
    BlobUse& use = use_of(problem.inputs[i].blob, where);
    if (!use.available.empty()) throw Error("its blob is another graph input's", where);
    if (problem.inputs[i].schemas.empty()) throw Error("is available in no schema", where);
    check_schemas(problem.inputs[i].schemas, problem.inputs[i].schemas.size(), problem.schemas, 0, where);
    use.available = problem.inputs[i].schemas;
  }
  for (size_t i = 0; i < problem.layers.size(); ++i) {
    const DprsLayer& layer = problem.layers[i];
    const std::string where = named("layer", i);
    for (int blob : layer.inputs) {
      BlobUse& use = use_of(blob, where);
      if (use.producer < 0 && use.available.empty()) {
        throw Error("reads blob " + std::to_string(blob) + " before any layer makes it", where);
      }
      if (use.consumers.empty() || use.consumers.back() != static_cast<int>(i)) {
        use.consumers.push_back(static_cast<int>(i));
      }
    }
    for (int blob : layer.outputs) {
      BlobUse& use = use_of(blob, where);
      if (use.producer >= 0 || !use.available.empty()) {
        throw Error("blob " + std::to_string(blob) + " is made twice", where);
      }
      use.producer = static_cast<int>(i);
    }
    for (size_t k = 0; k < layer.labels.size(); ++k) {
      const std::string label = where + ", " + named("label", k);
      check_cost(layer.labels[k].cost, label);
      check_schemas(layer.labels[k].in, layer.inputs.size(), problem.schemas, -1, label);
      check_schemas(layer.labels[k].out, layer.outputs.size(), problem.schemas, 0, label);
    }
  }
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    const std::string where = named("graph output", i);
    BlobUse& use = use_of(problem.outputs[i].blob, where);
    if (use.producer < 0 && use.available.empty()) throw Error("nothing makes its blob", where);
    check_schemas({problem.outputs[i].schema}, 1, problem.schemas, 0, where);
    use.output_schemas.push_back(problem.outputs[i].schema);
  }
  for (BlobUse& use : uses) {
    std::sort(use.output_schemas.begin(), use.output_schemas.end());
    use.output_schemas.erase(std::unique(use.output_schemas.begin(), use.output_schemas.end()),
                             use.output_schemas.end());
  }
  for (size_t i = 0; i < problem.groups.size(); ++i) check_group(problem, problem.groups[i], uses, named("group", i));
  return uses;
}

}  // namespace softneuro::dprs
