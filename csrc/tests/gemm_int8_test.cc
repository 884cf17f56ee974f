// gemm_int8 at every level against exact sums: random sizes, strides, work ranges, epilogues and types of results.
#include "kernels/gemm_int8/gemm_int8.h"

#include "tests/typed.h"

namespace softneuro::test {
namespace {

constexpr ElementFormat bytes_format{.type = DType::uint8};

struct Problem {
  int m, n, k;
  ptrdiff_t a_stride, dst_stride;
  Typed a;
  std::vector<int8_t> weights;  // [n][k]
  std::vector<char> packed;
  int8_t* b;
  bool narrow;
  std::vector<int32_t> start, row_start;  // the latter may be of none
  Guarded scale, bias;
  bool has_bias, in_place;
  int residual;  // 0: none
  Typed residuals;
  ElementFormat dst;
  Activation activation;

  static int some(int most) { return pick(0, 2) == 0 ? pick(1, most) : pick(1, 33); }
  static ElementFormat format() {
    ElementFormat e = random_elements();
    while (e.type != DType::float32 && e.type != DType::uint8) e = random_elements();
    if (e.type == DType::uint8 && pick(0, 1)) e.scale = 1;
    return e;
  }
  size_t size() const { return static_cast<size_t>(m - 1) * dst_stride + n; }
  int padded() const { return (n + GemmInt8::block - 1) / GemmInt8::block * GemmInt8::block; }
  double unit() const { return dst.type == DType::uint8 ? 50 * dst.scale : 3; }

  Problem()
      : m(some(90)),
        n(some(150)),
        k(4 * (pick(0, 3) == 0 ? pick(1, 100) : pick(1, 40))),
        a_stride(k + pick(0, 1) * pick(0, 70)),
        dst_stride(n + pick(0, 1) * pick(0, 70)),
        a(bytes_format, static_cast<size_t>((m - 1) * a_stride + k)),
        weights(static_cast<size_t>(n) * k),
        scale(padded()),
        bias(padded()),
        has_bias(pick(0, 3) != 0),
        in_place(pick(0, 3) == 0),
        residual(pick(0, 2)),
        residuals(in_place ? format() : random_elements(), random_data(size(), 2)),
        dst(in_place ? residuals.elements() : format()),
        activation(random_activation()) {
    const int extreme = pick(0, 2), most = extreme == 2 ? 64 : 127;
    for (size_t i = 0; i < a.size(); ++i) bytes_of(a)[i] = static_cast<uint8_t>(extreme == 1 ? 255 : pick(0, 255));
    for (int8_t& w : weights) {
      w = static_cast<int8_t>(extreme == 1 ? (pick(0, 1) ? 127 : -128 + pick(0, 1)) : pick(-most, most));
    }
    // What is no number, or too large for an integer.
    if (residual != 0 && !in_place && residuals.elements().type == DType::float32 && dst.type == DType::uint8) {
      for (const float x : {NAN, INFINITY, -INFINITY, 1e30F, -1e30F}) {
        static_cast<float*>(residuals.data())[pick(0, static_cast<int>(size()) - 1)] = x;
      }
    }
    const size_t bytes = gemm_int8_packed_bytes(n, k);
    packed.resize(bytes + 63);
    b = reinterpret_cast<int8_t*>((reinterpret_cast<uintptr_t>(packed.data()) + 63) / 64 * 64);
    gemm_int8_pack(n, k, weights.data(), k, b);
    narrow = gemm_int8_is_narrow(b, bytes);
    expect(narrow || extreme != 2, "weights are narrow");
    if (pick(0, 1)) {
      for (int i = 0; i < m; ++i) row_start.push_back(pick(-20000, 20000));
    }
    for (int j = 0; j < padded(); ++j) {
      start.push_back(pick(-20000, 20000));
      scale.data()[j] = static_cast<float>(unit() / (127 * 80 * std::sqrt(k)) * pick(50, 150) / 100);
      bias.data()[j] = static_cast<float>(unit() * pick(-100, 100) / 100);
    }
  }

