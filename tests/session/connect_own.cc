// Good halves, and the same error on every rank where a test has spoiled them.
#include "session/connect_own.h"

#include <mutex>

#include "gmock/gmock.h"
#include "session/job.h"
#include "session/specs.h"

namespace sluice::session_test {

Own::Own(int rank) {
  const bool is_source = rank < 2;
  ConnectTensor tensor =
      Part("w", {4, 8}, DType::kF32,
           is_source ? MakeLayout({2}, {0, 1}, "S(0)") : MakeLayout({2}, {2, 3}, "S(1)"), {});
  tensor.view =
      DenseView(memory.data(), is_source ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{4, 4},
                DType::kF32);
  (is_source ? spec.sources : spec.targets).push_back(tensor);
}

void RunGood(Session* session, int rank) {
  Own own(rank);
  own.memory.fill(rank < 2 ? static_cast<float>(rank + 1) : 0.0f);
  const auto connection = Connect(session, own.spec).value();
  ASSERT_TRUE(connection->Start({.version = 1}).value().Wait().ok());
  if (rank < 2) return;
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(own.memory[i], i < 8 ? 1 : 2) << i;
}

void ExpectFails(const Change& change, absl::StatusCode code, const Texts& texts, bool alike,
                 bool progress_thread) {
  std::mutex mutex;
  std::vector<std::string> errors;
  RunSessions(kOwnRanks, {.progress_thread = progress_thread}, [&](Rank& self, Session* session) {
    Own own(self.rank);
    change(self.rank, &own);
    const absl::Status status = Connect(session, own.spec).status();
    EXPECT_EQ(status.code(), code) << status;
    for (const std::string& text : texts) {
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
    }
    EXPECT_LT(status.message().size(), 2000u);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      errors.push_back(status.ToString());
    }
    RunGood(session, self.rank);
  });
  for (const std::string& error : errors) {
    if (alike) {
      EXPECT_EQ(error, errors.front());
    }
  }
}

Change On(int rank, const std::function<void(Own*)>& change) {
  return [rank, change](int self, Own* own) {
    if (self == rank) change(own);
  };
}

void ExpectFields(const Change& change, const ErrorFields& fields) {
  RunSessions(kOwnRanks, {}, [&](Rank& self, Session* session) {
    Own own(self.rank);
    change(self.rank, &own);
    const absl::Status status = Connect(session, own.spec).status();
    EXPECT_EQ(FieldsOf(status), fields) << status;
  });
}

}  // namespace sluice::session_test
