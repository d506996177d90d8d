// A fabric outside the time in which MPI may be called: refused, and when it outlives MPI harmless.
#include <mpi.h>

#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "sluice/mpi.h"
#include "sluice/transport.h"

namespace {

int failures = 0;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

bool IsRefused() {
  return sluice::MakeMpiFabric(MPI_COMM_WORLD).status().code() ==
         absl::StatusCode::kFailedPrecondition;
}

}  // namespace

int main(int argc, char** argv) {
  Expect(IsRefused(), "no fabric before MPI_Init");
  MPI_Init(&argc, &argv);
  absl::StatusOr<std::unique_ptr<sluice::Fabric>> fabric = sluice::MakeMpiFabric(MPI_COMM_WORLD);
  Expect(fabric.ok(), "a fabric after MPI_Init");
  if (!fabric.ok()) MPI_Abort(MPI_COMM_WORLD, 1);
  auto transport = (*fabric)->OpenTransport();
  Expect(transport.ok(), "a transport");
  auto second = (*fabric)->OpenTransport();
  Expect(second.ok(), "a second transport");
  MPI_Finalize();
  transport->reset();
  second->reset();
  fabric->reset();
  Expect(IsRefused(), "no fabric after MPI_Finalize");
  return failures == 0 ? 0 : 1;
}
