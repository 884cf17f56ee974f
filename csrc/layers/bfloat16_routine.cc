#include "layers/bfloat16_routine.h"

#include <algorithm>
#include <cmath>

#include "kernels/integers.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

constexpr int tile_rows = 16, most_tiles = 4;  // that sums are in
constexpr int most_depth = 1024;               // channels whose rows fill L2 before sums' passing by costs more

// Bytes of the split input that one more row of a band takes.
int64_t row_bytes(const ConvBfloat16Shape& s, int block) {
  const int64_t pixels = int64_t{s.x.samples(s.x.out)} * s.x.phases() * s.y.phases();
  return pixels * round_up(s.in_channels, 2 * block) * 2 * s.parts;
}

// Rows of a band that fill two tiles where an image is one column.
int least_rows(const ConvBfloat16Shape& s) { return s.x.out == 1 ? 2 * tile_rows : 1; }

// Rows of a band whose split input has so many bytes. Where an image is one column, all but the last fill their tiles.
int rows_within(const ConvBfloat16Shape& s, int block, size_t bytes) {
  const int64_t all = static_cast<int64_t>(bytes) / std::max<int64_t>(row_bytes(s, block), 1);
  const int64_t most = std::max(s.y.out, 1), least = least_rows(s);
  const int64_t own = std::max<int64_t>(all - s.y.offset(s.y.kernel - 1), least);
  return static_cast<int>(std::min(own / least * least, most));
}

size_t biases(const ConvBfloat16Shape& shape, int block) {
  return static_cast<size_t>(round_up(shape.out_channels, block));
}

}  // namespace

std::vector<Isa> bfloat16_isas() {
  return architecture_has(Isa::amx) ? std::vector{Isa::scalar, Isa::amx} : std::vector{Isa::scalar};
}

const char* bfloat16_algorithm(int parts) { return parts == 3 ? "bf16x6" : "bf16x3"; }

// Two parts: of their own rounding and the product that is left out, whatever the number of sums. Three: of the sums
// alone. Tiles round a sum once for 16 or 32 products (4e-8 at 16 channels, 2.5e-7 at 1024, 5e-7 at 4096: some half of
// what sums of FMAs err by), plain code for each of six times as many.
double bfloat16_error(int parts, Isa isa, int64_t products) {
  if (parts == 2) return 5e-6;
  return (isa == Isa::amx ? 1e-8 : 4e-8) * std::sqrt(static_cast<double>(std::max<int64_t>(products, 25)));
}

Bfloat16Routine::Bfloat16Routine(std::string layer_type, Isa isa, Schema schema, int parts)
    : Routine({.layer_type = std::move(layer_type),
               .algorithm = bfloat16_algorithm(parts),
               .isa = isa,
               .in = schema,
               .out = schema,
               .error = ErrorClass::bfloat16,
               .spreads_nonfinite = true}),
      parts_(parts) {}

ConvBfloat16Shape Bfloat16Routine::sized(const Problem& problem, int panel) const {
  ConvBfloat16Shape s = shape(problem);
  s.parts = parts_;
  s.panel = panel;
  return s;
}

ConvBfloat16Shape Bfloat16Routine::checked_shape(const Problem& problem, const Tuning& tuning) const {
  if (tuning[0] < 1 || tuning[2] < 1 || tuning[2] > 2) {
    throw Error("rows must be positive and panel 1 or 2, not " + std::to_string(tuning[0]) + " and " +
                std::to_string(tuning[2]));
  }
  if (tuning[3] < 0 || tuning[3] % (2 * block()) != 0) {
    throw Error("depth must be a multiple of " + std::to_string(2 * block()) + ", not " + std::to_string(tuning[3]));
  }
  return sized(problem, tuning[2]);
}

Refusal Bfloat16Routine::check(const Problem& problem) const {
  if (const Refusal refusal = is_convolution(problem); !refusal.accepted()) return refusal;
  const ConvBfloat16Shape s = sized(problem, 1);
  const auto least = static_cast<size_t>(row_bytes(s, block()) * s.y.samples(least_rows(s)));
  if (least > most_bfloat16_scratch) return "needs more than 256 MiB of scratch";
  return {};
}

