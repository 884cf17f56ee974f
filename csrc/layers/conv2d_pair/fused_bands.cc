// conv2d_pair by bands of output rows: the few intermediate rows that a band reads are in the task's scratch, where the
// second convolution finds them, and what the next band reads, too, stays there. Both convolutions are direct sparse
// ones. Rows at seams between tasks are computed by both.
#include <algorithm>

#include "kernels/finite/finite.h"
#include "layers/conv2d/row_bands.h"
#include "layers/conv2d_pair/band_geometry.h"
#include "layers/conv2d_pair/conv2d_pair.h"
#include "layers/shared/images.h"
#include "layers/weights/sparse_lists.h"

namespace softneuro {
namespace {

// Output rows of a band; channels of either convolution's input whose products are summed at a time.
SN_PARAMS(BandsParams, band, chunk);

int64_t chunk_of(const Conv2dParams& p, int chunk) {
  return std::min<int64_t>({chunk, std::max<int64_t>(p.group_c(), 1), most_chunk(p.kh * p.kw)});
}
SparseLists lists_of(const Conv2dParams& p, int chunk) {
  return SparseLists({p.groups, p.group_k(), p.group_c(), p.kh * p.kw, chunk_of(p, chunk)});
}

// One of the convolutions: its non-zeros, and where its channels lie.
struct Stage {
  Conv2dParams p;
  PackedLists lists;
  ConvSparseArgs args;

  Stage(const Conv2dParams& params, int chunk, std::shared_ptr<const Packed> from)
      : p(params), lists(lists_of(params, chunk), std::move(from)) {
    args.lists = narrow(lists.panels() / p.groups);
    args.bias = lists.bias();
  }
  // The arguments for a group's chunk, with its first input channel.
  ConvSparseArgs chunk(int64_t group, int64_t index) const {
    ConvSparseArgs call = args;
    call.weights = &lists.rows(group * args.lists, index);
    call.first = index == 0;
    call.final = index + 1 == lists.chunks();
    return call;
  }
  int64_t channel(int64_t group, int64_t index) const { return group * p.group_c() + lists.first(index); }
};

// Bytes of a task: the intermediate rows, and then the input's.
size_t between_bytes(const BandGeometry& geometry, const Conv2dParams& p2) {
  return round_to_line(static_cast<size_t>(p2.c * geometry.between().floats()) * sizeof(float));
}
size_t scratch_bytes(const BandGeometry& geometry, const Conv2dParams& p1, const Conv2dParams& p2, int chunk) {
  const auto source = static_cast<size_t>(chunk_of(p1, chunk) * geometry.source().floats()) * sizeof(float);
  return line_bytes + between_bytes(geometry, p2) + round_to_line(source);
}

class PreparedFusedBands final : public PreparedSplit {
 public:
  PreparedFusedBands(const Problem& problem, const Conv2dPairStages& stages, Isa isa, bool tiled,
                     const BandsParams& params, const std::shared_ptr<const Packed>& packed)
      : PreparedSplit(problem),
        kernels_(*conv_sparse_kernels(isa)),
        all_finite_(finite_kernel(isa)),
        first_(stages.p1, params.chunk, part_of(packed, "first")),
        second_(stages.p2, params.chunk, part_of(packed, "second")) {
    const Conv2dParams &p1 = stages.p1, &p2 = stages.p2;
    if (p2.empty()) return;
    geometry_.emplace(p1, p2, kernels_.lanes, tiled, params.band);
    geometry_->find_padding();
    const int threads = std::max(worth_threads(p1, problem.threads), worth_threads(p2, problem.threads));
    split_ = WorkSplit(p2.n, 1, geometry_->rows(), threads, SplitBy::rows, geometry_->band());
    between_ = between_bytes(*geometry_, p2);
    scratch_ = scratch_bytes(*geometry_, p1, p2, params.chunk);
    for (const int64_t phase : geometry_->column_phases()) {
      first_offsets_.push_back(geometry_->first_offsets(chunk_of(p1, params.chunk), phase));
    }
    second_offsets_ = geometry_->second_offsets(chunk_of(p2, params.chunk));
    ConvSparseArgs &first = first_.args, &second = second_.args;
    first.activation = stages.first.post.activation;
    first.src_row = p2.sh * p1.sh * geometry_->source().row();
    first.dst_row = p2.sh * geometry_->between().row();
    first.dst_channel = geometry_->between().floats();
    first.vectors = narrow(geometry_->between_vectors());
    first.last = kernels_.lanes;
    second.activation = problem.layer->post.activation;
    second.offsets = second_offsets_.data();
    second.src_row = p2.sh * geometry_->between().row();
    second.dst_row = geometry_->out().row();
    second.dst_channel = geometry_->rows() * second.dst_row;
    second.vectors = narrow(geometry_->vectors());
    second.last = narrow(geometry_->last());
    second.stream = stores_past_caches(tiled, second_.lists.chunks(), second.activation,
                                       p2.n * p2.k * second.dst_channel * static_cast<int64_t>(sizeof(float)));
  }

