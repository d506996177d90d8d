// The matcher of a status that is an error: by its code and its message.
#ifndef SLUICE_TESTS_MAIN_FAILS_H_
#define SLUICE_TESTS_MAIN_FAILS_H_

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "gmock/gmock.h"

namespace sluice {

MATCHER_P2(HasCodeAndMessage, code, message, "") {
  *result_listener << arg;
  return arg.code() == code && testing::Matches(message)(std::string(arg.message()));
}

// Matches an absl::Status with `code`, whose message contains the text `message`, or matches it.
template <typename Message>
auto Fails(absl::StatusCode code, const Message& message) {
  if constexpr (std::is_convertible_v<Message, std::string>) {
    return HasCodeAndMessage(code, testing::HasSubstr(std::string(message)));
  } else {
    return HasCodeAndMessage(code, message);
  }
}

// Matches a message that says `what` of `rank`, such as "has not started run 2". A rank that has
// not answered for a while, as on a busy machine, is told so, and what it has said before.
inline auto SaysOf(int rank, const std::string& what) {
  const std::string name = "rank " + std::to_string(rank) + " ";
  return testing::AnyOf(testing::HasSubstr(name + what),
                        testing::AllOf(testing::HasSubstr(name + "has not answered for "),
                                       testing::HasSubstr("; before, it said that it " + what)));
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_FAILS_H_
