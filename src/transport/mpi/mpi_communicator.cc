// Communicators of our own: duplicated within a deadline, retired when nobody uses them.
#include "transport/mpi/mpi_communicator.h"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/mpi/mpi_error.h"

namespace sluice {
namespace {

constexpr char kDuplicating[] = "duplicating the communicator";

// MPI writes here until the duplication is complete, so an unfinished one is never freed.
struct Duplication {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
};

// Has errors on a communicator of the user's returned while it lives.
class ReturnErrors {
 public:
  explicit ReturnErrors(MPI_Comm comm) : comm_(comm) {
    if (MPI_Comm_get_errhandler(comm_, &previous_) != MPI_SUCCESS) return;
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~ReturnErrors() {
    if (previous_ == MPI_ERRHANDLER_NULL) return;
    MPI_Comm_set_errhandler(comm_, previous_);
    MPI_Errhandler_free(&previous_);
  }
  ReturnErrors(const ReturnErrors&) = delete;
  ReturnErrors& operator=(const ReturnErrors&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler previous_ = MPI_ERRHANDLER_NULL;
};

// How many times twice kMpiTagsPerLength tags there are, down to a prime number. So lengths that
// differ by a multiple of some power of two still fall into different classes.
int LengthClasses() {
  void* value = nullptr;
  int found = 0;
  if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found) != MPI_SUCCESS || found == 0)
    return 1;
  // As many blocks are left for bodies.
  const int blocks = *static_cast<const int*>(value) / kMpiTagsPerLength / 2;
  for (const int prime : {32749, 4093, 1021, 509, 127, 61, 31, 13, 7, 3, 2}) {
    if (prime <= blocks) return prime;
  }
  return 1;
}

}  // namespace

absl::StatusOr<std::shared_ptr<MpiCommunicator>> MpiCommunicator::Duplicate(
    MPI_Comm comm, const Deadline& deadline, RankProcesses* processes) {
  const ReturnErrors return_errors(comm);
  auto duplication = std::make_unique<Duplication>();
  int code = MPI_Comm_idup(comm, &duplication->comm, &duplication->request);
  if (code != MPI_SUCCESS) return MpiError(code, "MPI_Comm_idup", ErrorText(kDuplicating));
  int complete = 0;
  while (complete == 0) {
    code = MPI_Test(&duplication->request, &complete, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      static_cast<void>(duplication.release());
      return MpiError(code, "MPI_Test", ErrorText(kDuplicating));
    }
    if (complete == 0 && deadline.Passed()) {
      static_cast<void>(duplication.release());
      return absl::DeadlineExceededError(absl::StrCat(
          kDuplicating, ": after ", absl::FormatDuration(deadline.timeout()),
          " not all of its ranks have called, or one has ended; MPI does not tell which"));
    }
    if (complete == 0 && processes != nullptr) {
      if (absl::Status status = processes->Check(); !status.ok()) {
        static_cast<void>(duplication.release());
        return Annotate(status, kDuplicating);
      }
    }
    if (complete == 0) {
      PollRetiredMpiCommunicators();
      std::this_thread::yield();
    }
  }
  return std::make_shared<MpiCommunicator>(duplication->comm);
}

MpiCommunicator::MpiCommunicator(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  length_classes_ = LengthClasses();
}

int MpiCommunicator::ChannelTag(int channel_tag, size_t bytes) const {
  const int length_class = static_cast<int>(bytes % static_cast<size_t>(length_classes_));
  return length_class * kMpiTagsPerLength + kMpiChannelTagBase + channel_tag;
}

int MpiCommunicator::BodyTag(int channel_tag, size_t bytes) const {
  return length_classes_ * kMpiTagsPerLength + ChannelTag(channel_tag, bytes);
}

MpiCommunicator::~MpiCommunicator() {
  if (!abandoned_ && MpiIsUsable()) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    SLUICE_CHECK(level >= MPI_THREAD_SERIALIZED || std::this_thread::get_id() == thread_,
                 "a thread ends what another one's calls of MPI have made");
    RetireMpiCommunicator(comm_, std::move(unfinished_));
  } else {
    for (auto& memory : unfinished_.memory) KeepForEver(std::move(memory));
  }
}

void MpiCommunicator::Keep(MpiUnfinished unfinished) {
  std::erase(unfinished.requests, MPI_REQUEST_NULL);
  if (unfinished.requests.empty()) return;
  for (const MPI_Request request : unfinished.requests) unfinished_.requests.push_back(request);
  for (auto& memory : unfinished.memory) unfinished_.memory.push_back(std::move(memory));
}

bool MpiIsUsable() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

bool MpiTakesDeviceMemory() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

bool WithdrawReceive(MPI_Request* request) {
  if (*request == MPI_REQUEST_NULL) return true;
  MPI_Cancel(request);
  int complete = 0;
  // An error ends the request as well.
  if (MPI_Test(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return true;
  return complete != 0;
}

}  // namespace sluice
