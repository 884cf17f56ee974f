// What a region takes over whole sequences of sizes.
#pragma once

namespace softneuro::test {

void check_the_rule();
void check_that_it_wins();
void check_other_structures();
void check_saving();
void check_sizes_that_stay();

}  // namespace softneuro::test
