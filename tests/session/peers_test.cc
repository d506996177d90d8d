// One rank's dealings with the others: agreements, the first failure, texts, work of their own.
#include "session/peers/peers.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/peers/share_text.h"
#include "session/peers/together.h"
#include "session/with_peers.h"

namespace sluice {
namespace {

using session_test::RankPeers;
using session_test::WithPeers;
using testing::ElementsAre;

TEST(PeersTest, OneRanksErrorIsTheAnswerOnAllAndPoisonsNobody) {
  WithPeers(3, [](RankPeers* own) {
    const absl::Status bad =
        own->rank() == 1 ? absl::NotFoundError("no such file") : absl::OkStatus();
    const absl::Status status = own->peers.AgreeOn(bad, "Open");
    EXPECT_THAT(status, Fails(absl::StatusCode::kNotFound, "Open failed on rank 1: no such file"));
    EXPECT_TRUE(own->peers.poison().ok());
    EXPECT_TRUE(own->peers.AgreeOn(absl::OkStatus(), "Open").ok());
    EXPECT_THAT(own->host.failures, testing::IsEmpty());
  });
}

// Up to what fits an agreement, and beyond.
TEST(PeersTest, RecordsOfUnequalLengthsComeWhole) {
  WithPeers(3, [](RankPeers* own) {
    for (const size_t bytes : {0, 1099, 1100, 1101, 2200, 1 << 20}) {
      const auto record = [bytes](int rank) {
        return std::string(bytes / static_cast<size_t>(3 - rank), static_cast<char>('a' + rank));
      };
      const auto records =
          own->peers.Exchange(absl::OkStatus(), record(own->rank()), "Meet").value();
      EXPECT_THAT(records, ElementsAre(record(0), record(1), record(2)));
    }
  });
}

TEST(PeersTest, ARankThatStopsInALongExchangeIsNamed) {
  const auto body = [](RankPeers* own) {
    absl::Status status;
    if (own->rank() == 2) {
      Proposal proposal;
      proposal.call = "Meet";
      EXPECT_TRUE(own->peers.Agree(proposal).ok());  // it says that its record does not fit
    } else {
      status = own->peers.Exchange(absl::OkStatus(), "short", "Meet").status();
      EXPECT_THAT(status,
                  Fails(absl::StatusCode::kDeadlineExceeded, "rank 2 did not call Meet within 1s"));
      EXPECT_EQ(own->peers.poison(), status);
    }
    own->meet();
  };
  WithPeers(3, body, absl::Seconds(1));
}

TEST(PeersTest, TheFirstFailureReachesAllAndStays) {
  WithPeers(3, [](RankPeers* own) {
    absl::Status expected =
        MakeError(absl::StatusCode::kDataLoss, RankInWords(2), " failed: first");
    if (own->rank() == 2) {
      expected = absl::DataLossError("first");
      EXPECT_EQ(own->peers.Poison(expected), expected);
    } else {
      Backoff backoff;
      absl::Status heard;
      while (heard.ok()) {
        heard = own->peers.CheckAlarm();
        backoff.Pause();
      }
      EXPECT_EQ(heard, expected);
    }
    EXPECT_EQ(own->peers.Poison(absl::InternalError("second")), expected);
    EXPECT_EQ(own->peers.poison(), expected);
    EXPECT_TRUE(own->peers.is_poisoned());
    EXPECT_THAT(own->host.failures, ElementsAre(expected));
  });
}

// Both ranks fail by themselves, and hear of each other: the error of each stays, and is told once.
TEST(PeersTest, AnAlarmThatComesLaterChangesNothing) {
  WithPeers(2, [](RankPeers* own) {
    const absl::Status first = absl::DataLossError(absl::StrCat("of rank ", own->rank()));
    EXPECT_EQ(own->peers.Poison(first), first);
    own->meet();  // both alarms are under way
    for (int polls = 0; polls < 1000; ++polls) EXPECT_EQ(own->peers.CheckAlarm(), first);
    EXPECT_EQ(own->peers.poison(), first);
    EXPECT_THAT(own->host.failures, ElementsAre(first));
  });
}

// Its rank is late with whatever it is asked about.
class LateWitness final : public Witness {
 public:
  BucketReport Report(const BucketQuestion& question) const override {
    asked.push_back(question);
    BucketReport report;
    report.state = BucketState::kNotCalled;
    report.is_late = true;
    return report;
  }
  int64_t last_run() const override { return 3; }
  mutable std::vector<BucketQuestion> asked;
};

TEST(PeersTest, ALateRankIsWaitedForUntilPatienceEnds) {
  const auto body = [](RankPeers* own) {
    LateWitness witness;
    own->peers.watch()->set_witness(&witness);
    absl::Status status = own->peers.AgreeOn(absl::OkStatus(), "Open");
    EXPECT_TRUE(status.ok()) << status;
    Backoff backoff;
    if (own->rank() == 0) {
      status = own->peers.AgreeOn(absl::OkStatus(), "Meet");
      EXPECT_EQ(status, MakeError(absl::StatusCode::kDeadlineExceeded, RankInWords(1),
                                  " did not call Meet within 3s; rank 1 answers, and has not "
                                  "called; all ranks make the same calls in the same order, and "
                                  "one that raises an error makes fewer"));
    } else {
      while (own->peers.CheckAlarm().ok()) backoff.Pause();
      ASSERT_FALSE(witness.asked.empty());
      EXPECT_EQ(witness.asked[0].agreement, 2);
      EXPECT_EQ(witness.asked[0].id.fields().run, 3u);
    }
    own->peers.watch()->set_witness(nullptr);
  };
  WithPeers(2, body, absl::Seconds(2), absl::Seconds(3));
}

// Longer than one message.
std::string LongText() {
  std::string text;
  while (text.size() < (2 << 20) + 5) absl::StrAppend(&text, text.size(), ",");
  return text;
}

TEST(ShareTextTest, AllRanksGetTheTextOfRankZero) {
  const std::string sent = LongText();
  WithPeers(3, [&sent](RankPeers* own) {
    auto transport = own->peers.OpenTransport().value();
    ASSERT_TRUE(transport->Reserve(4).ok());
    for (const std::string& text : {sent, std::string(), std::string("short")}) {
      std::string got = own->rank() == 0 ? text : "its own";
      ASSERT_TRUE(ShareText(&own->peers, transport.get(), &got, "Load").ok());
      EXPECT_EQ(got, text);
    }
    own->meet();
  });
}

// As ranks that are stopped meanwhile.
TEST(ShareTextTest, WhoDoesNotTakePartIsNamed) {
  for (const int stopped : {0, 2}) {
    WithPeers(
        3,
        [stopped](RankPeers* own) {
          auto transport = own->peers.OpenTransport().value();
          ASSERT_TRUE(transport->Reserve(4).ok());
          if (own->rank() == (stopped == 0 ? 1 : 0)) {
            std::string text = "text";
            const absl::Status status = ShareText(&own->peers, transport.get(), &text, "Load");
            EXPECT_THAT(status,
                        Fails(absl::StatusCode::kDeadlineExceeded,
                              stopped == 0 ? "Load: rank 0 did not pass on the index within"
                                           : "Load: ranks 1, 2 did not take the index within 1s"));
          }
          own->meet();
        },
        absl::Seconds(1));
  }
}

TEST(TogetherTest, AllRanksEndOnceTheLastOneIsDone) {
  std::atomic<int> done = 0;
  WithPeers(3, [&done](RankPeers* own) {
    int taken = 0;
    const int steps = 10 * own->rank();
    const absl::Status status = FinishTogether(
        &own->peers, "Save", absl::Seconds(60),
        [&]() -> absl::StatusOr<TogetherStep> {
          if (taken++ < steps) return TogetherStep{.moved = true};
          ++done;
          return TogetherStep{.done = true};
        },
        [] { return ErrorText(); });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(taken, steps + 1);  // done is done: it is not called again
    EXPECT_EQ(done, 3);
  });
}

TEST(TogetherTest, TheFirstFailureEndsItOnAll) {
  WithPeers(3, [](RankPeers* own) {
    int taken = 0;
    const absl::Status status = FinishTogether(
        &own->peers, "Save", absl::Seconds(60),
        [&]() -> absl::StatusOr<TogetherStep> {
          if (taken++ < 2) return TogetherStep{.moved = true};
          if (own->rank() == 1)
            return MakeError(absl::StatusCode::kDataLoss, TensorInWords("w"), ": torn");
          return TogetherStep{.waits = true};  // what would not end
        },
        [] { return ErrorText(); });
    EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "torn"));
    EXPECT_EQ(FieldsOf(status).tensor, "w");
    EXPECT_THAT(FieldsOf(status).ranks, ElementsAre(1));  // where it has failed, too
    EXPECT_TRUE(own->peers.poison().ok());
  });
}

