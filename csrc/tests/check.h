// What the kernel tests share: buffers that end at a page that cannot be touched, random data, blocked layouts and a
// convolution in double that is the truth.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/arch.h"
#include "kernels/activation.h"
#include "tests/expect.h"

namespace softneuro::test {

inline std::mt19937& random_source() {
  static std::mt19937 source(7);
  return source;
}
inline int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_source()); }
inline std::vector<float> random_data(size_t n, float scale = 1) {
  std::uniform_real_distribution<float> distribution(-scale, scale);
  std::vector<float> data(n);
  for (float& x : data) x = distribution(random_source());
  return data;
}

// n floats between two pages that trap: the end of the buffer is the end of its last page, so a read past it crashes.
class Guarded {
 public:
  explicit Guarded(size_t n, float fill = 0) : size_(n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (n * sizeof(float) + page - 1) / page * page;
    mapped_ = bytes + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + bytes, page, PROT_NONE);
    data_ = reinterpret_cast<float*>(base_ + page + bytes - n * sizeof(float));
    for (size_t i = 0; i < n; ++i) data_[i] = fill;
  }
  explicit Guarded(const std::vector<float>& values) : Guarded(values.size()) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size() * sizeof(float));
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, mapped_); }
  float* data() { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_, mapped_;
  char* base_;
  float* data_;
};

// [channels][pixels] to [channels / block][pixels][block], padding lanes zero.
inline std::vector<float> to_blocked(const std::vector<float>& src, int channels, int pixels, int block) {
  std::vector<float> dst(static_cast<size_t>((channels + block - 1) / block) * block * pixels);
  for (int c = 0; c < channels; ++c) {
    for (int p = 0; p < pixels; ++p) {
      dst[(static_cast<size_t>(c / block) * pixels + p) * block + c % block] = src[static_cast<size_t>(c) * pixels + p];
    }
  }
  return dst;
}

struct Conv {
  int groups, in_channels, out_channels;  // of one group
  int h, w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;

  size_t src_size() const { return static_cast<size_t>(groups) * in_channels * h * w; }
  size_t dst_size() const { return static_cast<size_t>(groups) * out_channels * out_h * out_w; }
  size_t weights_size() const { return static_cast<size_t>(groups) * out_channels * in_channels * kernel_h * kernel_w; }
};

// A convolution of random size whose output is not empty.
inline Conv random_conv(int groups, int in_channels, int out_channels, int kernel_h, int kernel_w) {
  while (true) {
    Conv c{};
    c.groups = groups, c.in_channels = in_channels, c.out_channels = out_channels;
    c.kernel_h = kernel_h, c.kernel_w = kernel_w;
    c.h = pick(1, 20), c.w = pick(1, 37);
    c.stride_h = pick(1, 3), c.stride_w = pick(0, 2) == 0 ? pick(1, 3) : c.stride_h;
    c.dilation_h = pick(0, 3) == 0 ? pick(1, 3) : 1, c.dilation_w = pick(0, 3) == 0 ? pick(1, 3) : 1;
    c.pad_top = pick(0, kernel_h), c.pad_left = pick(0, kernel_w);
    const int over_h = c.h + c.pad_top + pick(0, kernel_h) - (kernel_h - 1) * c.dilation_h - 1;
    const int over_w = c.w + c.pad_left + pick(0, kernel_w) - (kernel_w - 1) * c.dilation_w - 1;
    if (over_h < 0 || over_w < 0) continue;
    c.out_h = over_h / c.stride_h + 1, c.out_w = over_w / c.stride_w + 1;
    return c;
  }
}

