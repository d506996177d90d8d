// MPI functions, redefined to fail on demand and to count.
#include "mpi_faults.h"

#include <utility>

namespace sluice {

MpiFaults& Faults() {
  static MpiFaults faults;
  return faults;
}

namespace {

bool Fails(MpiFault& fault) { return ++fault.calls == fault.fail_at; }

}  // namespace
}  // namespace sluice

using sluice::Fails;
using sluice::Faults;

int MPI_Issend(const void* data, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm,
               MPI_Request* request) {
  if (Fails(Faults().issend)) return Faults().issend.code;
  return PMPI_Issend(data, count, type, dst, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (Fails(Faults().irecv)) return Faults().irecv.code;
  return PMPI_Irecv(data, count, type, src, tag, comm, request);
}

int MPI_Iprobe(int src, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  if (Fails(Faults().iprobe)) return Faults().iprobe.code;
  return PMPI_Iprobe(src, tag, comm, found, status);
}

int MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                 MPI_Status statuses[]) {
  if (Fails(Faults().testsome)) return Faults().testsome.code;
  const int code = PMPI_Testsome(incount, requests, outcount, indices, statuses);
  if (code != MPI_SUCCESS || *outcount == MPI_UNDEFINED) return code;
  bool failed = false;
  for (int i = 0; i < *outcount; ++i) {
    const bool fails = ++Faults().completions == Faults().fail_completion;
    statuses[i].MPI_ERROR = fails ? MPI_ERR_OTHER : MPI_SUCCESS;
    failed = failed || fails;
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request* request) {
  const int code = PMPI_Cancel(request);
  const std::function<void()> after = std::exchange(Faults().after_cancel, nullptr);
  if (after) after();
  return code;
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* duplicate, MPI_Request* request) {
  if (Fails(Faults().comm_idup)) return Faults().comm_idup.code;
  return PMPI_Comm_idup(comm, duplicate, request);
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (Fails(Faults().comm_free)) return Faults().comm_free.code;
  return PMPI_Comm_free(comm);
}
