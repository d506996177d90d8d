// Ranks of MPI, of a world, and one process alone. Their texts cross a fabric of their own.
#include "ranks.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "sluice/fabric.h"
#include "sluice/world.h"
#if SLUICE_EXAMPLES_WITH_MPI
#include <mpi.h>

#include "sluice/mpi.h"
#endif

namespace examples {
namespace {

using FabricOr = absl::StatusOr<std::unique_ptr<sluice::Fabric>>;

#if SLUICE_EXAMPLES_WITH_MPI
class MpiRanks final : public Ranks {
 public:
  MpiRanks(int* argc, char*** argv) {
    int provided = 0;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MakeOwn();
  }
  ~MpiRanks() override {
    DropOwn();
    MPI_Finalize();
  }
  FabricOr MakeFabric() override { return sluice::MakeMpiFabric(MPI_COMM_WORLD); }

 private:
  [[noreturn]] void Abort() override {
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }
};
#endif

class WorldRanks final : public Ranks {
 public:
  WorldRanks() {
    auto options = sluice::WorldOptionsFromEnvironment();
    CheckOk(options.status());
    options->timeout = absl::Minutes(2);
    auto world = sluice::World::Join(*options);
    CheckOk(world.status());
    world_ = *std::move(world);
    MakeOwn();
  }
  // Nobody ends before all have come to their end. A rank that has gone already is no error any
  // more.
  ~WorldRanks() override { Exchange("end", nullptr).IgnoreError(); }
  FabricOr MakeFabric() override { return world_->MakeFabric(); }

 private:
  // The launcher ends the other ranks. Ranks of a world notice that this one has gone.
  [[noreturn]] void Abort() override { std::_Exit(1); }

  std::unique_ptr<sluice::World> world_;
};

class OneRank final : public Ranks {
 public:
  OneRank() { MakeOwn(); }
  FabricOr MakeFabric() override {
    auto fabrics = sluice::MakeLocalFabric(1);
    if (!fabrics.ok()) return fabrics.status();
    return std::move(fabrics->front());
  }

 private:
  [[noreturn]] void Abort() override { std::_Exit(1); }
};

}  // namespace

std::unique_ptr<Ranks> Ranks::Start([[maybe_unused]] int* argc, [[maybe_unused]] char*** argv) {
#if SLUICE_EXAMPLES_WITH_MPI
  const bool by_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
                         std::getenv("PMI_RANK") != nullptr || std::getenv("PMIX_RANK") != nullptr;
  const bool wants_world = std::getenv("SLUICE_WORLD") != nullptr;
  if (!wants_world && (by_mpirun || !sluice::EnvironmentHasWorld())) {
    return std::make_unique<MpiRanks>(argc, argv);
  }
#endif
  if (sluice::EnvironmentHasWorld()) return std::make_unique<WorldRanks>();
  return std::make_unique<OneRank>();
}

void Ranks::MakeOwn() {
  FabricOr fabric = MakeFabric();
  CheckOk(fabric.status());
  own_ = *std::move(fabric);
}

absl::Status Ranks::Exchange(const std::string& mine, std::vector<std::string>* texts) {
  sluice::RecordExchange exchange(own_.get());
  absl::Status status = exchange.Start(mine);
  while (status.ok()) {
    const absl::StatusOr<bool> done = exchange.Poll(texts, nullptr);
    if (!done.ok() || *done) return done.status();
    if (meanwhile_) meanwhile_();
    sched_yield();
  }
  return status;
}

std::vector<std::string> Ranks::AllGather(const std::string& mine) {
  std::vector<std::string> texts;
  CheckOk(Exchange(mine, &texts));
  return texts;
}

std::vector<int64_t> Ranks::AllGather(int64_t mine) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(size()));
  for (const std::string& text : AllGather(std::to_string(mine))) {
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

int64_t Ranks::Sum(int64_t mine) {
  const std::vector<int64_t> numbers = AllGather(mine);
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

void Ranks::CheckOk(const absl::Status& status) {
  if (status.ok()) return;
  const std::string who = own_ == nullptr ? "" : "rank " + std::to_string(rank()) + ": ";
  std::fprintf(stderr, "%s%s\n", who.c_str(), status.ToString().c_str());
  Abort();
}

}  // namespace examples
