// MPI functions of this program that count their calls and fail when told to. They stand in front
// of the library's, which they reach by the profiling interface.
#ifndef SLUICE_MPI_TESTS_MPI_FAULTS_H_
#define SLUICE_MPI_TESTS_MPI_FAULTS_H_

#include <mpi.h>

#include <functional>

namespace sluice {

// One function: what it is to do, and what has happened since the last reset.
struct MpiFault {
  int fail_at = 0;           // the call that fails, counted from 1; 0: none
  int code = MPI_ERR_OTHER;  // what it returns
  int calls = 0;
};

struct MpiFaults {
  MpiFault issend;
  MpiFault irecv;
  MpiFault testsome;
  MpiFault iprobe;
  MpiFault comm_idup;
  MpiFault comm_free;
  std::function<void()> after_cancel;  // is called once, after the next MPI_Cancel
  // The completion that MPI_Testsome reports as failed, with its own code in its status, counted
  // from 1 over all calls; 0: none.
  int fail_completion = 0;
  int completions = 0;
};

// The one of this process.
MpiFaults& Faults();

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_MPI_FAULTS_H_
