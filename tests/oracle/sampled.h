// How often random tests try, where each try takes many times as long.
#ifndef SLUICE_TESTS_ORACLE_SAMPLED_H_
#define SLUICE_TESTS_ORACLE_SAMPLED_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <vector>

namespace sluice::oracle {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) ||  // NOLINT: clang's names
                                   __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// So many tries of `tries`: all, or a sixteenth under a sanitizer, at least one. What sanitizers
// look for is in every kind of try; what differs from try to try is looked for without them.
constexpr int Sampled(int tries) { return kSanitized ? std::max(1, tries / 16) : tries; }

// Whether tests take their time, as in `scripts/test.sh --thorough`.
inline bool IsThorough() {
  static const bool is_thorough = std::getenv("SLUICE_TEST_THOROUGH") != nullptr;
  return is_thorough;
}

// For tries that take long without a sanitizer, too: Sampled where tests are thorough, else an
// eighth of Sampled, at least one.
inline int Thinned(int tries) {
  return IsThorough() ? Sampled(tries) : std::max(1, Sampled(tries) / 8);
}

// The first seed of tests that try at random: 1 where tests are thorough. Otherwise it changes each
// day, so that the few tries of quick tests add up. SLUICE_TEST_SEED says another one.
inline uint64_t FirstSeed() {
  static const uint64_t first = [] {
    const char* const said = std::getenv("SLUICE_TEST_SEED");
    if (said == nullptr && IsThorough()) return uint64_t{1};
    const auto day = static_cast<uint64_t>(std::time(nullptr) / (int64_t{24} * 60 * 60));
    const uint64_t seed = said != nullptr ? std::strtoull(said, nullptr, 10) : day * 1000;
    std::printf("Seeds from SLUICE_TEST_SEED=%llu on.\n", static_cast<unsigned long long>(seed));
    return seed;
  }();
  return first;
}

// Seeds for so many tries, thinned.
inline std::vector<uint64_t> Seeds(int tries) {
  std::vector<uint64_t> seeds(static_cast<size_t>(Thinned(tries)));
  std::iota(seeds.begin(), seeds.end(), FirstSeed());
  return seeds;
}

// The numbers of ranks to try, ascending: under a sanitizer those up to 3, unless tests are
// thorough. Threads that meet in twos and threes meet in the same ways in sixteens.
inline std::vector<int> JobSizes(std::vector<int> sizes) {
  if (!kSanitized || IsThorough()) return sizes;
  while (sizes.size() > 1 && sizes.back() > 3) sizes.pop_back();
  return sizes;
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_ORACLE_SAMPLED_H_
