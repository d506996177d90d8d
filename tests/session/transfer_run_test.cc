// The books of one run: its memory, what may be fed, its events, and where it ends.
#include "session/transfer/transfer_run.h"

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/planned.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::PlanFor;
using testing::ElementsAre;
using testing::IsEmpty;

StartOptions Late() { return {.late_destinations = true}; }

// Rank 1's run of "a" in window 0, of two buckets, and "b" in window 1, of one.
class TransferRunTest : public testing::Test {
 protected:
  TransferRunTest()
      : transfer_(PlanFor(1, {FromZeroToOne("a", {32}), FromZeroToOne("b", {16}, 1)})),
        run_(transfer_.get(), &events_) {}

  void Start(const StartOptions& options) {
    run_.Reset(7, options);
    const bool late = options.late_destinations;
    ASSERT_TRUE(Bind(late ? nullptr : a_.data(), late ? nullptr : b_.data()).ok());
    run_.Release();
  }
  absl::Status Bind(float* a, float* b) { return run_.Bind(Sources(), {A(a), B(b)}); }
  static std::vector<TensorView> Sources() {
    return {DenseView(nullptr, {0}, DType::kF32), DenseView(nullptr, {0}, DType::kF32)};
  }
  static TensorView A(float* data) { return DenseView(data, {32}, DType::kF32); }
  static TensorView B(float* data) { return DenseView(data, {16}, DType::kF32); }

  // How many buckets could be fed.
  int Feed() {
    int fed = 0;
    for (; run_.CanFeed(); ++fed) run_.Fed();
    return fed;
  }
  // The events since the last call: "needs 0", "done 1", "failed".
  std::vector<std::string> Events() {
    std::vector<std::string> texts;
    for (; !events_.empty(); events_.pop_front()) {
      const Event& event = events_.front().event;
      EXPECT_EQ(events_.front().run, 7);
      const bool needs = event.kind == Event::Kind::kNeedsMemory;
      texts.push_back(event.kind == Event::Kind::kFailed
                          ? std::string(event.status.message())
                          : absl::StrCat(needs ? "needs " : "done ", event.tensor));
    }
    return texts;
  }
  BucketId IdOf(size_t bucket) const { return transfer_->plan().buckets[bucket].id.WithRun(7); }

  std::unique_ptr<CompiledTransfer> transfer_;
  std::deque<RunEvent> events_;
  TransferRun run_;
  std::array<float, 32> a_{};
  std::array<float, 16> b_{};
};

TEST_F(TransferRunTest, BadViewsAreNamedAndChangeNothing) {
  run_.Reset(7, {});
  ASSERT_TRUE(Bind(a_.data(), b_.data()).ok());
  const absl::Status shape = Bind(a_.data(), nullptr);
  EXPECT_THAT(shape, Fails(absl::StatusCode::kInvalidArgument, "destination of tensor 1 'b': "));
  const absl::Status count = run_.Bind(Sources(), {A(a_.data())});
  EXPECT_THAT(std::string(count.message()),
              testing::HasSubstr("has 2 tensors, but 2 source and 1 destination views"));
  EXPECT_TRUE(absl::IsInvalidArgument(Bind(a_.data(), a_.data() + 16)));
  EXPECT_EQ(run_.dst()[0].base, reinterpret_cast<std::byte*>(a_.data()));
  EXPECT_EQ(run_.dst()[1].base, reinterpret_cast<std::byte*>(b_.data()));
}

TEST_F(TransferRunTest, NothingIsFedBeforeAllRanksAgree) {
  run_.Reset(7, {});
  ASSERT_TRUE(Bind(a_.data(), b_.data()).ok());
  EXPECT_EQ(Feed(), 0);
  EXPECT_FALSE(run_.fed());
  run_.Release();
  EXPECT_EQ(Feed(), 3);
  EXPECT_TRUE(run_.fed());
  for (const size_t bucket : {0u, 1u}) run_.BucketDone(bucket);
  EXPECT_FALSE(run_.done());
  run_.BucketDone(2);
  EXPECT_TRUE(run_.done());
  EXPECT_THAT(Events(), IsEmpty());  // nobody asked
}

TEST_F(TransferRunTest, AWindowAsksForItsMemoryOnceTheOneBeforeIsDone) {
  Start(Late());
  EXPECT_THAT(Events(), ElementsAre("needs 0"));
  EXPECT_EQ(run_.tensor_without_memory(), 0);
  EXPECT_EQ(Feed(), 0);
  ASSERT_TRUE(run_.Supply(0, A(a_.data())).ok());
  EXPECT_EQ(run_.tensor_without_memory(), -1);
  EXPECT_EQ(Feed(), 2);
  run_.BucketDone(0);
  EXPECT_THAT(Events(), IsEmpty());
  run_.BucketDone(1);
  EXPECT_THAT(Events(), ElementsAre("done 0", "needs 1"));
  // Memory that is done may be given again.
  ASSERT_TRUE(run_.Supply(1, B(a_.data())).ok());
  EXPECT_EQ(Feed(), 1);
  run_.BucketDone(2);
  EXPECT_TRUE(run_.done());
}

TEST_F(TransferRunTest, MemoryIsSuppliedOnceAndForOneTensor) {
  Start(Late());
  EXPECT_TRUE(absl::IsInvalidArgument(run_.Supply(2, A(a_.data()))));
  EXPECT_TRUE(absl::IsInvalidArgument(run_.Supply(-1, A(a_.data()))));
  EXPECT_TRUE(absl::IsInvalidArgument(run_.Supply(0, B(b_.data()))));
  ASSERT_TRUE(run_.Supply(0, A(a_.data())).ok());
  EXPECT_THAT(run_.Supply(0, A(a_.data())),
              Fails(absl::StatusCode::kFailedPrecondition, "'a' of run 7 has had its memory"));
  EXPECT_TRUE(absl::IsInvalidArgument(run_.Supply(1, B(a_.data() + 16))));  // a's, too
  EXPECT_TRUE(run_.Supply(1, B(b_.data())).ok());  // before it was asked for
  Start({});
  const absl::Status early = run_.Supply(0, A(a_.data()));
  EXPECT_THAT(early, Fails(absl::StatusCode::kFailedPrecondition, "waits for no memory"));
}

// Another rank has admitted a bucket whose memory has not come here: it is received all the same.
TEST_F(TransferRunTest, ACutRunWaitsForNoMemory) {
  Start(Late());
  run_.Freeze();
  run_.CutAt(IdOf(2));
  EXPECT_TRUE(run_.Lacks(1));
  EXPECT_EQ(Feed(), 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(run_.Supply(0, A(a_.data()))));
}

}  // namespace
}  // namespace sluice
