// look_up of every level: every byte, any count of them, in place, and nothing touched behind the ends.
#include "kernels/look_up/look_up.h"

#include <string>

#include "tests/check.h"

namespace softneuro::test {
namespace {

void check(Isa isa, int64_t count, bool in_place) {
  Lut table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i * i * 37 + 11 * i + 5);
  const auto floats = static_cast<size_t>((count + 3) / 4);
  Guarded src_memory(floats), dst_memory(floats);
  const auto end_of = [](Guarded& memory) { return reinterpret_cast<uint8_t*>(memory.data() + memory.size()); };
  uint8_t* src = end_of(src_memory) - count;
  std::vector<uint8_t> from(static_cast<size_t>(count));
  for (size_t i = 0; i < from.size(); ++i) src[i] = from[i] = static_cast<uint8_t>(i * 151 + i / 256);
  uint8_t* dst = in_place ? src : end_of(dst_memory) - count;
  look_up_kernel(isa)(table, src, dst, count);
  for (size_t i = 0; i < from.size(); ++i) {
    if (dst[i] == table[from[i]] || ++failures() > 20) continue;
    std::printf("look_up %s: byte %d of %d\n", std::string(isa_name(isa)).c_str(), static_cast<int>(i),
                static_cast<int>(count));
  }
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(look_up_test) {
  using namespace softneuro;
  for (const Isa isa : available_isas()) {
    for (int64_t count = 0; count < 200; ++count) {
      for (const bool in_place : {false, true}) test::check(isa, count, in_place);
    }
    test::check(isa, 1000, false);
  }
}
