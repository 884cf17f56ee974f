// Routines of the element-wise, reducing, normalizing, moving and pooling layers on blobs with gaps between images
// (slices of concatenations) and in place: bit for bit what they give on dense ones. Exit status 1 if any differs.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"

namespace softneuro {
namespace {

// A blob with `gap` elements after each image; gaps are NaN and must stay.
class Blob {
 public:
  Blob(const Shape& shape, const Schema& schema, int64_t gap) : view_(dense_view(nullptr, shape, schema)) {
    view_.strides[0] = view_.image_elements() + gap;
    memory_.assign(static_cast<size_t>(images() * view_.strides[0]), std::nanf(""));
    view_.data = memory_.data();
  }

  int64_t images() const { return view_.shape.rank() == 0 ? 1 : view_.shape[0]; }
  const TensorView& view() const { return view_; }

  // The same values whatever the gap; padding lanes zero.
  void fill() {
    const int64_t size = view_.image_elements(), block = view_.schema.layout.block;
    for (int64_t n = 0; n < images(); ++n) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t pixels = view_.shape.product(2, view_.shape.rank());
        const bool padding = block > 1 && i / (pixels * block) * block + i % block >= view_.shape[1];
        at(n)[i] = padding ? 0 : static_cast<float>((n * size + i) * 7919 % 1013) / 500 - 0.9f;
      }
    }
  }
  bool gaps_untouched() const {
    for (int64_t n = 0; n < images(); ++n) {
      for (int64_t i = view_.image_elements(); i < view_.strides[0]; ++i) {
        if (!std::isnan(at(n)[i])) return false;
      }
    }
    return true;
  }
  bool same(const Blob& other) const {
    for (int64_t n = 0; n < images(); ++n) {
      if (std::memcmp(at(n), other.at(n), static_cast<size_t>(view_.image_elements()) * sizeof(float)) != 0)
        return false;
    }
    return true;
  }

 private:
  float* at(int64_t image) const { return view_.f32() + image * view_.strides[0]; }

  TensorView view_;
  std::vector<float> memory_;
};

std::vector<Blob> blobs(const Problem& problem, const Routine& routine, int64_t gap) {
  std::vector<Blob> list;
  for (size_t i = 0; i < problem.in.size(); ++i) {
    list.emplace_back(problem.in[i].shape, routine.input_schema(problem, static_cast<int>(i)), gap);
    list.back().fill();
  }
  return list;
}

void check(const Case& item) {
  const Problem problem = problem_of(item);
  for (const Routine* routine : accepting_routines(problem)) {
    if (!is_plain(*routine)) continue;
    // Such a view needs a dense input: see Routine::view_offset.
    if (routine->info().view && problem.in[0].shape[0] != problem.out().shape[0]) continue;
    const Tuning tuning = routine->tunings(problem).front();
    const auto prepared = routine->prepare(problem, tuning, routine->packed(problem, tuning));
    const WorkspaceSize size = prepared->workspace();
    const AlignedBuffer workspace(size.bytes());
    const auto run = [&](const std::vector<Blob>& in, const TensorView& out) {
      std::vector<TensorView> views;
      for (const Blob& blob : in) views.push_back(blob.view());
      prepared->run({views.data(), &out, {size, workspace.data()}, ParallelFor()});
    };
    const auto expect = [&](bool right, const char* what) {
      if (!right) std::printf("%s: %s\n", routine->descriptor(tuning).c_str(), what), ++test::failures();
    };

    const Schema& schema = routine->info().out;
    const std::vector<Blob> dense = blobs(problem, *routine, 0), gapped = blobs(problem, *routine, 48);
    Blob wanted(problem.out().shape, schema, 0), with_gaps(problem.out().shape, schema, 80);
    run(dense, wanted.view());
    run(gapped, with_gaps.view());
    expect(with_gaps.same(wanted), "differs where images have gaps between them");
    expect(with_gaps.gaps_untouched(), "writes between images");

    const int place = routine->info().inplace_input;
    if (place < 0 || problem.in[static_cast<size_t>(place)].shape != problem.out().shape) continue;
    const std::vector<Blob> overwritten = blobs(problem, *routine, 16);
    run(overwritten, overwritten[static_cast<size_t>(place)].view());
    expect(overwritten[static_cast<size_t>(place)].same(wanted), "differs in place");
  }
}

// Inputs that their producers have written where the concatenation wants them stay, the others come beside them.
void check_concat_in_place() {
  const Layer concat = layer("concat", {{"axis", int64_t{1}}});
  const Shape part{2, 16, 3, 5}, whole{2, 32, 3, 5};
  const Problem problem{&concat, {{part}, {part}}, TensorDesc{whole}, 1};
  for (const Routine* routine : accepting_routines(problem)) {
    if (!is_plain(*routine)) continue;
    const Schema& schema = routine->info().out;
    if (schema.layout == Layout::nhwc()) continue;
    const auto prepared = routine->prepare(problem, {}, nullptr);
    Blob first(part, schema, 0), second(part, schema, 0), wanted(whole, schema, 0), out(whole, schema, 0);
    first.fill();
    second.fill();
    const TensorView apart[] = {first.view(), second.view()};
    const TensorView wanted_view = wanted.view();
    prepared->run({apart, &wanted_view, {{}, nullptr}, ParallelFor()});
    TensorView place = second.view();
    place.data = out.view().f32() + place.image_elements();
    place.strides[0] = out.view().strides[0];
    for (int64_t n = 0; n < 2; ++n) {
      std::memcpy(place.f32() + n * place.strides[0], second.view().f32() + n * place.image_elements(),
                  static_cast<size_t>(place.image_elements()) * sizeof(float));
    }
    const TensorView in_place[] = {first.view(), place};
    const TensorView out_view = out.view();
    prepared->run({in_place, &out_view, {{}, nullptr}, ParallelFor()});
    if (!out.same(wanted)) std::printf("%s: differs in place\n", routine->descriptor().c_str()), ++test::failures();
  }
}

}  // namespace
}  // namespace softneuro

SN_TEST(strided_test) {
  for (const softneuro::Case& item : softneuro::cases()) {
    try {
      softneuro::check(item);
    } catch (const softneuro::Error& error) {
      std::printf("%s: %s\n", item.layer.type.c_str(), error.what());
      ++softneuro::test::failures();
    }
  }
  softneuro::check_concat_in_place();
}
