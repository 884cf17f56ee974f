// What is found again, and what has to go when there is no room.
#include "runtime/net_cache.h"

#include "tests/expect.h"

namespace softneuro {
namespace {

using test::expect;

void put(NetCache& cache, int64_t size, int patience = -1) {
  cache.put({.signature = {size}, .net = nullptr, .orders = {}, .patience = patience});
}

bool has(const NetCache& cache, int64_t size) { return cache.find(Signature{size}, constant_weights) != nullptr; }

void check_that_the_oldest_is_forgotten() {
  NetCache cache({.entries = 3, .nets = 3});
  put(cache, 1), put(cache, 2), put(cache, 3);
  expect(has(cache, 1), "it is used");
  put(cache, 4);
  expect(!has(cache, 2), "the oldest goes");
  expect(has(cache, 1) && has(cache, 3), "not the smallest");
}

void check_that_many_go_at_once() {
  constexpr int64_t room = 64, gone = 4;
  NetCache cache({.entries = room, .nets = 3});
  for (int64_t size = 0; size <= room; ++size) put(cache, size);
  bool as_wanted = true;
  for (int64_t size = 0; size <= room; ++size) as_wanted = as_wanted && has(cache, size) == (size >= gone);
  expect(as_wanted, "a look at all entries makes room for several");
  for (int64_t size = room + 1; size < room + gone; ++size) put(cache, size);
  expect(has(cache, gone), "nothing goes while there is room");
}

void check_patience() {
  NetCache cache;
  put(cache, 1, 2);
  expect(has(cache, 1) && has(cache, 1) && !has(cache, 1), "the host runs as many calls as were agreed on");
  put(cache, 1);
  expect(has(cache, 1) && has(cache, 1) && has(cache, 1), "or all, if it is to");
}

void check_drop() {
  NetCache cache;
  const auto signature = [](int64_t first, int64_t second) { return Signature{first, second}; };
  for (int64_t i = 0; i < 100; ++i) {
    cache.put({.signature = signature(i, 100 - i), .net = nullptr, .orders = {}});
  }
  cache.drop(signature(7, 93));
  expect(cache.find(signature(7, 93), constant_weights) == nullptr, "it is dropped");
  expect(cache.find(signature(93, 7), constant_weights) != nullptr, "and no other");
}

}  // namespace
}  // namespace softneuro

SN_TEST(net_cache_test) {
  softneuro::check_that_the_oldest_is_forgotten();
  softneuro::check_that_many_go_at_once();
  softneuro::check_patience();
  softneuro::check_drop();
}
