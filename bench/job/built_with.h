// Which version this is, and what it was built with: so that results can be told apart.
#ifndef SLUICE_BENCH_JOB_BUILT_WITH_H_
#define SLUICE_BENCH_JOB_BUILT_WITH_H_

#include <string>

#ifndef SLUICE_VERSION
#error "the build defines SLUICE_VERSION, e.g. \"0.2.0\""
#endif

namespace sluice::bench {

inline std::string BuiltWith() {
#if defined(__clang__)
  std::string text = "clang " __VERSION__;
#else
  std::string text = "gcc " __VERSION__;
#endif
#if defined(NDEBUG)
  text += ", release";
#else
  text += ", debug";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  text += ", sanitized";
#endif
  return text;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_BUILT_WITH_H_