  void run(const RunArgs& args) const override {
    for_row_bands(args, split_, [&](int64_t image, Range rows, KeptRows& kept, std::byte* scratch) {
      run_rows(input_image(args, 0, image), output_image(args, image), residual_image(args, residual_, image), rows,
               kept, scratch);
    });
  }

 private:
  void run_rows(const float* src, float* dst, const float* residual, Range rows, KeptRows& kept,
                std::byte* scratch) const {
    const SortedPlane& plane = geometry_->between();
    // The intermediate rows from here on are finite.
    int64_t& finite_from = *reinterpret_cast<int64_t*>(scratch);
    auto* const between = reinterpret_cast<float*>(scratch + line_bytes);
    auto* const source = reinterpret_cast<float*>(scratch + line_bytes + between_);
    for (int64_t row = rows.begin; row < rows.end; row += geometry_->band()) {
      const Range band{row, std::min(row + geometry_->band(), rows.end)}, need = geometry_->rows_between(band);
      const int64_t missing = kept.bring(between, plane.floats(), second_.p.c, plane.row(), need);
      if (missing == need.begin) finite_from = need.begin;
      if (missing < need.end && !fill(src, {missing, need.end}, need.begin, between, source)) finite_from = need.end;
      kept.set(need);
      finish(dst, residual, band, between, finite_from <= need.begin);
    }
  }

  // Intermediate rows, into a window that begins with row `top`. Whether they are finite.
  bool fill(const float* src, Range rows, int64_t top, float* between, float* source) const {
    const SortedPlane& plane = geometry_->between();
    const auto clear = [&](int64_t begin, int64_t end) {
      for (int64_t c = 0; c < second_.p.c; ++c) {
        std::fill_n(between + c * plane.floats() + (begin - top) * plane.row(), (end - begin) * plane.row(), 0.0F);
      }
    };
    Range inside = rows;
    while (inside.begin < inside.end && geometry_->is_padding(inside.begin)) ++inside.begin;
    while (inside.begin < inside.end && geometry_->is_padding(inside.end - 1)) --inside.end;
    clear(rows.begin, inside.begin);
    clear(inside.end, rows.end);
    if (inside.begin == inside.end) return true;
    if (geometry_->skips()) clear(inside.begin, inside.end);
    float* const to = between + (inside.begin - top) * plane.row();
    for (int64_t group = 0; group < first_.p.groups; ++group) {
      for (int64_t i = 0; i < first_.lists.chunks(); ++i) sum_first(src, group, i, inside, to, source);
    }
    bool finite = true;
    for (int64_t c = 0; c < second_.p.c; ++c) {
      float* const channel = to + c * plane.floats();
      for (int64_t y = inside.begin; y < inside.end; ++y) {
        float* const row = channel + (y - inside.begin) * plane.row();
        for (const int32_t at : geometry_->padding(y)) row[at] = 0;
      }
      finite = all_finite_(channel, static_cast<size_t>((inside.end - inside.begin) * plane.row())) && finite;
    }
    return finite;
  }

  void sum_first(const float* src, int64_t group, int64_t index, Range rows, float* to, float* source) const {
    const SortedPlane &from = geometry_->source(), &plane = geometry_->between();
    const int64_t channels = first_.lists.channels(index), stride = second_.p.sh;
    const float* channel = src + first_.channel(group, index) * geometry_->source_channel();
    const bool finite = geometry_->copy(kernels_, channel, channels, rows, source);
    ConvSparseArgs call = first_.chunk(group, index);
    for (const int64_t row_phase : geometry_->row_phases()) {
      // The first row of this phase, from the window's.
      const int64_t y = (row_phase - rows.begin % stride + stride) % stride;
      call.rows = narrow(ceil_div(std::max<int64_t>(rows.end - rows.begin - y, 0), stride));
      call.src = source + y * first_.p.sh * from.row();
      for (size_t i = 0; i < geometry_->column_phases().size(); ++i) {
        call.offsets = first_offsets_[i].data();
        call.dst = to + plane.at(y, geometry_->column_phases()[i]);
        kernels_.run(call);
      }
    }
    if (finite) return;
    Mending mending{.from = from,
                    .src = source,
                    .channels = channels,
                    .src_channel = from.floats(),
                    .lists = call.weights,
                    .list_count = call.lists,
                    .to = plane,
                    .dst = to,
                    .dst_channel = plane.floats()};
    mending.from.rows = geometry_->source_rows(rows.end - rows.begin);
    mending.to.rows = rows.end - rows.begin;
    mend_nonfinite(first_.p, mending);
  }

