// Attention by blocks of keys, each of whose scores a tile of rows forgets once it has them in its sums.
#include <algorithm>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "layers/attention/attention.h"
#include "layers/contract/params.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

// tiles: rows that share a block of keys while it is in the caches, in tiles of the kernel's.
SN_PARAMS(FlashParams, tiles);

constexpr int panel = 2;  // vectors, of what is packed

class PreparedFlash final : public PreparedSplit {
 public:
  PreparedFlash(const Problem& problem, Isa isa, const FlashParams& params)
      : PreparedSplit(problem),
        kernels_(*attention_kernels(isa)),
        gemm_(*gemm_kernels(isa)),
        p_(attention_params(*problem.layer, problem.in)) {
    if (const Constant* sinks = problem.layer->find_weight("sinks")) sinks_ = (*sinks)->values();
    if (problem.out().shape.elements() == 0) return;
    step_ = params.tiles * kernels_.tile_rows;
    const int64_t rows = p_.rows * p_.heads_of_group();
    split_ = WorkSplit(p_.batch * p_.groups, 1, ceil_div(rows, int64_t{kernels_.tile_rows}), problem.threads,
                       SplitBy::rows, 1);
    const int64_t packed = rows > step_ ? p_.keys : std::min<int64_t>(p_.keys, attention_keys);
    keys_ = floats_bytes(round_up(packed, gemm_.lanes) * p_.depth);
    values_ = floats_bytes(round_up(p_.width, gemm_.lanes) * packed);
    scratch_ = keys_ + values_ +
               round_to_line(kernels_.scratch_bytes(std::min(step_, rows), static_cast<int>(p_.depth),
                                                    static_cast<int>(p_.width)));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t group, Range, Range tiles, std::byte* scratch) {
      const int64_t rows = p_.rows * p_.heads_of_group();
      run_part(args, group, {tiles.begin * kernels_.tile_rows, std::min(tiles.end * kernels_.tile_rows, rows)},
               scratch);
    });
  }

 private:
  static size_t floats_bytes(int64_t count) { return round_to_line(static_cast<size_t>(count) * sizeof(float)); }

  // They differ between batches where there are lengths.
  AttentionParams params_of(const RunArgs& args, int64_t batch) const {
    if (!p_.has_lengths) return p_;
    const TensorView& lengths = args.in[p_.lengths_input()];
    const int64_t length = lengths.as<int64_t>()[batch * lengths.strides[0]];
    const int64_t within = std::clamp<int64_t>(length, 0, p_.keys);
    if (within != length) args.reject();
    return p_.of_length(within);
  }

  AttentionRows rows_of(const RunArgs& args, const AttentionParams& own, int64_t batch, int64_t group) const {
    const TensorView &q = args.in[0], &out = args.out;
    const int64_t head = group * p_.heads_of_group();
    AttentionRows rows;
    rows.rows = p_.rows;
    rows.depth = static_cast<int>(p_.depth), rows.width = static_cast<int>(p_.width);
    rows.q_head = q.strides[1], rows.q_row = q.strides[2];
    rows.q = q.f32() + batch * q.strides[0] + head * rows.q_head;
    rows.dst_head = p_.rows_first ? p_.width : p_.rows * p_.width;
    rows.dst_row = p_.rows_first ? p_.heads * p_.width : p_.width;
    rows.dst = out.f32() + batch * out.strides[0] + head * rows.dst_head;
    rows.before = own.before, rows.after = own.after, rows.last = own.last;
    if (sinks_ != nullptr) rows.sinks = sinks_.get() + head;
    rows.scale = static_cast<float>(p_.scale), rows.softcap = static_cast<float>(p_.softcap);
    rows.nothing = static_cast<float>(p_.nothing), rows.zero_nan = p_.zero_nan;
    if (!p_.has_mask) return rows;
    const TensorView& mask = args.in[p_.mask_input()];
    const int64_t image = mask.shape[0] == 1 ? 0 : mask.strides[0];
    rows.mask = mask.at(batch * image + head * p_.mask_head);
    rows.mask_adds = p_.mask_adds, rows.lowest_drops = p_.lowest_drops;
    rows.mask_head = p_.mask_head, rows.mask_row = p_.mask_row;
    return rows;
  }

  // Keys that any of the rows sees, from a block's first on.
  static Range keys_of(const AttentionParams& p, Range rows) {
    int64_t least = p.rows, most = std::min<int64_t>(-1, p.last);
    for (int64_t row = rows.begin; row < rows.end && row < rows.begin + p.rows; ++row) {
      const int64_t place = std::min(row % p.rows, p.last);
      least = std::min(least, place);
      most = std::max(most, place);
    }
    const int64_t begin = std::clamp<int64_t>(least - p.before, 0, p.keys);
    return {begin / attention_keys * attention_keys, std::clamp<int64_t>(most + p.after + 1, 0, p.keys)};
  }

  void run_part(const RunArgs& args, int64_t image, Range rows, std::byte* scratch) const {
    const int64_t batch = image / p_.groups, group = image % p_.groups;
    const AttentionParams own = params_of(args, batch);
    const AttentionRows all = rows_of(args, own, batch, group);
    const TensorView &k = args.in[1], &v = args.in[2];
    const float* const k_rows = k.f32() + batch * k.strides[0] + group * k.strides[1];
    const float* const v_rows = v.f32() + batch * v.strides[0] + group * v.strides[1];
    auto* const k_packed = reinterpret_cast<float*>(scratch);
    auto* const v_packed = reinterpret_cast<float*>(scratch + keys_);
    std::byte* const state = scratch + keys_ + values_;
    const auto pack = [&](Range keys) {
      const int count = static_cast<int>(keys.end - keys.begin);
      if (count <= 0) return;
      gemm_.pack_b(count, all.depth, panel, k_rows + keys.begin * k.strides[2], k.strides[2], true, 0,
                   gemm_panels(count, gemm_.lanes, panel), k_packed);
      gemm_.pack_b(all.width, count, panel, v_rows + keys.begin * v.strides[2], v.strides[2], false, 0,
                   gemm_panels(all.width, gemm_.lanes, panel), v_packed);
    };
    const Range wanted = keys_of(own, rows);
    const bool at_once = rows.end - rows.begin > step_;
    if (at_once) pack(wanted);
    for (int64_t begin = rows.begin; begin < rows.end; begin += step_) {
      const int64_t end = std::min(begin + step_, rows.end);
      const Range keys = keys_of(own, {begin, end});
      kernels_.start(all, begin, end, state);
      for (int64_t first = keys.begin; first < keys.end; first += attention_keys) {
        const int64_t last = std::min(first + attention_keys, keys.end);
        if (!kernels_.counts(all, first, static_cast<int>(last - first), begin, end)) continue;
        if (!at_once) pack({first, last});
        const Range packed = at_once ? wanted : Range{first, last};
        kernels_.step(all,
                      {.k = k_packed + (first - packed.begin) * p_.depth,
                       .v = v_packed,
                       .first = first,
                       .count = static_cast<int>(last - first),
                       .packed = packed.end - first,
                       .v_first = first - packed.begin,
                       .v_rows = packed.end - packed.begin},
                      begin, end, state);
      }
      kernels_.finish(all, begin, end, state);
    }
  }

  const AttentionKernels& kernels_;
  const GemmKernels& gemm_;
  const AttentionParams p_;
  ConstantData::Values sinks_;    // null: there are none
  int64_t step_ = 1;              // rows
  size_t keys_ = 0, values_ = 0;  // bytes of what is packed
};

