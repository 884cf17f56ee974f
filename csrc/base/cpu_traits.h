// What kinds of CPUs are good at, where kernels differ by it. None of it changes what is right.
#pragma once

namespace softneuro {

// Whether 512-bit operations are done in two halves (Zen 4): half a vector then takes half the time.
bool halves_512_bits();
// Whether additions have units of their own beside those of multiply-adds (AMD's Zen), so that both are done at once.
bool adds_beside_fmas();
// Whether stores to lines that are not near keep little waiting (AMD's Zen): to ask for these lines then costs more
// than it gains.
bool stores_hide_misses();
// Whether there are instructions for tables of bytes as large as two vectors (AVX512-VBMI).
bool permutes_bytes();

}  // namespace softneuro
