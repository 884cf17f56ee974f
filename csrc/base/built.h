// The levels that this build has.
#pragma once

#include <algorithm>
#include <iterator>

#include "base/arch.h"

namespace softneuro {

inline bool is_built(Isa isa) {
  static constexpr Isa built[] = {Isa::scalar, SN_IF_avx2(Isa::avx2, ) SN_IF_avx512(Isa::avx512, )
                                                   SN_IF_avxvnni(Isa::avxvnni, ) SN_IF_avx512vnni(Isa::avx512vnni, )
                                                       SN_IF_amx(Isa::amx, ) SN_IF_neon(Isa::neon, )};
  return std::find(std::begin(built), std::end(built), isa) != std::end(built);
}

}  // namespace softneuro
