// How often random tests try, where each try takes many times as long.
#ifndef SLUICE_TESTS_ORACLE_SAMPLED_H_
#define SLUICE_TESTS_ORACLE_SAMPLED_H_

#include <algorithm>
#include <cstdint>

namespace sluice::oracle {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) ||  // NOLINT: clang's names
                                   __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// So many tries of `tries`: all, or an eighth under a sanitizer, at least one. What sanitizers look
// for is in every kind of try; what differs from try to try is looked for without them.
constexpr int Sampled(int tries) { return kSanitized ? std::max(1, tries / 8) : tries; }

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_ORACLE_SAMPLED_H_
