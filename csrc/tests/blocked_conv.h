// What tests of convolution kernels share: random data of one convolution, blobs of it in blocks of channels, and
// whether the result is right.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/epilogue.h"
#include "kernels/integers.h"
#include "kernels/weight_rows.h"
#include "tests/typed.h"

namespace softneuro::test {

// The sizes in a kernel's struct, which have the names of Conv's.
template <class Sizes>
Sizes sizes_of(const Conv& c, Sizes sizes = {}) {
  sizes.h = c.h, sizes.w = c.w, sizes.out_h = c.out_h, sizes.out_w = c.out_w;
  sizes.kernel_h = c.kernel_h, sizes.kernel_w = c.kernel_w, sizes.stride_h = c.stride_h, sizes.stride_w = c.stride_w;
  sizes.pad_top = c.pad_top, sizes.pad_left = c.pad_left;
  if constexpr (requires { sizes.dilation_h; }) sizes.dilation_h = c.dilation_h, sizes.dilation_w = c.dilation_w;
  if constexpr (requires { sizes.in_channels; }) sizes.in_channels = c.in_channels, sizes.out_channels = c.out_channels;
  if constexpr (requires { sizes.groups; }) sizes.groups = c.groups;
  return sizes;
}

// A 1x1 convolution of random size without padding.
inline Conv random_pointwise(int in_channels, int out_channels) {
  Conv c = random_conv(1, in_channels, out_channels, 1, 1);
  c.pad_top = c.pad_left = 0;
  if (pick(0, 1) != 0) c.stride_h = c.stride_w = 1;
  c.out_h = ceil_div(c.h, c.stride_h), c.out_w = ceil_div(c.w, c.stride_w);
  return c;
}

// Each output channel's weights times its factor; no factors are ones.
inline std::vector<float> scale_rows(std::vector<float> weights, const std::vector<float>& factors) {
  for (size_t i = 0; i < weights.size() && !factors.empty(); ++i) {
    weights[i] *= factors[i / (weights.size() / factors.size())];
  }
  return weights;
}

inline std::vector<float> some_data(size_t n) { return pick(0, 1) ? random_data(n) : std::vector<float>(); }

struct BlockedConv {
  const Conv c;
  const int block, channels = c.groups * c.out_channels, pixels = c.out_h * c.out_w;
  // Row-major. Bias, residual and the weights' factors may be empty.
  std::vector<float> src = random_data(c.src_size()), weights = random_data(c.weights_size());
  std::vector<float> factors, bias = some_data(channels), residual = some_data(c.dst_size());
  Activation act = random_activation();

  Guarded own_weights{weights}, blocked_src{to_blocked(src, c.groups* c.in_channels, c.h* c.w, block)};
  Guarded padded_bias{bias.empty() ? bias : to_blocked(bias, channels, 1, block)};
  Guarded blocked_residual{residual.empty() ? residual : to_blocked(residual, channels, pixels, block)};
  Guarded dst{static_cast<size_t>(round_up(channels, block)) * pixels, NAN};

  BlockedConv(const Conv& c, int block) : c(c), block(block) {}

  void add_factors() { factors = some_data(channels); }
  WeightRows rows() { return {own_weights.data(), factors.empty() ? nullptr : factors.data()}; }

  const float* bias_data() { return bias.empty() ? nullptr : padded_bias.data(); }

  // For a residual and an output of the kernel's own: the former may be the latter's memory.
  Epilogue epilogue(Guarded& own_residual, Guarded& to) {
    Epilogue epilogue{.bias = bias_data(), .activation = act};
    if (residual.empty()) return epilogue;
    const bool in_place = pick(0, 1) != 0;
    if (in_place) std::copy_n(own_residual.data(), own_residual.size(), to.data());
    epilogue.residual = in_place ? to.data() : own_residual.data();
    return epilogue;
  }
  Epilogue epilogue() { return epilogue(blocked_residual, dst); }

  std::vector<double> expected() const { return reference(c, src, scale_rows(weights, factors), bias, residual, act); }
  void report(const Verdict& verdict, const char* what, Isa isa, double bound = 1e-5) const {
    test::report(verdict, what, isa, c, static_cast<int>(act.kind), bound);
  }
  void report(const char* what, Isa isa, double bound = 1e-5) {
    report(compare_blocked(dst.data(), expected(), channels, pixels, block), what, isa, bound);
  }
};

// The same with a residual and a result of any types, and a scale where they are not floats.
struct TypedConv : BlockedConv {
  const bool floats = pick(0, 2) != 0;
  const std::vector<float> scale = floats ? std::vector<float>() : some_data(channels);
  Guarded padded_scale{scale.empty() ? scale : to_blocked(scale, channels, 1, block)};
  Typed own_dst{floats ? ElementFormat() : random_elements(), dst.size(), 0xff};
  const bool alike = floats || pick(0, 1) != 0;
  Typed own_residual{alike ? own_dst.elements() : random_elements(),
                     std::vector(blocked_residual.data(), blocked_residual.data() + blocked_residual.size())};

  using BlockedConv::BlockedConv;

  // in_place: whether the residual may be the result's memory, where it is of its type.
  Epilogue typed_epilogue(bool in_place) {
    Epilogue epilogue{.bias = bias_data(),
                      .activation = act,
                      .scale = scale.empty() ? nullptr : padded_scale.data(),
                      .dst = own_dst.elements()};
    if (residual.empty()) return epilogue;
    for (size_t i = 0; i < residual.size(); ++i) {  // as it was stored
      const auto channel = static_cast<int>(i / pixels), pixel = static_cast<int>(i % pixels);
      residual[i] = static_cast<float>(
          own_residual.value((static_cast<size_t>(channel / block) * pixels + pixel) * block + channel % block));
    }
    epilogue.residual = own_residual.residual();
    if (in_place && alike && pick(0, 1) != 0) {
      std::memcpy(own_dst.data(), own_residual.data(), dst.size() * element_bytes(own_dst.elements().type));
      epilogue.residual.data = own_dst.data();
    }
    return epilogue;
  }

  void report_typed(const char* what, Isa isa) {
    weights = scale_rows(weights, scale);  // a scale of sums is one of the weights
    if (floats) {
      std::copy_n(static_cast<const float*>(own_dst.data()), dst.size(), dst.data());
      return report(what, isa);
    }
    const std::vector<double> want = expected();
    Verdict verdict;
    for (size_t i = 0; i < dst.size(); ++i) {
      const size_t pixel = i / block % pixels, channel = i / block / pixels * block + i % block;
      const size_t at = channel * pixels + pixel;
      if (channel >= static_cast<size_t>(channels)) {
        verdict.padding = verdict.padding && own_dst.value(i) == 0;
      } else if (!own_dst.is_near(i, want[at], 2e-5 * (1 + std::fabs(want[at])))) {
        verdict.error = 1;
      }
    }
    report(verdict, what, isa);
  }
};

}  // namespace softneuro::test
