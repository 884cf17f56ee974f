// Kernels of rows against doubles, with every type of elements: softmax, normalization, bilinear resampling.
#include "base/lines.h"
#include "kernels/interpolate/interpolate.h"
#include "kernels/normalize/normalize.h"
#include "kernels/softmax/softmax.h"
#include "tests/typed.h"

namespace softneuro::test {
namespace {

// Elements for results in [-1, 1] of any magnitude that steps may have.
ElementFormat for_results(ElementFormat e) {
  if (element_bytes(e.type) == 1) e.scale = 0.01F;
  return e;
}

void report_rows(bool right, const char* what, Isa isa, const ElementFormat& from, const ElementFormat& to) {
  if (right || ++failures() > 20) return;
  std::printf("%s %s: type %d to %d\n", what, std::string(isa_name(isa)).c_str(), static_cast<int>(from.type),
              static_cast<int>(to.type));
}

void check_softmax(Isa isa, bool columns, bool log_of) {
  const int64_t count = pick(1, pick(0, 3) ? 40 : 300), number = pick(1, columns ? 150 : 3);
  SoftmaxArgs args{.dst = nullptr, .src = nullptr, .count = count, .number = number};
  args.src_stride = columns ? number + pick(0, 3) : 1, args.dst_stride = columns ? number + pick(0, 3) : 1;
  if (pick(0, 2) != 0) args.from = random_elements(), args.to = for_results(random_elements());
  const auto size = [&](int64_t stride) {
    return static_cast<size_t>(columns ? (count - 1) * stride + number : number * count);
  };
  Typed src(args.from, random_data(size(args.src_stride), 4)), dst(args.to, size(args.dst_stride));
  const bool floats = args.from.type == DType::float32 && args.to.type == DType::float32;
  Guarded scratch(floats ? 0 : static_cast<size_t>(count * (columns ? SoftmaxArgs::columns_at_once : 1)));
  args.src = src.data(), args.dst = dst.data(), args.scratch = scratch.data();
  const SoftmaxKernels& kernels = softmax_kernels(isa);
  (columns ? kernels.columns : kernels.rows)[log_of](args);
  bool right = true;
  for (int64_t i = 0; i < number; ++i) {
    const auto at = [&](int64_t k, int64_t stride) {
      return static_cast<size_t>(columns ? k * stride + i : i * count + k);
    };
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += std::exp(src.value(at(k, args.src_stride)));
    for (int64_t k = 0; k < count; ++k) {
      const double x = src.value(at(k, args.src_stride)), want = log_of ? x - std::log(sum) : std::exp(x) / sum;
      right = right && dst.is_near(at(k, args.dst_stride), want, 2e-6 * (1 + std::fabs(want)));
    }
  }
  report_rows(right, columns ? "softmax of columns" : "softmax of rows", isa, args.from, args.to);
}

void check_normalize(Isa isa) {
  NormalizeArgs args{};
  args.count = pick(1, pick(0, 3) ? 60 : 900);
  const auto count = static_cast<size_t>(args.count);
  if (pick(0, 2) != 0) args.from = random_elements(), args.to = random_elements();
  std::vector<float> values = random_data(count, 2);
  for (float& x : values) x += 0.75F;
  Typed src(args.from, values), dst(args.to, count);
  Guarded weight(random_data(count)), bias(random_data(count));
  args.src = src.data(), args.dst = dst.data();
  if (pick(0, 1)) args.weight = weight.data(), args.bias = pick(0, 1) ? bias.data() : nullptr;

  const Moments m = normalize_kernels(isa).moments(args.src, args.count, args.from);
  double mean = 0, variance = 0;
  for (size_t i = 0; i < count; ++i) mean += src.value(i) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) variance += std::pow(src.value(i) - mean, 2) / static_cast<double>(count);
  bool right =
      std::fabs(static_cast<double>(m.center) + m.offset - mean) < 2e-6 && std::fabs(m.variance - variance) < 1e-5;
  const float squares = normalize_kernels(isa).mean_square(args.src, args.count, args.from);
  right = right && std::fabs(squares - (variance + mean * mean)) < 1e-5 * (1 + mean * mean);
  args.center = m.center, args.factor = 0.75F, args.shift = -0.25F;
  normalize_kernels(isa).normalize(args);
  for (size_t i = 0; i < count; ++i) {
    double want = (src.value(i) - static_cast<double>(m.center)) * 0.75 - 0.25;
    if (args.weight != nullptr) want = want * weight.data()[i] + (args.bias == nullptr ? 0 : bias.data()[i]);
    right = right && dst.is_near(i, want, 1e-6 * (2 + std::fabs(want)));
  }
  report_rows(right, "normalize", isa, args.from, args.to);
}

void check_interpolate(Isa isa, bool lines, bool by_shares) {
  InterpolateRow p{};
  p.width = pick(1, 40), p.outputs = pick(1, 60), p.channels = lines ? 1 : pick(0, 1) ? isa_block(isa) : pick(1, 50);
  p.from = pick(0, 2) == 0 ? ElementFormat() : random_elements();
  p.to = p.from;
  if (element_bytes(p.to.type) == 1) p.to.scale *= 1.25F;
  const auto columns = static_cast<int>(p.width), outputs = static_cast<int>(p.outputs);
  std::vector<int32_t> first(outputs), second(outputs);
  std::vector<float> shares = random_data(outputs), others(outputs);
  for (int x = 0; x < outputs; ++x) {
    first[x] = pick(0, columns - 1), second[x] = pick(0, columns - 1);
    shares[x] = std::fabs(shares[x]), others[x] = 1 - shares[x];
  }
  const auto size = [&](int64_t pixels) { return static_cast<size_t>(pixels * p.channels); };
  Typed above(p.from, random_data(size(columns))), below(p.from, random_data(size(columns))), dst(p.to, size(outputs));
  Guarded scratch(static_cast<size_t>(3 * whole_lines(p.width) + p.outputs));
  p.above = above.data(), p.below = below.data(), p.above_share = 0.375F, p.below_share = 0.625F;
  p.first = first.data(), p.second = second.data(), p.first_share = shares.data(), p.second_share = others.data();
  p.dst = dst.data(), p.scratch = scratch.data();
  const InterpolateKernels kernels = interpolate_kernels(isa);
  (lines ? by_shares ? kernels.line_by_shares : kernels.line : by_shares ? kernels.lanes_by_shares : kernels.lanes)(p);
  bool right = true;
  for (int x = 0; x < outputs; ++x) {
    for (int64_t c = 0; c < p.channels; ++c) {
      const auto mix = [&](int32_t column) {
        const auto at = static_cast<size_t>(column * p.channels + c);
        return 0.375 * above.value(at) + 0.625 * below.value(at);
      };
      const double want =
          static_cast<double>(shares[x]) * mix(first[x]) + static_cast<double>(others[x]) * mix(second[x]);
      right = right && dst.is_near(static_cast<size_t>(x * p.channels + c), want, 1e-6);
    }
  }
  report_rows(right, lines ? "interpolate lines" : "interpolate lanes", isa, p.from, p.to);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(rows_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 1000; ++i) {
      check_normalize(isa);
      check_softmax(isa, i % 2 == 0, i % 4 < 2);
      check_interpolate(isa, i % 2 == 0, i % 4 < 2);
    }
  }
}
