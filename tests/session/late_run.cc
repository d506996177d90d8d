// Memory on demand.
#include "session/late_run.h"

#include <algorithm>
#include <thread>

#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

constexpr int kHesitation = 50;

std::vector<Supplied> RandomTimes(oracle::Dice* dice, size_t tensors) {
  std::vector<Supplied> when;
  const bool all_asked = dice->Chance(40);
  for (size_t t = 0; t < tensors; ++t) {
    when.push_back(all_asked ? Supplied::kAsked
                             : dice->Pick<Supplied>({Supplied::kAtStart, Supplied::kEarly,
                                                     Supplied::kAsked, Supplied::kHesitant}));
  }
  return when;
}

}  // namespace

LateRun::LateRun(Session* session, Transfer* transfer, uint64_t round, std::vector<Supplied> when)
    : session_(session), spec_(transfer->spec()), round_(round) {
  std::vector<TensorView> src, dst;
  StartOptions options = {.events = true};
  for (size_t t = 0; t < spec_.tensors.size(); ++t) {
    Tensor& tensor = tensors_.emplace_back();
    tensor.when = when[t];
    tensor.src = std::make_unique<TensorMemory>(spec_.tensors[t], t, Side::kSource, session->rank(),
                                                ViewStyle::kDense);
    tensor.src->Fill(round);
    src.push_back(tensor.src->view());
    tensor.dst = MakeDst(t);
    tensor.bytes = tensor.dst->bytes();
    if (IsLate(tensor)) tensor.dst.reset();
    options.late_destinations = options.late_destinations || tensor.when != Supplied::kAtStart;
    dst.push_back(tensor.dst != nullptr ? tensor.dst->view() : TensorView());
  }
  const auto run = session->Start(transfer, src, dst, options);
  EXPECT_TRUE(run.ok()) << run.status();
  run_ = run.value_or(Run());
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (IsLate(tensors_[t]) && tensors_[t].when == Supplied::kEarly) SupplyOne(t);
  }
}

std::unique_ptr<TensorMemory> LateRun::MakeDst(size_t t) const {
  auto memory = std::make_unique<TensorMemory>(spec_.tensors[t], t, Side::kDestination,
                                               session_->rank(), ViewStyle::kDense);
  memory->Poison(round_);
  return memory;
}

void LateRun::SupplyOne(size_t t) {
  Tensor& tensor = tensors_[t];
  tensor.dst = MakeDst(t);
  tensor.patience = -1;
  const absl::Status status = run_.Supply(static_cast<int>(t), tensor.dst->view());
  if (cancelled_ && absl::IsFailedPrecondition(status)) {
    tensor.dst.reset();
    return;
  }
  EXPECT_TRUE(status.ok()) << status;
}

void LateRun::Supply() {
  for (size_t t = 0; t < tensors_.size() && !failed_; ++t) {
    if (tensors_[t].patience > 0 && --tensors_[t].patience == 0) SupplyOne(t);
  }
}

void LateRun::Take(const Event& event) {
  EXPECT_FALSE(failed_) << "an event after a failure";
  if (event.kind == Event::Kind::kFailed) {
    EXPECT_EQ(event.tensor, -1);
    failed_ = true;
    failure_ = event.status;
    return;
  }
  ASSERT_GE(event.tensor, 0);
  ASSERT_LT(event.tensor, static_cast<int>(tensors_.size()));
  const size_t t = static_cast<size_t>(event.tensor);
  if (event.kind == Event::Kind::kNeedsMemory) {
    TakeNeed(t);
  } else {
    TakeDone(t);
  }
}

// Only when all earlier windows are done here.
void LateRun::TakeNeed(size_t t) {
  Tensor& tensor = tensors_[t];
  EXPECT_TRUE(IsLate(tensor)) << "tensor " << t;
  EXPECT_EQ(++tensor.asked, 1) << "tensor " << t;
  for (size_t other = 0; other < tensors_.size(); ++other) {
    if (spec_.tensors[other].window >= spec_.tensors[t].window) continue;
    EXPECT_EQ(tensors_[other].done, 1) << "tensor " << other << " is before " << t;
  }
  if (tensor.when == Supplied::kAsked) tensor.patience = 1;
  if (tensor.when == Supplied::kHesitant) tensor.patience = kHesitation;
}

