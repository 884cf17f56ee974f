// From which fraction of zero weights on a device's sparse routines may win.
#pragma once

#include "tune/measure/timekeeper.h"
#include "tune/records/cost_db.h"
#include "tune/tuner.h"

namespace softneuro {

// Fraction of zeros below which routines that leave zeros out are not worth measuring for a graph's layers. It is in
// the database; measured once per device where that is allowed, on a layer that suits these routines, else zero.
double sparse_floor(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                    Timekeeper& timekeeper);

}  // namespace softneuro
