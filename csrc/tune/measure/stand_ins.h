// Packed weights to time routines with: of the sizes that they will have, and of values of no meaning.
#pragma once

#include <cstddef>
#include <memory>

#include "layers/contract/routine.h"

namespace softneuro {

// Packing is most of what timing a routine takes, and the time of nearly all of them does not depend on the weights'
// values. So all are given the same memory, of ordinary numbers in whatever type it is read. Not thread-safe.
class StandIns {
 public:
  // Packed truly where values may count: for routines that make use of a pattern, and where sections other than
  // "weights" hold integers, which may be places in something. Null where nothing is packed.
  std::shared_ptr<const Packed> packed(const Routine& routine, const Problem& problem, const Tuning& tuning);

  // Whether that is memory shared with others.
  static bool stands_in(const Routine& routine, const Problem& problem, const Tuning& tuning);

 private:
  std::shared_ptr<std::byte> memory(size_t bytes);

  std::shared_ptr<std::byte> memory_;
  size_t size_ = 0;
};

}  // namespace softneuro
