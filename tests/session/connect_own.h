// Four ranks, of which two have a tensor and two want it, and what a test changes in what they
// give.
#ifndef SLUICE_TESTS_SESSION_CONNECT_OWN_H_
#define SLUICE_TESTS_SESSION_CONNECT_OWN_H_

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/connect.h"
#include "sluice/error.h"
#include "sluice/session.h"

namespace sluice::session_test {

inline constexpr int kOwnRanks = 4;

using Texts = std::vector<std::string>;

// Ranks 0 and 1 have "w" by rows, ranks 2 and 3 want it by columns.
struct Own {
  std::array<float, 64> memory{};
  ConnectSpec spec;

  explicit Own(int rank);
  ConnectTensor& tensor() {
    return spec.sources.empty() ? spec.targets.front() : spec.sources.front();
  }
};

using Change = std::function<void(int rank, Own* own)>;

// The change is made on one rank alone.
Change On(int rank, const std::function<void(Own*)>& change);

// Connects what is good, runs it, and expects the right bytes.
void RunGood(Session* session, int rank);

// Expects Connect to fail alike on all ranks, and to work afterwards. With `alike` false, each rank
// has its own words.
void ExpectFails(const Change& change, absl::StatusCode code, const Texts& texts, bool alike = true,
                 bool progress_thread = false);

// Expects Connect to fail on all ranks with these fields.
void ExpectFields(const Change& change, const ErrorFields& fields);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_CONNECT_OWN_H_
