#include "tune/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

constexpr std::string_view header = "softneuro-plan 3";
constexpr size_t max_line = 64 * 1024;
constexpr int max_index = 10'000'000;

// Lines of a text with their numbers.
class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  bool done() const { return text_.empty(); }

  // Fields of the next line, at most `most`.
  std::vector<std::string_view> next(size_t most = 8) {
    ++number_;
    const size_t end = text_.find('\n');
    if (end == std::string_view::npos) fail(text_.empty() ? "the file ends too early" : "the last line is torn");
    if (end > max_line) fail("the line is longer than " + std::to_string(max_line) + " characters");
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    std::vector<std::string_view> fields;
    while (true) {
      if (fields.size() == most) fail("too many fields");
      const size_t space = line.find(' ');
      fields.push_back(line.substr(0, space));
      if (space == std::string_view::npos) return fields;
      line.remove_prefix(space + 1);
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(what, where_ + ", line " + std::to_string(number_), "delete the file to have the plan made anew");
  }

  void expect(const std::vector<std::string_view>& fields, std::string_view name, size_t count) const {
    if (fields[0] != name) fail("expected '" + std::string(name) + "'");
    if (fields.size() != count) {
      fail("'" + std::string(name) + "' has " + std::to_string(fields.size() - 1) + " values, not " +
           std::to_string(count - 1));
    }
  }

  std::string text(std::string_view field) const {
    auto value = unescape_field(field);
    if (!value) fail("a text is not escaped as it should be");
    return std::move(*value);
  }

  int index(std::string_view field) const {
    const auto value = parse_integer(field);
    if (!value || *value < 0 || *value > max_index) fail("an index is not a number from 0 to 10000000");
    return static_cast<int>(*value);
  }

  double error(std::string_view field) const {
    const auto value = parse_double(field);
    if (!value || !std::isfinite(*value) || *value < 0) fail("an error is not a number from 0 on");
    return *value;
  }

  double seconds(std::string_view field) const {
    const auto value = parse_double(field);
    if (!value || !std::isfinite(*value) || *value < 0) fail("a time is not a number of seconds");
    return *value;
  }

 private:
  std::string_view text_;
  const std::string& where_;
  size_t number_ = 0;
};

Plan read_plan(Reader& reader, const std::vector<std::string_view>& first) {
  Plan plan;
  reader.expect(first, "plan", 5);
  plan.key = {reader.text(first[1]), reader.text(first[2]), reader.text(first[3]), reader.index(first[4])};
  const auto total = reader.next();
  reader.expect(total, "seconds", 3);
  plan.seconds = reader.seconds(total[1]);
  plan.lower_bound = reader.seconds(total[2]);
  while (true) {
    const auto fields = reader.next();
    if (fields[0] == "error") {
      reader.expect(fields, "error", 3);
      if (!plan.steps.empty()) reader.fail("errors come before layers");
      plan.proven.push_back({reader.text(fields[1]), reader.error(fields[2])});
    } else if (fields[0] == "layer") {
      reader.expect(fields, "layer", 5);
      PlanStep step{reader.index(fields[1]), reader.text(fields[2]), reader.text(fields[3]), reader.seconds(fields[4])};
      if (!plan.adapts.empty()) reader.fail("layers come before adapts");
      if (!plan.steps.empty() && plan.steps.back().layer >= step.layer) reader.fail("layers are out of order");
      plan.steps.push_back(std::move(step));
    } else if (fields[0] == "adapt") {
      reader.expect(fields, "adapt", 5);
      plan.adapts.push_back(
          {reader.index(fields[1]), reader.text(fields[2]), reader.text(fields[3]), reader.seconds(fields[4])});
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
  if (index < 0 || index > max_index) throw Error("index " + std::to_string(index) + " is out of range", "plan");
}

std::string line(std::initializer_list<std::string> fields) {
  std::string text;
  for (const std::string& field : fields) text += (text.empty() ? "" : " ") + field;
  if (text.size() > max_line) throw Error("a line would be longer than a plan file allows", "plan");
  return text + "\n";
}

}  // namespace

PlanFile PlanFile::parse(std::string_view text, const std::string& where) {
  if (text.size() > max_bytes) throw Error("larger than any plan", where);
  Reader reader(text, where);
  const auto first = reader.next();
  if (first.size() != 2 || first[0] != "softneuro-plan") reader.fail("this is no plan file");
  // The format before has no errors: they are looked for as if it had been made for other weights.
  if (first[1] != "2" && first[1] != "3") reader.fail("made by another version of softneuro");
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
