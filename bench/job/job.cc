// The job that the flag and the environment ask for; jobs without MPI.
#include "job/job.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/ranks.h"
#include "sluice/fabric.h"
#include "sluice/world.h"

namespace sluice::bench {
namespace {

// What jobs without MPI have in common. Whoever started the processes ends those that are left.
class JobWithoutMpi : public Job {
 public:
  std::string mpi() const override { return "no MPI"; }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(int ranks_per_node,
                                                     absl::Duration timeout) override {
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = NextFabric(timeout);
    if (!fabric.ok()) return fabric.status();
    return PlanNodes(*std::move(fabric), ranks_per_node);
  }

  void Leave() override {}

  [[noreturn]] void Abort(int code) override {
    std::fflush(nullptr);
    std::_Exit(code);
  }

 protected:
  using Job::Job;
  virtual absl::StatusOr<std::unique_ptr<Fabric>> NextFabric(absl::Duration timeout) = 0;
};

class WorldJob final : public JobWithoutMpi {
 public:
  WorldJob(std::unique_ptr<World> world, std::unique_ptr<Fabric> first)
      : JobWithoutMpi(first->rank(), first->size()),
        world_(std::move(world)),
        first_(std::move(first)) {}

  FabricKind kind() const override { return FabricKind::kWorld; }
  std::string fabric() const override { return absl::StrCat("world at ", world_->store_address()); }
  void Leave() override {
    first_ = nullptr;
    world_ = nullptr;
  }

 private:
  absl::StatusOr<std::unique_ptr<Fabric>> NextFabric(absl::Duration timeout) override {
    if (first_ != nullptr) return std::move(first_);
    return world_->MakeFabric({.timeout = timeout});
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<Fabric> first_;  // made to know how many ranks there are
};

class JobAlone final : public JobWithoutMpi {
 public:
  JobAlone() : JobWithoutMpi(0, 1) {}

  FabricKind kind() const override { return FabricKind::kAlone; }
  std::string fabric() const override { return "none: one process"; }

 private:
  absl::StatusOr<std::unique_ptr<Fabric>> NextFabric(absl::Duration /*timeout*/) override {
    absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> fabrics = MakeLocalFabric(1);
    if (!fabrics.ok()) return fabrics.status();
    return std::move(fabrics->front());
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> JoinWorldJob(absl::Duration timeout) {
  absl::StatusOr<WorldOptions> options = WorldOptionsFromEnvironment();
  if (!options.ok()) return options.status();
  // SLUICE_WORLD_TIMEOUT is for processes that start far apart.
  if (options->timeout != absl::InfiniteDuration()) timeout = options->timeout;
  options->store_timeout = timeout;
  absl::StatusOr<std::unique_ptr<World>> world = World::Join(*options);
  if (!world.ok()) return world.status();
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = (*world)->MakeFabric({.timeout = timeout});
  if (!fabric.ok()) return fabric.status();
  return std::make_unique<WorldJob>(*std::move(world), *std::move(fabric));
}

std::unique_ptr<Job> MakeJobAlone() { return std::make_unique<JobAlone>(); }

absl::StatusOr<std::unique_ptr<Job>> StartJob(const JobOptions& options) {
  const absl::StatusOr<FabricKind> kind = ChooseFabric(options.fabric, OwnLaunch(), HasMpi());
  if (!kind.ok()) return kind.status();
  switch (*kind) {
    case FabricKind::kMpi:
      return StartMpiJob(options);
    case FabricKind::kWorld:
      return JoinWorldJob(options.timeout);
    case FabricKind::kAlone:
      break;
  }
  return MakeJobAlone();
}

}  // namespace sluice::bench
