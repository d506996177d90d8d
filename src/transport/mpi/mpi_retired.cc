// Emptying communicators, and the barrier before they are freed.
#include "transport/mpi/mpi_retired.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "transport/mpi/mpi_communicator.h"

namespace sluice {
namespace {

class Retired {
 public:
  Retired(MPI_Comm comm, MpiUnfinished unfinished)
      : comm_(comm), unfinished_(std::move(unfinished)) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    while ((int64_t{1} << rounds_) < size_) ++rounds_;
  }

  enum class Outcome : uint8_t {
    kUnderWay,
    kOver,
    kFailed,  // MPI reports an error: what is under way on it is not known
  };

  Outcome Advance() {
    if (!Empty() || !TestUnfinished() || !AdvanceBarrier()) {
      return failed_ ? Outcome::kFailed : Outcome::kUnderWay;
    }
    MPI_Comm_free(&comm_);
    return Outcome::kOver;
  }

 private:
  bool Check(int code) {
    failed_ = failed_ || code != MPI_SUCCESS;
    return code == MPI_SUCCESS;
  }

  // Takes what has come. False while a message is being thrown away, or after a failure.
  bool Empty() {
    while (true) {
      int complete = 0;
      if (!Check(MPI_Test(&discarding_, &complete, MPI_STATUS_IGNORE)) || complete == 0) {
        return false;
      }
      scratch_ = {};
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (!Check(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &status))) {
        return false;
      }
      if (found == 0) return true;
      if (status.MPI_TAG == kMpiOverTag) MarkArrived(status.MPI_SOURCE);
      // Room for all of it: a message that is longer than its receive is not safe everywhere.
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      scratch_.resize(static_cast<size_t>(std::max(bytes, 1)));
      if (!Check(MPI_Imrecv(scratch_.data(), bytes, MPI_BYTE, &message, &discarding_))) {
        return false;
      }
    }
  }

  bool TestUnfinished() {
    std::vector<MPI_Request>& requests = unfinished_.requests;
    for (MPI_Request& request : requests) {
      int complete = 0;
      // An operation that fails has ended as well.
      if (MPI_Test(&request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        request = MPI_REQUEST_NULL;
      }
    }
    std::erase(requests, MPI_REQUEST_NULL);
    if (!requests.empty()) return false;
    unfinished_.memory.clear();
    return true;
  }

  // In round k each rank hears from the one that is 2^k before it.
  void MarkArrived(int src) {
    const int64_t distance = (rank_ - src + size_) % size_;
    for (int round = 0; round < rounds_; ++round) {
      if (int64_t{1} << round == distance) arrived_ |= uint64_t{1} << round;
    }
  }

  bool AdvanceBarrier() {
    while (round_ < rounds_) {
      if (!spoken_) {
        const int dst = static_cast<int>((rank_ + (int64_t{1} << round_)) % size_);
        MPI_Request request = MPI_REQUEST_NULL;
        if (!Check(MPI_Isend(nullptr, 0, MPI_BYTE, dst, kMpiOverTag, comm_, &request))) {
          return false;
        }
        unfinished_.requests.push_back(request);
        spoken_ = true;
      }
      if ((arrived_ >> round_ & 1) == 0) return false;
      ++round_;
      spoken_ = false;
    }
    return TestUnfinished();
  }

  MPI_Comm comm_;
  MpiUnfinished unfinished_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::byte> scratch_;  // of the message that is thrown away
  MPI_Request discarding_ = MPI_REQUEST_NULL;
  int rounds_ = 0;
  int round_ = 0;         // of the barrier, which this rank is in
  bool spoken_ = false;   // in this round
  uint64_t arrived_ = 0;  // by round: the message of that round is here
  bool failed_ = false;
};

// This rank's retired communicators. Each poll carries on with all of them, so that communicators
// of a session that has ended are freed while the next one lives.
struct AllRetired {
  std::mutex mutex;
  std::list<Retired> list;
  std::list<Retired> failed;
  std::atomic<int> count = 0;  // of `list`, to be read without the lock
};

// Communicators that are not freed yet, of all ranks in this process.
std::atomic<int> under_way = 0;

// A process is one rank. But a simulated MPI has many ranks in one process, and its calls act for
// the rank that makes them. So each rank there carries on with its own communicators alone.
AllRetired& All() {
  // Never destroyed: MPI may still read and write what the last ones keep.
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<int, AllRetired>;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::lock_guard<std::mutex> lock(*mutex);
  return (*all)[rank];
}

void SetCount(AllRetired* all) {
  const int count = static_cast<int>(all->list.size());
  under_way += count - all->count.exchange(count);
}

}  // namespace

void RetireMpiCommunicator(MPI_Comm comm, MpiUnfinished unfinished) {
  AllRetired& all = All();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.list.emplace_back(comm, std::move(unfinished));
    SetCount(&all);
  }
  PollRetiredMpiCommunicators();
}

int PollRetiredMpiCommunicators() {
  if (under_way == 0) return 0;
  AllRetired& all = All();
  const std::unique_lock<std::mutex> lock(all.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return all.count;
  for (auto it = all.list.begin(); it != all.list.end();) {
    const auto next = std::next(it);
    switch (it->Advance()) {
      case Retired::Outcome::kUnderWay:
        break;
      case Retired::Outcome::kOver:
        all.list.erase(it);
        break;
      case Retired::Outcome::kFailed:
        all.failed.splice(all.failed.end(), all.list, it);
        break;
    }
    it = next;
  }
  SetCount(&all);
  return all.count;
}

}  // namespace sluice