inline double apply(const Activation& act, double x) {
  using K = ActivationKind;
  const double relu6 = std::fmin(std::fmax(x + 3, 0), 6) / 6;
  switch (act.kind) {
    case K::none:
      return x;
    case K::relu:
      return x > 0 ? x : 0;
    case K::clamp:
      return std::fmin(std::fmax(x, act.a), act.b);
    case K::leaky_relu:
      return x > 0 ? x : act.a * x;
    case K::hardswish:
      return x * relu6;
    case K::hardsigmoid:
      return relu6;
    case K::sigmoid:
      return 1 / (1 + std::exp(-x));
    case K::tanh:
      return std::tanh(x);
    case K::silu:
      return x / (1 + std::exp(-x));
    case K::swish:
      return x / (1 + std::exp(-act.a * x));
    case K::gelu:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case K::gelu_tanh:
      return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case K::elu:
      return x > 0 ? x : act.a * std::expm1(x);
    case K::softplus:
      return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
    case K::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case K::exp:
      return std::exp(x);
    case K::log:
      return std::log(x);
    case K::erf:
      return std::erf(x);
  }
  return x;
}
inline Activation random_activation() {
  Activation act;
  act.kind =
      static_cast<ActivationKind>(pick(0, 1) == 0 ? pick(0, 2) : pick(0, static_cast<int>(ActivationKind::mish)));
  if (act.kind == ActivationKind::clamp) act.a = 0.25f, act.b = 6;
  if (act.kind == ActivationKind::swish) act.a = 1.702f;
  if (act.kind == ActivationKind::leaky_relu || act.kind == ActivationKind::elu) act.a = 0.1f;
  return act;
}

// Row-major, bias and residual may be empty.
inline std::vector<double> reference(const Conv& c, const std::vector<float>& src, const std::vector<float>& weights,
                                     const std::vector<float>& bias, const std::vector<float>& residual,
                                     const Activation& act) {
  std::vector<double> dst(c.dst_size());
  size_t at = 0;
  for (int k = 0; k < c.groups * c.out_channels; ++k) {
    const int first = k / c.out_channels * c.in_channels;
    for (int y = 0; y < c.out_h; ++y) {
      for (int x = 0; x < c.out_w; ++x, ++at) {
        double sum = bias.empty() ? 0 : bias[k];
        for (int i = 0; i < c.in_channels; ++i) {
          for (int r = 0; r < c.kernel_h; ++r) {
            const int iy = y * c.stride_h + r * c.dilation_h - c.pad_top;
            if (iy < 0 || iy >= c.h) continue;
            for (int s = 0; s < c.kernel_w; ++s) {
              const int ix = x * c.stride_w + s * c.dilation_w - c.pad_left;
              if (ix < 0 || ix >= c.w) continue;
              sum += static_cast<double>(src[(static_cast<size_t>(first + i) * c.h + iy) * c.w + ix]) *
                     weights[((static_cast<size_t>(k) * c.in_channels + i) * c.kernel_h + r) * c.kernel_w + s];
            }
          }
        }
        if (!residual.empty()) sum += residual[at];
        dst[at] = apply(act, sum);
      }
    }
  }
  return dst;
}

struct Verdict {
  double error = 0;     // relative L2
  bool padding = true;  // lanes past the channels are zero
};
inline Verdict compare_blocked(const float* got, const std::vector<double>& want, int channels, int pixels, int block) {
  // Around zero an activation may cancel all but the absolute accuracy of its terms.
  double difference = 0, norm = 1e-2 * channels * pixels;
  Verdict verdict;
  for (int c = 0; c < (channels + block - 1) / block * block; ++c) {
    for (int p = 0; p < pixels; ++p) {
      const double x = got[(static_cast<size_t>(c / block) * pixels + p) * block + c % block];
      if (c >= channels) {
        verdict.padding = verdict.padding && x == 0;
        continue;
      }
      const double y = want[static_cast<size_t>(c) * pixels + p];
      difference += (x - y) * (x - y), norm += y * y;
    }
  }
  verdict.error = std::sqrt(difference / norm);
  return verdict;
}

inline std::vector<float> floats(const std::vector<double>& x) { return {x.begin(), x.end()}; }

inline void report(const Verdict& verdict, const char* what, Isa isa, const Conv& c, int kind, double bound = 1e-5) {
  if (verdict.error < bound && verdict.padding) return;
  if (++failures() > 20) return;
  std::printf(
      "%s %s: error %.3g%s; g%d c%d k%d %dx%d -> %dx%d kernel %dx%d stride %d,%d dilation %d,%d pad %d,%d act %d\n",
      what, std::string(isa_name(isa)).c_str(), verdict.error, verdict.padding ? "" : ", padding not zero", c.groups,
      c.in_channels, c.out_channels, c.h, c.w, c.out_h, c.out_w, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w,
      c.dilation_h, c.dilation_w, c.pad_top, c.pad_left, kind);
}

}  // namespace softneuro::test
