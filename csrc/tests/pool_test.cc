// The pooling kernels against doubles: every type of elements, windows at borders and inside, channels and columns.
#include "kernels/pool/pool.h"

#include "base/lines.h"
#include "tests/typed.h"

namespace softneuro::test {
namespace {

// Spans of windows along one axis.
struct Axis {
  int64_t size, dilation = pick(0, 3) == 0 ? 2 : 1, step = pick(1, 3), kernel = pick(0, 1) ? pick(2, 3) : pick(1, 9);
  std::vector<PoolSpan> spans;
  int64_t inner_begin = 0, inner_end = 0;

  explicit Axis(int64_t size) : size(size) {
    if (pick(0, 5) == 0) dilation = 1, kernel = size;
    const int64_t before = pick(0, static_cast<int>(kernel) - 1);
    const auto taps_from = [&](int64_t at) { return at >= size ? 0 : (size - 1 - at) / dilation + 1; };
    for (int64_t start = -before; start < size && spans.size() < 40; start += step) {
      const int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0, begin = start + skipped * dilation;
      const int64_t count = std::clamp<int64_t>(kernel - skipped, 0, taps_from(begin));
      if (count == kernel && inner_end == 0) inner_begin = static_cast<int64_t>(spans.size());
      spans.push_back({count > 0 ? begin : 0, std::max<int64_t>(count, 1)});
      if (count == kernel) inner_end = static_cast<int64_t>(spans.size());
    }
    if (inner_end == 0) inner_begin = inner_end = static_cast<int64_t>(spans.size());
  }
};

// Means of quantized elements go to others of their type.
ElementFormat results_of(const ElementFormat& from, bool is_max) {
  ElementFormat to = from;
  if (element_bytes(to.type) == 1 && !is_max) to.zero += to.zero > 0 ? -1 : 1, to.scale *= 1.25F;
  return to;
}

void check(Isa isa, bool by_lanes) {
  PoolRow p{};
  const Axis columns(pick(1, 40));
  p.is_max = pick(0, 1) != 0;
  PoolFormats formats{random_elements(), {}};
  formats.to = results_of(formats.from, p.is_max);
  if (formats.from.type != DType::float32 || pick(0, 1)) p.formats = &formats;
  p.rows = pick(1, 4), p.dilation = columns.dilation, p.step = columns.step;
  p.spans = columns.spans.data(), p.outputs = static_cast<int64_t>(columns.spans.size());
  p.inner_begin = columns.inner_begin, p.inner_end = columns.inner_end;
  const int lanes = isa_block(isa);
  p.channels = !by_lanes ? 1 : pick(0, 1) ? lanes : pick(1, 150);
  p.pixel = p.dst_pixel = p.channels + (by_lanes ? pick(0, 1) * pick(0, 9) : 0);
  p.row_stride = columns.size * p.pixel;
  p.width = columns.size;
  const auto outputs = static_cast<size_t>(p.outputs);
  Guarded scale(random_data(outputs)), scratch(static_cast<size_t>(whole_lines(p.width)) + outputs);
  p.scale = scale.data(), p.row_scale = 0.5F, p.scratch = scratch.data();

  const auto size = [&](int64_t pixels) { return static_cast<size_t>((pixels - 1) * p.pixel + p.channels); };
  std::vector<float> values = random_data(size(p.rows * p.width), 2);
  if (element_bytes(formats.from.type) > 1 && pick(0, 3) == 0) values[values.size() / 2] = NAN;
  Typed src(formats.from, values), dst(formats.to, size(p.outputs));
  p.src = src.data(), p.dst = dst.data();
  (by_lanes ? pool_kernels(isa).lanes : pool_kernels(isa).line)(p);

  bool right = true;
  for (int64_t x = 0; x < p.outputs; ++x) {
    for (int64_t c = 0; c < p.channels; ++c) {
      double most = -INFINITY, sum = 0, size = 0;
      for (int64_t row = 0; row < p.rows; ++row) {
        for (int64_t tap = 0; tap < p.spans[x].count; ++tap) {
          const int64_t column = p.spans[x].begin + tap * p.dilation;
          const double value = src.value(static_cast<size_t>(row * p.row_stride + column * p.pixel + c));
          if (!(value <= most)) most = std::isnan(most) ? most : value;
          sum += value, size += std::fabs(value);
        }
      }
      const double factor = static_cast<double>(p.scale[x]) * 0.5, want = p.is_max ? most : sum * factor;
      const auto at = static_cast<size_t>(x * p.dst_pixel + c);
      right = right && (std::isnan(want) ? std::isnan(dst.value(at)) : dst.is_near(at, want, 2e-6 * (1 + size)));
    }
  }
  if (right || ++failures() > 20) return;
  std::printf("pool %s: %s, %s of type %d, %dx%d taps %d apart, %d channels\n", std::string(isa_name(isa)).c_str(),
              by_lanes ? "lanes" : "line", p.is_max ? "max" : "mean", static_cast<int>(formats.from.type),
              static_cast<int>(p.rows), static_cast<int>(columns.kernel), static_cast<int>(p.dilation),
              static_cast<int>(p.channels));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(pool_test) {
  using namespace softneuro;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 3000; ++i) test::check(isa, true), test::check(isa, false);
  }
}
