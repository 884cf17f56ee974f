#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/integers.h"
#include "layers/arg_reduce/arg_reduce.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

constexpr int64_t side_by_side = 16;  // results at once, so that what was found so far stays in registers

// This finds `count` results side by side: elements of one of them are p.inner apart.
template <typename T, typename Count>
void find_columns(const ArgReduceParams& p, const T* x, Count count, int64_t* to) {
  std::array<T, side_by_side> found;
  std::array<int64_t, side_by_side> places{};
  std::copy_n(x, count, found.data());
  for (int64_t k = 1; k < p.size; ++k) {
    const T* row = x + k * p.inner;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool further = is_further(p, row[i], found[at]);
      places[at] = further ? k : places[at];
      found[at] = further ? row[i] : found[at];
    }
  }
  std::copy_n(places.data(), count, to);
}

template <typename T>
void find_side_by_side(const ArgReduceParams& p, const T* x, int64_t count, int64_t* to) {
  if (count == side_by_side) return find_columns(p, x, std::integral_constant<int64_t, side_by_side>(), to);
  find_columns(p, x, count, to);
}

// Lanes of a row first, each of which sees every `side_by_side`-th element, and then what these have found. Where
// comparisons with NaN say no, what comes of a NaN depends on the order, and they are made in order.
template <typename T>
int64_t find_in_row(const ArgReduceParams& p, const T* x) {
  ArgReduceParams part = p;
  part.inner = 1;
  int64_t found = 0;
  if (p.size < 2 * side_by_side || (std::is_floating_point_v<T> && !p.nan)) {
    find_columns(part, x, std::integral_constant<int64_t, 1>(), &found);
    return found;
  }
  part.inner = side_by_side, part.size = p.size / side_by_side;
  std::array<int64_t, side_by_side> places;
  find_side_by_side(part, x, side_by_side, places.data());
  const auto meet = [&](int64_t place) {
    const bool equal = x[place] == x[found] || (x[place] != x[place] && x[found] != x[found]);
    const bool nearer = p.last ? place > found : place < found;
    if (equal ? nearer : is_further(p, x[place], x[found])) found = place;
  };
  found = places[0] * side_by_side;
  for (int64_t lane = 1; lane < side_by_side; ++lane) meet(places[static_cast<size_t>(lane)] * side_by_side + lane);
  for (int64_t place = part.size * side_by_side; place < p.size; ++place) meet(place);
  return found;
}

template <typename T>
void arg_reduce(const RunArgs& args, const ArgReduceParams& p, bool keepdim, int threads) {
  const TensorView &in = args.in[0], &out = args.out;
  const int64_t results = p.outer * p.inner;
  if (results == 0) return;
  // Axis 0 may have a stride of its own, in the output where it is one that stays.
  const int64_t images = p.axis == 0 ? 1 : in.shape[0], each = p.outer / images;
  ArgReduceParams of = p;
  if (p.axis == 0) of.inner = in.strides[0];
  const int64_t parts = ceil_div(p.inner, side_by_side), items = p.outer * parts;
  const int64_t tasks = std::min(items, task_count(results * p.size, threads));
  args.parallel_for(tasks, [&](int64_t task) {
    const Range share = split_range(items, tasks, task);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / parts, image = row / each, rest = row % each;
      const Range part = split_range(p.inner, parts, item % parts);
      const T* x = in.as<T>() + (p.axis == 0 ? 0 : image * in.strides[0]) + rest * p.size * p.inner + part.begin;
      const int64_t at = rest * p.inner + part.begin;
      int64_t* to = out.as<int64_t>() + at + (p.axis == 0 ? 0 : image * out.strides[0]);
      if (p.inner == 1 && of.inner == 1) {
        *to = find_in_row(of, x);
      } else if (p.axis > 0 || keepdim || out.shape.rank() == 0) {
        find_side_by_side(of, x, part.end - part.begin, to);
      } else {
        // The input's axis 1 is the output's axis 0.
        std::array<int64_t, side_by_side> found;
        find_side_by_side(of, x, part.end - part.begin, found.data());
        const int64_t inner = out.image_elements();
        for (int64_t i = part.begin; i < part.end; ++i) {
          out.as<int64_t>()[i / inner * out.strides[0] + i % inner] = found[static_cast<size_t>(i - part.begin)];
        }
      }
    }
  });
}

template <typename T>
class ArgReduceRows final : public Routine {
 public:
  ArgReduceRows()
      : Routine(moving_info("arg_reduce", "rows", f32_nchw.with(dtype_of<T>), f32_nchw.with(DType::int64))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([p = arg_reduce_params(*problem.layer, problem.in[0].shape),
                          keepdim = problem.layer->attrs.flag("keepdim", false), threads = problem.threads](
                             const RunArgs& args) { arg_reduce<T>(args, p, keepdim, threads); });
  }
};

}  // namespace

void arg_reduce_rows(RoutineList& list) {
  list.add<ArgReduceRows<float>>();
  list.add<ArgReduceRows<int64_t>>();
  list.add<ArgReduceRows<int32_t>>();
}

}  // namespace softneuro
