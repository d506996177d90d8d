// One connection to another rank: frames that wait to be written, and the frame that comes in.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_LINK_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net/socket.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_rows.h"

namespace sluice {

class TcpLink;

// A user of a link. No user reads, writes or ends the link; all may queue frames.
class TcpLinkUser {
 public:
  virtual ~TcpLinkUser() = default;
  // A header has come. Says where the frame's bytes go, by `rows`, of which `frame.length` are
  // left; without memory they are thrown away. An error: the other rank breaks the rules.
  virtual absl::Status OnFrame(TcpLink& link, const TcpFrame& frame, TcpRows* rows) = 0;
  // The frame's bytes are there.
  virtual absl::Status OnPayload(TcpLink& link, const TcpFrame& frame) = 0;
  // The system has all of a frame that borrowed memory of `owner`.
  virtual void OnSent(TcpLink& link, const TcpFrame& frame, uint32_t owner) = 0;
  // There is room to write: may queue more.
  virtual void Refill(TcpLink& link) = 0;
};

// Frames may be queued before there is a connection. Memory that a queued frame borrows is read
// until OnSent or Recall. Nothing is allocated per frame, but for records that are owned. Thread:
// one.
class TcpLink {
 public:
  TcpLink(int peer, TcpLinkUser* user) : peer_(peer), user_(user) {}

  int peer() const { return peer_; }
  int fd() const { return fd_.get(); }
  // Takes a connection over which both ends have met.
  void Open(Fd fd);
  void Close();
  // Forgets all frames: those to be written, and the one that comes in.
  void Clear();

  void Queue(const TcpFrame& frame) { Add(frame); }
  void QueueBorrowed(const TcpFrame& frame, const TcpRows& rows, uint32_t owner);
  void QueueOwned(const TcpFrame& frame, std::vector<std::byte> bytes);
  // Frames of the transport that borrow memory, of this owner or of all: no longer. A frame that
  // has begun is finished from a copy.
  void Recall(uint32_t transport, int64_t owner);

  // Frames queued and frames handed to the system, since the beginning.
  uint64_t queued() const { return queued_; }
  uint64_t written() const { return queued_ - count_; }
  bool has_output() const { return count_ > 0; }
  // How many of the next frames to be written hold bytes.
  size_t pending_frames() const { return count_; }

  // The frame that comes in, if its bytes have not all come.
  bool in_payload() const { return in_payload_; }
  const TcpFrame& incoming() const { return incoming_; }
  // Its further bytes are thrown away.
  void DropIncoming() { rows_.data = nullptr; }

  // From the system: something has come, or has room, or ended.
  void Notify(bool readable, bool writable, bool ended);
  bool can_read() const { return readable_; }
  bool can_write() const { return writable_; }
  // Each moves a bounded number of bytes, and never waits.
  void Read();
  void Write();
  // The connection is no more, or the other rank breaks the rules; why.
  bool has_ended() const { return ended_; }
  const std::string& why() const { return why_; }

 private:
  struct Outgoing {
    TcpFrame frame;
    TcpRows rows;
    std::vector<std::byte> owned;
    uint32_t owner = 0;
    bool borrows = false;
  };

  struct Pieces;

  Outgoing& Add(const TcpFrame& frame);
  void Gather(size_t most, Pieces* pieces);
  Outgoing& At(size_t n) { return ring_[(first_ + n) & (ring_.size() - 1)]; }
  void Written(size_t bytes);
  void FailToWrite(int error);
  void EndFirst();
  ssize_t ReadSome(size_t* wanted);
  bool Parse();
  bool TakePayload(size_t available);
  bool EndPayload();
  bool TakeHeader();
  void End(std::string why);

  const int peer_;
  TcpLinkUser* const user_;
  Fd fd_;
  bool readable_ = false;
  bool writable_ = false;
  bool hung_up_ = false;       // the other end closed: there is more to read, up to the end
  bool write_failed_ = false;  // what came before can be read nevertheless
  bool ended_ = false;
  std::string why_;

  std::vector<Outgoing> ring_;  // its size is a power of two
  size_t first_ = 0;
  size_t count_ = 0;
  size_t header_written_ = 0;  // of the first one
  uint64_t queued_ = 0;
  std::unique_ptr<std::byte[]> packed_;  // short rows on their way out

  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0;  // of what has been read and not looked at
  size_t end_ = 0;
  TcpFrame incoming_;
  TcpRows rows_;
  bool in_payload_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_LINK_H_
