// Adds up searches that have to find nothing, and stops the test at the first that does.
#ifndef SLUICE_TESTS_ENGINE_SEARCH_TOTALS_H_
#define SLUICE_TESTS_ENGINE_SEARCH_TOTALS_H_

#include <cstdint>
#include <iostream>

#include "deadlock/job.h"
#include "gtest/gtest.h"
#include "job_search.h"

namespace sluice::deadlock {

// Sanitizers make the searches some thirty times slower; there a sample has to do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kStride = 11;
#else
inline constexpr int64_t kStride = 1;
#endif

class SearchTotals {
 public:
  // True for those instances that a sample leaves out.
  bool LeavesOut() { return considered_++ % kStride != 0; }

  void Add(const Job& job, const SearchResult& result) {
    ++instances_;
    states_ += result.states;
    ASSERT_EQ(result.broken, "") << job.ToString() << result.trace;
    ASSERT_EQ(result.stuck, 0) << job.ToString() << result.trace;
    ASSERT_FALSE(result.inconsistent) << job.ToString() << result.trace;
  }
  // Shown, so that a search that has become empty is noticed by people as well.
  void Print(const char* what) const {
    std::cout << what << ": " << instances_ << " instances, " << states_ << " states\n";
  }

 private:
  int64_t considered_ = 0;
  int64_t instances_ = 0;
  int64_t states_ = 0;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_SEARCH_TOTALS_H_
