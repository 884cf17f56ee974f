// scale_bytes of every level: every byte, planes and pixels, any count of them, and nothing touched behind the ends.
#include "kernels/scale_bytes/scale_bytes.h"

#include <cmath>

#include "tests/check.h"

namespace softneuro::test {
namespace {

void check(Isa isa, int channels, int64_t pixels, bool together) {
  const auto bytes = static_cast<size_t>(channels * pixels);
  Guarded src_memory((bytes + 3) / 4), dst(bytes);
  auto* src = reinterpret_cast<uint8_t*>(src_memory.data() + src_memory.size()) - bytes;
  for (size_t i = 0; i < bytes; ++i) src[i] = static_cast<uint8_t>(i * 151);
  const std::vector<float> scale = random_data(static_cast<size_t>(channels)), shift = random_data(scale.size());
  ScaleBytesArgs call;
  call.src = src;
  call.pixel = together ? channels : 1;
  call.channel = together ? 1 : pixels;
  call.dst = dst.data();
  call.pixels = pixels;
  call.channels = channels;
  call.scale = scale.data();
  call.shift = shift.data();
  scale_bytes_kernel(isa)(call);
  for (size_t i = 0; i < bytes; ++i) {
    const auto c = static_cast<int64_t>(i) / pixels, p = static_cast<int64_t>(i) % pixels;
    const double from = src[p * call.pixel + c * call.channel], factor = scale[static_cast<size_t>(c)];
    const double start = shift[static_cast<size_t>(c)], want = from * factor + start;
    const double bound = 0x1p-23 * (std::abs(from * factor) + std::abs(start));
    if (std::abs(dst.data()[i] - want) <= bound || ++failures() > 20) continue;
    std::printf("scale_bytes %s: %d channels, %d pixels%s: %g for %g\n", std::string(isa_name(isa)).c_str(), channels,
                static_cast<int>(pixels), together ? " together" : "", static_cast<double>(dst.data()[i]), want);
  }
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(scale_bytes_test) {
  using namespace softneuro;
  for (const Isa isa : available_isas()) {
    if (scale_bytes_kernel(isa) == nullptr) continue;
    for (int channels = 1; channels <= 4; ++channels) {
      for (int64_t pixels = 0; pixels < 70; ++pixels) {
        for (const bool together : {false, true}) test::check(isa, channels, pixels, together);
      }
      test::check(isa, channels, 1000, true);
    }
  }
}
