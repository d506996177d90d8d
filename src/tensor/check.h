// A check that stays on in release builds, for what we or our caller did wrong.
#ifndef SLUICE_SRC_TENSOR_CHECK_H_
#define SLUICE_SRC_TENSOR_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define SLUICE_CHECK(condition, message)                                                         \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      std::fprintf(stderr, "sluice: %s:%d: %s (%s)\n", __FILE__, __LINE__, message, #condition); \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)

#endif  // SLUICE_SRC_TENSOR_CHECK_H_
