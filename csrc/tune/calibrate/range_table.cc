#include "tune/calibrate/range_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tune/records/field_reader.h"
#include "tune/records/means_text.h"
#include "tune/records/record_text.h"
#include "tune/records/text_file.h"

namespace softneuro {
namespace {

// By which rows are in order.
int place(const BlobRange& row) { return row.blob; }
std::pair<int, std::string> place(const LayerError& row) { return {row.layer, row.form}; }

constexpr std::string_view file_kind = "softneuro-ranges", file_version = "2";
constexpr size_t most_fields = max_means_fields;
constexpr const char* range_remedy = "give another path, or remove the file and calibrate again";

float read_bound(const FieldReader& reader, std::string_view field) {
  const auto value = parse_double(field);
  if (!value || !(std::abs(*value) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    reader.fail("a bound is not a finite number of 32 bits");
  }
  return static_cast<float>(*value);
}

bool is_error(double value) { return value >= 0; }  // infinite where finite results became infinite

std::optional<double> read_range_error(const FieldReader& reader, std::string_view field) {
  if (field == "-") return std::nullopt;
  const auto value = parse_double(field);
  if (!value || !is_error(*value)) reader.fail("an error is neither '-' nor a number from 0 on");
  return value;
}

std::string error_text(const std::optional<double>& error) { return error ? exact_number(*error) : "-"; }

std::optional<ValueRange> read_seen(const FieldReader& reader, std::string_view least, std::string_view most) {
  if (least == "-" && most == "-") return std::nullopt;
  const ValueRange seen{read_bound(reader, least), read_bound(reader, most)};
  if (seen.least > seen.most) reader.fail("what was seen ends before it begins");
  return seen;
}

std::string bound_text(const std::optional<ValueRange>& range, float ValueRange::* bound) {
  return range ? exact_number(static_cast<double>(*range.*bound)) : "-";
}

void read_means(const FieldReader& reader, const std::vector<std::string_view>& fields, std::vector<BlobMeans>& rows) {
  const int blob = reader.index(fields.size() > 1 ? fields[1] : "");
  if (rows.empty() || rows.back().blob != blob) {
    if (!rows.empty() && rows.back().blob > blob) reader.fail("means are out of order");
    rows.push_back({blob, {}});
  }
  parse_means(reader, fields, rows.back().values);
}

bool read_corrected(const FieldReader& reader, std::string_view field) {
  if (field != "-" && field != "corrected") reader.fail("a layer is neither 'corrected' nor '-'");
  return field == "corrected";
}

// `old`: as files of the first version have it, without what was seen.
RangeSection read_section(FieldReader& reader, const std::vector<std::string_view>& first, bool old) {
  RangeSection section;
  reader.expect(first, "ranges", 3);
  section.key = {reader.text(first[1]), reader.text(first[2])};
  const auto method = reader.next();
  reader.expect(method, "method", 2);
  section.method = reader.text(method[1]);
  const auto observed = reader.next();
  reader.expect(observed, "observed", 3);
  section.batches = reader.count(observed[1]);
  section.samples = reader.count(observed[2]);
  while (true) {
    const auto fields = reader.next(most_fields);
    if (fields[0] == "blob") {
      reader.expect(fields, "blob", old ? 8 : 10);
      BlobRange row{.blob = reader.index(fields[1]),
                    .name = reader.text(fields[2]),
                    .range = {read_bound(reader, fields[3]), read_bound(reader, fields[4])},
                    .count = reader.count(fields[5]),
                    .nonfinite = reader.count(fields[6]),
                    .error = read_range_error(reader, fields[7])};
      if (!old) row.seen = read_seen(reader, fields[8], fields[9]);
      if (row.range.least > row.range.most) reader.fail("a range ends before it begins");
      if (!section.layers.empty() || !section.means.empty()) reader.fail("blobs come before means and layers");
      if (!section.blobs.empty() && section.blobs.back().blob >= row.blob) reader.fail("blobs are out of order");
      section.blobs.push_back(std::move(row));
    } else if (fields[0] == "mean" && !old) {
      if (!section.layers.empty()) reader.fail("means come before layers");
      read_means(reader, fields, section.means);
    } else if (fields[0] == "layer") {
      const bool tells_bias = !old && fields.size() != 5;  // which files of before biases do not
      reader.expect(fields, "layer", tells_bias ? 6 : 5);
      LayerError row{reader.index(fields[1]), reader.text(fields[2]), reader.text(fields[3]),
                     read_range_error(reader, fields[4])};
      if (tells_bias) row.corrected = read_corrected(reader, fields[5]);
      const bool in_order = section.layers.empty() || place(section.layers.back()) < place(row);
      if (!in_order) reader.fail("layers are out of order");
      section.layers.push_back(std::move(row));
    } else {
      reader.expect(fields, "end", 1);
      return section;
    }
  }
}

[[noreturn]] void refuse_row(const std::string& row, const char* what) { throw Error(row + " " + what, "ranges"); }

// Rows in the order of their places.
template <typename Row>
void sort_rows(std::vector<Row>& rows, int Row::* index, const std::string& kind) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return place(a) < place(b); });
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = kind + " " + std::to_string(rows[i].*index);
    if (rows[i].*index < 0 || rows[i].*index > FieldReader::max_index) refuse_row(name, "is out of range");
    if (i > 0 && place(rows[i - 1]) == place(rows[i])) refuse_row(name, "appears twice");
    if (rows[i].error && !is_error(*rows[i].error)) refuse_row(name, "has an error that is not a number from 0 on");
  }
}