TEST(TogetherTest, WorkRunsOnAThreadOfItsOwn) {
  WithPeers(2, [](RankPeers* own) {
    const std::thread::id caller = std::this_thread::get_id();
    std::thread::id worker = caller;
    OwnWorkFunction work;
    if (own->rank() == 1) {
      work = [&worker](const WorkStop&) {
        worker = std::this_thread::get_id();
        return absl::OkStatus();
      };
    }
    EXPECT_TRUE(WorkTogether(&own->peers, "Save", absl::Seconds(60), work).ok());
    EXPECT_EQ(worker == caller, own->rank() == 0);
    bool worked = false;
    WorkAlone(&own->peers, [&] { worked = std::this_thread::get_id() != caller; });
    EXPECT_TRUE(worked);
  });
}

TEST(TogetherTest, WorkIsToldToStopOnceAnotherRanksHasFailed) {
  WithPeers(2, [](RankPeers* own) {
    const absl::Status status = WorkTogether(&own->peers, "Save", absl::Seconds(60),
                                             [own](const WorkStop& stop) -> absl::Status {
                                               if (own->rank() == 0)
                                                 return absl::PermissionDeniedError("read only");
                                               while (!stop) std::this_thread::yield();
                                               return absl::OkStatus();
                                             });
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_TRUE(own->peers.poison().ok());
  });
}

}  // namespace
}  // namespace sluice
