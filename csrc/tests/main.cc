// Runs the test of the given name; without one, lists all.
#include <cstdio>

#include "tests/expect.h"

int main(int argc, char** argv) {
  using namespace softneuro::test;
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  for (const Test& test : tests()) {
    if (wanted.empty()) std::printf("%s\n", test.name.data());
    if (test.name != wanted) continue;
    test.run();
    std::printf(failures() == 0 ? "ok\n" : "%d failures\n", failures());
    return failures() == 0 ? 0 : 1;
  }
  if (!wanted.empty()) std::printf("there is no test '%s'\n", argv[1]);
  return wanted.empty() ? 0 : 2;
}