  void finish(float* dst, const float* residual, Range rows, const float* between, bool finite) const {
    const SortedPlane& plane = geometry_->between();
    const int64_t at = rows.begin * second_.args.dst_row;
    Mending mending{.from = plane,
                    .src_channel = plane.floats(),
                    .list_count = second_.args.lists,
                    .to = geometry_->out(),
                    .dst = dst + at,
                    .dst_channel = second_.args.dst_channel};
    mending.from.rows = geometry_->rows_between(rows).end - rows.begin * second_.p.sh;
    mending.to.rows = rows.end - rows.begin;
    for (int64_t group = 0; group < second_.p.groups; ++group) {
      for (int64_t i = 0; i < second_.lists.chunks(); ++i) {
        ConvSparseArgs call = second_.chunk(group, i);
        call.src = between + second_.channel(group, i) * plane.floats();
        call.dst = dst + at;
        call.residual = residual != nullptr ? residual + at : nullptr;
        call.rows = narrow(rows.end - rows.begin);
        call.stream = call.stream && reinterpret_cast<uintptr_t>(dst) % line_bytes == 0;
        kernels_.run(call);
        if (finite) continue;
        mending.src = call.src, mending.channels = second_.lists.channels(i), mending.lists = call.weights;
        mend_nonfinite(second_.p, mending);
      }
    }
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (const int32_t element : geometry_->outside(y)) {
        float* const to = dst + y * second_.args.dst_row + element;
        for (int64_t k = 0; k < second_.p.k; ++k) to[k * second_.args.dst_channel] = 0;
      }
    }
  }

  const ConvSparseKernels& kernels_;
  FiniteKernel all_finite_;
  Stage first_, second_;
  std::optional<BandGeometry> geometry_;
  std::vector<std::vector<int32_t>> first_offsets_;  // by column phase
  std::vector<int32_t> second_offsets_;
  size_t between_ = 0;  // bytes of a task
};

class FusedBands final : public Routine {
 public:
  FusedBands(Isa isa, const Layout& layout)
      : Routine({.layer_type = "conv2d_pair",
                 .algorithm = "fused_bands",
                 .isa = isa,
                 .in = f32_nchw.with(layout),
                 .out = f32_nchw.with(layout),
                 .exploits_sparsity = true}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    if (Refusal refusal = check_conv2d_pair(stages); !refusal.accepted()) return refusal;
    for (const auto& [layer, p] : {std::pair{&stages.first, &stages.p1}, {&stages.second, &stages.p2}}) {
      if (Refusal refusal = check_lists(*layer->weight("weight"), p->kh * p->kw); !refusal.accepted()) return refusal;
    }
    if (!stages.p2.empty() && bytes(stages, {1, 1}) > most_scratch) return "the rows of a band are more than 256 MiB";
    return {};
  }

  std::vector<std::string> param_names() const override { return BandsParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const int64_t channels = std::max(stages.p1.group_c(), stages.p2.group_c());
    // Many channels at a time save loads and stores of sums, few leave their rows in L1.
    std::vector<Tuning> list;
    for (const auto& [band, chunk] : {std::pair{6, 64}, {4, 32}, {4, 16}}) {
      const BandsParams params{band, narrow(std::min<int64_t>(chunk, channels))};
      if (std::find(list.begin(), list.end(), Tuning(params)) != list.end()) continue;
      if (stages.p2.empty() || bytes(stages, params) <= most_scratch) list.push_back(params);
    }
    if (list.empty()) list.push_back(BandsParams{1, 1});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return std::to_string(BandsParams::of(tuning).chunk);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const int chunk = BandsParams::of(tuning).chunk;
    return Packing()
        .add("first", lists_of(stages.p1, chunk).packing(stages.first))
        .add("second", lists_of(stages.p2, chunk).packing(stages.second));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const int chunk = BandsParams::of(tuning).chunk;
    Packed first = to.part("first"), second = to.part("second");
    lists_of(stages.p1, chunk).pack(stages.first, first);
    lists_of(stages.p2, chunk).pack(stages.second, second);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = BandsParams::of(tuning);
    parse_positive("band", params.band);
    parse_positive("chunk", params.chunk);
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    if (!stages.p2.empty() && bytes(stages, params) > most_scratch) {
      throw Error("band=" + std::to_string(params.band) + " asks for more rows than scratch has room for");
    }
    return std::make_unique<PreparedFusedBands>(problem, stages, info().isa, info().in.layout.is_tiled(), params,
                                                packed);
  }

 private:
  size_t bytes(const Conv2dPairStages& stages, const BandsParams& params) const {
    const int lanes = conv_sparse_kernels(info().isa)->lanes;
    const BandGeometry geometry(stages.p1, stages.p2, lanes, info().in.layout.is_tiled(), params.band);
    return scratch_bytes(geometry, stages.p1, stages.p2, params.chunk);
  }
};

}  // namespace

void conv2d_pair_fused_bands(RoutineList& list) {
  for (const Isa isa : all_isas()) {
    list.add<FusedBands>(isa, Layout::nchw());
    list.add<FusedBands>(isa, Layout::tiled(isa_block(isa)));
  }
}

}  // namespace softneuro
