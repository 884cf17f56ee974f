// AMX's tiles on an x86-64 CPU that lacks them: their instructions trap, and are done here in plain code. So the very
// code that a CPU with AMX is to run can be tested on others.
#pragma once

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softneuro::test {

class TileEmulator {
 public:
  // For good. Traps that are not for it end the process.
  static void install() {
    struct sigaction action{};
    action.sa_sigaction = [](int, siginfo_t*, void* context) {
      emulator().emulate(*static_cast<ucontext_t*>(context));
    };
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, nullptr);
  }
  static long products() { return emulator().products_; }

 private:
  static constexpr int rows = 16, row_bytes = 64;
  using Tile = uint8_t[rows][row_bytes];

  // An instruction with a three-byte VEX prefix.
  struct Decoded {
    int reg, rm, vvvv, prefix;
    uint8_t opcode;
    bool memory;
    uint64_t base = 0, index = 0;
    const uint8_t* next;
  };

  static TileEmulator& emulator() {
    static thread_local TileEmulator one;
    return one;
  }
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "tile emulator: %s\n", what);
    std::_Exit(3);
  }
  static uint64_t register_of(const ucontext_t& context, int number) {
    constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<uint64_t>(context.uc_mcontext.gregs[order[number]]);
  }

  static Decoded decode(const ucontext_t& context) {
    const auto* code = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
    if (code[0] != 0xc4 || (code[1] & 31) != 2 || (code[2] & 0x84) != 0) fail("not an instruction of AMX");
    const int high_reg = code[1] & 0x80 ? 0 : 8, high_index = code[1] & 0x40 ? 0 : 8, high_rm = code[1] & 0x20 ? 0 : 8;
    const uint8_t modrm = code[4];
    const int mod = modrm >> 6, low_rm = modrm & 7;
    Decoded d{.reg = (modrm >> 3 & 7) + high_reg,
              .rm = low_rm + high_rm,
              .vvvv = ~(code[2] >> 3) & 15,
              .prefix = code[2] & 3,
              .opcode = code[3],
              .memory = mod != 3,
              .next = code + 5};
    if (!d.memory) return d;
    if (low_rm == 4) {
      const uint8_t sib = *d.next++;
      if ((sib & 7) == 5 && mod == 0) fail("an address without a base");
      d.base = register_of(context, (sib & 7) + high_rm);
      const int index = (sib >> 3 & 7) + high_index;
      if (index != 4) d.index = register_of(context, index) << (sib >> 6);
    } else if (low_rm == 5 && mod == 0) {
      fail("an address by the instruction's own");
    } else {
      d.base = register_of(context, d.rm);
    }
    if (mod == 1) d.base += static_cast<uint64_t>(int64_t{static_cast<int8_t>(*d.next++)});
    if (mod == 2) {
      int32_t offset;
      std::memcpy(&offset, d.next, 4);
      d.base += static_cast<uint64_t>(int64_t{offset});
      d.next += 4;
    }
    return d;
  }

  void emulate(ucontext_t& context) {
    const Decoded d = decode(context);
    constexpr int plain = 0, f3 = 2, f2 = 3;
    if (d.opcode == 0x49 && d.prefix == plain && d.memory) {
      configure(reinterpret_cast<const uint8_t*>(d.base));
    } else if (d.opcode == 0x49 && d.prefix == plain) {
      ready_ = false;
    } else if (!ready_) {
      fail("tiles are used that are not configured");
    } else if (d.opcode == 0x4b && d.memory && (d.prefix == f2 || d.prefix == f3)) {
      for (int row = 0; row < rows; ++row) {
        auto* memory = reinterpret_cast<uint8_t*>(d.base + static_cast<uint64_t>(row) * d.index);
        if (d.prefix == f2) std::memcpy(tiles_[d.reg][row], memory, row_bytes);
        if (d.prefix == f3) std::memcpy(memory, tiles_[d.reg][row], row_bytes);
      }
    } else if (d.opcode == 0x5c && d.prefix == f3 && !d.memory) {
      multiply(tiles_[d.reg], tiles_[d.rm], tiles_[d.vvvv]);
    } else {
      fail("an instruction that it does not know");
    }
    context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(d.next);
  }

  // Palette 1 with eight whole tiles.
  void configure(const uint8_t* wanted) {
    uint8_t whole[64] = {1};
    for (int tile = 0; tile < 8; ++tile) whole[16 + 2 * tile] = row_bytes, whole[48 + tile] = rows;
    if (std::memcmp(whole, wanted, sizeof whole) != 0) fail("another configuration than eight whole tiles");
    std::memset(tiles_, 0, sizeof tiles_);
    ready_ = true;
  }

  void multiply(Tile& sum, const Tile& first, const Tile& second) {
    ++products_;
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < row_bytes / 4; ++n) {
        float x;
        std::memcpy(&x, &sum[m][4 * n], 4);
        for (int k = 0; k < row_bytes / 4; ++k) {
          for (int i = 0; i < 2; ++i) x += bfloat16(&first[m][4 * k + 2 * i]) * bfloat16(&second[k][4 * n + 2 * i]);
        }
        std::memcpy(&sum[m][4 * n], &x, 4);
      }
    }
  }

  // Denormal values are zero.
  static float bfloat16(const uint8_t* at) {
    uint32_t bits = static_cast<uint32_t>(at[0] | at[1] << 8) << 16;
    if ((bits & 0x7f800000) == 0) bits &= 0x80000000;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }

  Tile tiles_[8] = {};
  bool ready_ = false;
  long products_ = 0;
};

}  // namespace softneuro::test

#endif