// Only where there are instructions for it (in plain code it is there to be tested on any machine) and where inputs
// fill half a tile on either side.
bool Bfloat16Routine::promising(const Problem& problem) const {
  const ConvBfloat16Shape s = shape(problem);
  return info().isa == Isa::amx && s.in_channels >= block() && 2 * s.x.out * s.y.out >= tile_rows;
}

std::vector<Tuning> Bfloat16Routine::tunings(const Problem& problem) const {
  constexpr int pair = 2, single = 1;
  const ConvBfloat16Shape s = sized(problem, pair);
  const int split = likely_split(problem);
  // A band's split input stays in L2 while all weights pass by, or in L1 while they come from L2.
  const size_t l2 = std::max<size_t>(caches().l2, 256 << 10) / 2;
  const int many = rows_within(s, block(), l2);
  const int few = rows_within(s, block(), std::max<size_t>(caches().l1d, 32 << 10) * 3 / 4);
  std::vector<Tuning> list{{many, split, pair, 0}};
  if (few != many) list.push_back({few, split, pair, 0});
  if (problem.threads > 1) list.push_back({many, 1 - split, pair, 0});
  // So many channels that few rows of them fit, and all weights would pass by for these.
  ConvBfloat16Shape part = s;
  const int depths = std::max(ceil_div(s.in_channels, most_depth), 1);
  part.in_channels = round_up(ceil_div(s.in_channels, depths), 2 * block());
  const int rows = rows_within(part, block(), l2);
  if (part.in_channels < s.in_channels && many < s.y.out && rows >= 2 * many) {
    list.push_back({rows, split, pair, part.in_channels});
  }
  // So few outputs that tiles hold the sums of them all: weights pass by once.
  if (s.x.samples(s.x.out) * s.y.out <= most_tiles * tile_rows) list.push_back({many, split, single, 0});
  return list;
}

size_t Bfloat16Routine::packed_bytes(const Problem& problem, const Tuning&) const {
  const ConvBfloat16Shape s = sized(problem, 1);
  return conv_bfloat16_packed_bytes(s, block()) + biases(s, block()) * sizeof(float);
}

std::string Bfloat16Routine::pack_key(const Problem&, const Tuning& tuning) const {
  return "panel " + std::to_string(tuning[2]);
}

std::shared_ptr<const Packed> Bfloat16Routine::pack(const Problem& problem, const Tuning& tuning) const {
  const ConvBfloat16Shape s = checked_shape(problem, tuning);
  auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(packed_bytes(problem, tuning) / sizeof(float)));
  kernels().pack(s, problem.layer->weight("weight")->values().get(), packed->data());
  float* const to = packed->data() + conv_bfloat16_packed_bytes(s, block()) / sizeof(float);
  std::fill_n(to, biases(s, block()), 0.f);
  if (const Constant* bias = problem.layer->find_weight("bias")) {
    std::copy_n((*bias)->values().get(), (*bias)->elements(), to);
  }
  return packed;
}

std::unique_ptr<const Prepared> Bfloat16Routine::prepare(const Problem& problem, const Tuning& tuning,
                                                         std::shared_ptr<const Packed> packed) const {
  ConvBfloat16Args args{};
  args.shape = checked_shape(problem, tuning);
  args.rows = std::max(std::min(tuning[0], args.shape.y.out), 1);
  args.depth = tuning[3];
  args.weights = packed_floats(packed.get());
  args.epilogue.bias = packed_floats(packed.get()) + conv_bfloat16_packed_bytes(args.shape, block()) / sizeof(float);
  args.epilogue.activation = problem.layer->post.activation;
  return prepare_tiles(problem, args, tuning[1], std::move(packed));
}

double Bfloat16Routine::expected_error(const Problem& problem, const Tuning&) const {
  const ConvBfloat16Shape s = shape(problem);
  return bfloat16_error(parts_, info().isa, int64_t{s.in_channels} * s.taps());
}

}  // namespace softneuro
