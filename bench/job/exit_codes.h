// What sluice-sim ends with, beside success and failure.
#ifndef SLUICE_BENCH_SIMULATE_EXIT_CODES_H_
#define SLUICE_BENCH_SIMULATE_EXIT_CODES_H_

namespace sluice::bench {

inline constexpr int kBadOptionsExit = 2;
inline constexpr int kInterruptedExit = 130;  // as shells have it

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SIMULATE_EXIT_CODES_H_
