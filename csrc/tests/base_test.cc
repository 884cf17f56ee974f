// Schema texts, sizes of blobs, and memory that cannot be had.
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/arch.h"
#include "base/arena.h"
#include "base/tensor.h"
#include "tests/expect.h"

namespace {

using namespace softneuro;

using test::expect;

template <typename Fn>
bool refuses(Fn fn) {
  try {
    fn();
  } catch (const Error&) {
    return true;
  }
  return false;
}

void schemas() {
  for (const char* text : {"cpu:float32:nchw", "cpu:float32:nhwc", "cpu:float32:nchw4c", "cpu:float32:nchw16c"})
    expect(parse_schema(text).str() == text, text);
  for (const char* text : {"", "cpu", "cpu:float32", "cpu:float32:", ":::", "gpu:float32:nchw", "cpu:float99:nchw",
                           "cpu:float32:nchw16c:x", "cpu:float32:nchw3c", "cpu:float32:nchw-16c", "cpu:float32:NCHW"})
    expect(refuses([&] { (void)parse_schema(text); }), text);
}

void sizes() {
  expect(physical_elements({2, 3, 5, 7}, Layout::nchw()) == 210, "dense elements");
  expect(physical_elements({2, 3, 5, 7}, Layout::blocked(16)) == 2 * 16 * 35, "padding lanes are counted");
  expect(physical_elements({2, 0, 5}, Layout::blocked(8)) == 0, "no channels, no elements");
  expect(physical_elements({}, Layout::nchw()) == 1, "a scalar is one element");
  expect(refuses([] { (void)physical_elements({INT64_MAX, 2}, Layout::nchw()); }), "overflow is refused");
  expect(refuses([] { (void)physical_elements({1, INT64_MAX}, Layout::blocked(16)); }), "overflow in the padding");
  expect(refuses([] { (void)physical_elements({-1, 2}, Layout::nchw()); }), "negative sizes are refused");
  expect(refuses([] { (void)Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), "nine dimensions are refused");
  expect(dense_view(nullptr, {2, 3, 4}, f32_blocked(8)).strides[0] == 32, "stride of a blocked view");
}

void strides() {
  const auto fine = [](const Shape& shape, const Strides& strides, const Layout& layout = Layout::nchw()) {
    return !refuses([&] { check_strides(shape, strides, layout); });
  };
  expect(fine({2, 3, 4}, {12, 4, 1}), "dense");
  expect(fine({2, 3, 4}, {40, 10, 1}) && fine({2, 3, 4}, {4, 8, 1}), "with gaps; axes in another order");
  expect(fine({2, 3, 4}, {12, 1, 3}, Layout::nhwc()), "channels last");
  expect(fine({1, 3, 1}, {-7, 1, -7}) && fine({0, 3, 4}, {0, 0, 1}), "steps that nobody takes");
  expect(!fine({2, 3, 4}, {-12, 4, 1}), "negative strides are refused");
  expect(!fine({2, 3, 4}, {0, 4, 1}) && !fine({2, 3, 4}, {12, 3, 1}), "elements that share memory are refused");
  expect(!fine({2, 3, 4}, {24, 8, 2}), "an innermost axis with gaps is refused");
}

void memory() {
  for (size_t bytes : {size_t{1}, size_t{100}, size_t{3} << 20}) {
    const AlignedBuffer buffer(bytes);
    expect(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::alignment == 0, "alignment");
  }
  expect(AlignedBuffer(0).data() == nullptr, "an empty buffer");
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX >> 8})
    expect(refuses([&] { AlignedBuffer buffer(bytes); }), "memory that is not there is an Error");
}

// Buffers that share huge pages: none is another's, whatever the order in which they come and go.
void shared_memory() {
  std::vector<std::pair<AlignedBuffer, int>> held;
  uint32_t state = 1;
  const auto random = [&](uint32_t below) { return (state = state * 1664525U + 1013904223U) / 65536 % below; };
  const auto first_and_last = [](const AlignedBuffer& buffer) {
    auto* bytes = static_cast<unsigned char*>(buffer.data());
    return std::pair<unsigned char&, unsigned char&>(bytes[0], bytes[buffer.size() - 1]);
  };
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 20 || (held.size() < 100 && random(2) == 0)) {
      const size_t most = random(4) == 0 ? 2500 << 10 : 100 << 10;
      held.emplace_back(AlignedBuffer(1 + most * random(1000) / 1000), i % 256);
      const auto [first, last] = first_and_last(held.back().first);
      first = last = static_cast<unsigned char>(i);
      continue;
    }
    const size_t at = random(static_cast<uint32_t>(held.size()));
    const auto [first, last] = first_and_last(held[at].first);
    expect(first == held[at].second && last == held[at].second, "a buffer's content stays");
    std::swap(held[at], held.back());
    held.pop_back();
  }
}

void levels() {
  expect(available_isas().back() == Isa::scalar, "scalar is always there, last");
  for (const auto* list : {&available_isas(), &available_extensions()}) {
    for (Isa isa : *list) {
      expect(parse_isa(isa_name(isa)) == isa, "names of levels");
      expect(isa_available(isa) && architecture_has(isa), "what is listed is available");
      for (Isa below : isa_prerequisites(isa)) {  // a build may leave some out
        expect(isa_available(below) || !architecture_has(below), "prerequisites are available");
      }
    }
  }
  for (Isa isa : all_isas()) expect(vectors_of(isa) == isa, "levels of vectors have their own");
  for (Isa isa : {Isa::avxvnni, Isa::avx512vnni, Isa::amx}) {
    if (!architecture_has(isa)) continue;
    const Isa vectors = isa == Isa::avxvnni ? Isa::avx2 : Isa::avx512;
    expect(vectors_of(isa) == vectors && isa_block(isa) == isa_block(vectors), "extensions have another's vectors");
  }
  expect(refuses([] { (void)parse_isa("avx1024"); }), "an unknown level is refused");
  expect(physical_cores() >= 1, "at least one core");
}

}  // namespace

SN_TEST(base_test) {
  schemas();
  sizes();
  strides();
  memory();
  shared_memory();
  levels();
}
