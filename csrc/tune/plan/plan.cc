#include "tune/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tune/records/field_reader.h"
#include "tune/records/means_text.h"
#include "tune/records/record_text.h"
#include "tune/records/text_file.h"

namespace softneuro {
namespace {

constexpr std::string_view header = "softneuro-plan 5";
constexpr const char* remedy = "delete the file to have the plan made anew";

double read_seconds(const FieldReader& reader, std::string_view field) {
  return reader.amount(field, "a time is not a number of seconds");
}

int step(const FieldReader& reader, std::string_view field) {
  const auto value = parse_integer(field);
  if (!value || *value < -128 || *value > 255) reader.fail("a step of a grid is not a number of eight bits");
  return static_cast<int>(*value);
}

float scale(const FieldReader& reader, std::string_view field) {
  const auto value = parse_double(field);
  const auto scale = value ? static_cast<float>(*value) : 0.0F;
  if (!std::isfinite(scale) || scale <= 0) reader.fail("a scale is not a positive number");
  return scale;
}

float bound(const FieldReader& reader, std::string_view field) {
  const auto value = parse_double(field);
  const auto bound = value ? static_cast<float>(*value) : INFINITY;
  if (!std::isfinite(bound)) reader.fail("a bound is not a finite number of 32 bits");
  return bound;
}

double read_error(const FieldReader& reader, std::string_view field) {
  return reader.amount(field, "an error is not a number from 0 on");
}

Plan read_plan(FieldReader& reader, const std::vector<std::string_view>& first) {
  Plan plan;
  reader.expect(first, "plan", 5);
  plan.key = {reader.text(first[1]), reader.text(first[2]), reader.text(first[3]), reader.index(first[4])};
  const auto total = reader.next();
  reader.expect(total, "seconds", 3);
  plan.seconds = read_seconds(reader, total[1]);
  plan.lower_bound = read_seconds(reader, total[2]);
  while (true) {
    const auto fields = reader.next(max_means_fields);
    if (fields[0] == "error") {
      reader.expect(fields, "error", 3);
      if (!plan.steps.empty()) reader.fail("errors come before layers");
      plan.proven.push_back({reader.text(fields[1]), read_error(reader, fields[2])});
    } else if (fields[0] == "calibration") {
      reader.expect(fields, "calibration", 2);
      if (!plan.grids.empty() || !plan.steps.empty()) reader.fail("the calibration comes before grids and layers");
      plan.key.calibration = reader.text(fields[1]);
    } else if (fields[0] == "grid") {
      reader.expect(fields, "grid", 6);
      if (!plan.steps.empty()) reader.fail("grids come before layers");
      plan.grids.push_back({reader.index(fields[1]), scale(reader, fields[2]), step(reader, fields[3]),
                            step(reader, fields[4]), step(reader, fields[5])});
    } else if (fields[0] == "input") {
      reader.expect(fields, "input", 4);
      if (!plan.steps.empty()) reader.fail("inputs come before layers");
      plan.inputs.push_back({reader.index(fields[1]), bound(reader, fields[2]), bound(reader, fields[3])});
    } else if (fields[0] == "mean") {
      if (!plan.corrected.empty() || !plan.steps.empty()) reader.fail("means come before corrections and layers");
      const int blob = reader.index(fields.size() > 1 ? fields[1] : "");
      if (plan.means.empty() || plan.means.back().blob != blob) plan.means.push_back({blob, {}});
      parse_means(reader, fields, plan.means.back().values);
    } else if (fields[0] == "corrected") {
      reader.expect(fields, "corrected", 3);
      if (!plan.steps.empty()) reader.fail("corrections come before layers");
      plan.corrected.push_back({reader.index(fields[1]), reader.text(fields[2])});
    } else if (fields[0] == "layer") {
      reader.expect(fields, "layer", 5);
      PlanStep step{reader.index(fields[1]), reader.text(fields[2]), reader.text(fields[3]),
                    read_seconds(reader, fields[4])};
      if (!plan.adapts.empty()) reader.fail("layers come before adapts");
      if (!plan.steps.empty() && plan.steps.back().layer >= step.layer) reader.fail("layers are out of order");
      plan.steps.push_back(std::move(step));
    } else if (fields[0] == "adapt") {
      reader.expect(fields, "adapt", 5);
      plan.adapts.push_back(
          {reader.index(fields[1]), reader.text(fields[2]), reader.text(fields[3]), read_seconds(reader, fields[4])});
    } else {
      reader.expect(fields, "end", 1);
      return plan;
    }
  }
}

void check_finite(double value, const char* what) {
  if (!std::isfinite(value) || value < 0) throw Error(std::string(what) + " is not a number of seconds", "plan");
}

void check_index(int index) {
  if (index < 0 || index > FieldReader::max_index)
    throw Error("index " + std::to_string(index) + " is out of range", "plan");
}

std::string line(std::initializer_list<std::string> fields) { return line_of_fields(fields, "plan"); }

}  // namespace

PlanFile PlanFile::parse(std::string_view text, const std::string& where) {
  if (text.size() > max_text_file) throw Error("larger than any plan", where);
  FieldReader reader(text, where, remedy);
  const auto first = reader.next();
  if (first.size() != 2 || first[0] != "softneuro-plan") reader.fail("this is no plan file");
  // Format 2 has no errors: they are looked for as if it had been made for other weights. Format 3 has no grids,
  // format 4 neither inputs nor corrections.
  constexpr std::string_view known[] = {"2", "3", "4", "5"};
  if (std::find(std::begin(known), std::end(known), first[1]) == std::end(known)) {
    reader.fail("made by another version of softneuro");
  }
  PlanFile file;
  while (!reader.done()) {
    Plan plan = read_plan(reader, reader.next());
    if (!file.plans_.empty() && !(file.plans_.back().key < plan.key)) {
      reader.fail("plans are out of order, or two are for the same graph, shapes, device and threads");
    }
    file.plans_.push_back(std::move(plan));
  }
  return file;
}

std::string PlanFile::format() const {
  std::string text = std::string(header) + "\n";
  for (const Plan& plan : plans_) {
    text += line({"plan", escape_field(plan.key.graph), escape_field(plan.key.shapes), escape_field(plan.key.device),
                  std::to_string(plan.key.threads)});
    text += line({"seconds", exact_number(plan.seconds), exact_number(plan.lower_bound)});
    for (const ProvenError& proven : plan.proven) {
      text += line({"error", escape_field(proven.weights), exact_number(proven.error)});
    }
    if (!plan.key.calibration.empty()) text += line({"calibration", escape_field(plan.key.calibration)});
    for (const PlanGrid& grid : plan.grids) {
      text += line({"grid", std::to_string(grid.blob), exact_number(static_cast<double>(grid.scale)),
                    std::to_string(grid.zero_point), std::to_string(grid.least), std::to_string(grid.most)});
    }
    for (const PlanInput& input : plan.inputs) {
      text += line({"input", std::to_string(input.blob), exact_number(static_cast<double>(input.least)),
                    exact_number(static_cast<double>(input.most))});
    }
    for (const PlanMeans& row : plan.means) text += format_means(row.blob, row.values, "plan");
    for (const PlanCorrection& row : plan.corrected) {
      text += line({"corrected", std::to_string(row.layer), escape_field(row.form)});
    }
    for (const PlanStep& step : plan.steps) {
      text += line({"layer", std::to_string(step.layer), escape_field(step.type), escape_field(step.descriptor),
                    exact_number(step.seconds)});
    }
    for (const PlanAdapt& adapt : plan.adapts) {
      text += line({"adapt", std::to_string(adapt.blob), escape_field(adapt.from), escape_field(adapt.to),
                    exact_number(adapt.seconds)});
    }
    text += "end\n";
  }
  return text;
}

const Plan* PlanFile::find(const PlanKey& key) const {
  const auto it = std::lower_bound(plans_.begin(), plans_.end(), key,
                                   [](const Plan& plan, const PlanKey& wanted) { return plan.key < wanted; });
  return it != plans_.end() && it->key == key ? &*it : nullptr;
}

void PlanFile::set(Plan plan) {
  check_finite(plan.seconds, "the predicted time");
  check_finite(plan.lower_bound, "the lower bound");
  check_index(plan.key.threads);
  for (const ProvenError& proven : plan.proven) {
    if (!std::isfinite(proven.error) || proven.error < 0) throw Error("an error is not a number from 0 on", "plan");
  }
  for (const PlanGrid& grid : plan.grids) check_index(grid.blob);
  for (const PlanInput& input : plan.inputs) check_index(input.blob);
  for (const PlanMeans& row : plan.means) check_index(row.blob);
  for (const PlanCorrection& row : plan.corrected) check_index(row.layer);
  for (const PlanStep& step : plan.steps) {
    check_index(step.layer);
    check_finite(step.seconds, "a layer's time");
  }
  for (const PlanAdapt& adapt : plan.adapts) {
    check_index(adapt.blob);
    check_finite(adapt.seconds, "an adapt's time");
  }
  std::stable_sort(plan.steps.begin(), plan.steps.end(),
                   [](const PlanStep& a, const PlanStep& b) { return a.layer < b.layer; });
  for (size_t i = 1; i < plan.steps.size(); ++i) {
    if (plan.steps[i - 1].layer == plan.steps[i].layer) {
      throw Error("layer " + std::to_string(plan.steps[i].layer) + " appears twice", "plan");
    }
  }
  const auto it = std::lower_bound(plans_.begin(), plans_.end(), plan.key,
                                   [](const Plan& other, const PlanKey& key) { return other.key < key; });
  if (it != plans_.end() && it->key == plan.key) {
    *it = std::move(plan);
  } else {
    plans_.insert(it, std::move(plan));
  }
}

}  // namespace softneuro
