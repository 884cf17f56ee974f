// What all tests share: SN_TEST names one, which main.cc finds; failures are printed and counted, and become the
// program's result.
#pragma once

#include <cstdio>
#include <string_view>
#include <vector>

namespace softneuro::test {

struct Test {
  std::string_view name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}
struct Registered {
  Registered(std::string_view name, void (*run)()) { tests().push_back({name, run}); }
};

// A test that the program runs when it is given this name, in a process of its own.
#define SN_TEST(name)                                                 \
  static void name();                                                 \
  static const softneuro::test::Registered name##_is_a(#name, &name); \
  static void name()

inline int& failures() {
  static int count = 0;
  return count;
}

inline void expect(bool ok, const char* what) {
  if (ok) return;
  std::printf("failed: %s\n", what);
  ++failures();
}

}  // namespace softneuro::test
