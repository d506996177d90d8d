// Memory that the ranks of a node share, and transfers from and to it.
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/sampled.h"
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
      const int64_t bytes = int64_t{5000} * self.rank;
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

// Views of random places in `block`, in all its ways: strided, shifted, repeated, overlapping, in
// boxes, without elements.
std::vector<TensorView> RandomViews(std::mt19937_64* random, std::vector<int32_t>* block) {
  const auto draw = [random](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(*random);
  };
  const auto place = [&] {
    TensorView view = DenseView(block->data(), {draw(1, 6), draw(1, 5)}, DType::kF32);
    view.strides = {draw(0, 20), draw(0, 3)};
    if (draw(0, 2) == 0) view.strides.clear();
    const int64_t at = draw(0, static_cast<int64_t>(block->size()) - 120);
    view.data = block->data() + at;
    if (draw(0, 1) == 0) {
      view.data = block->data();
      view.byte_offset = at * 4;
    }
    if (draw(0, 9) == 0) view.shape[0] = 0;
    return view;
  };
  std::vector<TensorView> views;
  const int64_t count = draw(0, 12);
  for (int64_t i = 0; i < count; ++i) {
    views.push_back(place());
    if (draw(0, 4) == 0) views.push_back(views.back());  // tied
    if (draw(0, 4) == 0) views.back().boxes = {place(), place()};
  }
  return views;
}

// The addresses of all elements, in an order of their own.
std::vector<int32_t*> Elements(const std::vector<TensorView>& views) {
  std::vector<int32_t*> elements;
  for (const TensorView& view : views) {
    if (!view.boxes.empty()) {
      const std::vector<int32_t*> boxes = Elements(view.boxes);
      elements.insert(elements.end(), boxes.begin(), boxes.end());
      continue;
    }
    const int64_t down = view.strides.empty() ? view.shape[1] : view.strides[0];
    const int64_t right = view.strides.empty() ? 1 : view.strides[1];
    auto* const base = reinterpret_cast<int32_t*>(static_cast<char*>(view.data) + view.byte_offset);
    for (int64_t i = 0; i < view.shape[0]; ++i) {
      for (int64_t j = 0; j < view.shape[1]; ++j) elements.push_back(base + i * down + j * right);
    }
  }
  return elements;
}

// Whether elements are one in `b` just where they are in `a`, with the values of `a`.
void ExpectMoved(const std::vector<int32_t*>& a, const std::vector<int32_t*>& b,
                 const std::byte* block) {
  ASSERT_EQ(a.size(), b.size());
  std::map<int32_t*, int32_t*> to, from;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(*a[i], *b[i]);
    EXPECT_EQ(to.try_emplace(a[i], b[i]).first->second, b[i]);
    EXPECT_EQ(from.try_emplace(b[i], a[i]).first->second, a[i]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a[i]) % 64, reinterpret_cast<uintptr_t>(b[i]) % 64);
    EXPECT_GE(reinterpret_cast<std::byte*>(b[i]), block);
  }
}

TEST(ShareTest, ViewsMoveWithTheirElementsAndTies) {
  RunRanks(2, [](Rank& self) {
    const auto session = Open(self, true);
    ASSERT_NE(session, nullptr);
    std::mt19937_64 random(oracle::FirstSeed() + static_cast<uint64_t>(self.rank));
    for (int round = 0; round < oracle::Sampled(200); ++round) {
      std::vector<int32_t> block(400);
      std::iota(block.begin(), block.end(), round * 1000);
      std::vector<TensorView> views = RandomViews(&random, &block);
      const std::vector<int32_t*> before = Elements(views);
      const auto shared = session->Share(absl::MakeSpan(views));
      ASSERT_TRUE(shared.ok()) << shared.status();
      EXPECT_EQ(*shared == nullptr, before.empty());
      const std::vector<int32_t*> between = Elements(views);
      ExpectMoved(before, between, shared->get());
      for (int32_t* const element : between) *element += 7;
      const auto own = Session::Unshare(absl::MakeSpan(views));
      ASSERT_TRUE(own.ok()) << own.status();
      ExpectMoved(between, Elements(views), own->get());
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ShareTest, AViewThatOneRankCannotShareFailsOnAllAndChangesNone) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = Open(self, true);
    ASSERT_NE(session, nullptr);
    float data[4] = {};
    std::vector<TensorView> views = {DenseView(data, {4}, DType::kF32),
                                     DenseView(data, {2}, DType::kF32)};
    if (self.rank == 2) views[1].device = DeviceKind::kCuda;
    EXPECT_THAT(session->Share(absl::MakeSpan(views)).status(),
                Fails(absl::StatusCode::kInvalidArgument, "view 1"));
    EXPECT_EQ(views[0].data, data);
    EXPECT_EQ(Session::Unshare(absl::MakeSpan(views)).ok(), self.rank != 2);
    views = {DenseView(data, {4}, DType::kF32)};
    EXPECT_TRUE(session->Share(absl::MakeSpan(views)).ok());
    EXPECT_NE(views[0].data, data);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
