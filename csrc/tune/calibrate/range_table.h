// Calibrated ranges as text: of every blob of a graph, with what the bytes cost in accuracy. A file may have several
// graphs, or one with several sets of weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/calibrate/blob_statistics.h"

namespace softneuro {

// What ranges are for. Any characters are kept.
struct RangeKey {
  std::string structure;  // structural hash
  std::string weights;    // identity of the weights' content
  friend auto operator<=>(const RangeKey&, const RangeKey&) = default;
};

struct BlobRange {
  int blob = -1;  // canonical index
  std::string name;
  ValueRange range;
  int64_t count = 0, nonfinite = 0;     // of the values observed
  std::optional<double> error = {};     // relative L2 at the outputs with only this blob in bytes; none: unknown
  std::optional<ValueRange> seen = {};  // of all finite values observed; none: unknown
  friend bool operator==(const BlobRange&, const BlobRange&) = default;
};

// A layer with weights reads a blob of these means by channel.
struct BlobMeans {
  int blob = -1;
  std::vector<double> values;
  friend bool operator==(const BlobMeans&, const BlobMeans&) = default;
};

struct LayerError {
  int layer = -1;  // canonical index
  std::string name;
  std::string form;                  // see graph/forms.h
  std::optional<double> error = {};  // relative L2 at the outputs with only this layer so; none: unknown
  bool corrected = false;            // with a bias that makes up for the means of its input (graph/bias_correction.h)
  friend bool operator==(const LayerError&, const LayerError&) = default;
};

struct RangeSection {
  RangeKey key;
  std::string method;                // see FitSettings::str()
  int64_t batches = 0, samples = 0;  // what was observed
  std::vector<BlobRange> blobs;
  std::vector<LayerError> layers;
  std::vector<BlobMeans> means = {};
  friend bool operator==(const RangeSection&, const RangeSection&) = default;
};

class RangeTable {
 public:
  // Throws Error with the line's number for what format() does not write.
  static RangeTable parse(std::string_view text, const std::string& where = "ranges");

  // Sections in the order of their keys, rows in that of their indices: the same ranges give the same text, which reads
  // back exactly.
  std::string format() const;

  const RangeSection* find(const RangeKey& key) const;
  // Replaces the section of the same key.
  void set(RangeSection section);
  const std::vector<RangeSection>& sections() const { return sections_; }

 private:
  std::vector<RangeSection> sections_;  // by key
};

// Throws Error if the file cannot be read.
RangeTable load_ranges(const std::string& path);
// Replaces the file at once. Sections that it has and `table` lacks are kept; throws Error rather than overwrite a file
// of something else.
void save_ranges(const RangeTable& table, const std::string& path);

}  // namespace softneuro
