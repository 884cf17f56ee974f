#include "layers/shared/moving.h"

#include <array>
#include <vector>

namespace softneuro {

std::span<const Layout> all_layouts() {
  static constexpr std::array<Layout, 5> layouts{Layout::nchw(), Layout::nhwc(), Layout::blocked(4), Layout::blocked(8),
                                                 Layout::blocked(16)};
  return layouts;
}

std::span<const Schema> moved_schemas() {
  static const std::vector<Schema> schemas = [] {
    std::vector<Schema> made;
    for (const Layout& layout : all_layouts()) made.push_back(f32_nchw.with(layout));
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
      made.push_back(f32_nchw.with(layout).with(DType::qint8));
    }
    return made;
  }();
  return schemas;
}

std::span<const Schema> whole_schemas() {
  static constexpr std::array<Schema, 3> schemas{f32_nchw.with(DType::int64), f32_nchw.with(DType::int32),
                                                 f32_nchw.with(DType::boolean)};
  return schemas;
}

Isa layout_isa(const Layout& layout) {
  if (layout.is_blocked()) {
    for (Isa isa : all_isas()) {
      if (isa_block(isa) == layout.block) return isa;
    }
  }
  return Isa::scalar;
}

RoutineInfo moving_info(const char* type, const char* algorithm, const Schema& in, const Schema& out) {
  const Isa isa = in.layout.block > out.layout.block ? layout_isa(in.layout) : layout_isa(out.layout);
  RoutineInfo info = vector_info(type, algorithm, isa, in.layout, out.layout);
  info.in = in, info.out = out;
  info.isa_in_name = false;
  return info;
}

RoutineInfo vector_info(const char* type, const char* algorithm, Isa isa, const Layout& in, const Layout& out) {
  RoutineInfo info;
  info.layer_type = type;
  info.algorithm = algorithm;
  info.isa = isa;
  info.in.layout = in;
  info.out.layout = out;
  return info;
}

RoutineInfo bytes_info(const char* type, const char* algorithm, Isa isa, const Layout& layout) {
  RoutineInfo info = vector_info(type, algorithm, isa, layout, layout);
  info.in.dtype = info.out.dtype = DType::qint8;
  return info;
}

Refusal refuse_post_ops(const Problem& problem) {
  return problem.layer->post.empty() ? Refusal() : Refusal("moves elements only, takes no post-ops");
}

AxisSplit split_axis(const Shape& shape, const Layout& layout, int axis) {
  const int rank = shape.rank();
  switch (layout.kind) {
    case Layout::Kind::nchw:
      return {shape.product(1, axis), shape[axis], shape.product(axis + 1, rank), 1};
    case Layout::Kind::nhwc:
      if (axis == 1) return {shape.product(2, rank), shape[1], 1, 1};
      return {shape.product(2, axis), shape[axis], shape.product(axis + 1, rank) * shape[1], 1};
    case Layout::Kind::blocked:
      break;
    case Layout::Kind::tiled:
      return {shape[1], shape.product(2, rank), 1, 1};
  }
  const int64_t c = layout.block, blocks = (shape[1] + c - 1) / c;
  if (axis == 1) return {1, blocks, shape.product(2, rank) * c, c};
  return {blocks * shape.product(2, axis), shape[axis], shape.product(axis + 1, rank) * c, 1};
}

bool row_major(const Shape& shape, const Layout& layout) {
  if (layout == Layout::nchw()) return true;
  const bool single_pixel = shape.product(2, shape.rank()) == 1;
  if (layout == Layout::nhwc()) return single_pixel || shape[1] == 1;
  return single_pixel && shape[1] % layout.block == 0;
}

void zero_padding_lanes(const TensorView& view) {
  if (!view.schema.layout.is_blocked()) return;
  const int64_t c = view.schema.layout.block, used = view.shape[1] % c;
  if (used == 0) return;
  const int64_t pixels = view.shape.product(2, view.shape.rank());
  for (int64_t n = 0; n < images(view); ++n) {
    float* block = view.f32() + n * view.strides[0] + view.shape[1] / c * pixels * c;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      std::fill(block + pixel * c + used, block + (pixel + 1) * c, 0.0f);
    }
  }
}

void copy_blob(const TensorView& src, const TensorView& dst, int threads, const ParallelFor& parallel_for) {
  CopyJob job = copy_job(src, dst);
  if (src.dense() && dst.dense()) {
    job.length = images(dst) * dst.image_elements();
  } else {
    job.dims[0] = images(dst);
    job.src_stride[0] = src.strides[0];
    job.dst_stride[0] = dst.strides[0];
    job.length = dst.image_elements();
  }
  const int64_t tasks = task_count(job.elements(), threads);
  parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(job.elements(), tasks, task);
    copy_part(job, part.begin, part.end);
  });
}

ViewRoutine::ViewRoutine(const char* type, const char* algorithm, const Layout& in, const Layout& out, DType dtype)
    : Routine([&] {
        RoutineInfo info = moving_info(type, algorithm, f32_nchw.with(dtype).with(in), f32_nchw.with(dtype).with(out));
        info.view = true;
        return info;
      }()) {}

std::unique_ptr<const Prepared> ViewRoutine::prepare(const Problem& problem, const Tuning&,
                                                     std::shared_ptr<const Packed>) const {
  const Strides dense = dense_strides(problem.in[0].shape, info().in.layout);
  return prepared_call([threads = problem.threads, offset = view_offset(problem, dense)](const RunArgs& args) {
    TensorView src = args.in[0];
    src.data = src.at(offset);
    if (src.data != args.out.data) copy_blob(src, args.out, threads, args.parallel_for);
  });
}

}  // namespace softneuro
