// Memory that the ranks of a node share, and transfers from and to it.
#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int kSize = 4;

std::unique_ptr<Session> Open(Rank& self, bool direct) {
  self.direct = direct;
  return OpenSession(self, {.bucket_bytes = 64 << 10, .budget_buckets = 1});
}

// One f64 tensor by rows, then by columns, of which each rank writes and checks its part.
class SharedTensors {
 public:
  static constexpr int64_t kRows = 128;  // per rank
  static constexpr int64_t kColumns = 1024;

  SharedTensors(Session* session, int rank) : rank_(rank) {
    for (auto* const memory : {&src_, &dst_}) {
      auto shared = session->AllocateShared(kRows * kColumns * 8);
      EXPECT_TRUE(shared.ok()) << shared.status();
      if (shared.ok()) *memory = *std::move(shared);
    }
  }
  static TransferSpec Spec() {
    TransferSpec spec = AllToAll(kSize, 1024);
    spec.tensors[0].shape = {kRows * kSize, kColumns};
    return spec;
  }
  void Fill(double base) {
    auto* const data = reinterpret_cast<double*>(src_.get());
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      data[i] = base + static_cast<double>(rank_ * kRows * kColumns + i);
    }
    std::memset(dst_.get(), 0xEE, kRows * kColumns * 8);
  }
  int64_t CountWrong(double base) const {
    const auto* const data = reinterpret_cast<const double*>(dst_.get());
    const int64_t width = kColumns / kSize;
    int64_t wrong = 0;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const int64_t global = i / width * kColumns + rank_ * width + i % width;
      if (data[i] != base + static_cast<double>(global)) ++wrong;
    }
    return wrong;
  }
  TensorView src() const { return DenseView(src_.get(), {kRows, kColumns}, DType::kF64); }
  TensorView dst() const {
    return DenseView(dst_.get(), {kRows * kSize, kColumns / kSize}, DType::kF64);
  }

 private:
  const int rank_;
  std::shared_ptr<std::byte> src_;
  std::shared_ptr<std::byte> dst_;
};

TEST(SharedMemoryTest, HoldsTensorsWithAndWithoutDirectCopies) {
  for (const bool direct : {true, false}) {
    RunRanks(kSize, [direct](Rank& self) {
      const auto session = Open(self, direct);
      ASSERT_NE(session, nullptr);
      const auto transfer = session->Compile(SharedTensors::Spec()).value();
      // Memory of earlier rounds is given back, and its numbers are used again.
      for (int round = 0; round < 5; ++round) {
        SharedTensors tensors(session.get(), self.rank);
        for (const double base : {0.5, 7.5}) {
          tensors.Fill(base);
          const auto run = session->Start(transfer, {tensors.src()}, {tensors.dst()}).value();
          ASSERT_EQ(run.Wait(), absl::OkStatus());
          EXPECT_EQ(tensors.CountWrong(base), 0) << "direct " << direct << " round " << round;
        }
      }
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(SharedMemoryTest, EachRankGetsWhatItAsksFor) {
  for (const bool direct : {true, false}) {
    RunRanks(kSize, [direct](Rank& self) {
      const auto session = Open(self, direct);
      ASSERT_NE(session, nullptr);
      const auto none = session->AllocateShared(0).value();
      EXPECT_EQ(none, nullptr);
      const int64_t bytes = self.rank * 5000;
      const auto some = session->AllocateShared(bytes).value();
      ASSERT_EQ(some == nullptr, bytes == 0);
      for (int64_t i = 0; i < bytes; ++i) EXPECT_EQ(some.get()[i], std::byte{0});
      EXPECT_EQ(reinterpret_cast<uintptr_t>(some.get()) % 4096, 0u);
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(SharedMemoryTest, WhatOneRankCannotHaveNobodyGets) {
  for (const bool direct : {true, false}) {
    RunRanks(kSize, [direct](Rank& self) {
      const auto session = Open(self, direct);
      ASSERT_NE(session, nullptr);
      const auto negative = session->AllocateShared(self.rank == 1 ? -5 : 4096).status();
      EXPECT_THAT(negative, Fails(absl::StatusCode::kInvalidArgument, "-5 bytes"));
      const auto huge = session->AllocateShared(self.rank == 2 ? int64_t{1} << 60 : 4096).status();
      EXPECT_EQ(huge.code(), absl::StatusCode::kResourceExhausted) << huge;
      // The kernel maps this much, but no machine can fill it.
      const auto large = session->AllocateShared(self.rank == 2 ? int64_t{1} << 46 : 0).status();
      EXPECT_THAT(large,
                  Fails(absl::StatusCode::kResourceExhausted, "ask to share 70368744177664 bytes"));
      // Together more than any number.
      const auto most = session->AllocateShared(INT64_MAX).status();
      EXPECT_EQ(most.code(), absl::StatusCode::kResourceExhausted) << most;
      EXPECT_TRUE(session->AllocateShared(4096).ok());
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

}  // namespace
}  // namespace sluice::session_test
