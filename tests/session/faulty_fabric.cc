// Faults between a session and a sound fabric.
#include "session/faulty_fabric.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "oracle/random_layout.h"
#include "sluice/transport.h"
#include "transport/loopback/loopback.h"
#include "transport/passing_fabric.h"

namespace sluice::session_test {
namespace {

absl::Status Injected(absl::string_view where) {
  return absl::UnavailableError(absl::StrCat(kInjected, " in ", where));
}

TransportTraits TraitsOf(const Transport& inner) {
  TransportTraits traits = inner.traits();
  traits.name = "faulty";
  return traits;
}

// Keeps events back. Until it hands them out their operations count as outstanding, but their
// memory is free to change. The verification of data finds a session that lets go of memory before
// its events came. It also finds one that touches memory afterwards.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const FaultPlan& plan)
      : Transport(TraitsOf(*inner)), inner_(std::move(inner)), plan_(plan), dice_(plan.seed) {}

  absl::Status Reserve(int capacity) override {
    kept_.reserve(static_cast<size_t>(capacity));
    return inner_->Reserve(capacity);
  }

  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    return inner_->UseStaging(staging);
  }

  absl::Status Start(absl::Span<const TransportOp> ops) override {
    if (starts_++ == plan_.failing_start) return Injected("Start");
    return inner_->Start(ops);
  }

  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    if (plan_.failing_poll >= 0 && polls_++ >= plan_.failing_poll) return Injected("Poll");
    std::array<TransportEvent, 16> fresh;
    absl::StatusOr<int> count = inner_->Poll(absl::MakeSpan(fresh));
    if (!count.ok()) return count;
    for (size_t i = 0; i < static_cast<size_t>(*count); ++i) Keep(std::move(fresh[i]));
    return HandOut(events);
  }

  void Withdraw() override { inner_->Withdraw(); }
  bool Part() override { return inner_->Part() && kept_.empty(); }

  int outstanding() const override {
    return inner_->outstanding() + static_cast<int>(kept_.size());
  }

 private:
  struct Kept {
    TransportEvent event;
    int64_t polls_left;
  };

  void Keep(TransportEvent event) {
    if (events_++ == plan_.failing_event) event.status = Injected("an operation");
    kept_.push_back({std::move(event), dice_.Between(0, plan_.delay_polls_max)});
    if (!plan_.shuffle) return;
    const int64_t last = static_cast<int64_t>(kept_.size()) - 1;
    std::swap(kept_.back(), kept_[static_cast<size_t>(dice_.Between(0, last))]);
  }

  int HandOut(absl::Span<TransportEvent> events) {
    size_t count = 0, left = 0;
    for (Kept& kept : kept_) {
      if (count < events.size() && kept.polls_left-- <= 0) {
        events[count++] = std::move(kept.event);
      } else {
        std::swap(kept_[left++], kept);
      }
    }
    kept_.resize(left);
    return static_cast<int>(count);
  }

  std::unique_ptr<Transport> inner_;
  const FaultPlan plan_;
  oracle::Dice dice_;
  std::vector<Kept> kept_;
  int64_t starts_ = 0;
  int64_t polls_ = 0;
  int64_t events_ = 0;
};

class FaultyFabric final : public PassingFabric {
 public:
  FaultyFabric(std::unique_ptr<Fabric> inner, const FaultPlan& plan)
      : PassingFabric(std::move(inner)), plan_(plan) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    ++gathers_;
    return inner_->StartAllGather(record);
  }
  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    if (plan_.failing_gather >= 0 && gathers_ > plan_.failing_gather) return Injected("a gather");
    return inner_->PollAllGather(all, missing);
  }
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    if (plan_.failing_open) return Injected("OpenTransport");
    absl::StatusOr<std::unique_ptr<Transport>> inner = inner_->OpenTransport();
    if (!inner.ok()) return inner;
    return std::make_unique<FaultyTransport>(*std::move(inner), plan_);
  }

  absl::Status CheckOtherThread() const override {
    return plan_.one_thread ? Injected("CheckOtherThread") : inner_->CheckOtherThread();
  }

 private:
  const FaultPlan plan_;
  int64_t gathers_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> MakeFaultyFabric(std::unique_ptr<Fabric> inner, const FaultPlan& plan) {
  return std::make_unique<FaultyFabric>(std::move(inner), plan);
}

void RunFaulty(int size, int faulty, const FaultPlan& plan, const RankBody& body) {
  std::vector<std::unique_ptr<Fabric>> fabrics =
      MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(size), 0));
  for (int rank = 0; rank < size; ++rank) {
    if (faulty >= 0 && faulty != rank) continue;
    FaultPlan own = plan;
    own.seed = plan.seed * 100 + static_cast<uint64_t>(rank);
    auto& fabric = fabrics[static_cast<size_t>(rank)];
    fabric = MakeFaultyFabric(std::move(fabric), own);
  }
  RunRanksOn(std::move(fabrics), body);
}

}  // namespace sluice::session_test
