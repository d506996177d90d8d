// The connection to one other rank: records to it, in batches, and how it breaks.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_PEER_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_PEER_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_library.h"
#include "transport/ucx/ucx_record.h"

namespace sluice {

class UcxPeer;

// State that the connections of a worker share.
struct UcxPeersShared {
  const UcxLibrary& library;
  ucp_worker_h worker;
  int own_rank = -1;
  std::vector<UcxPeer*> broken;  // since somebody has looked; they are to be closed
  std::vector<UcxPeer*> busy;    // to be attended to
};

// Stays where it is: UCX holds its address. Thread: one at a time.
class UcxPeer {
 public:
  UcxPeer(UcxPeersShared* shared, int rank, UcxAddress address)
      : shared_(shared), rank_(rank), address_(std::move(address)) {}
  UcxPeer(const UcxPeer&) = delete;
  UcxPeer& operator=(const UcxPeer&) = delete;

  int rank() const { return rank_; }
  // Null: not connected, or broken.
  ucp_ep_h endpoint() const { return endpoint_; }
  // Unavailable, and names both ranks, once the connection has broken. It stays so.
  const absl::Status& failure() const { return failure_; }

  // Makes the connection unless there was one. Does not wait. The other rank is greeted, so that it
  // notices the end of this one.
  void Connect();

  // Keeps the record until UCX takes it; connects if need be. To a broken connection: forgets it.
  void Tell(const UcxRecord& record);

  // True if records wait for a rank that has spoken before.
  bool HasMoreToTell() const {
    return failure_.ok() && taken_ > 0 && (sending_ != nullptr || next_ < waiting_.size());
  }

  // Breaks the connection.
  void Break(const absl::Status& why);
  void Close();
  // Whether nothing of a broken connection is left: UCX touches no memory for it any more.
  bool is_closed() const { return endpoint_ == nullptr && closing_ == nullptr; }

  // Goes on with records and with what UCX has been asked for. False: there is nothing to attend
  // to.
  bool Attend();

  // The number of the next batch from the other rank. False, and breaks: it is another one.
  bool TakeSequence(uint32_t sequence);

 private:
  struct Batch {
    UcxBatchHead head;
    UcxRecord records[kUcxBatchRecords];
  };
  static void OnError(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  void BecomeBusy();
  void SendBatches();
  // Whether the request has ended; then it is null. Breaks after an error.
  bool HasEnded(ucs_status_ptr_t* request);

  UcxPeersShared* const shared_;
  const int rank_;
  const UcxAddress address_;
  ucp_ep_h endpoint_ = nullptr;
  absl::Status failure_;
  bool busy_ = false;               // is in the list of them
  uint32_t sent_ = 0;               // batches
  uint32_t taken_ = 0;              // likewise
  std::vector<UcxRecord> waiting_;  // from next_ on
  size_t next_ = 0;
  Batch batch_ = {};                    // that UCX reads
  ucs_status_ptr_t sending_ = nullptr;  // of it
  ucs_status_ptr_t closing_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_PEER_H_