  static uint8_t* bytes_of(Typed& t) { return static_cast<uint8_t*>(t.data()); }
  int64_t sum(int i, int j) {
    int64_t sum = start[static_cast<size_t>(j)] + (row_start.empty() ? 0 : row_start[static_cast<size_t>(i)]);
    const uint8_t* row = bytes_of(a) + i * a_stride;
    const int8_t* column = weights.data() + static_cast<ptrdiff_t>(j) * k;
    for (int l = 0; l < k; ++l) sum += row[l] * column[l];
    return sum;
  }
  // The bits that are promised where nothing but a clamp is left to do.
  float exact(int i, int j) {
    const size_t at = static_cast<size_t>(i * dst_stride + j);
    float x = std::fmaf(static_cast<float>(sum(i, j)), scale.data()[j], has_bias ? bias.data()[j] : 0);
    if (residual != 0) {
      const ElementFormat& e = residuals.elements();
      if (element_bytes(e.type) == 1) {
        const int element =
            e.type == DType::int8 ? reinterpret_cast<int8_t*>(bytes_of(residuals))[at] : bytes_of(residuals)[at];
        x = std::fmaf(static_cast<float>(element - e.zero), e.scale, x);
      } else {
        x = x + static_cast<float>(residuals.value(at));
      }
    }
    const ClampBounds bounds = clamp_bounds(activation);
    return std::fmin(std::fmax(x, bounds.lo), bounds.hi);
  }
  double real(int i, int j) {
    const size_t at = static_cast<size_t>(i * dst_stride + j);
    const double x = static_cast<double>(sum(i, j)) * scale.data()[j] + (has_bias ? bias.data()[j] : 0) +
                     (residual != 0 ? residuals.value(at) : 0);
    return apply(activation, x);
  }
};

// What a level makes of it, in pieces.
void run(Problem& p, const GemmInt8Kernels& kernels, void* dst, const Epilogue& epilogue) {
  const GemmInt8 g{.m = p.m,
                   .n = p.n,
                   .k = p.k,
                   .a = Problem::bytes_of(p.a),
                   .a_stride = p.a_stride,
                   .b = p.b,
                   .narrow = p.narrow && pick(0, 3) != 0,
                   .start = p.start.data(),
                   .row_start = p.row_start.empty() ? nullptr : p.row_start.data(),
                   .dst = dst,
                   .dst_stride = p.dst_stride,
                   .epilogue = epilogue};
  std::vector<char> memory(kernels.scratch_bytes(g) + 63);
  void* scratch = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  const int panels = p.padded() / GemmInt8::block, cut = pick(0, panels), middle = pick(0, 1) ? p.m : pick(0, p.m);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    kernels.run(g, begin, end, 0, middle, scratch);
    kernels.run(g, begin, end, middle, p.m, scratch);
  }
}

void run(Problem& p, const GemmInt8Kernels& kernels, Typed& dst) {
  if (p.in_place) std::memcpy(dst.data(), p.residuals.data(), dst.size() * element_bytes(p.dst.type));
  const Residual residual = p.residual == 0 ? Residual() : p.in_place ? dst.residual() : p.residuals.residual();
  run(p, kernels, dst.data(),
      {.bias = p.has_bias ? p.bias.data() : nullptr,
       .residual = residual,
       .activation = p.activation,
       .scale = p.scale.data(),
       .dst = p.dst});
}

// The sums alone.
bool has_sums(Problem& p, const GemmInt8Kernels& kernels) {
  constexpr int32_t untouched = 0x5a5a5a5a;
  std::vector<int32_t> sums(p.size(), untouched);
  Epilogue nothing;
  nothing.dst.type = DType::int32;
  run(p, kernels, sums.data(), nothing);
  for (size_t at = 0; at < sums.size(); ++at) {
    const int i = static_cast<int>(at / static_cast<size_t>(p.dst_stride)),
              j = static_cast<int>(at) - i * static_cast<int>(p.dst_stride);
    if (sums[at] != (j < p.n ? p.sum(i, j) : untouched)) return false;
  }
  return true;
}

const char* fault(Problem& p, Typed& dst, unsigned char untouched) {
  const bool clamps = is_clamp(p.activation.kind);
  for (int i = 0; i < p.m; ++i) {
    for (int j = 0; j < p.dst_stride; ++j) {
      const size_t at = static_cast<size_t>(i * p.dst_stride + j);
      if (at >= dst.size()) continue;
      if (j >= p.n) {
        if (p.in_place ? dst.value(at) != p.residuals.value(at) : !dst.is_filled(at, untouched)) return "wrote past n";
      } else if (p.residual != 0 && !std::isfinite(p.residuals.value(at))) {
        if (!clamps) continue;
        const bool nan = std::isnan(p.residuals.value(at));
        const double want = nan ? 0 : p.exact(i, j), slack = std::isinf(want) ? 0 : 1e-6 * std::fabs(want);
        if (!dst.is_near(at, want, slack)) return "wrong limit";
      } else if (clamps && p.dst.type == DType::float32) {
        if (dst.value(at) != p.exact(i, j)) return "wrong bits";
      } else {
        const double want = clamps ? p.exact(i, j) : p.real(i, j);
        // Quantizing rounds once more unless a step is 1.
        const double slack = clamps && p.dst.scale == 1 ? 0
                             : clamps                   ? 1e-6 * std::fabs(want)
                                                        : 5e-6 * (p.unit() + std::fabs(want));
        if (!dst.is_near(at, want, slack)) return "wrong value";
      }
    }
  }
  return nullptr;
}

void check(const std::vector<Isa>& levels) {
  constexpr unsigned char untouched = 0x5a;
  Problem p;
  std::vector<char> first;
  for (const Isa isa : levels) {
    Typed dst(p.dst, p.size(), untouched);
    run(p, *gemm_int8_kernels(isa), dst);
    const char* wrong = has_sums(p, *gemm_int8_kernels(isa)) ? fault(p, dst, untouched) : "wrong sums";
    // Other activations take fma for granted, which the scalar level has none of.
    if (is_clamp(p.activation.kind) || isa != Isa::scalar) {
      const char* bytes = static_cast<const char*>(dst.data());
      const std::vector<char> bits(bytes, bytes + dst.size() * element_bytes(p.dst.type));
      if (first.empty()) first = bits;
      if (bits != first && wrong == nullptr) wrong = "other bits than at another level";
    }
    if (wrong == nullptr || ++failures() > 20) continue;
    std::printf("gemm_int8 %s: %s; m %d n %d k %d narrow %d act %d dst %d residual %d in place %d\n",
                std::string(isa_name(isa)).c_str(), wrong, p.m, p.n, p.k, p.narrow, static_cast<int>(p.activation.kind),
                static_cast<int>(p.dst.type), p.residual == 0 ? -1 : static_cast<int>(p.residuals.elements().type),
                p.in_place);
  }
}

void check_packing() {
  const int8_t weights[] = {1, 2, 3, 4, 5, 99, -1, -2, -3, -4, -5};
  std::vector<int8_t> packed(gemm_int8_packed_bytes(2, 5), 77), want(packed.size());
  expect(packed.size() == 2 * 16 * 4, "a panel of two groups");
  gemm_int8_pack(2, 5, weights, 6, packed.data());
  for (int l = 0; l < 5; ++l) {
    want[static_cast<size_t>(l / 4 * 64 + l % 4)] = weights[l],
                                              want[static_cast<size_t>(l / 4 * 64 + 4 + l % 4)] = weights[6 + l];
  }
  expect(packed == want, "order of packed weights");
  const auto narrow = [](int8_t first, int8_t second) {
    const int8_t pair[] = {0, 0, first, second};
    return gemm_int8_is_narrow(pair, 4);
  };
  expect(narrow(64, 64) && narrow(-64, -64) && narrow(127, -128) && narrow(127, 1) && narrow(-128, 0), "narrow pairs");
  expect(!narrow(65, 64) && !narrow(-65, -64) && !narrow(127, 2) && !narrow(-1, -128), "pairs that are not narrow");
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(gemm_int8_test) {
  using namespace softneuro;
  std::vector<Isa> levels;
  for (const auto* list : {&available_isas(), &available_extensions()}) {
    levels.insert(levels.end(), list->begin(), list->end());
  }
  test::check_packing();
  for (int i = 0; i < 2000; ++i) test::check(levels);
}
