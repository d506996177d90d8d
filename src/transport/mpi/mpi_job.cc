// A job of MPI: MPI_COMM_WORLD.
#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "sluice/job.h"
#include "sluice/mpi.h"
#include "transport/mpi_entry.h"

namespace sluice {
namespace {

bool Says(int (*call)(int*)) {
  int flag = 0;
  return call(&flag) == MPI_SUCCESS && flag != 0;
}

bool IsInitialized() { return Says(MPI_Initialized); }

class MpiJob final : public Job {
 public:
  MpiJob(int rank, int size, bool finalizes)
      : Job(JobKind::kMpi, rank, size), finalizes_(finalizes) {}
  ~MpiJob() override {
    if (finalizes_ && !Says(MPI_Finalized)) MPI_Finalize();
  }

  std::string Describe() const override { return "mpi"; }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(absl::Duration timeout) override {
    return MakeMpiFabric(MPI_COMM_WORLD, {.timeout = timeout});
  }

  [[noreturn]] void Abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  const bool finalizes_;
};

absl::StatusOr<std::unique_ptr<Job>> Start(const JobOptions& options) {
  if (Says(MPI_Finalized)) return absl::FailedPreconditionError("MPI has been finalized");
  const bool was_initialized = IsInitialized();
  if (!was_initialized) {
    int provided = 0;
    const int wanted = options.all_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
    if (MPI_Init_thread(nullptr, nullptr, wanted, &provided) != MPI_SUCCESS) {
      return absl::InternalError("MPI_Init_thread has failed");
    }
  }
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<MpiJob>(rank, size, !was_initialized);
}

}  // namespace
}  // namespace sluice

const sluice::MpiEntry SluiceMpiEntry = {sluice::IsInitialized, sluice::Start};
