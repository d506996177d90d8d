// The worker behind UcxWorker: what its transports share, and who gets what has come.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_HUB_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_HUB_H_

#include <ucp/api/ucp.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/tag_lines.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_flights.h"
#include "transport/ucx/ucx_library.h"
#include "transport/ucx/ucx_networks.h"
#include "transport/ucx/ucx_peer.h"
#include "transport/ucx/ucx_record.h"
#include "transport/ucx/ucx_worker.h"

namespace sluice {

class UcxTransport;

// A message that its sender has announced.
struct UcxAnnounced {
  uint64_t bytes = 0;
  uint64_t send = 0;  // by which the sender knows it
};

// Words that have come for a transport, also before the transport is opened here.
struct UcxPost {
  // Announcements of one rank that may wait. Senders hold no more operations than this.
  static constexpr int kMaxAnnounced = 1 << 18;

  explicit UcxPost(int ranks) : parted(static_cast<size_t>(ranks)) {}
  TagLines<UcxAnnounced> lines{kMaxAnnounced};
  std::vector<uint8_t> parted;        // by rank: it lets no more sends go
  UcxTransport* transport = nullptr;  // null: not opened yet
};

class UcxHub final : public UcxWorker, public std::enable_shared_from_this<UcxHub> {
 public:
  static absl::StatusOr<std::shared_ptr<UcxHub>> Make(const UcxLibrary& library, UcxTcp tcp);
  ~UcxHub() override;

  std::string version() const override { return library_.version(); }
  std::string address() const override { return address_; }
  absl::Status SetPeers(int rank, std::vector<std::string> addresses) override;
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(int number) override;
  void Progress() override;
  absl::Status CheckRanks() override;

  // For its transports. All below with the lock held.
  std::mutex& mutex() { return mutex_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  UcxPeer& peer(int rank) { return *peers_[static_cast<size_t>(rank)]; }
  const UcxLibrary& library() const { return library_; }
  UcxFlights& flights() { return *flights_; }
  // UCX's tag of a payload, which none has had.
  uint64_t NextData() { return next_data_++; }
  // Moves everything on.
  void Advance();
  // Sends records that have been told since.
  void Attend();
  // The transport ends: what comes for it is forgotten from now on.
  void CloseTransport(int number);

 private:
  UcxHub(const UcxLibrary& library, uint64_t token) : library_(library), token_(token) {}

  absl::Status Begin(UcxTcp tcp);
  absl::Status MakeContext(const UcxNetworks& networks);
  absl::Status CheckReach();
  absl::StatusOr<std::string> AskForAddress() const;
  static ucs_status_t OnMessage(void* hub, const void* header, size_t header_length, void* data,
                                size_t length, const ucp_am_recv_param_t* param);
  void TakeBatch(const std::byte* bytes, size_t length);
  void Take(int src, const UcxRecord& record);
  void TakeAnnouncement(int src, const UcxRecord& record);
  void TakeParting(int src, const UcxRecord& record);
  // That of the number; null: it is closed, or `src` speaks of more than there can be.
  UcxPost* FindPost(int number, int src);
  void LandFlights();
  void SeeToBroken();

  const UcxLibrary& library_;
  const uint64_t token_;
  std::mutex mutex_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  std::unique_ptr<UcxFlights> flights_;
  std::optional<UcxPeersShared> shared_;
  int rank_ = -1;
  std::vector<std::unique_ptr<UcxPeer>> peers_;  // by rank; empty before SetPeers
  absl::flat_hash_map<int, std::unique_ptr<UcxPost>> posts_;
  int unopened_ = 0;  // of posts_
  std::bitset<kMaxTransports> closed_;
  std::vector<std::pair<int, UcxRecord>> inbox_;     // from which rank
  std::vector<std::pair<int, UcxRecord>> handling_;  // that were in it
  std::vector<UcxPeer*> closing_;                    // broken, and not closed yet
  uint64_t next_data_ = 0;
  uint32_t advances_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_HUB_H_