class Flash final : public Routine {
 public:
  // `more` are the types of its inputs behind q, k and v.
  Flash(Isa isa, const std::vector<DType>& more)
      : Routine({.layer_type = "attention",
                 .algorithm = "flash",
                 .isa = isa,
                 .in = f32_nchw.with(Layout::nchw().with_strides()),
                 .out = f32_nchw,
                 .others = others_of(more),
                 // A key that does not count may be one that is left out, or one whose weight is zero.
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "takes no post-ops";
    const AttentionParams p = attention_params(*problem.layer, problem.in);
    const bool booleans = takes(DType::boolean), lengths = takes(DType::int64);
    if (booleans != (p.has_mask && !p.mask_adds)) return "the mask is of another kind";
    if (lengths != p.has_lengths) return lengths ? "there are no lengths" : "the keys have lengths";
    if (lengths && p.has_mask != (info().others.size() == 4)) return "the lengths are another input";
    constexpr int64_t most = int64_t{1} << 30;
    if (p.rows * p.heads > most || p.keys > most || p.depth > 4096 || p.width > 4096) return "is too large";
    const auto packed = static_cast<size_t>(p.keys * (p.depth + p.width)) * sizeof(float);
    if (packed > most_scratch / 2) return "its keys and values are too many to be packed";
    return {};
  }

  std::vector<std::string> param_names() const override { return FlashParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const AttentionParams p = attention_params(*problem.layer, problem.in);
    const int64_t tiles = ceil_div(p.rows * p.heads_of_group(), int64_t{attention_kernels(info().isa)->tile_rows});
    std::vector<Tuning> choices{FlashParams{4}};
    // Sharing of a block of keys matters where not all of them are in the caches.
    for (const int count : {1, 16}) {
      if (tiles > count / 4) choices.push_back(FlashParams{count});
    }
    return choices;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    FlashParams params = FlashParams::of(tuning);
    parse_within("tiles", params.tiles, 1, 1024);
    return std::make_unique<PreparedFlash>(problem, info().isa, params);
  }

 private:
  static std::vector<Schema> others_of(const std::vector<DType>& more) {
    const Schema strided = f32_nchw.with(Layout::nchw().with_strides());
    std::vector<Schema> others{strided, strided};
    for (const DType dtype : more) others.push_back(f32_nchw.with(dtype));
    return others;
  }
  bool takes(DType dtype) const {
    const auto& others = info().others;
    return std::any_of(others.begin(), others.end(), [&](const Schema& one) { return one.dtype == dtype; });
  }
};

}  // namespace

void attention_flash(RoutineList& list) {
  // A mask; lengths of keys, alone and behind a mask.
  const std::vector<DType> forms[] = {{DType::float32},
                                      {DType::boolean},
                                      {DType::int64},
                                      {DType::float32, DType::int64},
                                      {DType::boolean, DType::int64}};
  for (const Isa isa : isas_best_first())
    for (const auto& more : forms) list.add<Flash>(isa, more);
}

}  // namespace softneuro