// Both sides' memory goes: whatever touches it from here on is found out.
void LateRun::TakeDone(size_t t) {
  Tensor& tensor = tensors_[t];
  EXPECT_EQ(++tensor.done, 1) << "tensor " << t;
  EXPECT_TRUE(tensor.src->Holds(round_)) << tensor.src->Difference(round_);
  tensor.src->Poison(round_ + 1);
  if (tensor.bytes == 0) return;
  ASSERT_NE(tensor.dst, nullptr) << "tensor " << t << " is done without memory";
  EXPECT_TRUE(tensor.dst->Holds(round_)) << "tensor " << t << " " << tensor.dst->Difference(round_);
  if (IsLate(tensor)) {
    tensor.dst.reset();
  } else {
    tensor.dst->Poison(round_ + 1);
  }
}

void LateRun::ExpectAllDone() const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const Tensor& tensor = tensors_[t];
    EXPECT_EQ(tensor.done, 1) << "tensor " << t;
    EXPECT_TRUE(tensor.src->IsPoisoned(round_ + 1)) << "tensor " << t;
    if (tensor.dst != nullptr) {
      EXPECT_TRUE(tensor.bytes == 0 || tensor.dst->IsPoisoned(round_ + 1)) << "tensor " << t;
    }
    const bool must_ask = tensor.when == Supplied::kAsked || tensor.when == Supplied::kHesitant;
    if (IsLate(tensor) && must_ask) {
      EXPECT_EQ(tensor.asked, 1) << "tensor " << t;
    }
  }
}

void Complete(Session* session, const std::vector<LateRun*>& runs) {
  const auto is_open = [](const LateRun* run) { return !run->run().IsDone(); };
  while (true) {
    const bool open = std::any_of(runs.begin(), runs.end(), is_open);
    Event event;
    while (session->PollEvent(&event)) {
      const auto run = std::find_if(runs.begin(), runs.end(), [&event](const LateRun* each) {
        return each->run() == event.run;
      });
      ASSERT_NE(run, runs.end()) << "an event of run " << event.run.number();
      (*run)->Take(event);
    }
    for (LateRun* run : runs) run->Supply();
    if (!open || testing::Test::HasFatalFailure()) return;
    static_cast<void>(session->Poll());
    std::this_thread::yield();  // other ranks share the processors
  }
}

void RunLateJob(Rank& self, const RandomJob& job, uint64_t seed) {
  const auto session = OpenSession(self, job.options);
  const std::vector<Transfer*> transfers = CompileAll(session.get(), job.specs);
  oracle::Dice dice(seed * 100 + static_cast<uint64_t>(self.rank));
  for (uint64_t round = 1; round <= 3; ++round) {
    std::vector<std::unique_ptr<LateRun>> runs;
    std::vector<LateRun*> pointers;
    for (Transfer* transfer : transfers) {
      runs.push_back(std::make_unique<LateRun>(
          session.get(), transfer, round, RandomTimes(&dice, transfer->spec().tensors.size())));
      pointers.push_back(runs.back().get());
    }
    // Without events, so that it brings none.
    const Flight other = Launch(session.get(), transfers[0], round + 10);
    Complete(session.get(), pointers);
    if (testing::Test::HasFatalFailure()) return;
    Land(session.get(), other);
    for (const LateRun* run : pointers) {
      EXPECT_TRUE(run->run().Wait().ok());
      run->ExpectAllDone();
    }
    Event event;
    EXPECT_FALSE(session->PollEvent(&event)) << "of run " << event.run.number();
  }
  ExpectWithinLimits(*session);
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace sluice::session_test