void sort_means(std::vector<BlobMeans>& rows) {
  std::erase_if(rows, [](const BlobMeans& row) { return row.values.empty(); });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.blob < b.blob; });
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = "means of blob " + std::to_string(rows[i].blob);
    if (rows[i].blob < 0 || rows[i].blob > FieldReader::max_index) refuse_row(name, "are out of range");
    if (i > 0 && rows[i - 1].blob == rows[i].blob) refuse_row(name, "appear twice");
    const bool finite =
        std::all_of(rows[i].values.begin(), rows[i].values.end(), [](double x) { return std::isfinite(x); });
    if (!finite) refuse_row(name, "are not finite");
  }
}

std::string range_line(std::initializer_list<std::string> fields) { return line_of_fields(fields, "ranges"); }

}  // namespace

RangeTable RangeTable::parse(std::string_view text, const std::string& where) {
  if (text.size() > max_text_file) throw Error("larger than any table of ranges", where);
  FieldReader reader(text, where, range_remedy);
  const auto first = reader.next();
  if (first.size() != 2 || first[0] != file_kind) reader.fail("this is no file of ranges");
  const bool old = first[1] == "1";
  if (!old && first[1] != file_version) reader.fail("made by another version of softneuro");
  RangeTable table;
  while (!reader.done()) {
    RangeSection section = read_section(reader, reader.next(), old);
    if (!table.sections_.empty() && !(table.sections_.back().key < section.key)) {
      reader.fail("sections are out of order, or two are for the same graph and weights");
    }
    table.sections_.push_back(std::move(section));
  }
  return table;
}

std::string RangeTable::format() const {
  std::string text = range_line({std::string(file_kind), std::string(file_version)});
  for (const RangeSection& section : sections_) {
    text += range_line({"ranges", escape_field(section.key.structure), escape_field(section.key.weights)});
    text += range_line({"method", escape_field(section.method)});
    text += range_line({"observed", std::to_string(section.batches), std::to_string(section.samples)});
    for (const BlobRange& row : section.blobs) {
      text += range_line(
          {"blob", std::to_string(row.blob), escape_field(row.name), exact_number(static_cast<double>(row.range.least)),
           exact_number(static_cast<double>(row.range.most)), std::to_string(row.count), std::to_string(row.nonfinite),
           error_text(row.error), bound_text(row.seen, &ValueRange::least), bound_text(row.seen, &ValueRange::most)});
    }
    for (const BlobMeans& row : section.means) text += format_means(row.blob, row.values, "ranges");
    for (const LayerError& row : section.layers) {
      text += range_line({"layer", std::to_string(row.layer), escape_field(row.name), escape_field(row.form),
                          error_text(row.error), row.corrected ? "corrected" : "-"});
    }
    text += "end\n";
  }
  return text;
}

const RangeSection* RangeTable::find(const RangeKey& key) const {
  const auto it = std::lower_bound(sections_.begin(), sections_.end(), key,
                                   [](const RangeSection& own, const RangeKey& wanted) { return own.key < wanted; });
  return it != sections_.end() && it->key == key ? &*it : nullptr;
}

void RangeTable::set(RangeSection section) {
  if (section.batches < 0 || section.samples < 0) throw Error("a count is below 0", "ranges");
  sort_rows(section.blobs, &BlobRange::blob, "blob");
  sort_rows(section.layers, &LayerError::layer, "layer");
  sort_means(section.means);
  for (const BlobRange& row : section.blobs) {
    const std::string name = "blob " + std::to_string(row.blob);
    if (row.count < 0 || row.nonfinite < 0) refuse_row(name, "has a count below 0");
    for (const ValueRange& range : {row.range, row.seen.value_or(row.range)}) {
      const bool finite = std::isfinite(range.least) && std::isfinite(range.most);
      if (!finite || range.least > range.most) refuse_row(name, "has a range that is none");
    }
  }
  const auto it = std::lower_bound(sections_.begin(), sections_.end(), section.key,
                                   [](const RangeSection& own, const RangeKey& key) { return own.key < key; });
  if (it != sections_.end() && it->key == section.key) {
    *it = std::move(section);
  } else {
    sections_.insert(it, std::move(section));
  }
}

RangeTable load_ranges(const std::string& path) { return RangeTable::parse(read_text_file(path, "the ranges"), path); }

void save_ranges(const RangeTable& table, const std::string& path) {
  change_text_file(path, "the ranges", [&](const std::optional<std::string>& old) {
    RangeTable merged = old ? RangeTable::parse(*old, path) : RangeTable();
    for (const RangeSection& section : table.sections()) merged.set(section);
    return merged.format();
  });
}

}  // namespace softneuro
