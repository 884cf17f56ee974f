// Plans as text: the chosen descriptor of every layer plus the adapts, one file for all graphs and shapes of a model.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace softneuro {

// What a plan is for. Any characters are kept.
struct PlanKey {
  std::string graph;   // structural hash
  std::string shapes;  // signature of the input shapes
  std::string device;  // fingerprint
  int threads = 1;
  std::string calibration = {};  // ranges, the weights' content and the budget, of a plan with grids of its own
  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

struct PlanStep {
  int layer = -1;  // canonical index
  std::string type, descriptor;
  double seconds = 0;  // predicted
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

// Chains appear in order.
struct PlanAdapt {
  int blob = -1;
  std::string from, to;  // schemas
  double seconds = 0;
  friend bool operator==(const PlanAdapt&, const PlanAdapt&) = default;
};

// A plan's error on one set of weights, by their content (Graph::weights_identity).
struct ProvenError {
  std::string weights;
  double error = 0;  // relative L2 against exact routines, on random inputs
  friend bool operator==(const ProvenError&, const ProvenError&) = default;
};

// What a blob of reals is stored by where a plan has it in bytes.
struct PlanGrid {
  int blob = -1;
  float scale = 1;
  int zero_point = 0, least = 0, most = 255;
  friend bool operator==(const PlanGrid&, const PlanGrid&) = default;
};

// A plan with grids keeps what calibration has observed of its inputs.
struct PlanInput {
  int blob = -1;
  float least = 0, most = 0;
  friend bool operator==(const PlanInput&, const PlanInput&) = default;
};

// A corrected layer reads a blob of these means by channel.
struct PlanMeans {
  int blob = -1;
  std::vector<double> values;
  friend bool operator==(const PlanMeans&, const PlanMeans&) = default;
};

// A layer whose form has a bias that makes up for its rounded weights.
struct PlanCorrection {
  int layer = -1;
  std::string form;
  friend auto operator<=>(const PlanCorrection&, const PlanCorrection&) = default;
};

struct Plan {
  PlanKey key;
  std::vector<PlanStep> steps;
  std::vector<PlanAdapt> adapts;
  double seconds = 0, lower_bound = 0;
  std::vector<ProvenError> proven = {};  // by the weights' content; none for a plan of exact routines
  std::vector<PlanGrid> grids = {};
  std::vector<PlanInput> inputs = {};
  std::vector<PlanMeans> means = {};
  std::vector<PlanCorrection> corrected = {};
  friend bool operator==(const Plan&, const Plan&) = default;
};

// What a plan file says (see plan_file.h).
class PlanFile {
 public:
  // Throws Error with the line's number for anything but what format() writes.
  static PlanFile parse(std::string_view text, const std::string& where = "plan");

  // Sections in the order of their keys: the same plans give the same text, which reads back exactly.
  std::string format() const;

  const Plan* find(const PlanKey& key) const;
  // Replaces the plan of the same key.
  void set(Plan plan);
  const std::vector<Plan>& plans() const { return plans_; }

 private:
  std::vector<Plan> plans_;  // by key
};

}  // namespace softneuro
