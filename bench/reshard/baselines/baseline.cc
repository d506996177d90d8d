// Baselines by name, over messages of MPI.
#include "reshard/baselines/baseline.h"

#include <utility>

#include "reshard/baselines/wire.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Baseline> (*make)();
};

constexpr Entry kEntries[] = {{"serial", &MakeSerialBaseline},
                              {"isend", &MakeIsendBaseline},
                              {"isend-packed", &MakeIsendPackedBaseline},
                              {"alltoallw", &MakeAlltoallwBaseline},
                              {"gather-broadcast", &MakeGatherBroadcastBaseline},
                              {"mpi-collective", &MakeMpiCollectiveBaseline},
                              {"memcpy-own", &MakeMemcpyOwnBaseline},
                              {"bound", &MakeBoundBaseline},
                              {"memcpy", &MakeMemcpyOwnBaseline}};  // its old name

class MakerOverMpi final : public BaselineMaker {
 public:
  explicit MakerOverMpi(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  std::unique_ptr<Baseline> Make(absl::string_view name) override { return MakeBaseline(name); }
  void Arm(absl::Duration patience, std::function<absl::Status()> progress) override {
    wire_->Arm(patience, std::move(progress));
  }
  Wire* wire() override { return wire_.get(); }

 private:
  const std::unique_ptr<Wire> wire_;
};

}  // namespace

std::unique_ptr<Baseline> MakeBaseline(absl::string_view name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make();
  }
  return nullptr;
}

absl::Status FillOnce(const BaselineJob& job) {
  const std::unique_ptr<Baseline> isend = MakeIsendBaseline();
  absl::Status status = isend->Plan(job);
  return status.ok() ? isend->Run() : status;
}

absl::StatusOr<std::unique_ptr<BaselineMaker>> MakeBaselineMaker(absl::Duration timeout) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Wire> wire, Wire::Create(timeout));
  return std::make_unique<MakerOverMpi>(std::move(wire));
}

}  // namespace sluice::bench
