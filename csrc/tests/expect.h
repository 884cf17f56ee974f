// What all tests with a main() of their own share: failures are printed and counted, and become the program's result.
#pragma once

#include <cstdio>

namespace softneuro::test {

inline int& failures() {
  static int count = 0;
  return count;
}

inline void expect(bool ok, const char* what) {
  if (ok) return;
  std::printf("failed: %s\n", what);
  ++failures();
}

// What main() returns.
inline int finish() {
  std::printf(failures() == 0 ? "ok\n" : "%d failures\n", failures());
  return failures() == 0 ? 0 : 1;
}

}  // namespace softneuro::test
