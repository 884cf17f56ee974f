// Costs that were measured one after the other, made comparable.
#pragma once

#include <span>
#include <vector>

#include "tune/measure/profiler.h"

namespace softneuro {

// A layer's candidates that Profiler::measure was given, and those whose times were known before.
struct TimedLayer {
  const Problem* problem;
  std::vector<Candidate*> fresh, recalled;
};

// Each layer was timed in a minute of its own, and the machine may have been slower in one than in another, or for one
// kind of routine. The fastest of each are timed in turn with all others', and what else was timed follows: a routine's
// other tunings its best one, other routines the fastest.
// Recalled times stay as they are, as other plans were chosen by them: fresh ones are brought to their pace, which is
// that of another hour or another load of the machine.
// Nothing changes if the allowance, seconds, is too little for it.
void bring_to_one_pace(std::span<const TimedLayer> layers, Profiler& profiler, double allowance);

}  // namespace softneuro
