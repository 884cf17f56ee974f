// A region's first calls where the option `calibration` wants them observed. Internal to runtime/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/region.h"
#include "tune/calibrate/calibrated.h"
#include "tune/calibrate/calibrator.h"

namespace softneuro {

struct Region::Watching {
  // A model that the region's graph is in some of its shapes.
  struct Model {
    std::string weights;  // identity
    std::unique_ptr<Calibrator> calibrator;
  };
  struct Shaped {
    Model* model = nullptr;  // null: its ranges are known
    Ready ready;
  };

  const CalibrationSource source;
  std::map<std::string, Model> models;                      // by range_key()
  std::map<std::pair<Signature, uint64_t>, Shaped> shapes;  // by signature and the weights' identity
  bool changed = false;                                     // weights have, which was told

  explicit Watching(CalibrationSource from) : source(std::move(from)) {}
};

}  // namespace softneuro
